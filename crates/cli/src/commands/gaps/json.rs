//! Gaps for programs.

use leasehold::core::gap::OutageView;
use leasehold_api::view::{Gap, GapPart, Outage};
use serde::Serialize;

use super::Asked;
use super::sentence;
use super::told::{Named, Told};
use crate::words;

#[derive(Debug, Serialize)]
pub(super) struct GapsJson {
    last_ms: u64,
    names: Vec<NameJson>,
    outages: Vec<Outage>,
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
    by_cause: Vec<GapPart>,
    lasts: bool,
    gaps: Vec<GapJson>,
}

/// A gap as the service tells it, and what is made of it for people.
#[derive(Debug, Serialize)]
struct GapJson {
    began: String,
    #[serde(flatten)]
    gap: Gap,
    idle: bool,
    right_now: Option<&'static str>,
    message: String,
}

/// All of it.
pub(super) fn report(asked: &Asked, names: &[Named], outages: &[OutageView]) -> GapsJson {
    GapsJson {
        last_ms: millis(asked.last),
        names: names.iter().map(|name| NameJson::new(asked, name)).collect(),
        outages: outages.iter().map(Outage::new).collect(),
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
            by_cause: by_cause.map(|(cause, length)| GapPart::of(cause, Some(millis(length)))).collect(),
            lasts: name.lasting().is_some(),
            gaps: shown.map(|gap| GapJson::new(name, gap)).collect(),
        }
    }
}

impl GapJson {
    fn new(name: &Named, gap: &Told) -> Self {
        Self {
            began: words::moment_ago(gap.began_ago),
            gap: Gap::new(&gap.view),
            idle: gap.idle,
            right_now: gap.ended_ago.is_none().then(|| sentence::right_now(gap)),
            message: sentence::explain(name.resource.as_str(), gap),
        }
    }
}

fn millis(length: std::time::Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
