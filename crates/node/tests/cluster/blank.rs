//! Nodes that have no snapshot yet: they wait for one, however often they are started.

use leasehold_core::protocol::ClusterCommand;
use leasehold_node::{CALLS, Input, Options, PeerMessage};
use raft::eraftpb::{Message, MessageType};

use crate::actor::{Actor, look, order};
use crate::disk::Disk;
use crate::world::{World, id_of, is_unavailable, member};

/// A node that was added and has noted the term of its leader, and whose snapshot did not arrive.
fn added_and_cut_off() -> (World, usize) {
    let mut world = World::cluster(1);
    let blank = world.add_process(None);
    order(&mut world, 0, ClusterCommand::Add(member(blank)));
    world.run_until(1_000, |world| world.processes[blank].disk.recovered().vote.term > 0);
    assert!(world.node(blank).membership().is_blank(), "the snapshot is on its way");
    world.isolate(blank);
    (world, blank)
}

#[test]
fn a_blank_node_that_is_started_again_before_its_snapshot_waits_for_it() {
    let (mut world, blank) = added_and_cut_off();
    for _ in 0..3 {
        world.crash(blank);
        world.start(blank);
        world.run(2_000);
        let node = world.node(blank);
        assert!(node.membership().is_blank() && node.leader().is_none() && !node.is_serving());
        assert!(is_unavailable(&world.call(blank, look("job"))), "it does not even know the others");
    }
    assert!(!world.checks.is_candidate(id_of(blank).0), "it has nobody to ask");
    assert_eq!(world.checks.votes_of(id_of(blank).0), 0);
    assert_eq!(world.processes[blank].replaced, 0);
    world.net.heal_all();
    world.run(1_500);
    assert_eq!(world.processes[blank].replaced, 1);
    assert_eq!(world.node(blank).applied(), world.checks.applied());
}

#[test]
fn a_blank_node_that_is_told_to_lead_does_not() {
    let (mut world, blank) = added_and_cut_off();
    let term = world.processes[blank].disk.recovered().vote.term;
    let mut order = Message { term, from: id_of(0).0, to: id_of(blank).0, ..Message::default() };
    order.set_msg_type(MessageType::MsgTimeoutNow);
    let message = PeerMessage::Raft(Box::new(order));
    world.processes[blank].inbox.push(Input::Peer { from: id_of(0), message });
    world.run(1_000);
    assert!(!world.checks.is_candidate(id_of(blank).0));
    assert_eq!(world.processes[blank].disk.recovered().vote.term, term);
}

#[test]
fn a_blank_founder_keeps_its_word_when_it_is_started_again() {
    // The others list it as a voter, and may need its vote; it has nothing that they could have lost.
    let mut world = World::founded(3, Options::default(), 4);
    for process in 0..3 {
        world.crash(process);
    }
    world.processes[2].disk = Disk::with(None);
    world.start(2);
    for candidate in [0, 1] {
        let mut asks = Message { term: 5, log_term: 1, index: 1, ..Message::default() };
        asks.set_msg_type(MessageType::MsgRequestVote);
        (asks.from, asks.to) = (id_of(candidate).0, id_of(2).0);
        let message = PeerMessage::Raft(Box::new(asks));
        world.processes[2].inbox.push(Input::Peer { from: id_of(candidate), message });
        world.hop();
        // Its second vote would be found by the checks.
        world.crash(2);
        world.start(2);
    }
    assert_eq!(world.checks.votes_of(id_of(2).0), 1);
    world.run(2_000);
    assert!(!world.checks.is_candidate(id_of(2).0) && world.node(2).membership().is_blank());
    world.start(0);
    world.run_until(5_000, |world| world.leader() == Some(0));
    world.run(500);
    assert_eq!(world.processes[2].replaced, 1);
    let plain = Actor::plain(&mut world, 2, 1, 60_000);
    let renews = world.ask(2, CALLS, plain.plain_renew());
    world.wait(renews);
}
