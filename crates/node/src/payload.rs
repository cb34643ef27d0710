//! What an entry of the log carries, and what a snapshot of a node holds, as bytes with a version.

use leasehold_core::command::DecodeError;
use leasehold_core::{Entry, LeaseTable, LogTime};
use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;
use crate::changes::ChangeLog;

const PAYLOAD_VERSION: u8 = 1;
/// Version 2 has the changes between head and table.
const SNAPSHOT_VERSION: u8 = 2;
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
    /// For embedded directories: what `at` was computed from.
    pub anchor: Option<Anchor>,
}

impl Payload {
    /// The bytes that raft replicates.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![PAYLOAD_VERSION];
        bytes = postcard::to_extend(&self.anchor, bytes).expect("a vector grows as needed");
        bytes.extend_from_slice(&self.entry.encode());
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes were written by a later release or are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let body = versioned("log entry", PAYLOAD_VERSION, bytes)?;
        let (anchor, rest) =
            postcard::take_from_bytes(body).map_err(|_| PayloadError::Damaged { what: "log entry" })?;
        Ok(Self { entry: Entry::decode(rest)?, anchor })
    }
}

/// Everything a node needs to begin after the log before was dropped.
#[derive(Debug)]
pub struct NodeSnapshot {
    /// The members that vote, and those that only learn.
    pub voters: Vec<u64>,
    /// The members that only learn.
    pub learners: Vec<u64>,
    /// The last stamp, and the clocks behind it.
    pub stamped: Option<(LogTime, Option<Anchor>)>,
    /// The last changes; a snapshot of version 1 has none.
    pub changes: Option<ChangeLog>,
    /// The table.
    pub table: LeaseTable,
}

#[derive(Serialize, Deserialize)]
struct Head {
    voters: Vec<u64>,
    learners: Vec<u64>,
    stamped: Option<(LogTime, Option<Anchor>)>,
}

impl NodeSnapshot {
    /// The bytes of the snapshot of a node.
    pub fn encode(
        voters: &[u64],
        learners: &[u64],
        stamped: Option<(LogTime, Option<Anchor>)>,
        changes: &ChangeLog,
        table: &LeaseTable,
    ) -> Vec<u8> {
        let head = Head { voters: voters.to_vec(), learners: learners.to_vec(), stamped };
        let table = table.encode();
        // Of its size from the start: this may be many megabytes, again and again.
        let mut bytes = Vec::with_capacity(table.len() + changes.encoded_bytes() + HEAD_BYTES);
        bytes.push(SNAPSHOT_VERSION);
        let bytes = postcard::to_extend(&head, bytes).expect("a vector grows as needed");
        let mut bytes = changes.encode(bytes);
        bytes.extend_from_slice(&table);
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes were written by a later release or are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let body = versioned("snapshot", SNAPSHOT_VERSION, bytes)?;
        let damaged = |_| PayloadError::Damaged { what: "snapshot" };
        let (head, rest): (Head, _) = postcard::take_from_bytes(body).map_err(damaged)?;
        let (changes, rest) = if bytes[0] == 1 {
            (None, rest)
        } else {
            let (changes, rest) = ChangeLog::decode(rest).map_err(damaged)?;
            (Some(changes), rest)
        };
        let Head { voters, learners, stamped } = head;
        Ok(Self { voters, learners, stamped, changes, table: LeaseTable::decode(rest)? })
    }
}

fn versioned<'a>(what: &'static str, known: u8, bytes: &'a [u8]) -> Result<&'a [u8], PayloadError> {
    match bytes.split_first() {
        None => Err(PayloadError::Damaged { what }),
        Some((&found, _)) if found > known => Err(PayloadError::NewerVersion { what, found, known }),
        Some((_, body)) => Ok(body),
    }
}
