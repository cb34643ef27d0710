//! Properties of the lease table over random histories.
//!
//! The table is compared with a naive one that is written from the rules alone, with its own bytes after replay and snapshots,
//! and with what holders at the other end of the wire can believe. `LEASEHOLD_CASES` sets the number of histories per property.
//! Seeds of failures are kept in `model/regressions.txt` and tried first; shapes that once failed stand written out in
//! `model/regressions.rs`. `model/planted.rs` puts bugs back that these properties must find.

#[path = "model/beliefs.rs"]
mod beliefs;
#[path = "model/compare.rs"]
mod compare;
#[path = "model/coverage.rs"]
mod coverage;
#[path = "model/moment.rs"]
mod moment;
#[path = "model/planted.rs"]
mod planted;
#[path = "model/regressions.rs"]
mod regressions;
#[path = "model/resolve.rs"]
mod resolve;
#[path = "model/steps.rs"]
mod steps;

use leasehold_core::table::LeaseView;
use leasehold_core::{
    Answer, Applied, CallNumber, Command, Config, Due, Entry, Event, ItemKind, ItemNumber, LeaseTable,
    LogTime, Op, Operator, Refusal, Reply, ResourceName, Sequence,
};
use leasehold_oracle::Naive;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::FileFailurePersistence;

use beliefs::Beliefs;
use steps::{Script, script};

/// Entries of the longest history.
const LONGEST: usize = 40;
/// Rounds of tidying after which a leader must find nothing more to do: every resource and session of a history, one by one,
/// with room to spare.
const MOST_ROUNDS: usize = 40;

fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("LEASEHOLD_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default);
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model/regressions.txt");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(seeds))),
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

/// Plays a history: each entry is made with the help of the naive table, shown to `each`, and applied to both tables there.
fn play(
    script: &Script,
    mut each: impl FnMut(&mut Naive, &mut LeaseTable, &Entry) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let config = resolve::config(script);
    let (mut naive, mut table) = (Naive::new(config.clone()), LeaseTable::new(config));
    each(&mut naive, &mut table, &resolve::openings(script))?;
    for step in &script.entries {
        let moment = moment::Moment::of(&naive, step);
        while let Some(entry) = moment::kept_alive(&naive, &moment) {
            each(&mut naive, &mut table, &entry)?;
        }
        let entry = resolve::entry(script, &naive, &mut table, step, &moment);
        each(&mut naive, &mut table, &entry)?;
    }
    Ok(())
}

/// The entries of a history.
fn entries(script: &Script) -> (Config, Vec<Entry>) {
    let mut entries = Vec::new();
    let played = play(script, |naive, table, entry| {
        naive.apply(entry);
        table.apply(entry);
        entries.push(entry.clone());
        Ok(())
    });
    played.expect("nothing is checked here");
    (resolve::config(script), entries)
}

fn one(at: LogTime, command: Command) -> Entry {
    Entry { at, commands: vec![command] }
}

fn everything(table: &LeaseTable) -> Vec<Due> {
    // Sessions that are over are not shown any more, so ids are tried one by one; histories draw few.
    let names = (0..3).map(|nth| Due::Resource(resolve::resource(nth)));
    let epoch = table.newest() >> 48;
    let sessions =
        (0..=epoch).flat_map(|epoch| (1..=table.newest() & 0xffff).map(move |low| (epoch << 48) | low));
    sessions.map(|id| Due::Session(leasehold_core::SessionId::from_u64(id))).chain(names).collect()
}

/// Tidies as a leader does, until it finds nothing to do.
fn bring_to_rest(table: &mut LeaseTable, at: LogTime) -> Result<(), TestCaseError> {
    for _ in 0..MOST_ROUNDS {
        let due = table.due(at);
        if due.is_empty() {
            return Ok(());
        }
        table.apply(&one(at, Command::Tidy(due)));
    }
    Err(TestCaseError::fail(format!("after {MOST_ROUNDS} rounds {:?} is still due at {at}", table.due(at))))
}

/// The same command from a client that says nothing about what it has seen or settled.
fn without_seen(command: &Command) -> Command {
    let mut command = command.clone();
    match &mut command {
        Command::Attach(attach) => attach.seen = ItemNumber::NONE,
        Command::Renew { seen, .. } => *seen = ItemNumber::NONE,
        Command::Session(command) => match &mut command.sequence {
            Sequence::Streamed { seen, .. } => *seen = ItemNumber::NONE,
            Sequence::Numbered(numbered) => numbered.settled = CallNumber::NONE,
            Sequence::Plain => {}
        },
        Command::NoRoom { sequence: Sequence::Streamed { seen, .. }, .. } => *seen = ItemNumber::NONE,
        _ => {}
    }
    command
}

/// The resources that a command names.
fn named(command: &Command) -> Vec<ResourceName> {
    match command {
        Command::Session(command) => match &command.op {
            Op::Acquire(acquire) => acquire.requests.iter().map(|request| request.resource.clone()).collect(),
            Op::SetValue { resource, .. }
            | Op::SetDraining { resource, .. }
            | Op::SetReady { resource, .. }
            | Op::WriteRegister { resource, .. }
            | Op::Accept { resource, .. }
            | Op::Release { resource, .. } => vec![resource.clone()],
            Op::Offer(offer) => vec![offer.resource.clone()],
            Op::Cancel { .. } | Op::CancelCall { .. } | Op::Close => Vec::new(),
        },
        Command::Operator(
            Operator::AskRelease { resource, .. }
            | Operator::Revoke { resource, .. }
            | Operator::ChangeKind { resource, .. }
            | Operator::ClearAlarm { resource, .. },
        ) => vec![resource.clone()],
        _ => Vec::new(),
    }
}

fn is_numbered(command: &Command) -> bool {
    matches!(command, Command::Session(command) if matches!(command.sequence, Sequence::Numbered(_)))
}

fn is_refused(applied: &Applied) -> bool {
    let in_stream = applied
        .items
        .iter()
        .any(|(_, item)| matches!(&item.kind, ItemKind::Answer { answer: Answer::Refused(_), .. }));
    match &applied.replies[0] {
        Reply::Refused(_) | Reply::Plain { answer: Answer::Refused(_), .. } => true,
        Reply::Applied { .. } => in_stream,
        _ => false,
    }
}

/// Whether the command got as far as looking at the resources that it names: it was admitted, well-formed and below its limits.
fn got_to_its_resources(entry: &Entry, applied: &Applied, nth: usize) -> bool {
    let early = |refusal: &Refusal| {
        matches!(
            refusal,
            Refusal::BadRequest { .. }
                | Refusal::LimitReached { .. }
                | Refusal::TooManyUnseen { .. }
                | Refusal::NotYetInUse
        )
    };
    let early_answer = |answer: &Answer| matches!(answer, Answer::Refused(refusal) if early(refusal));
    match (&entry.commands[nth], &applied.replies[nth]) {
        (Command::Session(_), Reply::Refused(_) | Reply::Repeated { .. })
        | (_, Reply::PlainRepeated { .. } | Reply::PlainWaitEnded { .. } | Reply::NumberSettled { .. }) => {
            false
        }
        (Command::Session(sent), Reply::Applied { number }) => {
            !applied.items.iter().any(|(session, item)| {
                let ItemKind::Answer { command, answer } = &item.kind else { return false };
                (*session, *command) == (sent.session, *number) && early_answer(answer)
            })
        }
        (_, Reply::Plain { answer, .. }) => !early_answer(answer),
        (_, Reply::Refused(refusal)) => !early(refusal),
        _ => true,
    }
}

fn does_what_the_naive_one_does(script: &Script) -> Result<(), TestCaseError> {
    play(script, |naive, table, entry| {
        let (expected, applied) = (naive.apply(entry), table.apply(entry));
        prop_assert_eq!(&applied.replies, &expected.replies, "replies to {:?}", entry);
        prop_assert_eq!(&applied.events, &expected.events, "events of {:?}", entry);
        prop_assert_eq!(&applied.items, &expected.items, "items of {:?}", entry);
        compare::same_state(table, naive)?;
        prop_assert_eq!(table.check_invariants(), Ok(()));
        Ok(())
    })
}

fn contradicts_no_belief(script: &Script) -> Result<(), TestCaseError> {
    let (config, entries) = entries(script);
    let mut beliefs = Beliefs::new(config.drift);
    let mut table = LeaseTable::new(config);
    for entry in &entries {
        let applied = table.apply(entry);
        beliefs.check(entry, &applied)?;
        prop_assert_eq!(table.check_invariants(), Ok(()));
    }
    Ok(())
}

fn replays(script: &Script, points: &[bool]) -> Result<(), TestCaseError> {
    let (config, entries) = entries(script);
    let (mut straight, mut again) = (LeaseTable::new(config.clone()), LeaseTable::new(config));
    for (entry, snapshot) in entries.iter().zip(points.iter().cycle()) {
        let applied = straight.apply(entry);
        prop_assert_eq!(again.apply(entry), applied, "the outcome of {:?}", entry);
        let bytes = straight.encode();
        prop_assert_eq!(&again.encode(), &bytes, "the bytes after {:?}", entry);
        if *snapshot {
            again = LeaseTable::decode(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(again.encode(), bytes);
            prop_assert_eq!(again.check_invariants(), Ok(()), "after a snapshot");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(120))]

    /// Replies, items, events and everything that can be seen are those of the naive table, after every entry.
    #[test]
    fn the_table_does_what_the_naive_one_does(script in script(LONGEST)) {
        does_what_the_naive_one_does(&script)?;
    }

    /// No grant contradicts what a holder can still believe, goes to an overdue session or has a token that is not the greatest
    /// so far; and no lease ends by a command that does not name it.
    #[test]
    fn grants_contradict_no_belief(script in script(LONGEST)) {
        contradicts_no_belief(&script)?;
    }

    /// The same entries give the same outcomes and the same bytes, with a snapshot at any points on the way or none.
    #[test]
    fn replay_and_snapshots_change_nothing(script in script(LONGEST), points in prop::collection::vec(any::<bool>(), LONGEST)) {
        replays(&script, &points)?;
    }

    /// A numbered command that is sent again is answered as a repetition and changes not one byte.
    #[test]
    fn a_command_sent_again_changes_nothing(script in script(LONGEST)) {
        let (config, entries) = entries(&script);
        let mut table = LeaseTable::new(config);
        for entry in &entries {
            let applied = table.apply(entry);
            for (command, reply) in entry.commands.iter().zip(&applied.replies) {
                let number = match reply {
                    Reply::Applied { number } | Reply::Repeated { number } => *number,
                    // One that found no room was refused for good, and is refused again.
                    Reply::Plain { answer: Answer::Refused(Refusal::LimitReached { .. }), .. } => continue,
                    Reply::Plain { answer, .. } if is_numbered(command) => {
                        let again = table.clone().apply(&one(entry.at, command.clone()));
                        let before = table.encode();
                        let mut changed = table.clone();
                        changed.apply(&one(entry.at, command.clone()));
                        match &again.replies[..] {
                            [Reply::PlainRepeated { answer: repeated, .. }] if !matches!(answer, Answer::Queued { .. }) => {
                                prop_assert_eq!(repeated, answer);
                            }
                            // Its wait is over, its number settled since, or its session closed.
                            [Reply::PlainRepeated { .. } | Reply::PlainWaitEnded { .. }]
                            | [Reply::NumberSettled { .. } | Reply::Refused(_)] => {}
                            other => prop_assert!(false, "{:?} sent again was answered {:?}", command, other),
                        }
                        prop_assert!(again.events.is_empty(), "{:?} sent again did something", command);
                        prop_assert_eq!(changed.encode(), before, "{:?} sent again changed something", command);
                        continue;
                    }
                    _ => continue,
                };
                let before = table.encode();
                let again = table.clone().apply(&one(entry.at, command.clone()));
                let mut changed = table.clone();
                changed.apply(&one(entry.at, command.clone()));
                match &again.replies[..] {
                    [Reply::Repeated { number: repeated }] => prop_assert_eq!(*repeated, number),
                    // Since then the session was closed or attached anew, or the client has gone back on what it had seen.
                    [Reply::Refused(_)] => {}
                    other => prop_assert!(false, "{:?} sent again was answered {:?}", command, other),
                }
                prop_assert!(again.items.is_empty() && again.events.is_empty(), "{:?} sent again did something", command);
                prop_assert_eq!(changed.encode(), before, "{:?} sent again changed something", command);
            }
        }
    }

    /// At rest (nothing is over that was not tidied up) a refused command changes nothing: outside the session's own streams
    /// not at all, and not one byte if it was refused before it got a number. A token that was never granted raises the alarm, and
    /// that alone.
    #[test]
    fn a_refused_command_changes_nothing(script in script(LONGEST)) {
        let (config, entries) = entries(&script);
        let mut table = LeaseTable::new(config);
        for entry in &entries {
            let mut rested = table.clone();
            rested.apply(&Entry { at: entry.at, commands: Vec::new() });
            bring_to_rest(&mut rested, entry.at)?;
            for command in entry.commands.iter().map(without_seen) {
                let mut after = rested.clone();
                let applied = after.apply(&one(entry.at, command.clone()));
                if !is_refused(&applied) {
                    continue;
                }
                let alarms = |event: &Event| matches!(event, Event::AlarmRaised { .. });
                prop_assert!(applied.events.iter().all(alarms), "{:?} was refused and did {:?}", command, applied.events);
                prop_assert!(applied.items.len() <= 1, "{:?} was refused and told {:?}", command, applied.items);
                prop_assert_eq!(after.newest(), rested.newest());
                for name in (0..3).map(resolve::resource) {
                    let quiet = |table: &LeaseTable| table.lease(&name).map(|view| LeaseView { alarm: None, ..view });
                    if rested.lease(&name).is_some() {
                        prop_assert_eq!(quiet(&after), quiet(&rested));
                    }
                    prop_assert_eq!(after.history(&name), rested.history(&name));
                }
                if matches!(&applied.replies[..], [Reply::Refused(_)]) {
                    prop_assert_eq!(after.encode(), rested.encode(), "{:?} was refused and changed something", command);
                }
            }
            table.apply(entry);
        }
    }

    /// Tidying changes no verdict, which means exactly this. Tidying the resources that a command names, right before it in
    /// its entry, changes nothing: the command would have done it. Tidying what is not due changes nothing. (Tidying *earlier*
    /// does change what follows, as every other use of a resource does: a waiter that is served in time does not time out.)
    #[test]
    fn tidying_what_a_command_names_changes_nothing(script in script(LONGEST), which in any::<Index>()) {
        let (config, entries) = entries(&script);
        let mut table = LeaseTable::new(config);
        for entry in &entries {
            if !entry.commands.is_empty() {
                let nth = which.index(entry.commands.len());
                let tidy = Command::Tidy(named(&entry.commands[nth]).into_iter().map(Due::Resource).collect());
                let mut tidied = entry.clone();
                tidied.commands.insert(nth, tidy);
                let (mut one, mut other) = (table.clone(), table.clone());
                let (plain, mut extra) = (one.apply(entry), other.apply(&tidied));
                prop_assert_eq!(extra.replies.remove(nth), Reply::Done);
                if got_to_its_resources(entry, &plain, nth) && got_to_its_resources(entry, &extra, nth) {
                    prop_assert_eq!(&plain, &extra, "tidying before command {} of {:?}", nth, entry);
                    prop_assert_eq!(one.encode(), other.encode());
                }
            }
            table.apply(entry);
            let mut rested = table.clone();
            bring_to_rest(&mut rested, entry.at)?;
            let before = rested.encode();
            let applied = rested.apply(&one(entry.at, Command::Tidy(everything(&rested))));
            prop_assert!(applied.items.is_empty() && applied.events.is_empty(), "the leader missed {:?}", applied);
            prop_assert_eq!(rested.encode(), before, "tidying at rest changed something");
            prop_assert_eq!(rested.check_invariants(), Ok(()));
        }
    }

    /// Entries survive their bytes; and bytes that were cut or flipped give an error or another value, never a panic.
    #[test]
    fn bytes_are_read_back_or_refused(script in script(12), cut in any::<Index>(), flips in prop::collection::vec((any::<Index>(), 0_u8..8), 1..4)) {
        let (config, entries) = entries(&script);
        let mut table = LeaseTable::new(config);
        for entry in &entries {
            let bytes = entry.encode();
            prop_assert_eq!(Entry::decode(&bytes), Ok(entry.clone()));
            prop_assert!(Entry::decode(&bytes[..cut.index(bytes.len())]).is_err(), "a cut entry was read");
            let _ = Entry::decode(&flipped(&bytes, &flips));
            table.apply(entry);
        }
        let bytes = table.encode();
        prop_assert!(LeaseTable::decode(&bytes[..cut.index(bytes.len())]).is_err(), "a cut snapshot was read");
        if let Ok(other) = LeaseTable::decode(&flipped(&bytes, &flips)) {
            let _ = other.check_invariants();
        }
    }
}

fn flipped(bytes: &[u8], flips: &[(Index, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, bit) in flips {
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
    }
    bytes
}
