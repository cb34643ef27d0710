//! Resources, sessions and endings as JSON.

use leasehold_core::table::{
    AlarmView, HolderView, HoldingState, LeaseView, PastView, ReadinessView, SessionView, WaiterView,
};
use leasehold_core::{Millis, Mode, Value};
use serde::Serialize;

use crate::text::hex;
use crate::{Number, word};

/// One resource.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Lease {
    resource: String,
    held: bool,
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["exclusive", "shared", "slots"])))]
    mode: &'static str,
    slots: Option<u32>,
    holders: Vec<Holder>,
    holding: usize,
    queue: Vec<Waiter>,
    waiting: usize,
    cool_down_ms: Option<u64>,
    restore_wait_ms: Option<u64>,
    transitions: u64,
    alarm: Option<Alarm>,
}

/// One alarm.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Alarm {
    resource: String,
    token: Number,
    by: String,
    age_ms: u64,
}

/// One holder.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Holder {
    label: String,
    session: Number,
    token: Number,
    fence_token: Number,
    slot: Option<u32>,
    shared: bool,
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["held", "overdue", "revoked"])))]
    state: &'static str,
    ttl_ms: u64,
    remaining_ms: u64,
    held_for_ms: u64,
    renewed_ago_ms: u64,
    value: Option<String>,
    value_hex: Option<String>,
    value_left_out: bool,
    draining: Option<Draining>,
    readiness: Option<Readiness>,
    offer: Option<Offer>,
}

/// What a holder says of its readiness.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Readiness {
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["warming-up", "ready"])))]
    state: &'static str,
    ready_after_ms: Option<u64>,
}

/// What a holder says of its drain.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Draining {
    in_flight: u32,
    remaining_ms: u64,
}

/// Whom a holder offers its place to.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Offer {
    to: Number,
    label: String,
    ready: bool,
    remaining_ms: u64,
}

/// One waiter.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Waiter {
    label: String,
    session: Number,
    waiting_for_ms: u64,
    overdue: bool,
}

/// One session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Session {
    session: Number,
    label: String,
    overdue: bool,
    ttl_ms: u64,
    remaining_ms: u64,
    age_ms: u64,
    renewed_ago_ms: u64,
    leases: usize,
    waits: usize,
}

/// One lease of the past.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Past {
    token: Number,
    label: String,
    session: Number,
    held_for_ms: u64,
    ended_ago_ms: u64,
    #[serde(flatten)]
    ending: Ending,
}

/// How a lease ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Ending {
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = word::ENDINGS)))]
    ended: &'static str,
    by: Option<String>,
    reason: Option<String>,
    successor: Option<Number>,
    taken_by: Option<Number>,
}

impl Lease {
    /// As the table shows it.
    pub fn new(view: &LeaseView) -> Self {
        let slots = match view.mode {
            Mode::Slot { of } => Some(of),
            Mode::Exclusive | Mode::Shared => None,
        };
        Self {
            resource: view.resource.to_string(),
            held: view.holders.iter().any(|holder| holder.state != HoldingState::Revoked),
            mode: word::mode(word::present_mode(view)),
            slots,
            holders: view.holders.iter().map(Holder::new).collect(),
            holding: view.holding,
            queue: view.queue.iter().map(Waiter::new).collect(),
            waiting: view.waiting,
            cool_down_ms: view.cool_down.map(Millis::get),
            restore_wait_ms: view.restore_wait.map(Millis::get),
            transitions: view.transitions,
            alarm: view.alarm.as_ref().map(Alarm::new),
        }
    }
}

impl Lease {
    /// A resource that the store has never heard of, or has forgotten.
    pub fn unknown(name: &str) -> Self {
        Self {
            resource: name.to_owned(),
            held: false,
            mode: "unknown",
            slots: None,
            holders: Vec::new(),
            holding: 0,
            queue: Vec::new(),
            waiting: 0,
            cool_down_ms: None,
            restore_wait_ms: None,
            transitions: 0,
            alarm: None,
        }
    }
}

