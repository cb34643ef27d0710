//! What is inside the log and its snapshots: entries, the table, and the snapshot of a node.

use leasehold_core::{Command, Entry, LeaseTable, LogTime};
use leasehold_node::payload::{NodeSnapshot, Payload, Voters};
use leasehold_node::{Anchor, ChangeLog, Machine, Roster};

use super::values::{member, name, story};
use crate::Shape;

fn anchor() -> Anchor {
    let machine = Machine { boot_id: [5; 16], time_namespace: 4_026_531_834, offsets: [0, 0, 1, -1] };
    Anchor { machine, boot: 1_000_000, raw: 900_000 }
}

pub(super) fn entry_seeds() -> Vec<Vec<u8>> {
    let with = |(entry, number): (Entry, u64)| {
        let anchor = number.is_multiple_of(2).then(anchor);
        Payload { entry, anchor, outcomes: number.is_multiple_of(3).then_some(number) }.encode()
    };
    let mut seeds: Vec<Vec<u8>> = story().entries.into_iter().zip(1..).map(with).collect();
    // As the first release wrote it: nothing but an anchor, and the entry.
    let old = [&[1, 0][..], &story().entries[1].encode()].concat();
    seeds.push(old);
    seeds
}

pub(super) fn check_entry(input: &[u8]) -> Shape {
    let bare = Entry::decode(input);
    if let Ok(entry) = &bare {
        assert_eq!(Entry::decode(&entry.encode()).as_ref(), Ok(entry), "an entry comes out as another");
    }
    let decoded = Payload::decode(input);
    if let Ok(payload) = &decoded {
        assert_eq!(
            Payload::decode(&payload.encode()).as_ref(),
            Ok(payload),
            "a payload comes out as another"
        );
    }
    Shape::of(&bare).and(Shape::of(&decoded))
}

pub(super) fn table_seeds() -> Vec<Vec<u8>> {
    story().tables.iter().map(LeaseTable::encode).collect()
}

pub(super) fn check_table(input: &[u8]) -> Shape {
    match LeaseTable::decode(input) {
        Ok(table) => use_table(table),
        Err(error) => Shape::of(&error),
    }
}

/// A table that was read must be one that can be used: what it relies on was checked.
fn use_table(mut table: LeaseTable) -> Shape {
    let bytes = table.encode();
    let again = LeaseTable::decode(&bytes).expect("what was encoded is decoded");
    assert_eq!(again.encode(), bytes, "a table comes out as another");
    let invariants = table.check_invariants();
    let views = (
        table.leases("", None, 100).collect::<Vec<_>>(),
        table.sessions(None, 100).collect::<Vec<_>>(),
        table.history(&name("jobs/night")),
        table.alarms().collect::<Vec<_>>(),
    );
    let shape = Shape::of(&invariants).and(Shape::of(&views));
    if invariants.is_ok() {
        go_on(&mut table);
    }
    shape
}

/// Time goes on until everything that was held is over.
fn go_on(table: &mut LeaseTable) {
    const STEPS: [u64; 4] = [0, 1, 60_000, 3 * 86_400_000];
    for step in STEPS {
        let at = LogTime::new(table.last_at().get().saturating_add(step));
        let due = table.due(at);
        table.apply(&Entry { at, commands: vec![Command::Tidy(due)] });
        let _ = (table.next_due(), table.time_step());
        table.check_invariants().expect("tidying breaks nothing");
    }
}

pub(super) fn snapshot_seeds() -> Vec<Vec<u8>> {
    let story = story();
    let mut changes = ChangeLog::default();
    let seeds = story.tables.iter().zip(1_u64..).map(|(table, number)| {
        if number == 9 {
            changes = ChangeLog::after(leasehold_core::Revision::new(number));
        }
        let voters = Voters {
            voters: vec![7, 8, number],
            learners: vec![9],
            outgoing: vec![7],
            learners_next: vec![8],
            auto_leave: number.is_multiple_of(2),
        };
        let anchor = number.is_multiple_of(2).then(anchor);
        let stamped = Some((table.last_at(), anchor));
        let roster = Roster::founding(vec![member(7)]);
        NodeSnapshot::encode(voters, &roster, Some(number), stamped, &changes, table)
    });
    let mut seeds: Vec<Vec<u8>> = seeds.collect();
    seeds.push(with_changes(&story.changes, &story.tables[9]));
    // As the first two releases wrote it: voters, learners and a stamp, then changes (the second), then the table.
    let table = story.tables[9].encode();
    seeds.push([&[1, 1, 7, 0, 0][..], &table].concat());
    seeds.push([&[2, 1, 7, 0, 0, 0, 0][..], &table].concat());
    seeds
}

/// A snapshot that keeps changes. Only a node adds them, so they are put where its encoder puts them: behind the head.
fn with_changes(changes: &[leasehold_core::protocol::Changes], table: &LeaseTable) -> Vec<u8> {
    let empty =
        NodeSnapshot::encode(Voters::default(), &Roster::default(), None, None, &ChangeLog::default(), table);
    let table = table.encode();
    let head = empty.len() - table.len() - 2;
    let mut bytes = empty[..head].to_vec();
    bytes.extend_from_slice(&[0, u8::try_from(changes.len()).expect("a short story")]);
    for batch in changes {
        bytes.extend_from_slice(&postcard::to_allocvec(batch).expect("a vector grows as needed"));
    }
    bytes.extend_from_slice(&table);
    bytes
}

pub(super) fn check_snapshot(input: &[u8]) -> Shape {
    match NodeSnapshot::decode(input) {
        Ok(read) => {
            let shape = Shape::of(&(&read.roster, &read.voters, &read.stamped, &read.changes));
            let bytes = encode(&read);
            let again = NodeSnapshot::decode(&bytes).expect("what was encoded is decoded");
            assert_eq!(encode(&again), bytes, "a snapshot comes out as another");
            shape.and(use_table(read.table))
        }
        Err(error) => Shape::of(&error),
    }
}

fn encode(read: &NodeSnapshot) -> Vec<u8> {
    let NodeSnapshot { voters, roster, outcomes, stamped, changes, table } = read;
    let none = ChangeLog::default();
    let changes = changes.as_ref().unwrap_or(&none);
    NodeSnapshot::encode(voters.clone(), roster, *outcomes, stamped.clone(), changes, table)
}
