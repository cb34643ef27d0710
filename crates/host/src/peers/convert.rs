//! Messages of the node as those of the wire, field by field: the decoder of raft's own crate never sees bytes from outside.

use leasehold_core::protocol::RequestId;
use leasehold_node::{ConnectionId, PeerMessage};
use leasehold_wire::{self as wire, ConfState, RaftEntry, RaftMessage, SnapshotMeta};
use raft::eraftpb::{self, EntryType, Message, MessageType};

pub(super) fn to_wire(message: PeerMessage) -> wire::PeerMessage {
    match message {
        PeerMessage::Raft(raft) => wire::PeerMessage::Raft(Box::new(raft_to_wire(&raft))),
        PeerMessage::Request { connection, id, request } => {
            wire::PeerMessage::Request { connection: connection.0, id, request: Ok(request) }
        }
        PeerMessage::NotLeading { connection, id } => {
            wire::PeerMessage::NotLeading { connection: connection.0, id }
        }
        PeerMessage::Abandoned { connection, id } => {
            wire::PeerMessage::Abandoned { connection: connection.0, id }
        }
        PeerMessage::HungUp { connection } => wire::PeerMessage::HungUp { connection: connection.0 },
        PeerMessage::Disconnected { connection } => {
            wire::PeerMessage::Disconnected { connection: connection.0 }
        }
        PeerMessage::Reply { connection, message } => {
            wire::PeerMessage::Reply { connection: connection.0, message }
        }
        PeerMessage::Close { connection } => wire::PeerMessage::Close { connection: connection.0 },
    }
}

pub(super) fn from_wire(message: wire::PeerMessage) -> Result<PeerMessage, String> {
    Ok(match message {
        wire::PeerMessage::Raft(raft) => PeerMessage::Raft(Box::new(raft_from_wire(*raft)?)),
        wire::PeerMessage::Request { connection, id, request } => {
            // Answered before it comes here.
            let request = request.map_err(|why| format!("request {} is not understood: {why}", id.0))?;
            PeerMessage::Request { connection: ConnectionId(connection), id: RequestId(id.0), request }
        }
        wire::PeerMessage::NotLeading { connection, id } => {
            PeerMessage::NotLeading { connection: ConnectionId(connection), id }
        }
        wire::PeerMessage::Abandoned { connection, id } => {
            PeerMessage::Abandoned { connection: ConnectionId(connection), id }
        }
        wire::PeerMessage::HungUp { connection } => {
            PeerMessage::HungUp { connection: ConnectionId(connection) }
        }
        wire::PeerMessage::Disconnected { connection } => {
            PeerMessage::Disconnected { connection: ConnectionId(connection) }
        }
        wire::PeerMessage::Reply { connection, message } => {
            PeerMessage::Reply { connection: ConnectionId(connection), message }
        }
        wire::PeerMessage::Close { connection } => {
            PeerMessage::Close { connection: ConnectionId(connection) }
        }
        wire::PeerMessage::SnapshotPart { .. } | wire::PeerMessage::SnapshotEnd { .. } => {
            return Err("a part of a snapshot among other messages".into());
        }
    })
}

pub(super) fn raft_to_wire(message: &Message) -> RaftMessage {
    let snapshot = message.snapshot.as_ref().map(|snapshot| {
        let meta = snapshot.get_metadata();
        let conf = meta.get_conf_state();
        SnapshotMeta {
            index: meta.index,
            term: meta.term,
            conf_state: ConfState {
                voters: conf.voters.clone(),
                learners: conf.learners.clone(),
                voters_outgoing: conf.voters_outgoing.clone(),
                learners_next: conf.learners_next.clone(),
                auto_leave: conf.auto_leave,
            },
        }
    });
    let entry = |entry: &eraftpb::Entry| RaftEntry {
        index: entry.index,
        term: entry.term,
        kind: match entry.get_entry_type() {
            EntryType::EntryNormal => 0,
            EntryType::EntryConfChange => 1,
            EntryType::EntryConfChangeV2 => 2,
        },
        data: entry.data.clone(),
        context: entry.context.clone(),
    };
    RaftMessage {
        msg_type: kind_number(message.get_msg_type()),
        to: message.to,
        from: message.from,
        term: message.term,
        log_term: message.log_term,
        index: message.index,
        entries: message.entries.iter().map(entry).collect(),
        commit: message.commit,
        commit_term: message.commit_term,
        snapshot,
        request_snapshot: message.request_snapshot,
        reject: message.reject,
        reject_hint: message.reject_hint,
        context: message.context.clone(),
        priority: message.priority,
    }
}

