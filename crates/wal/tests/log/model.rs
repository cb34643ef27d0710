//! A log as a list in memory, and a run that exercises everything the real one does.

use leasehold_wal::mem::MemDisk;
use leasehold_wal::{
    Entry, HardState, Identity, Index, NodeId, Options, Record, Recovered, SnapshotKind, Term, Wal,
    WriteError,
};

pub(crate) const IDENTITY: Identity = Identity { lock_inode: 4711 };

/// Segments of a few blocks, so that a short run changes them often.
pub(crate) fn small() -> Options {
    Options { first_segment_bytes: 8 * 512, segment_bytes: 10 * 512, ..Options::default() }
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Append(Vec<Record>),
    Prepare,
    Restock,
    /// From here on the disk is full, or not any more.
    Fill(bool),
    Snapshot {
        kind: SnapshotKind,
        index: u64,
        bytes: Vec<u8>,
        with: Vec<Record>,
    },
}

/// What the log must say after some steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) hard_state: HardState,
    pub(crate) entries: Vec<Entry>,
    pub(crate) snapshot: Option<(SnapshotKind, Index, Vec<u8>)>,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self { hard_state: HardState::NEW, entries: Vec::new(), snapshot: None }
    }

    pub(crate) fn of(recovered: &Recovered) -> Self {
        Self {
            hard_state: recovered.hard_state,
            entries: recovered.entries.clone(),
            snapshot: recovered.snapshot.as_ref().map(|(meta, bytes)| (meta.kind, meta.index, bytes.clone())),
        }
    }

    pub(crate) fn after(&self, step: &Step) -> Self {
        let mut next = self.clone();
        match step {
            Step::Append(records) => records.iter().for_each(|record| next.add(record)),
            Step::Prepare | Step::Restock | Step::Fill(_) => {}
            Step::Snapshot { kind, index, bytes, with } => {
                match kind {
                    SnapshotKind::Taken => next.entries.retain(|entry| entry.index.0 > *index),
                    SnapshotKind::Installed => next.entries.clear(),
                }
                next.snapshot = Some((*kind, Index(*index), bytes.clone()));
                next.hard_state.commit = next.hard_state.commit.max(Index(*index));
                with.iter().for_each(|record| next.add(record));
            }
        }
        next
    }

    fn add(&mut self, record: &Record) {
        match record {
            Record::HardState(state) => self.hard_state = *state,
            Record::Entry(entry) => {
                self.entries.retain(|old| old.index < entry.index);
                self.entries.push(entry.clone());
            }
        }
    }

    pub(crate) fn next_index(&self) -> u64 {
        let snapshot = self.snapshot.as_ref().map_or(0, |(_, index, _)| index.0);
        self.entries.last().map_or(snapshot, |entry| entry.index.0) + 1
    }
}

pub(crate) fn take_step(wal: &mut Wal<&mut MemDisk>, step: &Step) -> Result<(), WriteError> {
    match step {
        Step::Append(records) => wal.append(records),
        Step::Prepare => wal.prepare(),
        Step::Restock => wal.restock().map(|_| ()),
        Step::Fill(full) => {
            wal.disk_mut().set_full(*full);
            Ok(())
        }
        Step::Snapshot { kind, index, bytes, with } => {
            wal.save_snapshot(*kind, Index(*index), Term(1), bytes, with).map(|_| ())
        }
    }
}

/// How far a run came, and whether a call was under way when it ended.
pub(crate) struct Run {
    pub(crate) answered: usize,
    pub(crate) error: Option<String>,
}

/// Opens the disk and takes the steps until one fails.
pub(crate) fn run(disk: &mut MemDisk, options: Options, steps: &[Step]) -> Run {
    let mut wal = match Wal::open(disk, IDENTITY, options) {
        Ok((wal, _)) => wal,
        Err(error) => return Run { answered: 0, error: Some(error.to_string()) },
    };
    for (answered, step) in steps.iter().enumerate() {
        if let Err(error) = take_step(&mut wal, step) {
            return Run { answered, error: Some(error.to_string()) };
        }
    }
    Run { answered: steps.len(), error: None }
}

/// The states after 0, 1, 2 ... steps.
pub(crate) fn states(steps: &[Step]) -> Vec<Model> {
    let mut states = vec![Model::new()];
    for step in steps {
        let next = states.last().expect("the first state is there").after(step);
        states.push(next);
    }
    states
}

pub(crate) fn vote(term: u64, node: u64, commit: u64) -> Record {
    Record::HardState(HardState { term: Term(term), vote: Some(NodeId(node)), commit: Index(commit) })
}

