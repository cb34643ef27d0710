//! Gaps for programs.

use leasehold::core::gap::OutageView;
use leasehold_api::view::{Gap, GapPart, Outage};
use serde::Serialize;

use super::Asked;
use super::sentence;
use super::told::{Named, Told};
use crate::words::{self, whole_millis};

/// All of it.
pub(super) fn report(asked: &Asked, names: &[Named], outages: &[OutageView]) -> impl Serialize {
    object! {
        last_ms: whole_millis(asked.last),
        names: names.iter().map(|name| of_name(asked, name)).collect::<Vec<_>>(),
        outages: outages.iter().map(Outage::new).collect::<Vec<_>>(),
    }
}

fn of_name(asked: &Asked, name: &Named) -> impl Serialize {
    let sums = &name.sums;
    let by_cause = sums.by_cause().into_iter();
    let by_cause = by_cause.map(|(cause, length)| GapPart::of(cause, Some(whole_millis(length))));
    let shown = name.gaps.iter().filter(|gap| gap.length() >= asked.min);
    object! {
        resource: name.resource.to_string(),
        known_for_ms: whole_millis(name.known),
        leaderless_ms: whole_millis(sums.leaderless()),
        idle_ms: whole_millis(sums.idle),
        longest_ms: whole_millis(sums.longest),
        // A share of what is known of the window, between 0 and 1.
        share: name.share(sums.leaderless()) as f64 / 1e6,
        by_cause: by_cause.collect::<Vec<_>>(),
        lasts: name.lasting().is_some(),
        gaps: shown.map(|gap| of_gap(name, gap)).collect::<Vec<_>>(),
    }
}

/// A gap as the service tells it, and what is made of it for people.
fn of_gap(name: &Named, gap: &Told) -> impl Serialize {
    object! {
        began: words::moment_ago(gap.began_ago),
        #[serde(flatten)]
        gap: Gap::new(&gap.view),
        idle: gap.idle,
        right_now: gap.ended_ago.is_none().then(|| sentence::right_now(gap)),
        message: sentence::explain(name.resource.as_str(), gap),
    }
}
