//! Results as JSON. These field names are an interface: they may be added to, not changed. Tokens and ids are strings, because a
//! JSON number loses the last digits of one; lengths are milliseconds and say so in their names.

mod changes;

use leasehold::core::table::{
    AlarmView, HolderView, HoldingState, LeaseView, PastView, ReadinessView, SessionView, WaiterView,
};
use leasehold::core::{Millis, Mode, Value};
use leasehold::{Ending, Token};
use serde::Serialize;

use crate::words;

pub(crate) use changes::ChangesJson;

/// One resource.
#[derive(Debug, Serialize)]
pub(crate) struct LeaseJson {
    resource: String,
    held: bool,
    mode: &'static str,
    slots: Option<u32>,
    holders: Vec<HolderJson>,
    holding: usize,
    queue: Vec<WaiterJson>,
    waiting: usize,
    cool_down_ms: Option<u64>,
    restore_wait_ms: Option<u64>,
    transitions: u64,
    alarm: Option<AlarmJson>,
}

/// One alarm.
#[derive(Debug, Serialize)]
pub(crate) struct AlarmJson {
    resource: String,
    token: String,
    by: String,
    age_ms: u64,
}

/// One holder.
#[derive(Debug, Serialize)]
pub(crate) struct HolderJson {
    label: String,
    session: String,
    token: String,
    fence_token: String,
    slot: Option<u32>,
    shared: bool,
    state: &'static str,
    ttl_ms: u64,
    remaining_ms: u64,
    held_for_ms: u64,
    renewed_ago_ms: u64,
    value: Option<String>,
    value_hex: Option<String>,
    value_left_out: bool,
    draining: Option<DrainingJson>,
    offer: Option<OfferJson>,
    readiness: Option<ReadinessJson>,
}

/// What a holder says of its readiness.
#[derive(Debug, Serialize)]
pub(crate) struct ReadinessJson {
    state: &'static str,
    ready_after_ms: Option<u64>,
}

/// What a holder says of its drain.
#[derive(Debug, Serialize)]
pub(crate) struct DrainingJson {
    in_flight: u32,
    remaining_ms: u64,
}

/// Whom a holder offers its place to.
#[derive(Debug, Serialize)]
pub(crate) struct OfferJson {
    to: String,
    label: String,
    ready: bool,
    remaining_ms: u64,
}

/// One waiter.
#[derive(Debug, Serialize)]
pub(crate) struct WaiterJson {
    label: String,
    session: String,
    waiting_for_ms: u64,
    overdue: bool,
}

/// One session.
#[derive(Debug, Serialize)]
pub(crate) struct SessionJson {
    session: String,
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
pub(crate) struct PastJson {
    token: String,
    label: String,
    session: String,
    held_for_ms: u64,
    ended_ago_ms: u64,
    ready_after_ms: Option<u64>,
    #[serde(flatten)]
    ending: EndingJson,
}

/// How a lease ended; what does not apply is null.
#[derive(Debug, Serialize)]
pub(crate) struct EndingJson {
    ended: &'static str,
    by: Option<String>,
    reason: Option<String>,
    successor: Option<String>,
    taken_by: Option<String>,
}

impl LeaseJson {
    /// A resource that the store knows.
    pub(crate) fn new(view: &LeaseView) -> Self {
        Self {
            resource: view.resource.to_string(),
            held: view.holders.iter().any(|holder| holder.state != HoldingState::Revoked),
            mode: mode(present_mode(view)),
            slots: match view.mode {
                Mode::Slot { of } => Some(of),
                Mode::Exclusive | Mode::Shared => None,
            },
            holders: view.holders.iter().map(HolderJson::new).collect(),
            holding: view.holding,
            queue: view.queue.iter().map(WaiterJson::new).collect(),
            waiting: view.waiting,
            cool_down_ms: view.cool_down.map(Millis::get),
            restore_wait_ms: view.restore_wait.map(Millis::get),
            transitions: view.transitions,
            alarm: view.alarm.as_ref().map(AlarmJson::new),
        }
    }

