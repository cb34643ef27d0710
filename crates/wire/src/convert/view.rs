//! Resources, sessions and past leases as people see them.

use leasehold_core::table::{
    AlarmView, DrainingView, HolderView, HoldingState, LeaseView, OfferView, PastView, ReadinessView,
    SessionView, WaiterView,
};
use leasehold_core::{Millis, SessionId, Token};

use super::{
    Checked, Wire, from_usize, label, list, name, named_values, needed, nothing, optional, optional_millis,
    present, to_list, to_u32, to_usize, value,
};
use crate::proto as pb;
use pb::readiness_view::Readiness as ReadinessMessage;

impl Wire for LeaseView {
    type Message = pb::LeaseView;

    fn to_wire(&self) -> pb::LeaseView {
        pb::LeaseView {
            resource: self.resource.to_string(),
            mode: Some(self.mode.to_wire()),
            holders: to_list(&self.holders),
            holding: from_usize(self.holding),
            queue: to_list(&self.queue),
            waiting: from_usize(self.waiting),
            cool_down_ms: self.cool_down.map(Millis::get),
            restore_wait_ms: self.restore_wait.map(Millis::get),
            transitions: self.transitions,
            alarm: self.alarm.as_ref().map(Wire::to_wire),
        }
    }

    fn from_wire(m: pb::LeaseView) -> Checked<Self> {
        Ok(Self {
            resource: name("lease.resource", &m.resource)?,
            mode: needed("lease.mode", m.mode)?,
            holders: list(m.holders)?,
            holding: to_usize("lease.holding", m.holding)?,
            queue: list(m.queue)?,
            waiting: to_usize("lease.waiting", m.waiting)?,
            cool_down: optional_millis(m.cool_down_ms),
            restore_wait: optional_millis(m.restore_wait_ms),
            transitions: m.transitions,
            alarm: optional(m.alarm)?,
        })
    }
}

impl Wire for AlarmView {
    type Message = pb::AlarmView;

    fn to_wire(&self) -> pb::AlarmView {
        pb::AlarmView {
            resource: self.resource.to_string(),
            token: self.token.get(),
            by: self.by.to_string(),
            age_ms: self.age.get(),
        }
    }

    fn from_wire(m: pb::AlarmView) -> Checked<Self> {
        Ok(Self {
            resource: name("alarm.resource", &m.resource)?,
            token: Token::from_u64(m.token),
            by: label("alarm.by", &m.by)?,
            age: Millis::new(m.age_ms),
        })
    }
}

impl Wire for HolderView {
    type Message = pb::HolderView;

    fn to_wire(&self) -> pb::HolderView {
        pb::HolderView {
            session: self.session.get(),
            label: self.label.to_string(),
            token: self.token.get(),
            fence: self.fence.get(),
            slot: self.slot.map(u64::from),
            shared: self.shared,
            value: self.value.as_ref().map(|value| value.as_bytes().to_vec()),
            ttl_ms: self.ttl.get(),
            remaining_ms: self.remaining.get(),
            held_for_ms: self.held_for.get(),
            renewed_ago_ms: self.renewed_ago.get(),
            state: self.state.to_wire(),
            draining: self.draining.as_ref().map(Wire::to_wire),
            readiness: self.readiness.as_ref().map(Wire::to_wire),
            offer: self.offer.as_ref().map(Wire::to_wire),
        }
    }

    fn from_wire(m: pb::HolderView) -> Checked<Self> {
        Ok(Self {
            session: SessionId::from_u64(m.session),
            label: label("holder.label", &m.label)?,
            token: Token::from_u64(m.token),
            fence: Token::from_u64(m.fence),
            slot: m.slot.map(|slot| to_u32("holder.slot", slot)).transpose()?,
            shared: m.shared,
            value: m.value.map(|bytes| value("holder.value", bytes)).transpose()?,
            ttl: Millis::new(m.ttl_ms),
            remaining: Millis::new(m.remaining_ms),
            held_for: Millis::new(m.held_for_ms),
            renewed_ago: Millis::new(m.renewed_ago_ms),
            state: HoldingState::from_wire(m.state)?,
            draining: optional(m.draining)?,
            readiness: optional(m.readiness)?,
            offer: optional(m.offer)?,
        })
    }
}

impl Wire for ReadinessView {
    type Message = pb::ReadinessView;

