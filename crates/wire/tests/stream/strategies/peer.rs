//! What nodes say to each other.

use leasehold_wire::{
    ConfState, PeerHello, PeerMessage, PeerPurpose, PeerRefusal, PeerVerdict, PeerWelcome, RaftEntry,
    RaftMessage, SnapshotMeta,
};
use proptest::option;
use proptest::prelude::*;

use super::cluster::{address, incarnation, member, member_id, member_name, role};
use super::{client, few, number, request_id, server, small};

fn bytes() -> BoxedStrategy<Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..16).boxed()
}

pub(crate) fn hello() -> BoxedStrategy<PeerHello> {
    let purpose =
        prop_oneof![Just(PeerPurpose::Ask), Just(PeerPurpose::Messages), Just(PeerPurpose::Snapshot)];
    let who = (member_id(), member_name(), address(), option::of(member_id()));
    let versions = (1..=u32::MAX, small(), purpose, option::of(any::<u16>()));
    (versions, who, incarnation(), "[a-z0-9:=,]{0,20}", number(), small(), "[a-z .0-9]{0,12}")
        .prop_map(|(versions, who, incarnation, initial_cluster, max_ttl_ms, drift_ppm, program)| {
            let ((version, cluster_version, purpose, epoch), (from, name, address, to)) = (versions, who);
            PeerHello {
                version,
                cluster_version,
                purpose,
                from,
                name,
                address,
                to,
                incarnation,
                initial_cluster,
                max_ttl_ms,
                drift_ppm,
                program,
                epoch,
            }
        })
        .boxed()
}

pub(crate) fn refusal() -> BoxedStrategy<PeerRefusal> {
    prop_oneof![
        (member_id(), member_id()).prop_map(|(wanted, found)| PeerRefusal::WrongMember { wanted, found }),
        (incarnation(), incarnation())
            .prop_map(|(theirs, ours)| PeerRefusal::OtherIncarnation { theirs, ours }),
        Just(PeerRefusal::Removed),
        Just(PeerRefusal::NotAMember),
        (small(), small()).prop_map(|(speaks, needs)| PeerRefusal::TooOld { speaks, needs }),
    ]
    .boxed()
}

pub(crate) fn welcome() -> BoxedStrategy<PeerWelcome> {
    let verdict = prop_oneof![Just(PeerVerdict::Accepted), refusal().prop_map(PeerVerdict::Refused)];
    (hello(), verdict, few((member(), role())))
        .prop_map(|(hello, verdict, members)| PeerWelcome { hello, verdict, members })
        .boxed()
}

pub(crate) fn messages() -> BoxedStrategy<Vec<PeerMessage>> {
    few(message()).boxed()
}

pub(crate) fn message() -> BoxedStrategy<PeerMessage> {
    prop_oneof![
        raft().prop_map(|message| PeerMessage::Raft(Box::new(message))),
        (number(), bytes())
            .prop_map(|(offset, data)| PeerMessage::SnapshotPart { offset, data: data.into() }),
        (number(), small()).prop_map(|(length, crc32c)| PeerMessage::SnapshotEnd { length, crc32c }),
        (number(), request_id(), client::request()).prop_map(|(connection, id, request)| {
            PeerMessage::Request { connection, id, request: Ok(request) }
        }),
        (number(), request_id()).prop_map(|(connection, id)| PeerMessage::NotLeading { connection, id }),
        (number(), request_id()).prop_map(|(connection, id)| PeerMessage::Abandoned { connection, id }),
        number().prop_map(|connection| PeerMessage::Disconnected { connection }),
        (number(), server::message())
            .prop_map(|(connection, message)| PeerMessage::Reply { connection, message }),
        number().prop_map(|connection| PeerMessage::Close { connection }),
        number().prop_map(|connection| PeerMessage::HungUp { connection }),
    ]
    .boxed()
}

fn raft() -> BoxedStrategy<RaftMessage> {
    let ends = (small(), number(), number(), number(), number(), number());
    let rest = (number(), number(), option::of(meta()), number(), any::<bool>(), number());
    (ends, few(entry()), rest, bytes(), any::<i64>())
        .prop_map(|(ends, entries, rest, context, priority)| {
            let (msg_type, to, from, term, log_term, index) = ends;
            let (commit, commit_term, snapshot, request_snapshot, reject, reject_hint) = rest;
            RaftMessage {
                msg_type,
                to,
                from,
                term,
                log_term,
                index,
                entries,
                commit,
                commit_term,
                snapshot,
                request_snapshot,
                reject,
                reject_hint,
                context: context.into(),
                priority,
            }
        })
        .boxed()
}

fn entry() -> BoxedStrategy<RaftEntry> {
    (number(), number(), small(), bytes(), bytes())
        .prop_map(|(index, term, kind, data, context)| RaftEntry {
            index,
            term,
            kind,
            data: data.into(),
            context: context.into(),
        })
        .boxed()
}

fn meta() -> BoxedStrategy<SnapshotMeta> {
    let ids = || few(number());
    (number(), number(), ids(), ids(), ids(), ids(), any::<bool>())
        .prop_map(|(index, term, voters, learners, voters_outgoing, learners_next, auto_leave)| {
            let conf_state = ConfState { voters, learners, voters_outgoing, learners_next, auto_leave };
            SnapshotMeta { index, term, conf_state }
        })
        .boxed()
}
