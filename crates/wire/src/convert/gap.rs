//! Gaps as people see them.

use leasehold_core::gap::{GapCause, GapPart, GapSide, GapView, NameGaps, OutageView};
use leasehold_core::protocol::GapsView;
use leasehold_core::{Millis, Token};

use super::{Checked, Wire, label, list, name, named_values, needed, optional, optional_millis, to_list};
use crate::proto as pb;

impl Wire for GapsView {
    type Message = pb::GapsAnswer;

    fn to_wire(&self) -> pb::GapsAnswer {
        pb::GapsAnswer {
            names: to_list(&self.names),
            next: self.next.as_ref().map(ToString::to_string),
            outages: to_list(&self.outages),
        }
    }

    fn from_wire(m: pb::GapsAnswer) -> Checked<Self> {
        Ok(Self {
            names: list(m.names)?,
            next: m.next.map(|next| name("gaps.next", &next)).transpose()?,
            outages: list(m.outages)?,
        })
    }
}

impl Wire for NameGaps {
    type Message = pb::NameGaps;

    fn to_wire(&self) -> pb::NameGaps {
        pb::NameGaps {
            resource: self.resource.to_string(),
            gaps: to_list(&self.gaps),
            known_for_ms: self.known_for.get(),
        }
    }

    fn from_wire(m: pb::NameGaps) -> Checked<Self> {
        Ok(Self {
            resource: name("gaps.resource", &m.resource)?,
            gaps: list(m.gaps)?,
            known_for: Millis::new(m.known_for_ms),
        })
    }
}

impl Wire for GapView {
    type Message = pb::GapView;

    fn to_wire(&self) -> pb::GapView {
        pb::GapView {
            began_ago_ms: self.began_ago.get(),
            ended_ago_ms: self.ended_ago.map(Millis::get),
            parts: to_list(&self.parts),
            before: Some(self.before.to_wire()),
            after: self.after.as_ref().map(Wire::to_wire),
        }
    }

    fn from_wire(m: pb::GapView) -> Checked<Self> {
        Ok(Self {
            began_ago: Millis::new(m.began_ago_ms),
            ended_ago: optional_millis(m.ended_ago_ms),
            parts: list(m.parts)?,
            before: needed("gap.before", m.before)?,
            after: optional(m.after)?,
        })
    }
}

impl Wire for GapPart {
    type Message = pb::GapPart;

    fn to_wire(&self) -> pb::GapPart {
        pb::GapPart { cause: self.cause.to_wire(), length_ms: self.length.get() }
    }

    fn from_wire(m: pb::GapPart) -> Checked<Self> {
        Ok(Self { cause: GapCause::from_wire(m.cause)?, length: Millis::new(m.length_ms) })
    }
}

named_values!(
    GapCause => GapCause, "gap.cause", Detection, Grace, Revoke, CoolDown, Restore, Alarm, Queue, WarmUp, Outage
);

impl Wire for GapSide {
    type Message = pb::GapSide;

    fn to_wire(&self) -> pb::GapSide {
        pb::GapSide {
            token: self.token.get(),
            label: self.label.as_ref().map(ToString::to_string),
            how: self.how.as_ref().map(Wire::to_wire),
        }
    }

    fn from_wire(m: pb::GapSide) -> Checked<Self> {
        Ok(Self {
            token: Token::from_u64(m.token),
            label: m.label.map(|text| label("gap.label", &text)).transpose()?,
            how: optional(m.how)?,
        })
    }
}

impl Wire for OutageView {
    type Message = pb::OutageView;

    fn to_wire(&self) -> pb::OutageView {
        pb::OutageView { ended_ago_ms: self.ended_ago.get(), length_ms: self.length.map(Millis::get) }
    }

    fn from_wire(m: pb::OutageView) -> Checked<Self> {
        Ok(Self { ended_ago: Millis::new(m.ended_ago_ms), length: optional_millis(m.length_ms) })
    }
}
