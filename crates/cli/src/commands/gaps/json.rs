//! Gaps for programs.

use leasehold::Ending;
use leasehold::core::gap::{GapSide, OutageView};
use serde::Serialize;

use super::Asked;
use super::sentence;
use super::told::{Named, Told};
use crate::words;

#[derive(Debug, Serialize)]
pub(super) struct GapsJson {
    last_ms: u64,
    names: Vec<NameJson>,
    outages: Vec<OutageJson>,
}

#[derive(Debug, Serialize)]
struct NameJson {
    resource: String,
    known_for_ms: u64,
    leaderless_ms: u64,
    idle_ms: u64,
    longest_ms: u64,
    /// A share of what is known of the window, between 0 and 1.
    share: f64,
    by_cause: Vec<PartJson>,
    lasts: bool,
    gaps: Vec<GapJson>,
}

#[derive(Debug, Serialize)]
struct GapJson {
    began: String,
    began_ago_ms: u64,
    ended_ago_ms: Option<u64>,
    length_ms: u64,
    idle: bool,
    parts: Vec<PartJson>,
    before: SideJson,
    after: Option<SideJson>,
    right_now: Option<&'static str>,
    message: String,
}

#[derive(Debug, Serialize)]
struct PartJson {
    cause: &'static str,
    /// Nothing for an outage whose length nobody knows.
    length_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct SideJson {
    token: String,
    label: Option<String>,
    ended: Option<&'static str>,
    by: Option<String>,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct OutageJson {
    ended_ago_ms: u64,
    length_ms: Option<u64>,
}

/// All of it.
pub(super) fn report(asked: &Asked, names: &[Named], outages: &[OutageView]) -> GapsJson {
    GapsJson {
        last_ms: millis(asked.last),
        names: names.iter().map(|name| NameJson::new(asked, name)).collect(),
        outages: outages
            .iter()
            .map(|outage| OutageJson {
                ended_ago_ms: outage.ended_ago.get(),
                length_ms: outage.length.map(leasehold::core::Millis::get),
            })
            .collect(),
    }
}

impl NameJson {
    fn new(asked: &Asked, name: &Named) -> Self {
        let sums = &name.sums;
        let by_cause = sums.by_cause().into_iter();
        let shown = name.gaps.iter().filter(|gap| gap.length() >= asked.min);
        Self {
            resource: name.resource.to_string(),
            known_for_ms: millis(name.known),
            leaderless_ms: millis(sums.leaderless()),
            idle_ms: millis(sums.idle),
            longest_ms: millis(sums.longest),
            share: name.share() as f64 / 1e6,
            by_cause: by_cause
                .map(|(cause, length)| PartJson { cause: cause.word(), length_ms: Some(millis(length)) })
                .collect(),
            lasts: name.lasting().is_some(),
            gaps: shown.map(|gap| GapJson::new(name, gap)).collect(),
        }
    }
}

impl GapJson {
    fn new(name: &Named, gap: &Told) -> Self {
        let parts = gap.view.parts.iter();
        Self {
            began: words::moment_ago(gap.began_ago),
            began_ago_ms: millis(gap.began_ago),
            ended_ago_ms: gap.ended_ago.map(millis),
            length_ms: millis(gap.length()),
            idle: gap.idle,
            parts: parts.map(|part| PartJson { cause: part.cause.word(), length_ms: known(part) }).collect(),
            before: SideJson::new(&gap.view.before),
            after: gap.view.after.as_ref().map(SideJson::new),
            right_now: gap.ended_ago.is_none().then(|| sentence::right_now(gap)),
            message: sentence::explain(name.resource.as_str(), gap),
        }
    }
}

impl SideJson {
    fn new(side: &GapSide) -> Self {
        let (by, reason) = match &side.how {
            Some(Ending::Revoked { by, reason }) => (Some(by.to_string()), Some(reason.to_string())),
            _ => (None, None),
        };
        Self {
            token: side.token.to_string(),
            label: side.label.as_ref().map(ToString::to_string),
            ended: side.how.as_ref().map(words::ending_code),
            by,
            reason,
        }
    }
}

fn millis(length: std::time::Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn known(part: &leasehold::core::gap::GapPart) -> Option<u64> {
    let unknown =
        part.cause == leasehold::core::gap::GapCause::Outage && part.length == leasehold::core::Millis::ZERO;
    (!unknown).then(|| part.length.get())
}
