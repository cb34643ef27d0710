//! Resources, sessions and past leases as people see them.

use leasehold_core::table::{
    AlarmView, DrainingView, HolderView, HoldingState, LeaseView, OfferView, PastView, ReadinessView,
    SessionView, WaiterView,
};

use super::{named_values, record, variants};
use crate::proto as pb;

record! {
    LeaseView => LeaseView at "lease";
    resource, mode, holders, holding, queue, waiting, cool_down_ms as cool_down, restore_wait_ms as restore_wait,
    transitions, alarm,
}

record!(AlarmView => AlarmView at "alarm"; resource, token, by, age_ms as age);

record! {
    HolderView => HolderView at "holder";
    session, label, token, fence, slot, shared, value, ttl_ms as ttl, remaining_ms as remaining,
    held_for_ms as held_for, renewed_ago_ms as renewed_ago, state, draining, readiness, offer,
}

variants! {
    ReadinessView => ReadinessView { readiness: readiness_view::Readiness } at "holder.readiness";
    WarmingUp => WarmingUp,
    ReadyAfter(length) => ReadyAfterMs,
}

record!(DrainingView => DrainingView at "holder.draining"; in_flight, remaining_ms as remaining);

record!(OfferView => OfferView at "holder.offer"; to, label, ready, remaining_ms as remaining);

named_values!(HoldingState => HoldingState, "holder.state", Held, Overdue, Revoked);

record!(WaiterView => WaiterView at "waiter"; session, label, waiting_for_ms as waiting_for, overdue);

record! {
    SessionView => SessionView at "session";
    session, label, ttl_ms as ttl, remaining_ms as remaining, age_ms as age, renewed_ago_ms as renewed_ago,
    overdue, leases, waits,
}

record! {
    PastView => PastView at "past";
    token, session, label, held_for_ms as held_for, ended_ago_ms as ended_ago, how,
}
