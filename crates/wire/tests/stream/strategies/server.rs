//! Messages of the service.

use leasehold_core::Drift;
use leasehold_core::answer::{HeldLease, Holdings, Opened, Renewed, Reply, Waited};
use leasehold_core::gap::{GapCause, GapPart, GapSide, GapView, NameGaps, OutageView};
use leasehold_core::protocol::{Failure, GapsView, ReadAnswer, Response, Status, ToClient, TokenCheck};
use leasehold_core::table::{
    AlarmView, DrainingView, HolderView, HoldingState, LeaseView, OfferView, PastView, ReadinessView,
    SessionView, WaiterView,
};
use proptest::option;
use proptest::prelude::*;

use super::changes::changes;
use super::items::{answer, ending, grant, item, refusal, wait_ending};
use super::{
    call_number, cluster, command_number, few, item_number, label, millis, mode, name, number,
    renewal_number, request_id, revision, session, size, small, token, value,
};

pub(crate) fn messages() -> BoxedStrategy<Vec<ToClient>> {
    few(message()).boxed()
}

pub(crate) fn message() -> BoxedStrategy<ToClient> {
    prop_oneof![
        (request_id(), response()).prop_map(|(id, response)| ToClient::Response { id, response }),
        (session(), few(item())).prop_map(|(session, items)| ToClient::Items { session, items }),
        (session(), millis()).prop_map(|(session, length)| ToClient::Hint { session, length }),
        (request_id(), changes(), any::<bool>()).prop_map(|(watch, changes, more)| ToClient::Watched {
            watch,
            changes,
            more
        }),
    ]
    .boxed()
}

pub(crate) fn response() -> BoxedStrategy<Response> {
    prop_oneof![
        reply().prop_map(Response::Reply),
        (revision(), read_answer()).prop_map(|(revision, answer)| Response::Read { revision, answer }),
        cluster::reply().prop_map(Response::Cluster),
        failure().prop_map(Response::Failed),
    ]
    .boxed()
}

pub(crate) fn failure() -> BoxedStrategy<Failure> {
    prop_oneof![
        Just(Failure::OutcomeUnknown),
        ".{0,12}".prop_map(|why| Failure::Unavailable { why }),
        session().prop_map(|session| Failure::NotYourSession { session }),
        (revision(), revision()).prop_map(|(after, oldest)| Failure::RevisionTooOld { after, oldest }),
        (revision(), revision()).prop_map(|(after, newest)| Failure::RevisionAhead { after, newest }),
        size().prop_map(|limit| Failure::TooManyWatches { limit }),
        ".{0,12}".prop_map(|why| Failure::BadRequest { why }),
    ]
    .boxed()
}

pub(crate) fn reply() -> BoxedStrategy<Reply> {
    prop_oneof![
        opened().prop_map(Reply::Opened),
        (command_number(), item_number())
            .prop_map(|(last_command, last_item)| Reply::Attached { last_command, last_item }),
        (renewal_number(), item_number(), option::of(holdings()))
            .prop_map(|(number, after, holdings)| Reply::Renewed(Renewed { number, after, holdings })),
        (renewal_number(), renewal_number())
            .prop_map(|(number, highest)| Reply::StaleRenewal { number, highest }),
        command_number().prop_map(|number| Reply::Applied { number }),
        command_number().prop_map(|number| Reply::Repeated { number }),
        (command_number(), answer(), renewal_number()).prop_map(|(number, answer, renewal)| Reply::Plain {
            number,
            answer,
            renewal
        }),
        (command_number(), answer(), renewal_number(), few(token())).prop_map(
            |(number, answer, renewal, held)| Reply::PlainRepeated { number, answer, renewal, held }
        ),
        (call_number(), call_number()).prop_map(|(call, settled)| Reply::NumberSettled { call, settled }),
        (command_number(), wait_ending()).prop_map(|(number, why)| Reply::PlainWaitEnded { number, why }),
        Just(Reply::Closed),
        (token(), label()).prop_map(|(token, holder)| Reply::Asked { token, holder }),
        millis().prop_map(|held_back| Reply::Revoked { held_back }),
        Just(Reply::KindChanged),
        Just(Reply::AlarmCleared),
        Just(Reply::Done),
        refusal().prop_map(Reply::Refused),
    ]
    .boxed()
}

fn holdings() -> BoxedStrategy<Holdings> {
    let lease = (grant(), any::<bool>())
        .prop_map(|(grant, release_requested)| HeldLease { grant, release_requested });
    let wait = (command_number(), few(name())).prop_map(|(acquire, resources)| Waited { acquire, resources });
    (few(lease), few(wait)).prop_map(|(leases, waits)| Holdings { leases, waits }).boxed()
}

fn opened() -> BoxedStrategy<Opened> {
    let drift = (0..=Drift::MAX.ppm()).prop_map(|ppm| Drift::from_ppm(ppm).expect("drawn up to the maximum"));
    (session(), millis(), drift, any::<bool>())
        .prop_map(|(session, ttl, drift, repeated)| Opened { session, ttl, drift, repeated })
        .boxed()
}

