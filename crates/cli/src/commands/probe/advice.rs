//! What follows from the figures: whether the numbers that were asked for hold, and what to change.

use leasehold::core::limits::DEFAULT_MAX_TTL;
use leasehold::core::measure::{Broken, Measured, judge};
use leasehold::core::numbers::{Ask, MIN_ROUND_TRIP, Numbers};
use leasehold::core::plan::{Changed, Plan, nearest};
use leasehold::core::{Drift, Policies};

use crate::trouble::Trouble;

/// The numbers, and what the figures break of them.
#[derive(Debug)]
pub(super) struct Advice {
    pub(super) numbers: Numbers,
    pub(super) measured: Measured,
    pub(super) broken: Vec<Broken>,
    /// The same numbers with the measured round trip and pause, as a plan judges them.
    pub(super) plan: Plan,
    /// The nearest numbers that such a plan accepts, if it does not accept these.
    pub(super) nearest: Option<(Ask, Vec<Changed>)>,
}

/// Judges the figures for these numbers, and plans with them.
pub(super) fn advise(measured: &Measured, ask: Ask) -> Result<Advice, Trouble> {
    let with = |round_trip| Numbers::check(Ask { round_trip: Some(round_trip), ..ask });
    let round_trip = measured.round_trip_bound().unwrap_or(MIN_ROUND_TRIP);
    // Numbers that the round trip breaks are shown as they were asked for, and judged below.
    let numbers = with(round_trip).or_else(|_| with(MIN_ROUND_TRIP)).map_err(leasehold::Error::from)?;
    let rate = measured.rate_ppm.and_then(|ppm| Drift::from_ppm(u32::try_from(ppm).ok()?));
    let drift = rate.unwrap_or(ask.drift).max(ask.drift);
    // What the store allows is not known here: the default, unless more is asked for.
    let max_ttl = DEFAULT_MAX_TTL.max(ask.ttl);
    let planned = Ask { round_trip: Some(round_trip), pause: measured.pause_bound(), drift, max_ttl, ..ask };
    let plan = Plan::of(planned, 1, Policies::default());
    let nearest = if plan.is_accepted() { None } else { nearest(planned) };
    let broken = judge(&numbers, measured).collect();
    Ok(Advice { numbers, measured: *measured, broken, plan, nearest })
}

impl Advice {
    pub(super) fn holds(&self) -> bool {
        self.broken.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::core::Millis;

    use super::*;

    /// There to find: advice for the numbers that are the default, and not for those that were asked for.
    #[test]
    fn the_same_figures_are_good_for_one_ttl_and_not_for_another() {
        let millis = |length| Some(Duration::from_millis(length));
        let measured = Measured { round_trip: millis(40), pause: millis(1_000), rate_ppm: Some(30) };
        let advised = |ttl| advise(&measured, Ask::for_ttl(Millis::new(ttl))).unwrap();
        assert!(advised(10_000).holds() && advised(10_000).plan.is_accepted());
        let (near, _) = advised(1_500).nearest.expect("renewing more often would do");
        assert!(
            near.renew_every < Some(Millis::new(500)) && near.pause == Some(Millis::new(1_000)),
            "{near:?}"
        );
        assert_eq!(advised(10_000).numbers.round_trip(), Millis::new(40));
        let names: Vec<_> = advised(1_500).broken.iter().map(Broken::name).collect();
        assert_eq!(names, ["pause"]);
        let slow = Measured { round_trip: millis(400), ..Measured::default() };
        let broken = advise(&slow, Ask::for_ttl(Millis::new(1_500))).unwrap().broken;
        assert!(matches!(broken[..], [Broken::RoundTrip { .. }]), "{broken:?}");
    }
}