/// An entry whose payload tells it from every other entry of the same length.
pub(crate) fn entry(index: u64, term: u64, len: usize) -> Record {
    let byte = |i: usize| (i as u64 * 31 + index * 7 + term * 101 + len as u64) as u8;
    Record::Entry(Entry {
        index: Index(index),
        term: Term(term),
        kind: (term % 3) as u8,
        payload: (0..len).map(byte).collect(),
    })
}

fn taken(index: u64, len: usize) -> Step {
    let bytes = (0..len).map(|i| (i as u64 * 13 + index) as u8).collect();
    Step::Snapshot { kind: SnapshotKind::Taken, index, bytes, with: Vec::new() }
}

/// Votes, one and many blocks, truncation, changes of segment (made ahead and not), a batch larger than a segment, snapshots taken and
/// installed, with and without entries above them.
pub(crate) fn everything() -> Vec<Step> {
    use Step::{Append, Prepare, Snapshot};
    let install = Snapshot {
        kind: SnapshotKind::Installed,
        index: 40,
        bytes: vec![40; 700],
        with: vec![vote(3, 3, 40), entry(41, 3, 10)],
    };
    let mut steps = vec![
        Append(vec![vote(1, 1, 0)]),
        Append(vec![entry(1, 1, 5), entry(2, 1, 5), entry(3, 1, 5)]),
        Append(vec![vote(1, 1, 3), entry(4, 1, 1000)]),
        Append(vec![entry(5, 1, 10), entry(6, 1, 10)]),
        Prepare,
        Append(vec![vote(2, 2, 4)]),
        Append(vec![entry(5, 2, 700)]),
        Append(vec![entry(6, 2, 20), entry(7, 2, 900)]),
        taken(5, 600),
        Prepare,
        Append(vec![vote(3, 3, 6), entry(8, 3, 40)]),
        Append(vec![entry(9, 3, 6000)]),
        Append(vec![entry(10, 3, 20)]),
        taken(10, 100),
        Append(vec![entry(11, 3, 1400)]),
        install,
        Append(vec![entry(42, 3, 1200), entry(43, 3, 8)]),
        Prepare,
        Append(vec![vote(4, 1, 41), entry(42, 4, 30)]),
        Append(vec![entry(43, 4, 30)]),
        taken(41, 0),
    ];
    steps.extend((44..52).map(|index| Append(vec![entry(index, 4, 300)])));
    steps.push(taken(50, 30));
    steps.push(Append(vec![entry(52, 4, 30), entry(53, 4, 500)]));
    // Below the end of our own log: what is above it must not come back.
    steps.push(Snapshot { kind: SnapshotKind::Installed, index: 52, bytes: vec![52; 20], with: Vec::new() });
    steps.push(Append(vec![vote(5, 2, 52)]));
    steps
}

/// A run drawn from a seed: mostly batches of all sizes, some truncation, snapshots of both kinds.
pub(crate) fn drawn(seed: u64, len: usize) -> Vec<Step> {
    let mut random = seed;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut model = Model::new();
    let mut steps = Vec::new();
    for term in 1..=len as u64 {
        let lowest = model.snapshot.as_ref().map_or(1, |(_, index, _)| index.0 + 1);
        let next = model.next_index();
        let bytes = vec![term as u8; draw(1200) as usize];
        let step = match draw(10) {
            0 => Step::Prepare,
            1 => Step::Append(vec![vote(term, draw(3) + 1, model.hard_state.commit.0)]),
            2 if next > lowest => {
                let index = lowest + draw(next - lowest);
                Step::Snapshot { kind: SnapshotKind::Taken, index, bytes, with: Vec::new() }
            }
            3 => {
                let index = lowest + draw(4);
                let with = vec![vote(term, 1, index), entry(index + 1, term, 10)];
                Step::Snapshot { kind: SnapshotKind::Installed, index, bytes, with }
            }
            4 => Step::Append(vec![entry(lowest + draw(next - lowest + 1), term, draw(2000) as usize)]),
            _ => {
                let count = draw(3) + 1;
                Step::Append(
                    (next..next + count).map(|index| entry(index, term, draw(700) as usize)).collect(),
                )
            }
        };
        model = model.after(&step);
        steps.push(step);
    }
    steps
}

/// The steps that touch everything once, for checks that multiply.
pub(crate) fn short() -> Vec<Step> {
    use Step::{Append, Prepare};
    vec![
        Append(vec![vote(1, 2, 0), entry(1, 1, 900)]),
        Append(vec![entry(2, 1, 30)]),
        Append(vec![entry(2, 2, 30), entry(3, 2, 600)]),
        taken(2, 520),
        Prepare,
        Append(vec![entry(4, 2, 500)]),
        Append(vec![vote(3, 1, 4), entry(5, 3, 1100)]),
    ]
}
