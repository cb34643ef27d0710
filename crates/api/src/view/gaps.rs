//! Gaps as JSON: the times in which nobody was known to act on a name, with their causes.

use leasehold_core::Millis;
use leasehold_core::gap::{self, GapCause, GapView, OutageView};
use leasehold_core::protocol::GapsView;
use serde::Serialize;

use super::{Ending, number};
use crate::Number;
use crate::answer::AtRevision;

views! {
    /// The times in which no holder was known to act.
    Gaps from(seen: AtRevision<GapsView>) {
        revision: Number = number(seen.revision),
        names: Vec<NameGaps> = seen.answer.names.iter().map(NameGaps::new).collect(),
        /// Give it as `after` for the next page; null at the end.
        next: Option<String> = seen.answer.next.as_ref().map(ToString::to_string),
        outages: Vec<Outage> = seen.answer.outages.iter().map(Outage::new).collect(),
    }

    /// The gaps of one name.
    NameGaps new(name: &gap::NameGaps) {
        resource: String = name.resource.to_string(),
        known_for_ms: u64 = name.known_for.get(),
        gaps: Vec<Gap> = name.gaps.iter().map(Gap::new).collect(),
    }

    /// One gap.
    Gap new(gap: &GapView) {
        began_ago_ms: u64 = gap.began_ago.get(),
        ended_ago_ms: Option<u64> = gap.ended_ago.map(Millis::get),
        /// No holder acted for at most this long: since the last sign of life of the one before.
        length_ms: u64 = gap.length().get(),
        /// No holder acted for at least this long: without the time for which the one before still had the lease by its own clock.
        at_least_ms: u64 = gap.at_least().get(),
        parts: Vec<GapPart> = gap.parts.iter().map(GapPart::new).collect(),
        before: GapSide = GapSide::new(&gap.before),
        after: Option<GapSide> = gap.after.as_ref().map(GapSide::new),
    }

    /// The lease at one side of a gap.
    GapSide new(side: &gap::GapSide) {
        token: Number = side.token.get().into(),
        label: Option<String> = side.label.as_ref().map(ToString::to_string),
        ending: Option<Ending> = side.how.as_ref().map(Ending::new),
    }

    /// A time in which nobody led.
    Outage new(outage: &OutageView) {
        ended_ago_ms: u64 = outage.ended_ago.get(),
        length_ms: Option<u64> = outage.length.map(Millis::get),
    }
}

/// One part of a gap. Only an outage can have a length that nobody knows.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct GapPart {
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = GapCause::ALL.map(GapCause::word))))]
    cause: &'static str,
    length_ms: Option<u64>,
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