    /// A resource that the store has never heard of, or has forgotten.
    pub(crate) fn unknown(name: &str) -> Self {
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

impl AlarmJson {
    pub(crate) fn new(view: &AlarmView) -> Self {
        Self {
            resource: view.resource.to_string(),
            token: view.token.to_string(),
            by: view.by.to_string(),
            age_ms: view.age.get(),
        }
    }
}

impl HolderJson {
    pub(crate) fn new(view: &HolderView) -> Self {
        let (value, value_hex) = view.value.as_ref().map_or((None, None), value);
        Self {
            label: view.label.to_string(),
            session: view.session.to_string(),
            token: view.token.to_string(),
            fence_token: view.fence.to_string(),
            slot: view.slot,
            shared: view.shared,
            state: holding(view.state),
            ttl_ms: view.ttl.get(),
            remaining_ms: view.remaining.get(),
            held_for_ms: view.held_for.get(),
            renewed_ago_ms: view.renewed_ago.get(),
            value,
            value_hex,
            value_left_out: view.value.is_none(),
            draining: view.draining.map(|shown| DrainingJson {
                in_flight: shown.in_flight,
                remaining_ms: shown.remaining.get(),
            }),
            offer: view.offer.as_ref().map(|offer| OfferJson {
                to: offer.to.to_string(),
                label: offer.label.to_string(),
                ready: offer.ready,
                remaining_ms: offer.remaining.get(),
            }),
            readiness: view.readiness.map(ReadinessJson::new),
        }
    }
}

impl ReadinessJson {
    const fn new(view: ReadinessView) -> Self {
        match view {
            ReadinessView::WarmingUp => Self { state: "warming-up", ready_after_ms: None },
            ReadinessView::ReadyAfter(length) => Self { state: "ready", ready_after_ms: Some(length.get()) },
        }
    }
}

impl WaiterJson {
    fn new(view: &WaiterView) -> Self {
        Self {
            label: view.label.to_string(),
            session: view.session.to_string(),
            waiting_for_ms: view.waiting_for.get(),
            overdue: view.overdue,
        }
    }
}

impl SessionJson {
    pub(crate) fn new(view: &SessionView) -> Self {
        Self {
            session: view.session.to_string(),
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

impl PastJson {
    pub(crate) fn new(view: &PastView, ready_after: Option<Millis>) -> Self {
        Self {
            token: view.token.to_string(),
            label: view.label.to_string(),
            session: view.session.to_string(),
            held_for_ms: view.held_for.get(),
            ended_ago_ms: view.ended_ago.get(),
            ready_after_ms: ready_after.map(Millis::get),
            ending: EndingJson::new(&view.how),
        }
    }
}

impl EndingJson {
    pub(crate) fn new(how: &Ending) -> Self {
        let mut json =
            Self { ended: words::ending_code(how), by: None, reason: None, successor: None, taken_by: None };
        match how {
            Ending::Revoked { by, reason } => {
                json.by = Some(by.to_string());
                json.reason = Some(reason.to_string());
            }
            Ending::HandedOver { to } => json.successor = Some(to.to_string()),
            Ending::Taken { by } => json.taken_by = Some(Token::to_string(by)),
            _ => {}
        }
        json
    }
}

/// How a holder stands, in one word.
pub(crate) const fn holding(state: HoldingState) -> &'static str {
    match state {
        HoldingState::Held => "held",
        HoldingState::Overdue => "overdue",
        HoldingState::Revoked => "revoked",
    }
}

/// How the resource is held now: a name without slots takes exclusive and shared leases in turn.
pub(crate) fn present_mode(view: &LeaseView) -> Mode {
    if view.holders.iter().any(|holder| holder.shared) { Mode::Shared } else { view.mode }
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Slot { .. } => "slots",
    }
}

/// Text as text, anything else as hexadecimal digits; nothing when there is nothing.
fn value(value: &Value) -> (Option<String>, Option<String>) {
    if value.is_empty() {
        return (None, None);
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(value.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_text_is_shown_in_digits() {
        let shown = |bytes: &[u8]| value(&Value::new(bytes.to_vec()).unwrap());
        assert_eq!(shown(b""), (None, None));
        assert_eq!(shown(b"host:80"), (Some("host:80".to_owned()), None));
        assert_eq!(shown(&[0xff, 0x01]), (None, Some("ff01".to_owned())));
    }
}
