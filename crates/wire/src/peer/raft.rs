//! Raft's messages with every field that travels, free of raft's own types.
//!
//! Kinds are plain numbers: only whoever runs raft knows which of them there are, and must refuse the others. Not one number in here
//! was checked.

use prost::bytes::Bytes;

use super::proto as pb;
use crate::convert::{Checked, Wire, record};

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

record! {
    RaftMessage => RaftMessage at "raft";
    msg_type, to, from, term, log_term, index, entries, commit, commit_term, snapshot, request_snapshot, reject,
    reject_hint, context, priority,
}

record!(RaftEntry => RaftEntry at "raft.entry"; index, term, kind, data, context);

impl Wire for SnapshotMeta {
    type Message = pb::SnapshotMeta;

    fn to_wire(&self) -> pb::SnapshotMeta {
        let ConfState { voters, learners, voters_outgoing, learners_next, auto_leave } =
            self.conf_state.clone();
        let (index, term) = (self.index, self.term);
        pb::SnapshotMeta { index, term, voters, learners, voters_outgoing, learners_next, auto_leave }
    }

    fn from_wire(message: pb::SnapshotMeta) -> Checked<Self> {
        let pb::SnapshotMeta { index, term, voters, learners, voters_outgoing, learners_next, auto_leave } =
            message;
        let conf_state = ConfState { voters, learners, voters_outgoing, learners_next, auto_leave };
        Ok(Self { index, term, conf_state })
    }
}