impl Alarm {
    /// As the table shows it.
    pub fn new(view: &AlarmView) -> Self {
        Self {
            resource: view.resource.to_string(),
            token: view.token.get().into(),
            by: view.by.to_string(),
            age_ms: view.age.get(),
        }
    }
}

impl Holder {
    /// As the table shows it.
    pub fn new(view: &HolderView) -> Self {
        let (value, value_hex) = view.value.as_ref().map_or((None, None), value_fields);
        Self {
            label: view.label.to_string(),
            session: view.session.get().into(),
            token: view.token.get().into(),
            fence_token: view.fence.get().into(),
            slot: view.slot,
            shared: view.shared,
            state: word::holding(view.state),
            ttl_ms: view.ttl.get(),
            remaining_ms: view.remaining.get(),
            held_for_ms: view.held_for.get(),
            renewed_ago_ms: view.renewed_ago.get(),
            value,
            value_hex,
            value_left_out: view.value.is_none(),
            draining: view
                .draining
                .map(|shown| Draining { in_flight: shown.in_flight, remaining_ms: shown.remaining.get() }),
            readiness: view.readiness.map(|said| match said {
                ReadinessView::WarmingUp => Readiness { state: "warming-up", ready_after_ms: None },
                ReadinessView::ReadyAfter(after) => {
                    Readiness { state: "ready", ready_after_ms: Some(after.get()) }
                }
            }),
            offer: view.offer.as_ref().map(|offer| Offer {
                to: offer.to.get().into(),
                label: offer.label.to_string(),
                ready: offer.ready,
                remaining_ms: offer.remaining.get(),
            }),
        }
    }
}

impl Waiter {
    fn new(view: &WaiterView) -> Self {
        Self {
            label: view.label.to_string(),
            session: view.session.get().into(),
            waiting_for_ms: view.waiting_for.get(),
            overdue: view.overdue,
        }
    }
}

impl Session {
    /// As the table shows it.
    pub fn new(view: &SessionView) -> Self {
        Self {
            session: view.session.get().into(),
            label: view.label.to_string(),
            overdue: view.overdue,
            ttl_ms: view.ttl.get(),
            remaining_ms: view.remaining.get(),
            age_ms: view.age.get(),
            renewed_ago_ms: view.renewed_ago.get(),
            leases: view.leases,
            waits: view.waits,
        }
    }
}

impl Past {
    /// As the table shows it.
    pub fn new(view: &PastView) -> Self {
        Self {
            token: view.token.get().into(),
            label: view.label.to_string(),
            session: view.session.get().into(),
            held_for_ms: view.held_for.get(),
            ended_ago_ms: view.ended_ago.get(),
            ending: Ending::new(&view.how),
        }
    }
}

impl Ending {
    /// As the table shows it.
    pub fn new(how: &leasehold_core::Ending) -> Self {
        let mut json =
            Self { ended: word::ending(how), by: None, reason: None, successor: None, taken_by: None };
        match how {
            leasehold_core::Ending::Revoked { by, reason } => {
                json.by = Some(by.to_string());
                json.reason = Some(reason.to_string());
            }
            leasehold_core::Ending::HandedOver { to } => json.successor = Some(to.get().into()),
            leasehold_core::Ending::Taken { by } => json.taken_by = Some(by.get().into()),
            _ => {}
        }
        json
    }
}

/// Text as text, anything else as hexadecimal digits; neither when there is nothing.
pub(super) fn value_fields(value: &Value) -> (Option<String>, Option<String>) {
    if value.is_empty() {
        return (None, None);
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(hex(value.as_bytes()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_text_is_shown_in_digits() {
        let shown = |bytes: &[u8]| value_fields(&Value::new(bytes.to_vec()).unwrap());
        assert_eq!(shown(b""), (None, None));
        assert_eq!(shown(b"host:80"), (Some("host:80".to_owned()), None));
        assert_eq!(shown(&[0xff, 0x01]), (None, Some("ff01".to_owned())));
    }
}
