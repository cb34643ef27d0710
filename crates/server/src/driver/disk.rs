//! The disk's thread: one write after the other, each synced before it is reported.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use leasehold_node::{Buckets, Input, LogEntry, LogWrite};
use leasehold_wal::{Entry, HardState, Index, NodeId, Record, SnapshotKind, Term, Wal, WriteError};

use super::ToLoop;
use crate::disk::FileDisk;
use crate::inbox::Inbox;

/// What reaches the disk.
pub(super) enum ToDisk {
    Write(LogWrite),
    Snapshot { index: u64, term: u64, bytes: Vec<u8> },
}

/// Microseconds of a write and its sync.
const SYNC_BOUNDS: &[u64] = &[
    25, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 409_600, 1_638_400,
    6_553_600,
];

/// How long writes took. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct SyncTimes(Arc<Mutex<Buckets>>);

impl SyncTimes {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Buckets::new(SYNC_BOUNDS))))
    }

    pub(super) fn get(&self) -> Buckets {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, micros: u128) {
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(micros);
    }
}

pub(super) fn run(mut wal: Wal<FileDisk>, jobs: &Receiver<ToDisk>, to_loop: &Inbox, times: &SyncTimes) {
    while let Ok(job) = jobs.recv() {
        let done = match job {
            ToDisk::Write(write) => {
                let number = write.number;
                let began = leasehold_clock::read();
                let written = wal.append(&records(write)).map(|()| Input::Written { number });
                times.add(leasehold_clock::read().since(began).smaller().as_micros());
                written
            }
            ToDisk::Snapshot { index, term, bytes } => wal
                .save_snapshot(SnapshotKind::Taken, Index(index), Term(term), &bytes, &[])
                .map(|_| Input::SnapshotSaved { index, term }),
        };
        match done {
            Ok(input) => {
                if to_loop.send(ToLoop::Node(input)).is_err() {
                    return;
                }
                // After the answer is on its way: the next segment is made before it is needed.
                if let Err(error @ (WriteError::Failed { .. } | WriteError::Stopped { .. })) = wal.prepare() {
                    let _ = to_loop.send(ToLoop::DiskFailed(error.to_string()));
                    return;
                }
            }
            Err(error) => {
                let _ = to_loop.send(ToLoop::DiskFailed(error.to_string()));
                return;
            }
        }
    }
}

fn records(write: LogWrite) -> Vec<Record> {
    let vote = write.vote.map(|vote| {
        Record::HardState(HardState {
            term: Term(vote.term),
            vote: (vote.vote != 0).then_some(NodeId(vote.vote)),
            commit: Index(vote.commit),
        })
    });
    let entry = |entry: LogEntry| {
        Record::Entry(Entry {
            index: Index(entry.index),
            term: Term(entry.term),
            kind: entry.kind,
            payload: entry.payload,
        })
    };
    vote.into_iter().chain(write.entries.into_iter().map(entry)).collect()
}