pub(crate) fn read_answer() -> BoxedStrategy<ReadAnswer> {
    let check = prop_oneof![
        Just(TokenCheck::Current),
        ending().prop_map(TokenCheck::Ended),
        Just(TokenCheck::NotKnown),
        number().prop_map(|newest| TokenCheck::Ahead { newest }),
    ];
    prop_oneof![
        option::of(lease_view().prop_map(Box::new)).prop_map(ReadAnswer::Lease),
        (few(lease_view()), any::<bool>()).prop_map(|(leases, more)| ReadAnswer::Leases { leases, more }),
        (few(session_view()), any::<bool>())
            .prop_map(|(sessions, more)| ReadAnswer::Sessions { sessions, more }),
        few(past_view()).prop_map(ReadAnswer::History),
        check.prop_map(ReadAnswer::Check),
        option::of((value(), token())).prop_map(ReadAnswer::Register),
        status().prop_map(ReadAnswer::Status),
        cluster::view().prop_map(ReadAnswer::Cluster),
        few(alarm_view()).prop_map(ReadAnswer::Alarms),
        gaps_view().prop_map(ReadAnswer::Gaps),
    ]
    .boxed()
}

fn gaps_view() -> BoxedStrategy<GapsView> {
    let outage =
        (millis(), option::of(millis())).prop_map(|(ended_ago, length)| OutageView { ended_ago, length });
    let names = (name(), few(gap_view()), millis()).prop_map(|(resource, gaps, known_for)| NameGaps {
        resource,
        gaps,
        known_for,
    });
    (few(names), option::of(name()), few(outage))
        .prop_map(|(names, next, outages)| GapsView { names, next, outages })
        .boxed()
}

fn gap_view() -> BoxedStrategy<GapView> {
    let side = || {
        (token(), option::of(label()), option::of(ending())).prop_map(|(token, label, how)| GapSide {
            token,
            label,
            how,
        })
    };
    let part = (0..GapCause::ALL.len(), millis())
        .prop_map(|(cause, length)| GapPart { cause: GapCause::ALL[cause], length });
    (millis(), option::of(millis()), few(part), millis(), side(), option::of(side()))
        .prop_map(|(began_ago, ended_ago, parts, leeway, before, after)| GapView {
            began_ago,
            ended_ago,
            parts,
            leeway,
            before,
            after,
        })
        .boxed()
}

fn alarm_view() -> BoxedStrategy<AlarmView> {
    (name(), token(), label(), millis())
        .prop_map(|(resource, token, by, age)| AlarmView { resource, token, by, age })
        .boxed()
}

fn status() -> BoxedStrategy<Status> {
    (".{0,12}", small(), number(), number(), number(), millis(), millis())
        .prop_map(|(version, pid, sessions, resources, applied, log_time, cut)| Status {
            version,
            pid,
            sessions,
            resources,
            applied,
            log_time,
            cut,
        })
        .boxed()
}

fn lease_view() -> BoxedStrategy<LeaseView> {
    let alarm = option::of(alarm_view());
    let waits = (option::of(millis()), option::of(millis()));
    (name(), mode(), few(holder_view()), few(waiter_view()), size(), waits, number(), alarm)
        .prop_map(|(resource, mode, holders, queue, waiting, waits, transitions, alarm)| LeaseView {
            holding: holders.len() + waiting % 7,
            resource,
            mode,
            holders,
            queue,
            waiting,
            cool_down: waits.0,
            restore_wait: waits.1,
            transitions,
            alarm,
        })
        .boxed()
}

fn holder_view() -> BoxedStrategy<HolderView> {
    let state =
        prop_oneof![Just(HoldingState::Held), Just(HoldingState::Overdue), Just(HoldingState::Revoked)];
    let who = (session(), label(), token(), token(), option::of(small()), any::<bool>(), value());
    let times = (millis(), millis(), millis(), millis());
    let draining =
        (small(), millis()).prop_map(|(in_flight, remaining)| DrainingView { in_flight, remaining });
    let offer = (session(), label(), any::<bool>(), millis())
        .prop_map(|(to, label, ready, remaining)| OfferView { to, label, ready, remaining });
    let readiness = prop_oneof![Just(ReadinessView::WarmingUp), millis().prop_map(ReadinessView::ReadyAfter)];
    (who, times, state, (option::of(draining), option::of(offer), option::of(readiness)))
        .prop_map(
            |(
                (session, label, token, fence, slot, shared, value),
                (ttl, remaining, held_for, renewed_ago),
                state,
                (draining, offer, readiness),
            )| {
                HolderView {
                    session,
                    label,
                    token,
                    fence,
                    slot,
                    shared,
                    value: (!shared).then_some(value),
                    ttl,
                    remaining,
                    held_for,
                    renewed_ago,
                    state,
                    draining,
                    offer,
                    readiness,
                }
            },
        )
        .boxed()
}

fn waiter_view() -> BoxedStrategy<WaiterView> {
    (session(), label(), millis(), any::<bool>())
        .prop_map(|(session, label, waiting_for, overdue)| WaiterView {
            session,
            label,
            waiting_for,
            overdue,
        })
        .boxed()
}

fn session_view() -> BoxedStrategy<SessionView> {
    let times = (millis(), millis(), millis(), millis());
    (session(), label(), times, any::<bool>(), size(), size())
        .prop_map(|(session, label, (ttl, remaining, age, renewed_ago), overdue, leases, waits)| {
            SessionView { session, label, ttl, remaining, age, renewed_ago, overdue, leases, waits }
        })
        .boxed()
}

fn past_view() -> BoxedStrategy<PastView> {
    (token(), session(), label(), millis(), millis(), ending())
        .prop_map(|(token, session, label, held_for, ended_ago, how)| PastView {
            token,
            session,
            label,
            held_for,
            ended_ago,
            how,
        })
        .boxed()
}
