//! One slot for a node: its process, its disk and its machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use leasehold_core::protocol::{Member, MemberId};
use leasehold_node::{Input, Membership, Node, SavedSnapshot};
use leasehold_wal::mem::MemDisk;
use leasehold_wal::{Space, Wal};

use super::disk::Job;
use super::nodes::Stalls;
use crate::clock::MachineClock;
use crate::record::LogId;

/// The files of a slot: under a log while a process runs, else alone.
pub(super) enum Files {
    Log(Box<Wal<MemDisk>>),
    Disk(Box<MemDisk>),
    /// Being moved from one to the other.
    Nowhere,
}

/// An entry that was written here and is not applied yet.
pub(super) struct Unapplied {
    pub(super) term: u64,
    pub(super) kind: u8,
    pub(super) payload: Vec<u8>,
}

/// What a slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody uses it.
    Unused,
    /// Its node is, or is to be, a member.
    Used,
}

pub(super) struct Process {
    pub(super) standing: Standing,
    pub(super) member: Member,
    /// How often the slot was wiped.
    pub(super) generation: u32,
    /// Counts processes: what was meant for an earlier one is for nobody.
    pub(super) life: u32,
    pub(super) node: Option<Node>,
    pub(super) files: Files,
    /// Whether a log was founded here: from then on it must exist.
    pub(super) founded: bool,
    pub(super) clock: MachineClock,
    pub(super) wake_at: u64,
    pub(super) paused: bool,
    pub(super) inbox: Vec<Input>,
    pub(super) membership: Arc<Membership>,
    /// Others that have shown where they are and are not among the members known here.
    pub(super) met: BTreeSet<MemberId>,
    /// Connections of clients.
    pub(super) connections: BTreeSet<u64>,
    pub(super) disk: DiskThread,
    /// Entries written and not yet applied.
    pub(super) log: BTreeMap<u64, Unapplied>,
    /// The last entry whose application was noted.
    pub(super) noted: u64,
    /// The life of the state that it belongs to.
    pub(super) state: LogId,
    /// The term last written.
    pub(super) term: u64,
    /// The term in which it leads, if it does.
    pub(super) leads: Option<u64>,
    /// Whether it hands leadership over.
    pub(super) hands_over: bool,
    /// Since when what it told watchers binds it.
    pub(super) told_since: u64,
    /// Its last life ended in the middle of what its disk did.
    pub(super) interrupted: bool,
    /// Damage was done to its files, so it may refuse to begin.
    pub(super) damaged: bool,
    /// A copy of its files from an earlier time.
    pub(super) earlier: Option<Box<MemDisk>>,
    /// Its files were put back to such a copy: how far it had come before. It may find that out and refuse to go on.
    pub(super) forgot: Option<Forgot>,
    /// The lock file of its directory: a copied directory has another one.
    pub(super) lock_inode: u64,
    /// The version of what may stand in the log that its release knows.
    pub(super) knows: u32,
    /// It knew more before: others may have counted on that.
    pub(super) set_back: bool,
    /// Where its loop or disk stood still.
    pub(super) stalls: Stalls,
}

/// How far a node had come whose files do not know it any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forgot {
    pub(super) term: u64,
    /// The last entry that it may have acknowledged.
    pub(super) last: u64,
}

/// When a process dies by what its disk does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    /// After so many jobs.
    pub(super) jobs: u64,
    /// That job is done first, and what follows from it may leave.
    pub(super) after: bool,
    /// Only jobs that write a snapshot count.
    pub(super) at_snapshot: bool,
}

/// What the disk's thread is doing.
#[derive(Default)]
pub(super) struct DiskThread {
    pub(super) jobs: VecDeque<Job>,
    /// Number of the job that is being done.
    pub(super) busy: Option<u64>,
    pub(super) next_job: u64,
    /// Done while the process stood still.
    pub(super) finished_in_pause: bool,
    pub(super) waiting: Option<SavedSnapshot>,
    pub(super) told: Option<Space>,
    pub(super) tries: u32,
    /// A look for space is planned.
    pub(super) looks: bool,
    /// When space was last asked for.
    pub(super) asked: u64,
    /// Fault: nothing is finished.
    pub(super) stuck: bool,
    /// Fault: everything takes so much longer.
    pub(super) slow: u64,
    /// Fault: there is no space.
    pub(super) full: bool,
    /// Since when a write is on its way.
    pub(super) writes_since: Option<u64>,
    /// The slowest write, as its node remembers it: each later one fades it by an eighth.
    pub(super) slowest_write: u64,
    /// Fault: the process does not outlive one of the next jobs.
    pub(super) dies: Option<Death>,
}

impl Process {
    pub(super) fn is_running(&self) -> bool {
        self.node.is_some()
    }

    /// Whether it knows all that it knew when its files were put back, if they were.
    pub(super) fn is_whole(&self) -> bool {
        self.forgot.is_none_or(|Forgot { term, last }| {
            self.term >= term && self.node.as_ref().is_some_and(|node| node.applied() >= last)
        })
    }

    /// Something arrived: the loop wakes after `soon`.
    pub(super) fn push(&mut self, input: Input, soon: u64) {
        if self.node.is_some() {
            self.inbox.push(input);
            if !self.paused {
                self.wake_at = self.wake_at.min(soon);
            }
        }
    }

    pub(super) fn disk_mut(&mut self) -> &mut MemDisk {
        match &mut self.files {
            Files::Log(wal) => wal.disk_mut(),
            Files::Disk(disk) => disk,
            Files::Nowhere => unreachable!("files are moved within one call"),
        }
    }

    /// Takes the files away from the log.
    pub(super) fn take_disk(&mut self) -> MemDisk {
        match std::mem::replace(&mut self.files, Files::Nowhere) {
            Files::Log(wal) => wal.into_disk(),
            Files::Disk(disk) => *disk,
            Files::Nowhere => unreachable!("files are moved within one call"),
        }
    }
}
