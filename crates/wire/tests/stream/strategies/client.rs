//! Requests.

use leasehold_core::protocol::{GapsOf, Plain, Query, Request, RequestId, Watch};
use leasehold_core::{
    Acquire, Attach, Numbered, Offer, Op, Open, Operator, Policies, Request as ResourceRequest, Sequence,
    SessionCommand, SessionKind,
};
use proptest::option;
use proptest::prelude::*;

use super::{
    attach_number, call_number, cluster, command_number, few, item_number, label, millis, mode, name, nonce,
    reason, register_key, renewal_number, request_id, revision, session, size, small, successor, token,
    value,
};

pub(crate) fn requests() -> BoxedStrategy<Vec<(RequestId, Request)>> {
    few((request_id(), request())).boxed()
}

pub(crate) fn request() -> BoxedStrategy<Request> {
    prop_oneof![
        open().prop_map(Request::Open),
        (session(), attach_number(), item_number(), nonce()).prop_map(|(session, attach, seen, nonce)| {
            Request::Attach { attach: Attach { session, attach, seen }, nonce }
        }),
        (session(), renewal_number(), item_number()).prop_map(|(session, number, seen)| Request::Renew {
            session,
            number,
            seen
        }),
        (session(), sequence(), op()).prop_map(|(session, sequence, op)| Request::Command(SessionCommand {
            session,
            sequence,
            op
        })),
        operator().prop_map(Request::Operator),
        cluster::command().prop_map(Request::Cluster),
        query().prop_map(Request::Read),
        (session(), nonce(), plain()).prop_map(|(session, nonce, plain)| Request::Plain {
            session,
            nonce,
            plain
        }),
        watch().prop_map(Request::Watch),
        request_id().prop_map(|watch| Request::StopWatch { watch }),
    ]
    .boxed()
}

pub(crate) fn plain() -> BoxedStrategy<Plain> {
    prop_oneof![
        Just(Plain::Renew),
        (op(), any::<bool>(), option::of(numbered())).prop_map(|(op, hold, numbered)| Plain::Command {
            op,
            hold,
            numbered
        })
    ]
    .boxed()
}

pub(crate) fn watch() -> BoxedStrategy<Watch> {
    ("[a-z#\n]{0,8}", option::of(revision())).prop_map(|(prefix, after)| Watch { prefix, after }).boxed()
}

fn open() -> BoxedStrategy<Open> {
    let kind = prop_oneof![Just(SessionKind::Streamed), Just(SessionKind::Plain)];
    let policies =
        (millis(), millis(), millis()).prop_map(|(grace, hard, delay)| Policies { grace, hard, delay });
    (nonce(), label(), millis(), policies, kind)
        .prop_map(|(nonce, label, ttl, policies, kind)| Open { nonce, label, ttl, policies, kind })
        .boxed()
}

fn numbered() -> BoxedStrategy<Numbered> {
    (call_number(), call_number()).prop_map(|(number, settled)| Numbered { number, settled }).boxed()
}

fn sequence() -> BoxedStrategy<Sequence> {
    prop_oneof![
        (attach_number(), command_number(), item_number())
            .prop_map(|(attach, number, seen)| Sequence::Streamed { attach, number, seen }),
        Just(Sequence::Plain),
        numbered().prop_map(Sequence::Numbered),
    ]
    .boxed()
}

pub(crate) fn op() -> BoxedStrategy<Op> {
    prop_oneof![
        (few(resource_request()), value(), option::of(millis()))
            .prop_map(|(requests, value, wait)| Op::Acquire(Acquire { requests, value, wait })),
        command_number().prop_map(|acquire| Op::Cancel { acquire }),
        call_number().prop_map(|call| Op::CancelCall { call }),
        (name(), token(), any::<bool>()).prop_map(|(resource, token, ready)| Op::SetReady {
            resource,
            token,
            ready
        }),
        (name(), token(), small(), millis()).prop_map(|(resource, token, in_flight, within)| {
            Op::SetDraining { resource, token, in_flight, within }
        }),
        (name(), token(), value()).prop_map(|(resource, token, value)| Op::SetValue {
            resource,
            token,
            value
        }),
        (name(), token(), register_key(), option::of(value()), any::<bool>()).prop_map(
            |(resource, token, key, value, with_lease)| Op::WriteRegister {
                resource,
                token,
                key,
                value,
                with_lease
            }
        ),
        (name(), token(), successor(), millis()).prop_map(|(resource, token, to, length)| Op::Offer(Offer {
            resource,
            token,
            to,
            length
        })),
        (name(), token(), value()).prop_map(|(resource, token, value)| Op::Accept { resource, token, value }),
        (name(), token(), any::<bool>()).prop_map(|(resource, token, drained)| Op::Release {
            resource,
            token,
            drained
        }),
        Just(Op::Close),
    ]
    .boxed()
}

fn resource_request() -> BoxedStrategy<ResourceRequest> {
    (name(), mode()).prop_map(|(resource, mode)| ResourceRequest { resource, mode }).boxed()
}

pub(crate) fn operator() -> BoxedStrategy<Operator> {
    prop_oneof![
        (name(), option::of(token()), option::of(successor()), label()).prop_map(
            |(resource, token, successor, by)| { Operator::AskRelease { resource, token, successor, by } }
        ),
        (name(), token(), label(), reason(), any::<bool>()).prop_map(|(resource, token, by, reason, now)| {
            Operator::Revoke { resource, token, by, reason, now }
        }),
        (name(), mode(), label()).prop_map(|(resource, mode, by)| Operator::ChangeKind {
            resource,
            mode,
            by
        }),
        (name(), token(), label(), reason()).prop_map(|(resource, token, by, reason)| {
            Operator::ClearAlarm { resource, token, by, reason }
        }),
    ]
    .boxed()
}

pub(crate) fn query() -> BoxedStrategy<Query> {
    prop_oneof![
        name().prop_map(Query::Lease),
        ("[a-z#\n]{0,8}", option::of(name()), size()).prop_map(|(prefix, after, limit)| Query::Leases {
            prefix,
            after,
            limit
        }),
        (option::of(session()), size()).prop_map(|(after, limit)| Query::Sessions { after, limit }),
        name().prop_map(Query::History),
        (name(), token()).prop_map(|(resource, token)| Query::Check { resource, token }),
        (name(), register_key()).prop_map(|(resource, key)| Query::Register { resource, key }),
        Just(Query::Status),
        Just(Query::Cluster),
        Just(Query::Alarms),
        (gaps_of(), option::of(millis())).prop_map(|(of, last)| Query::Gaps { of, last }),
    ]
    .boxed()
}

fn gaps_of() -> BoxedStrategy<GapsOf> {
    prop_oneof![
        name().prop_map(GapsOf::Name),
        ("[a-z#\n]{0,8}", option::of(name()), size()).prop_map(|(prefix, after, limit)| GapsOf::Page {
            prefix,
            after,
            limit
        }),
    ]
    .boxed()
}
