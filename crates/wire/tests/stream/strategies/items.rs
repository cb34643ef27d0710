//! Items of sessions, answers, refusals and endings.

use leasehold_core::CommandNumber;
use leasehold_core::answer::{
    Answer, BadRequest, Ending, Grant, Item, ItemKind, LimitedThing, Refusal, Unavailable, WaitEnding,
};
use proptest::option;
use proptest::prelude::*;

use super::{
    attach_number, call_number, command_number, few, item_number, label, millis, mode, name, reason, session,
    size, small, successor, token,
};

pub(crate) fn item() -> BoxedStrategy<Item> {
    (item_number(), item_kind()).prop_map(|(number, kind)| Item { number, kind }).boxed()
}

pub(crate) fn item_kind() -> BoxedStrategy<ItemKind> {
    prop_oneof![
        (command_number(), answer()).prop_map(|(command, answer)| ItemKind::Answer { command, answer }),
        (command_number(), few(grant()))
            .prop_map(|(command, grants)| ItemKind::WaitGranted { command, grants }),
        (command_number(), wait_ending()).prop_map(|(command, why)| ItemKind::WaitEnded { command, why }),
        (name(), token(), ending()).prop_map(|(resource, token, how)| ItemKind::LeaseEnded {
            resource,
            token,
            how
        }),
        (name(), token(), option::of(successor()), label()).prop_map(|(resource, token, successor, by)| {
            ItemKind::ReleaseRequested { resource, token, successor, by }
        }),
        (name(), token(), label(), millis()).prop_map(|(resource, token, from, length)| ItemKind::Offered {
            resource,
            token,
            from,
            length
        }),
        (name(), token()).prop_map(|(resource, token)| ItemKind::OfferEnded { resource, token }),
        (name(), token(), session(), label())
            .prop_map(|(resource, token, by, label)| ItemKind::OfferAccepted { resource, token, by, label }),
    ]
    .boxed()
}

pub(crate) fn wait_ending() -> BoxedStrategy<WaitEnding> {
    prop_oneof![
        Just(WaitEnding::TimedOut),
        Just(WaitEnding::OfferEnded),
        Just(WaitEnding::KindChanged),
        Just(WaitEnding::Cancelled),
    ]
    .boxed()
}

pub(crate) fn answer() -> BoxedStrategy<Answer> {
    prop_oneof![
        few(grant()).prop_map(Answer::Granted),
        small().prop_map(|ahead| Answer::Queued { ahead }),
        Just(Answer::Cancelled),
        few(grant()).prop_map(Answer::AlreadyGranted),
        Just(Answer::ValueSet),
        Just(Answer::DrainingShown),
        Just(Answer::ReadySet),
        Just(Answer::RegisterWritten),
        session().prop_map(|to| Answer::Offered { to }),
        any::<u64>().prop_map(|wait| Answer::Accepted { wait: CommandNumber::new(wait) }),
        Just(Answer::Released),
        refusal().prop_map(Answer::Refused),
    ]
    .boxed()
}

pub(crate) fn grant() -> BoxedStrategy<Grant> {
    (name(), token(), token(), option::of(small()))
        .prop_map(|(resource, token, fence, slot)| Grant { resource, token, fence, slot })
        .boxed()
}

pub(crate) fn ending() -> BoxedStrategy<Ending> {
    prop_oneof![
        Just(Ending::Released),
        session().prop_map(|to| Ending::HandedOver { to }),
        Just(Ending::Drained),
        Just(Ending::Expired),
        token().prop_map(|by| Ending::Taken { by }),
        (label(), reason()).prop_map(|(by, reason)| Ending::Revoked { by, reason }),
        Just(Ending::SessionClosed),
        Just(Ending::Rebooted),
        Just(Ending::Restored),
    ]
    .boxed()
}

pub(crate) fn unavailable() -> BoxedStrategy<Unavailable> {
    prop_oneof![
        (label(), token(), any::<bool>()).prop_map(|(holder, token, overdue)| Unavailable::Held {
            holder,
            token,
            overdue
        }),
        small().prop_map(|waiting| Unavailable::Queue { waiting }),
        (token(), millis()).prop_map(|(token, remaining)| Unavailable::RevokePending { token, remaining }),
        millis().prop_map(|remaining| Unavailable::CoolDown { remaining }),
        millis().prop_map(|remaining| Unavailable::RestoreWait { remaining }),
        token().prop_map(|token| Unavailable::Alarm { token }),
    ]
    .boxed()
}

pub(crate) fn refusal() -> BoxedStrategy<Refusal> {
    prop_oneof![
        session().prop_map(|session| Refusal::SessionEnded { session }),
        Just(Refusal::SessionOverdue),
        (attach_number(), attach_number())
            .prop_map(|(attach, current)| Refusal::OlderAttach { attach, current }),
        (command_number(), command_number())
            .prop_map(|(number, expected)| Refusal::CommandGap { number, expected }),
        (item_number(), item_number()).prop_map(|(seen, newest)| Refusal::SeenAhead { seen, newest }),
        size().prop_map(|limit| Refusal::TooManyUnseen { limit }),
        Just(Refusal::WrongSessionKind),
        (millis(), millis(), millis()).prop_map(|(ttl, min, max)| Refusal::TtlOutOfRange { ttl, min, max }),
        Just(Refusal::BadPolicies),
        Just(Refusal::NoRoom),
        Just(Refusal::NotYetInUse),
        call_number().prop_map(|call| Refusal::NumberReused { call }),
        (name(), token(), super::number()).prop_map(|(resource, token, newest)| Refusal::TokenAhead {
            resource,
            token,
            newest
        }),
        (name(), token(), option::of(token())).prop_map(|(resource, token, raised)| Refusal::NoSuchAlarm {
            resource,
            token,
            raised
        }),
        bad_request().prop_map(|what| Refusal::BadRequest { what }),
        mode().prop_map(|has| Refusal::WrongKind { has }),
        (name(), unavailable()).prop_map(|(resource, why)| Refusal::NotFree { resource, why }),
        (name(), token(), option::of(ending())).prop_map(|(resource, token, ended)| Refusal::NotHolder {
            resource,
            token,
            ended
        }),
        (name(), token(), option::of(ending())).prop_map(|(resource, token, ended)| Refusal::NotCurrent {
            resource,
            token,
            ended
        }),
        name().prop_map(|resource| Refusal::NotHeld { resource }),
        command_number().prop_map(|acquire| Refusal::NoSuchWait { acquire }),
        Just(Refusal::NoSuchSuccessor),
        name().prop_map(|resource| Refusal::NoOffer { resource }),
        (limited_thing(), size()).prop_map(|(what, limit)| Refusal::LimitReached { what, limit }),
        Just(Refusal::TokensExhausted),
    ]
    .boxed()
}

pub(crate) fn bad_request() -> BoxedStrategy<BadRequest> {
    prop_oneof![
        Just(BadRequest::NoResource),
        Just(BadRequest::TooManyResources),
        Just(BadRequest::NamedTwice),
        Just(BadRequest::BadSlots),
        Just(BadRequest::TooLong),
        Just(BadRequest::NonceTaken),
    ]
    .boxed()
}

pub(crate) fn limited_thing() -> BoxedStrategy<LimitedThing> {
    prop_oneof![
        Just(LimitedThing::LeasesOfSession),
        Just(LimitedThing::WaitsOfSession),
        Just(LimitedThing::Sessions),
        Just(LimitedThing::WaitersOfResource),
        Just(LimitedThing::Resources),
        Just(LimitedThing::RegistersOfResource),
        Just(LimitedThing::CallsOfSession),
    ]
    .boxed()
}