pub(super) fn raft_from_wire(message: RaftMessage) -> Result<Message, String> {
    let mut raft = Message {
        to: message.to,
        from: message.from,
        term: message.term,
        log_term: message.log_term,
        index: message.index,
        commit: message.commit,
        commit_term: message.commit_term,
        request_snapshot: message.request_snapshot,
        reject: message.reject,
        reject_hint: message.reject_hint,
        context: message.context,
        priority: message.priority,
        ..Message::default()
    };
    raft.set_msg_type(kind_of(message.msg_type)?);
    let mut entries = Vec::with_capacity(message.entries.len());
    for entry in message.entries {
        let mut one = eraftpb::Entry {
            index: entry.index,
            term: entry.term,
            data: entry.data,
            context: entry.context,
            ..eraftpb::Entry::default()
        };
        one.set_entry_type(match entry.kind {
            0 => EntryType::EntryNormal,
            1 => EntryType::EntryConfChange,
            2 => EntryType::EntryConfChangeV2,
            other => return Err(format!("entries have no kind {other}")),
        });
        entries.push(one);
    }
    raft.entries = entries.into();
    if let Some(SnapshotMeta { index, term, conf_state }) = message.snapshot {
        let meta = raft.mut_snapshot().mut_metadata();
        (meta.index, meta.term) = (index, term);
        let conf = meta.mut_conf_state();
        conf.voters = conf_state.voters;
        conf.learners = conf_state.learners;
        conf.voters_outgoing = conf_state.voters_outgoing;
        conf.learners_next = conf_state.learners_next;
        conf.auto_leave = conf_state.auto_leave;
    }
    Ok(raft)
}

/// The kinds that pass between members, each with its number on the wire. Raft has others, which it only says to itself.
const KINDS: [(MessageType, u32); 13] = [
    (MessageType::MsgAppend, 3),
    (MessageType::MsgAppendResponse, 4),
    (MessageType::MsgRequestVote, 5),
    (MessageType::MsgRequestVoteResponse, 6),
    (MessageType::MsgSnapshot, 7),
    (MessageType::MsgHeartbeat, 8),
    (MessageType::MsgHeartbeatResponse, 9),
    (MessageType::MsgTransferLeader, 13),
    (MessageType::MsgTimeoutNow, 14),
    (MessageType::MsgReadIndex, 15),
    (MessageType::MsgReadIndexResp, 16),
    (MessageType::MsgRequestPreVote, 17),
    (MessageType::MsgRequestPreVoteResponse, 18),
];

fn kind_number(kind: MessageType) -> u32 {
    // Zero is no kind that passes between members: whoever receives it refuses it.
    KINDS.iter().find(|(known, _)| *known == kind).map_or(0, |(_, number)| *number)
}

fn kind_of(number: u32) -> Result<MessageType, String> {
    let known = KINDS.iter().find(|(_, known)| *known == number).map(|(kind, _)| *kind);
    known.ok_or_else(|| format!("members send no messages of kind {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_raft_come_back_as_they_were() {
        for (kind, _) in KINDS {
            let mut message = Message {
                to: 1,
                from: 2,
                term: 3,
                log_term: 4,
                index: 5,
                commit: 6,
                commit_term: 7,
                request_snapshot: 8,
                reject: true,
                reject_hint: 9,
                context: vec![1, 2].into(),
                priority: -3,
                ..Message::default()
            };
            message.set_msg_type(kind);
            let mut entry =
                eraftpb::Entry { index: 6, term: 3, data: vec![7; 9].into(), ..Default::default() };
            entry.set_entry_type(EntryType::EntryConfChangeV2);
            message.entries = vec![eraftpb::Entry::default(), entry].into();
            let meta = message.mut_snapshot().mut_metadata();
            (meta.index, meta.term) = (4, 2);
            meta.mut_conf_state().voters = vec![1, 2];
            meta.mut_conf_state().learners = vec![3];
            meta.mut_conf_state().voters_outgoing = vec![4];
            meta.mut_conf_state().learners_next = vec![5];
            meta.mut_conf_state().auto_leave = true;
            assert_eq!(raft_from_wire(raft_to_wire(&message)), Ok(message));
        }
    }

    #[test]
    fn what_raft_says_only_to_itself_is_refused() {
        for number in [0, 1, 2, 10, 11, 12, 19, u32::MAX] {
            let message = RaftMessage { msg_type: number, ..raft_to_wire(&Message::default()) };
            assert!(raft_from_wire(message).is_err());
        }
    }
}
