//! Resources, sessions and endings as JSON.

use leasehold_core::table::{
    AlarmView, HolderView, HoldingState, LeaseView, PastView, ReadinessView, SessionView, WaiterView,
};
use leasehold_core::{Ending, Millis, Mode, Token, Value};
use serde::Serialize;

use crate::plain::words;

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
    readiness: Option<ReadinessJson>,
    offer: Option<OfferJson>,
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
    #[serde(flatten)]
    ending: EndingJson,
}

/// How a lease ended.
#[derive(Debug, Serialize)]
pub(crate) struct EndingJson {
    ended: &'static str,
    by: Option<String>,
    reason: Option<String>,
    successor: Option<String>,
    taken_by: Option<String>,
}

impl LeaseJson {
    pub(crate) fn new(view: &LeaseView) -> Self {
        // A name without slots takes exclusive and shared leases in turn.
        let shared = view.holders.iter().any(|holder| holder.shared);
        let (mode, slots) = match view.mode {
            Mode::Slot { of } => ("slots", Some(of)),
            Mode::Shared => ("shared", None),
            Mode::Exclusive if shared => ("shared", None),
            Mode::Exclusive => ("exclusive", None),
        };
        Self {
            resource: view.resource.to_string(),
            held: view.holders.iter().any(|holder| holder.state != HoldingState::Revoked),
            mode,
            slots,
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
    fn new(view: &HolderView) -> Self {
        let (value, value_hex) = view.value.as_ref().map_or((None, None), value_fields);
        Self {
            label: view.label.to_string(),
            session: view.session.to_string(),
            token: view.token.to_string(),
            fence_token: view.fence.to_string(),
            slot: view.slot,
            shared: view.shared,
            state: words::holding(view.state),
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
            readiness: view.readiness.map(|said| match said {
                ReadinessView::WarmingUp => ReadinessJson { state: "warming-up", ready_after_ms: None },
                ReadinessView::ReadyAfter(after) => {
                    ReadinessJson { state: "ready", ready_after_ms: Some(after.get()) }
                }
            }),
            offer: view.offer.as_ref().map(|offer| OfferJson {
                to: offer.to.to_string(),
                label: offer.label.to_string(),
                ready: offer.ready,
                remaining_ms: offer.remaining.get(),
            }),
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
    pub(crate) fn new(view: &PastView) -> Self {
        Self {
            token: view.token.to_string(),
            label: view.label.to_string(),
            session: view.session.to_string(),
            held_for_ms: view.held_for.get(),
            ended_ago_ms: view.ended_ago.get(),
            ending: EndingJson::new(&view.how),
        }
    }
}

impl EndingJson {
    pub(crate) fn new(how: &Ending) -> Self {
        let mut json =
            Self { ended: words::ending(how), by: None, reason: None, successor: None, taken_by: None };
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

/// Text as text, anything else as hexadecimal digits; neither when there is nothing.
pub(crate) fn value_fields(value: &Value) -> (Option<String>, Option<String>) {
    if value.is_empty() {
        return (None, None);
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(hex(value.as_bytes()))),
    }
}

/// Two digits for each byte.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
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
