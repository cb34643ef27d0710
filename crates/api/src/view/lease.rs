//! Resources, sessions and endings as JSON.

use leasehold_core::table::{
    AlarmView, DrainingView, HolderView, HoldingState, LeaseView, OfferView, PastView, ReadinessView,
    SessionView, WaiterView,
};
use leasehold_core::{Millis, Mode, Value};
use serde::Serialize;

use crate::text::hex;
use crate::{Number, word};

views! {
    /// One resource.
    #[derive(Default)]
    Lease new(view: &LeaseView) {
        resource: String = view.resource.to_string(),
        held: bool = view.holders.iter().any(|holder| holder.state != HoldingState::Revoked),
        #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["exclusive", "shared", "slots"])))]
        mode: &'static str = word::mode(word::present_mode(view)),
        slots: Option<u32> = match view.mode {
            Mode::Slot { of } => Some(of),
            Mode::Exclusive | Mode::Shared => None,
        },
        holders: Vec<Holder> = view.holders.iter().map(Holder::new).collect(),
        holding: usize = view.holding,
        queue: Vec<Waiter> = view.queue.iter().map(Waiter::new).collect(),
        waiting: usize = view.waiting,
        cool_down_ms: Option<u64> = view.cool_down.map(Millis::get),
        restore_wait_ms: Option<u64> = view.restore_wait.map(Millis::get),
        transitions: u64 = view.transitions,
        alarm: Option<Alarm> = view.alarm.as_ref().map(Alarm::new),
    }

    /// One alarm.
    Alarm new(view: &AlarmView) {
        resource: String = view.resource.to_string(),
        token: Number = view.token.get().into(),
        by: String = view.by.to_string(),
        age_ms: u64 = view.age.get(),
    }

    /// One holder.
    Holder new(view: &HolderView) {
        label: String = view.label.to_string(),
        session: Number = view.session.get().into(),
        token: Number = view.token.get().into(),
        fence_token: Number = view.fence.get().into(),
        slot: Option<u32> = view.slot,
        shared: bool = view.shared,
        #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["held", "overdue", "revoked"])))]
        state: &'static str = word::holding(view.state),
        ttl_ms: u64 = view.ttl.get(),
        remaining_ms: u64 = view.remaining.get(),
        held_for_ms: u64 = view.held_for.get(),
        renewed_ago_ms: u64 = view.renewed_ago.get(),
        value: Option<String> = view.value.as_ref().and_then(text),
        value_hex: Option<String> = view.value.as_ref().and_then(digits),
        value_left_out: bool = view.value.is_none(),
        draining: Option<Draining> = view.draining.as_ref().map(Draining::new),
        readiness: Option<Readiness> = view.readiness.as_ref().map(Readiness::new),
        offer: Option<Offer> = view.offer.as_ref().map(Offer::new),
    }

    /// What a holder says of its readiness.
    Readiness new(view: &ReadinessView) {
        #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["warming-up", "ready"])))]
        state: &'static str = match view {
            ReadinessView::WarmingUp => "warming-up",
            ReadinessView::ReadyAfter(_) => "ready",
        },
        ready_after_ms: Option<u64> = match view {
            ReadinessView::WarmingUp => None,
            ReadinessView::ReadyAfter(after) => Some(after.get()),
        },
    }

    /// What a holder says of its drain.
    Draining new(view: &DrainingView) {
        in_flight: u32 = view.in_flight,
        remaining_ms: u64 = view.remaining.get(),
    }

    /// Whom a holder offers its place to.
    Offer new(view: &OfferView) {
        to: Number = view.to.get().into(),
        label: String = view.label.to_string(),
        ready: bool = view.ready,
        remaining_ms: u64 = view.remaining.get(),
    }

    /// One waiter.
    Waiter new(view: &WaiterView) {
        label: String = view.label.to_string(),
        session: Number = view.session.get().into(),
        waiting_for_ms: u64 = view.waiting_for.get(),
        overdue: bool = view.overdue,
    }

    /// One session.
    Session new(view: &SessionView) {
        session: Number = view.session.get().into(),
        label: String = view.label.to_string(),
        overdue: bool = view.overdue,
        ttl_ms: u64 = view.ttl.get(),
        remaining_ms: u64 = view.remaining.get(),
        age_ms: u64 = view.age.get(),
        renewed_ago_ms: u64 = view.renewed_ago.get(),
        leases: usize = view.leases,
        waits: usize = view.waits,
    }

    /// One lease of the past.
    Past new(view: &PastView) {
        token: Number = view.token.get().into(),
        label: String = view.label.to_string(),
        session: Number = view.session.get().into(),
        held_for_ms: u64 = view.held_for.get(),
        ended_ago_ms: u64 = view.ended_ago.get(),
        #[serde(flatten)]
        ending: Ending = Ending::new(&view.how),
    }
}

impl Lease {
    /// A resource that the store has never heard of, or has forgotten.
    pub fn unknown(name: &str) -> Self {
        Self { resource: name.to_owned(), mode: "unknown", ..Self::default() }
    }
}

/// How a lease ended.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Ending {
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = word::ENDINGS)))]
    ended: &'static str,
    by: Option<String>,
    reason: Option<String>,
    successor: Option<Number>,
    taken_by: Option<Number>,
}

impl Ending {
    /// As the table shows it.
    pub fn new(how: &leasehold_core::Ending) -> Self {
        use leasehold_core::Ending::{HandedOver, Revoked, Taken};
        let ended = Self { ended: word::ending(how), ..Self::default() };
        match how {
            Revoked { by, reason } => {
                Self { by: Some(by.to_string()), reason: Some(reason.to_string()), ..ended }
            }
            HandedOver { to } => Self { successor: Some(to.get().into()), ..ended },
            Taken { by } => Self { taken_by: Some(by.get().into()), ..ended },
            _ => ended,
        }
    }
}

/// A value as text, if it is one and not empty.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// A value that is no text, in hexadecimal digits.
pub(super) fn digits(value: &Value) -> Option<String> {
    std::str::from_utf8(value.as_bytes()).is_err().then(|| hex(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_text_is_shown_in_digits() {
        let shown = |bytes: &[u8]| {
            let value = Value::new(bytes.to_vec()).unwrap();
            (text(&value), digits(&value))
        };
        assert_eq!(shown(b""), (None, None));
        assert_eq!(shown(b"host:80"), (Some("host:80".to_owned()), None));
        assert_eq!(shown(&[0xff, 0x01]), (None, Some("ff01".to_owned())));
    }
}
