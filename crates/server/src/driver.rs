//! The node's loop and its disk, each on a thread of its own.
//!
//! The loop wakes at least every 20 ms. It reads the clocks only after it has taken in everything that has arrived, and hands
//! out what the node says in order. Neither disk nor network ever blocks it: their queues are unbounded towards the loop, and
//! bounded towards a client, whose connection ends when it does not read.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;

use leasehold_core::protocol::ToClient;
use leasehold_node::{ConnectionId, Input, LogEntry, LogWrite, Node, Output};
use leasehold_wal::{Entry, HardState, Index, NodeId, Record, SnapshotKind, Term, Wal, WriteError};
use tokio::sync::{mpsc as async_mpsc, oneshot};

use crate::directory::Locked;
use crate::disk::FileDisk;

/// Inputs taken in by one turn at most: a flood must not keep the loop from reading the clocks.
const MAX_INPUTS_PER_TURN: usize = 8_192;
/// How often the loop makes sure that its lock file is still the one in the directory, in turns of at most 20 ms.
const TURNS_PER_LOCK_CHECK: u32 = 50;
/// Batches of messages that may wait for a client that does not read before its connection is ended; it attaches anew.
pub(crate) const MAX_OUTGOING: usize = 256;

/// What reaches the loop.
#[derive(Debug)]
pub(crate) enum ToLoop {
    /// A client has connected; responses go here.
    Connected(ConnectionId, Outgoing),
    /// Something for the node.
    Node(Input),
    /// The disk has failed: nothing more can be promised.
    DiskFailed(String),
    /// Finish and stop.
    Stop,
}

/// What reaches the disk.
enum ToDisk {
    Write(LogWrite),
    Snapshot { index: u64, term: u64, bytes: Vec<u8> },
}

/// Why the loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
    AsAsked,
    LockLost,
    Failed(String),
}

/// Starts the loop and its disk.
pub(crate) fn start(
    node: Node,
    wal: Wal<FileDisk>,
    locked: Locked,
    inbox: Receiver<ToLoop>,
    to_loop: Sender<ToLoop>,
) -> std::io::Result<JoinHandle<Stopped>> {
    let (to_disk, jobs) = std::sync::mpsc::channel();
    // The lock is given up by whichever thread ends last: if the loop panics, the disk may still be writing.
    let locked = Arc::new(locked);
    let disk_lock = Arc::clone(&locked);
    let disk = std::thread::Builder::new().name("leasehold-disk".into()).spawn(move || {
        let alarm = Alarm(to_loop);
        run_disk(wal, &jobs, &alarm.0);
        drop(disk_lock);
    })?;
    std::thread::Builder::new().name("leasehold-node".into()).spawn(move || {
        let mut event_loop = Loop { node, inbox, to_disk: Some(to_disk), connections: HashMap::new() };
        let stopped = event_loop.run(&locked);
        // The disk finishes what it has before the lock is given up.
        drop(event_loop);
        let finished = disk.join();
        drop(locked);
        if finished.is_err() { Stopped::Failed("the disk thread panicked".into()) } else { stopped }
    })
}

/// Tells the loop when the disk thread panics: it would wait for ever for the write on its way.
struct Alarm(Sender<ToLoop>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(ToLoop::DiskFailed("the disk thread panicked".into()));
        }
    }
}

struct Loop {
    node: Node,
    inbox: Receiver<ToLoop>,
    to_disk: Option<Sender<ToDisk>>,
    connections: HashMap<ConnectionId, Outgoing>,
}

/// The way to a client. Its connection ends when the loop drops this.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) sender: async_mpsc::Sender<Vec<ToClient>>,
    /// Noticed by the connection even while it cannot write.
    pub(crate) _open: oneshot::Sender<()>,
}

impl Loop {
    fn run(&mut self, locked: &Locked) -> Stopped {
        let mut turns_until_check = TURNS_PER_LOCK_CHECK;
        loop {
            let mut inputs = Vec::new();
            if let Some(stopped) = self.gather(&mut inputs) {
                return stopped;
            }
            turns_until_check -= 1;
            if turns_until_check == 0 {
                turns_until_check = TURNS_PER_LOCK_CHECK;
                if !locked.is_linked() {
                    return Stopped::LockLost;
                }
            }
            match self.node.turn(leasehold_clock::read(), inputs) {
                Ok(outputs) => self.carry_out(outputs),
                Err(fatal) => return Stopped::Failed(fatal.to_string()),
            }
        }
    }

    /// Waits for the first input, but not past the node's next wake, and takes in all that has arrived.
    fn gather(&mut self, inputs: &mut Vec<Input>) -> Option<Stopped> {
        let mut next = match self.inbox.recv_timeout(self.node.sleep().duration()) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Some(Stopped::AsAsked),
        };
        while let Some(message) = next {
            match message {
                ToLoop::Connected(connection, outgoing) => {
                    self.connections.insert(connection, outgoing);
                }
                ToLoop::Node(Input::Disconnected(connection)) => {
                    self.connections.remove(&connection);
                    inputs.push(Input::Disconnected(connection));
                }
                ToLoop::Node(input) => inputs.push(input),
                ToLoop::DiskFailed(why) => return Some(Stopped::Failed(why)),
                ToLoop::Stop => return Some(Stopped::AsAsked),
            }
            if inputs.len() >= MAX_INPUTS_PER_TURN {
                break;
            }
            next = match self.inbox.try_recv() {
                Ok(message) => Some(message),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return Some(Stopped::AsAsked),
            };
        }
        None
    }

    fn carry_out(&mut self, outputs: Vec<Output>) {
        let mut outgoing: Vec<(ConnectionId, Vec<ToClient>)> = Vec::new();
        let mut places: HashMap<ConnectionId, usize> = HashMap::new();
        for output in outputs {
            match output {
                Output::Write(write) => self.hand_to_disk(ToDisk::Write(write)),
                Output::SaveSnapshot { index, term, bytes } => {
                    self.hand_to_disk(ToDisk::Snapshot { index, term, bytes });
                }
                Output::Send { connection, message } => {
                    let place = *places.entry(connection).or_insert_with(|| {
                        outgoing.push((connection, Vec::new()));
                        outgoing.len() - 1
                    });
                    outgoing[place].1.push(message);
                }
                // One voter has no peers.
                Output::SendPeer(_) => {}
            }
        }
        for (connection, messages) in outgoing {
            let to_client = self.connections.get(&connection);
            if to_client.is_some_and(|to_client| to_client.sender.try_send(messages).is_err()) {
                // Gone, or not reading: the connection ends, and the client attaches anew.
                self.connections.remove(&connection);
            }
        }
    }

    fn hand_to_disk(&self, job: ToDisk) {
        // A disk thread that is gone has said why; the loop is about to read it.
        if let Some(to_disk) = &self.to_disk {
            let _ = to_disk.send(job);
        }
    }
}

fn run_disk(mut wal: Wal<FileDisk>, jobs: &Receiver<ToDisk>, to_loop: &Sender<ToLoop>) {
    while let Ok(job) = jobs.recv() {
        let done = match job {
            ToDisk::Write(write) => {
                let number = write.number;
                wal.append(&records(write)).map(|()| Input::Written { number })
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
