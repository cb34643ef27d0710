//! Bugs planted into disks, network, clocks and clients. Each is found by the same schedules and checks that find nothing
//! without it: `schedule` plays these seeds too.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leasehold_core::planted::{Bug, plant};
use leasehold_node::{Fatal, Input, Options, PeerMessage};
use raft::eraftpb::{Message, MessageType};

use crate::cut_writes::{catches_up_and_crashes, two_changes_and_a_crash};
use crate::schedule::play;
use crate::world::{World, id_of};

/// Members that forget what they have said come to more than one truth.
const TWO_TRUTHS: [&str; 6] = [
    "voted twice",
    "two leaders",
    "two truths",
    "disks of",
    "not what the log says",
    "which is not in the table",
];

/// Plays schedules until the bug is noticed, by the checks or by a node that stops, and says how.
#[track_caller]
fn noticed(bug: Bug, seeds: u64) -> String {
    let _planted = plant(bug);
    for seed in 0..seeds {
        match catch_unwind(AssertUnwindSafe(|| play(seed))) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return why,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                return text.unwrap_or_else(|| "a panic without words".into());
            }
        }
    }
    panic!("{bug:?} was not noticed in {seeds} schedules");
}

#[track_caller]
fn is_one_of(why: &str, words: &[&str]) {
    eprintln!("{why}");
    assert!(words.iter().any(|word| why.contains(word)), "noticed otherwise: {why}");
}

#[test]
fn a_disk_that_reports_too_early_is_noticed() {
    let why = noticed(Bug::AckBeforeSync, 10);
    let by_raft = "unexpected error when getting the last term";
    is_one_of(&why, &[&TWO_TRUTHS[..], &[by_raft]].concat());
}

#[test]
fn a_node_that_forgets_votes_is_noticed() {
    // Two candidates of one term ask the same member, which is started again between.
    let play = || {
        let mut world = World::founded(3, Options::default(), 1);
        for candidate in [0, 1] {
            let mut asks = Message { term: 5, log_term: 1, index: 1, ..Message::default() };
            asks.set_msg_type(MessageType::MsgRequestVote);
            (asks.from, asks.to) = (id_of(candidate).0, id_of(2).0);
            let message = PeerMessage::Raft(Box::new(asks));
            world.processes[2].inbox.push(Input::Peer { from: id_of(candidate), message });
            world.hop();
            world.crash(2);
            world.start(2);
        }
        std::mem::take(&mut world.checks.violations)
    };
    assert!(play().is_empty());
    let _planted = plant(Bug::VoteNotPersisted);
    is_one_of(&play().concat(), &["voted twice"]);
}

#[test]
fn a_network_that_repeats_a_request_is_noticed() {
    let why = noticed(Bug::ForwardedTwice, 10);
    is_one_of(&why, &["applied twice", "took effect though"]);
}

#[test]
fn answers_that_are_lost_in_silence_are_noticed() {
    let why = noticed(Bug::ForwardLost, 10);
    is_one_of(&why, &["never answered", "not answered", "did not come to it"]);
}

#[test]
fn a_client_that_counts_from_what_it_hears_is_noticed() {
    let why = noticed(Bug::DeadlineFromReceipt, 10);
    is_one_of(&why, &["is believed to be held by", "which is not in the table"]);
}

#[test]
fn a_wiped_member_with_its_old_id_is_noticed() {
    let why = noticed(Bug::WipedKeepsId, 10);
    is_one_of(&why, &TWO_TRUTHS);
}

#[test]
fn an_outage_that_begins_with_what_was_heard_late_is_noticed() {
    let _planted = plant(Bug::OutageFromLeader);
    let length = crate::gaps::followers_stood_still_for(6_000);
    assert!(length < 5_000, "{length} ms");
}

#[test]
fn clocks_that_run_too_fast_are_noticed() {
    let why = noticed(Bug::FastClock, 10);
    is_one_of(&why, &["log time moved by"]);
}

#[test]
fn a_disk_that_writes_the_commit_behind_the_entries_is_noticed() {
    let _planted = plant(Bug::WritesEntriesFirst);
    assert!(two_changes_and_a_crash(0).checks.violations.is_empty());
    let world = two_changes_and_a_crash(1);
    let why = world.checks.violations.concat();
    assert!(why.contains("two leaders in term"), "{why}");
}

#[test]
fn a_disk_that_writes_the_commit_before_the_entries_is_noticed() {
    let _planted = plant(Bug::WritesVotesFirst);
    let (_, _, started) = catches_up_and_crashes(1);
    assert!(
        matches!(&started, Err(Fatal::Invariant(why)) if why.contains("before its commit")),
        "{started:?}"
    );
}

#[test]
fn every_bug_that_tests_of_nodes_have_to_find_is_planted_here() {
    let tests = include_str!("planted.rs");
    let is_missing = |bug: &&Bug| {
        let planted = |end| tests.contains(&format!("(Bug::{bug:?}{end}"));
        bug.found_by() == "node" && !planted(')') && !planted(',')
    };
    assert_eq!(Bug::ALL.iter().find(is_missing), None);
}