    fn to_wire(&self) -> pb::ReadinessView {
        let readiness = match self {
            Self::WarmingUp => ReadinessMessage::WarmingUp(nothing()),
            Self::ReadyAfter(length) => ReadinessMessage::ReadyAfterMs(length.get()),
        };
        pb::ReadinessView { readiness: Some(readiness) }
    }

    fn from_wire(m: pb::ReadinessView) -> Checked<Self> {
        Ok(match present("holder.readiness", m.readiness)? {
            ReadinessMessage::WarmingUp(pb::Nothing {}) => Self::WarmingUp,
            ReadinessMessage::ReadyAfterMs(length) => Self::ReadyAfter(Millis::new(length)),
        })
    }
}

impl Wire for DrainingView {
    type Message = pb::DrainingView;

    fn to_wire(&self) -> pb::DrainingView {
        pb::DrainingView { in_flight: self.in_flight.into(), remaining_ms: self.remaining.get() }
    }

    fn from_wire(m: pb::DrainingView) -> Checked<Self> {
        let in_flight = to_u32("holder.draining.in_flight", m.in_flight)?;
        Ok(Self { in_flight, remaining: Millis::new(m.remaining_ms) })
    }
}

impl Wire for OfferView {
    type Message = pb::OfferView;

    fn to_wire(&self) -> pb::OfferView {
        pb::OfferView {
            to: self.to.get(),
            label: self.label.to_string(),
            ready: self.ready,
            remaining_ms: self.remaining.get(),
        }
    }

    fn from_wire(m: pb::OfferView) -> Checked<Self> {
        Ok(Self {
            to: SessionId::from_u64(m.to),
            label: label("holder.offer.label", &m.label)?,
            ready: m.ready,
            remaining: Millis::new(m.remaining_ms),
        })
    }
}

named_values!(HoldingState => HoldingState, "holder.state", Held, Overdue, Revoked);

impl Wire for WaiterView {
    type Message = pb::WaiterView;

    fn to_wire(&self) -> pb::WaiterView {
        pb::WaiterView {
            session: self.session.get(),
            label: self.label.to_string(),
            waiting_for_ms: self.waiting_for.get(),
            overdue: self.overdue,
        }
    }

    fn from_wire(m: pb::WaiterView) -> Checked<Self> {
        Ok(Self {
            session: SessionId::from_u64(m.session),
            label: label("waiter.label", &m.label)?,
            waiting_for: Millis::new(m.waiting_for_ms),
            overdue: m.overdue,
        })
    }
}

impl Wire for SessionView {
    type Message = pb::SessionView;

    fn to_wire(&self) -> pb::SessionView {
        pb::SessionView {
            session: self.session.get(),
            label: self.label.to_string(),
            ttl_ms: self.ttl.get(),
            remaining_ms: self.remaining.get(),
            age_ms: self.age.get(),
            renewed_ago_ms: self.renewed_ago.get(),
            overdue: self.overdue,
            leases: from_usize(self.leases),
            waits: from_usize(self.waits),
        }
    }

    fn from_wire(m: pb::SessionView) -> Checked<Self> {
        Ok(Self {
            session: SessionId::from_u64(m.session),
            label: label("session.label", &m.label)?,
            ttl: Millis::new(m.ttl_ms),
            remaining: Millis::new(m.remaining_ms),
            age: Millis::new(m.age_ms),
            renewed_ago: Millis::new(m.renewed_ago_ms),
            overdue: m.overdue,
            leases: to_usize("session.leases", m.leases)?,
            waits: to_usize("session.waits", m.waits)?,
        })
    }
}

impl Wire for PastView {
    type Message = pb::PastView;

    fn to_wire(&self) -> pb::PastView {
        pb::PastView {
            token: self.token.get(),
            session: self.session.get(),
            label: self.label.to_string(),
            held_for_ms: self.held_for.get(),
            ended_ago_ms: self.ended_ago.get(),
            how: Some(self.how.to_wire()),
        }
    }

    fn from_wire(m: pb::PastView) -> Checked<Self> {
        Ok(Self {
            token: Token::from_u64(m.token),
            session: SessionId::from_u64(m.session),
            label: label("past.label", &m.label)?,
            held_for: Millis::new(m.held_for_ms),
            ended_ago: Millis::new(m.ended_ago_ms),
            how: needed("past.how", m.how)?,
        })
    }
}
