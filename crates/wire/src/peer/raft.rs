//! Raft's messages with every field that travels, free of raft's own types.
//!
//! Kinds are plain numbers: only whoever runs raft knows which of them there are, and must refuse the others. Not one number in here
//! was checked.

use prost::bytes::Bytes;

use super::proto as pb;
use crate::convert::{Checked, to_u32};

/// A message of raft. A snapshot is described and not contained: its data travels as parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RaftMessage {
    /// What kind of message.
    pub msg_type: u32,
    /// To whom.
    pub to: u64,
    /// From whom.
    pub from: u64,
    /// In which term.
    pub term: u64,
    /// Term of the entry at `index`.
    pub log_term: u64,
    /// The entry before the first of `entries`, or the one that is spoken of.
    pub index: u64,
    /// Entries of the log.
    pub entries: Vec<RaftEntry>,
    /// The last entry that the sender knows to be committed.
    pub commit: u64,
    /// Its term.
    pub commit_term: u64,
    /// The snapshot that the message announces.
    pub snapshot: Option<SnapshotMeta>,
    /// The first entry that a snapshot is asked for with.
    pub request_snapshot: u64,
    /// Whether something is refused.
    pub reject: bool,
    /// Where to try next.
    pub reject_hint: u64,
    /// What the sender wants back.
    pub context: Bytes,
    /// How much the sender ought to lead.
    pub priority: i64,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RaftEntry {
    /// Its place.
    pub index: u64,
    /// In which term it was made.
    pub term: u64,
    /// What kind of entry.
    pub kind: u32,
    /// What it says.
    pub data: Bytes,
    /// What is said beside it.
    pub context: Bytes,
}

/// What a snapshot is of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotMeta {
    /// The last entry in it.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// Who the members were.
    pub conf_state: ConfState,
}

/// The members, as raft counts them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfState {
    /// Who votes.
    pub voters: Vec<u64>,
    /// Who only learns.
    pub learners: Vec<u64>,
    /// Who voted before, while a change is under way.
    pub voters_outgoing: Vec<u64>,
    /// Who will only learn once the change is done.
    pub learners_next: Vec<u64>,
    /// Whether the change ends by itself.
    pub auto_leave: bool,
}

impl RaftMessage {
    pub(super) fn to_wire(&self) -> pb::RaftMessage {
        pb::RaftMessage {
            msg_type: self.msg_type.into(),
            to: self.to,
            from: self.from,
            term: self.term,
            log_term: self.log_term,
            index: self.index,
            entries: self.entries.iter().map(RaftEntry::to_wire).collect(),
            commit: self.commit,
            commit_term: self.commit_term,
            snapshot: self.snapshot.as_ref().map(SnapshotMeta::to_wire),
            request_snapshot: self.request_snapshot,
            reject: self.reject,
            reject_hint: self.reject_hint,
            context: self.context.clone(),
            priority: self.priority,
        }
    }

    pub(super) fn from_wire(m: pb::RaftMessage) -> Checked<Self> {
        Ok(Self {
            msg_type: to_u32("raft.msg_type", m.msg_type)?,
            to: m.to,
            from: m.from,
            term: m.term,
            log_term: m.log_term,
            index: m.index,
            entries: m.entries.into_iter().map(RaftEntry::from_wire).collect::<Checked<_>>()?,
            commit: m.commit,
            commit_term: m.commit_term,
            snapshot: m.snapshot.map(SnapshotMeta::from_wire),
            request_snapshot: m.request_snapshot,
            reject: m.reject,
            reject_hint: m.reject_hint,
            context: m.context,
            priority: m.priority,
        })
    }
}

impl RaftEntry {
    fn to_wire(&self) -> pb::RaftEntry {
        pb::RaftEntry {
            index: self.index,
            term: self.term,
            kind: self.kind.into(),
            data: self.data.clone(),
            context: self.context.clone(),
        }
    }

    fn from_wire(m: pb::RaftEntry) -> Checked<Self> {
        let kind = to_u32("raft.entry.kind", m.kind)?;
        Ok(Self { index: m.index, term: m.term, kind, data: m.data, context: m.context })
    }
}

impl SnapshotMeta {
    fn to_wire(&self) -> pb::SnapshotMeta {
        pb::SnapshotMeta {
            index: self.index,
            term: self.term,
            voters: self.conf_state.voters.clone(),
            learners: self.conf_state.learners.clone(),
            voters_outgoing: self.conf_state.voters_outgoing.clone(),
            learners_next: self.conf_state.learners_next.clone(),
            auto_leave: self.conf_state.auto_leave,
        }
    }

    fn from_wire(m: pb::SnapshotMeta) -> Self {
        let conf_state = ConfState {
            voters: m.voters,
            learners: m.learners,
            voters_outgoing: m.voters_outgoing,
            learners_next: m.learners_next,
            auto_leave: m.auto_leave,
        };
        Self { index: m.index, term: m.term, conf_state }
    }
}
