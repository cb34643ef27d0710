//! What watchers see.

use leasehold_core::protocol::{Change, Changes};
use proptest::option;
use proptest::prelude::*;

use super::items::{ending, grant};
use super::{few, label, millis, name, reason, register_key, revision, session, small, token, value};

pub(crate) fn changes() -> BoxedStrategy<Changes> {
    (revision(), few(change())).prop_map(|(revision, changes)| Changes { revision, changes }).boxed()
}

pub(crate) fn change() -> BoxedStrategy<Change> {
    prop_oneof![
        (grant(), any::<bool>(), session(), label(), option::of(value())).prop_map(
            |(grant, shared, session, label, value)| Change::Granted { grant, shared, session, label, value }
        ),
        (name(), token(), session(), option::of(value())).prop_map(|(resource, token, session, value)| {
            Change::ValueSet { resource, token, session, value }
        }),
        (name(), token(), session(), small(), millis()).prop_map(
            |(resource, token, session, in_flight, within)| {
                Change::DrainingShown { resource, token, session, in_flight, within }
            }
        ),
        (name(), token(), session(), any::<bool>()).prop_map(|(resource, token, session, ready)| {
            Change::ReadySet { resource, token, session, ready }
        }),
        (name(), register_key(), token(), any::<bool>()).prop_map(|(resource, key, token, removed)| {
            Change::RegisterWritten { resource, key, token, removed }
        }),
        (name(), token(), session(), label(), ending()).prop_map(|(resource, token, session, label, how)| {
            Change::Ended { resource, token, session, label, how }
        }),
        (name(), token(), label()).prop_map(|(resource, token, by)| Change::AlarmRaised {
            resource,
            token,
            by
        }),
        (name(), token(), label(), reason()).prop_map(|(resource, token, by, reason)| {
            Change::AlarmCleared { resource, token, by, reason }
        }),
    ]
    .boxed()
}
