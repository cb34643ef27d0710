//! Gaps as JSON: the times in which nobody was known to act on a name, with their causes.

use leasehold_core::Millis;
use leasehold_core::gap::{self, GapCause, GapView, OutageView};
use leasehold_core::protocol::GapsView;
use serde::Serialize;

use super::{Ending, number};
use crate::Number;
use crate::answer::AtRevision;

/// The times in which no holder was known to act.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Gaps {
    revision: Number,
    names: Vec<NameGaps>,
    /// Give it as `after` for the next page; null at the end.
    next: Option<String>,
    outages: Vec<Outage>,
}

/// The gaps of one name.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct NameGaps {
    resource: String,
    known_for_ms: u64,
    gaps: Vec<Gap>,
}

/// One gap.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Gap {
    began_ago_ms: u64,
    ended_ago_ms: Option<u64>,
    length_ms: u64,
    parts: Vec<GapPart>,
    before: GapSide,
    after: Option<GapSide>,
}

/// One part of a gap. Only an outage can have a length that nobody knows.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct GapPart {
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = GapCause::ALL.map(GapCause::word))))]
    cause: &'static str,
    length_ms: Option<u64>,
}

/// The lease at one side of a gap.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct GapSide {
    token: Number,
    label: Option<String>,
    ending: Option<Ending>,
}

/// A time in which nobody led.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Outage {
    ended_ago_ms: u64,
    length_ms: Option<u64>,
}

impl From<AtRevision<GapsView>> for Gaps {
    fn from(seen: AtRevision<GapsView>) -> Self {
        let GapsView { names, next, outages } = &seen.answer;
        Self {
            revision: number(seen.revision),
            names: names.iter().map(NameGaps::new).collect(),
            next: next.as_ref().map(ToString::to_string),
            outages: outages.iter().map(Outage::new).collect(),
        }
    }
}

impl NameGaps {
    fn new(name: &gap::NameGaps) -> Self {
        Self {
            resource: name.resource.to_string(),
            known_for_ms: name.known_for.get(),
            gaps: name.gaps.iter().map(Gap::new).collect(),
        }
    }
}

impl Gap {
    /// As the table shows it.
    pub fn new(gap: &GapView) -> Self {
        Self {
            began_ago_ms: gap.began_ago.get(),
            ended_ago_ms: gap.ended_ago.map(Millis::get),
            length_ms: gap.length().get(),
            parts: gap.parts.iter().map(GapPart::new).collect(),
            before: GapSide::new(&gap.before),
            after: gap.after.as_ref().map(GapSide::new),
        }
    }
}

impl GapPart {
    /// A cause, and its share; nothing if that is not known.
    pub const fn of(cause: GapCause, length_ms: Option<u64>) -> Self {
        Self { cause: cause.word(), length_ms }
    }

    fn new(part: &gap::GapPart) -> Self {
        let unknown = part.cause == GapCause::Outage && part.length == Millis::ZERO;
        Self::of(part.cause, (!unknown).then(|| part.length.get()))
    }
}

impl GapSide {
    fn new(side: &gap::GapSide) -> Self {
        Self {
            token: side.token.get().into(),
            label: side.label.as_ref().map(ToString::to_string),
            ending: side.how.as_ref().map(Ending::new),
        }
    }
}

impl Outage {
    /// As the table shows it.
    pub fn new(outage: &OutageView) -> Self {
        Self { ended_ago_ms: outage.ended_ago.get(), length_ms: outage.length.map(Millis::get) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_of_unknown_length_is_null_and_no_other_part_is() {
        let part = |cause, length| {
            let part = gap::GapPart { cause, length: Millis::new(length) };
            serde_json::to_value(GapPart::new(&part)).unwrap()
        };
        assert_eq!(part(GapCause::Outage, 0), serde_json::json!({ "cause": "outage", "length_ms": null }));
        assert_eq!(part(GapCause::Outage, 7)["length_ms"], 7);
        assert_eq!(part(GapCause::CoolDown, 0), serde_json::json!({ "cause": "cool-down", "length_ms": 0 }));
    }
}
