//! Gaps as JSON: the times in which nobody was known to act on a name, with their causes.

use leasehold_core::Millis;
use leasehold_core::gap::{GapCause, GapPart, GapSide, GapView, NameGaps, OutageView};
use leasehold_core::protocol::GapsView;
use serde::Serialize;

use super::EndingJson;
use crate::plain::Seen;

#[derive(Debug, Serialize)]
pub(crate) struct GapsAnswer {
    revision: String,
    names: Vec<NameJson>,
    next: Option<String>,
    outages: Vec<OutageJson>,
}

/// The gaps of one name.
#[derive(Debug, Serialize)]
pub(crate) struct NameJson {
    resource: String,
    known_for_ms: u64,
    gaps: Vec<GapJson>,
}

/// One gap.
#[derive(Debug, Serialize)]
pub(crate) struct GapJson {
    began_ago_ms: u64,
    ended_ago_ms: Option<u64>,
    length_ms: u64,
    parts: Vec<PartJson>,
    before: SideJson,
    after: Option<SideJson>,
}

/// One part of a gap. Only an outage can have a length that nobody knows.
#[derive(Debug, Serialize)]
pub(crate) struct PartJson {
    cause: &'static str,
    length_ms: Option<u64>,
}

/// The lease at one side of a gap.
#[derive(Debug, Serialize)]
pub(crate) struct SideJson {
    token: String,
    label: Option<String>,
    ending: Option<EndingJson>,
}

/// A time in which nobody led.
#[derive(Debug, Serialize)]
pub(crate) struct OutageJson {
    ended_ago_ms: u64,
    length_ms: Option<u64>,
}

impl From<&Seen<GapsView>> for GapsAnswer {
    fn from(seen: &Seen<GapsView>) -> Self {
        let GapsView { names, next, outages } = &seen.answer;
        Self {
            revision: seen.revision.to_string(),
            names: names.iter().map(NameJson::new).collect(),
            next: next.as_ref().map(ToString::to_string),
            outages: outages.iter().map(OutageJson::new).collect(),
        }
    }
}

impl NameJson {
    fn new(name: &NameGaps) -> Self {
        Self {
            resource: name.resource.to_string(),
            known_for_ms: name.known_for.get(),
            gaps: name.gaps.iter().map(GapJson::new).collect(),
        }
    }
}

impl GapJson {
    fn new(gap: &GapView) -> Self {
        Self {
            began_ago_ms: gap.began_ago.get(),
            ended_ago_ms: gap.ended_ago.map(Millis::get),
            length_ms: gap.length().get(),
            parts: gap.parts.iter().map(PartJson::new).collect(),
            before: SideJson::new(&gap.before),
            after: gap.after.as_ref().map(SideJson::new),
        }
    }
}

impl PartJson {
    fn new(part: &GapPart) -> Self {
        let unknown = part.cause == GapCause::Outage && part.length == Millis::ZERO;
        Self { cause: part.cause.word(), length_ms: (!unknown).then(|| part.length.get()) }
    }
}

impl SideJson {
    fn new(side: &GapSide) -> Self {
        Self {
            token: side.token.to_string(),
            label: side.label.as_ref().map(ToString::to_string),
            ending: side.how.as_ref().map(EndingJson::new),
        }
    }
}

impl OutageJson {
    fn new(outage: &OutageView) -> Self {
        Self { ended_ago_ms: outage.ended_ago.get(), length_ms: outage.length.map(Millis::get) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_of_unknown_length_is_null_and_no_other_part_is() {
        let part = |cause, length| {
            let part = GapPart { cause, length: Millis::new(length) };
            serde_json::to_value(PartJson::new(&part)).unwrap()
        };
        assert_eq!(part(GapCause::Outage, 0), serde_json::json!({ "cause": "outage", "length_ms": null }));
        assert_eq!(part(GapCause::Outage, 7)["length_ms"], 7);
        assert_eq!(part(GapCause::CoolDown, 0), serde_json::json!({ "cause": "cool-down", "length_ms": 0 }));
    }
}
