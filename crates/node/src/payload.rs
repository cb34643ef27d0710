//! What an entry of the log carries, and what a snapshot of a node holds, as bytes with a version.

use leasehold_core::command::{DecodeError, encode_behind};
use leasehold_core::{Entry, LeaseTable, LogTime, TableImage};
use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;
use crate::changes::ChangeLog;
use crate::machine::SavedSnapshot;
use crate::members::Roster;

/// Version 2 has a hash of the outcomes before.
const PAYLOAD_VERSION: u8 = 2;
/// Version 2 has the changes between head and table, version 3 the members and the hash behind the head.
const SNAPSHOT_VERSION: u8 = 3;
/// Room for what stands before changes and table.
const HEAD_BYTES: usize = 1024;

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Written by a later release.
    #[error("{what} has format version {found}; this release reads up to {known}: upgrade it")]
    NewerVersion {
        /// What was read.
        what: &'static str,
        /// The version found.
        found: u8,
        /// The newest version known here.
        known: u8,
    },
    /// Not what was written.
    #[error("{what} is damaged")]
    Damaged {
        /// What was read.
        what: &'static str,
    },
    /// The core's word for it.
    #[error(transparent)]
    Core(#[from] DecodeError),
}

/// An entry with its stamp, and the clocks behind the stamp where those matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The entry.
    pub entry: Entry,
    /// What `at` was computed from: in an embedded directory time goes on from it, and a service says by it for how long it was away.
    pub anchor: Option<Anchor>,
    /// What the proposer's outcomes come to before this entry, if it had applied all before it.
    pub outcomes: Option<u64>,
}

impl Payload {
    /// The bytes that raft replicates.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_into(Vec::new())
    }

    /// The same, in the room of bytes that nobody needs any more.
    pub(crate) fn encode_into(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.clear();
        bytes.push(PAYLOAD_VERSION);
        self.entry.encode_behind(encode_behind(bytes, &(&self.anchor, self.outcomes)))
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes were written by a later release or are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let body = versioned("log entry", PAYLOAD_VERSION, bytes)?;
        let damaged = |_| PayloadError::Damaged { what: "log entry" };
        let ((anchor, outcomes), rest) = if bytes[0] == 1 {
            let (anchor, rest) = postcard::take_from_bytes(body).map_err(damaged)?;
            ((anchor, None), rest)
        } else {
            postcard::take_from_bytes(body).map_err(damaged)?
        };
        Ok(Self { entry: Entry::decode(rest)?, anchor, outcomes })
    }
}

/// Everything a node needs to begin after the log before was dropped.
#[derive(Debug)]
pub struct NodeSnapshot {
    /// Who decides.
    pub voters: Voters,
    /// Who they are; a snapshot of an earlier version has nobody.
    pub roster: Roster,
    /// What all outcomes so far come to; not known behind a snapshot of an earlier version.
    pub outcomes: Option<u64>,
    /// The last stamp, and the clocks behind it.
    pub stamped: Option<(LogTime, Option<Anchor>)>,
    /// The last changes; a snapshot of version 1 has none.
    pub changes: Option<ChangeLog>,
    /// The table.
    pub table: LeaseTable,
}

/// The members as raft counts them, also in the middle of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Voters {
    /// Those that vote.
    pub voters: Vec<u64>,
    /// Those that only learn.
    pub learners: Vec<u64>,
    /// Those that voted before a change that is not complete.
    pub outgoing: Vec<u64>,
    /// Those that will only learn after it.
    pub learners_next: Vec<u64>,
    /// Whether the change completes by itself.
    pub auto_leave: bool,
}

#[derive(Serialize, Deserialize)]
struct OldHead {
    voters: Vec<u64>,
    learners: Vec<u64>,
    stamped: Option<(LogTime, Option<Anchor>)>,
}

/// What stands before the changes and the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) voters: Voters,
    pub(crate) stamped: Option<(LogTime, Option<Anchor>)>,
    pub(crate) roster: Roster,
    pub(crate) outcomes: Option<u64>,
}

/// What a node was behind an entry, to be made into bytes later, or elsewhere: that takes far longer than a turn may. It shares with the node
/// what has not changed since.
#[derive(Debug, Clone)]
pub struct SnapshotImage {
    index: u64,
    term: u64,
    head: Head,
    changes: ChangeLog,
    table: TableImage,
}

impl SnapshotImage {
    /// The image of a snapshot behind the entry with this index and term.
    pub(crate) fn new((index, term): (u64, u64), head: Head, changes: ChangeLog, table: TableImage) -> Self {
        Self { index, term, head, changes, table }
    }

    /// The last entry it covers.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Makes the bytes. Takes a second for some hundred thousand leases.
    pub fn save(&self) -> SavedSnapshot {
        SavedSnapshot {
            index: self.index,
            term: self.term,
            bytes: encode(&self.head, &self.changes, &self.table),
        }
    }
}

fn encode(head: &Head, changes: &ChangeLog, table: &TableImage) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(changes.encoded_bytes() + HEAD_BYTES);
    bytes.push(SNAPSHOT_VERSION);
    let bytes = postcard::to_extend(head, bytes).expect("a vector grows as needed");
    table.encode_behind(changes.encode(bytes))
}

impl NodeSnapshot {
    /// The bytes of the snapshot of a node.
    pub fn encode(
        voters: Voters,
        roster: &Roster,
        outcomes: Option<u64>,
        stamped: Option<(LogTime, Option<Anchor>)>,
        changes: &ChangeLog,
        table: &LeaseTable,
    ) -> Vec<u8> {
        let head = Head { voters, stamped, roster: roster.clone(), outcomes };
        encode(&head, changes, &table.image())
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes were written by a later release or are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let body = versioned("snapshot", SNAPSHOT_VERSION, bytes)?;
        let damaged = |_| PayloadError::Damaged { what: "snapshot" };
        let (head, rest): (Head, _) = if bytes[0] < 3 {
            let (OldHead { voters, learners, stamped }, rest) =
                postcard::take_from_bytes(body).map_err(damaged)?;
            let voters = Voters { voters, learners, ..Voters::default() };
            (Head { voters, stamped, roster: Roster::default(), outcomes: None }, rest)
        } else {
            postcard::take_from_bytes(body).map_err(damaged)?
        };
        let (changes, rest) = if bytes[0] == 1 {
            (None, rest)
        } else {
            let (changes, rest) = ChangeLog::decode(rest).map_err(damaged)?;
            (Some(changes), rest)
        };
        let Head { voters, stamped, roster, outcomes } = head;
        Ok(Self { voters, roster, outcomes, stamped, changes, table: LeaseTable::decode(rest)? })
    }
}

fn versioned<'a>(what: &'static str, known: u8, bytes: &'a [u8]) -> Result<&'a [u8], PayloadError> {
    match bytes.split_first() {
        None => Err(PayloadError::Damaged { what }),
        Some((&found, _)) if found > known => Err(PayloadError::NewerVersion { what, found, known }),
        Some((_, body)) => Ok(body),
    }
}
