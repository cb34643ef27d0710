use alloc::vec;
use proptest::prelude::*;

use super::*;
use crate::limits::LONGEST_MAX_TTL;

fn ms(millis: u64) -> Millis {
    Millis::new(millis)
}

fn ask(ttl: u64) -> Ask {
    Ask::for_ttl(ms(ttl))
}

const NO_POLICIES: Policies = Policies { grace: Millis::ZERO, hard: Millis::ZERO, delay: Millis::ZERO };

fn plan(ask: Ask) -> Plan {
    Plan::of(ask, 1_000, NO_POLICIES)
}

#[test]
fn a_guard_is_clock_bound_and_in_flight_and_the_rest_is_effective() {
    let drift = Drift::from_ppm(200_000).unwrap();
    let plan = plan(Ask { drift, in_flight: Some(ms(1_000)), ..ask(30_000) });
    assert_eq!((plan.guard, plan.effective, plan.overdue), (ms(7_000), ms(23_000), ms(45_000)));
    assert!(plan.is_accepted());
    assert_eq!(
        plan.safety,
        Sides { which: Inequality::Safety, left: ms(7_000), right: ms(7_000), holds: true }
    );
    assert_eq!((plan.availability.left, plan.availability.right), (ms(20_100), ms(23_000)));
    assert_eq!(plan.availability.spare(), ms(2_900));
}

#[test]
fn refused_numbers_have_figures_too() {
    let plan = plan(Ask { renew_every: Some(ms(5_000)), ..ask(10_000) });
    assert_eq!(plan.verdict.unwrap_err().inequality(), Some(Inequality::Availability));
    assert!(!plan.availability.holds && plan.safety.holds);
    assert_eq!((plan.availability.left, plan.availability.right), (ms(10_100), ms(9_000)));
    assert_eq!(plan.availability.spare(), ms(0));
}

#[test]
fn sides_hold_exactly_where_the_judge_accepts() {
    for pause in [5_566, 5_567] {
        let plan = plan(Ask { pause: Some(ms(pause)), ..ask(10_000) });
        assert_eq!(plan.paused.unwrap().holds, plan.is_accepted(), "{pause} ms");
        assert_eq!(plan.is_accepted(), pause == 5_566);
    }
    for every in [4_449, 4_450] {
        let plan = plan(Ask { renew_every: Some(ms(every)), ..ask(10_000) });
        assert_eq!(plan.availability.holds, plan.is_accepted(), "{every} ms");
    }
    for margin in [9, 10] {
        let plan = plan(Ask { margin: Some(ms(margin)), ..ask(10_000) });
        assert_eq!(plan.safety.holds, plan.is_accepted(), "{margin} ms");
    }
}

#[test]
fn a_gap_ends_when_the_next_is_told_and_those_who_poll_wait_an_interval_more() {
    let policies = Policies { grace: ms(3_000), hard: ms(3_000), delay: ms(500) };
    let gaps = Plan::of(ask(10_000), 1, policies).gaps;
    assert_eq!((gaps.planned, gaps.planned_polling), (ms(100), ms(3_433)));
    assert_eq!((gaps.unplanned, gaps.unplanned_polling), (ms(10_021 + 3_500 + 100), ms(13_621 + 3_333)));
}

#[test]
fn a_pause_goes_unnoticed_or_lapses_or_loses_the_lease() {
    let policies = Policies { grace: ms(1_000), hard: ms(1_000), delay: ms(0) };
    let effect = |pause| {
        let pauses = Plan::of(Ask { pause: Some(ms(pause)), ..ask(10_000) }, 1, policies).pauses;
        pauses.asked.unwrap().1
    };
    assert_eq!([5_566, 5_567].map(effect), [PauseEffect::Unnoticed, PauseEffect::Lapses]);
    assert_eq!([7_567, 7_568].map(effect), [PauseEffect::Lapses, PauseEffect::Lost]);
    assert_eq!(plan(ask(10_000)).pauses.unnoticed, Some(ms(5_566)));
}

#[test]
fn renewals_come_a_tenth_sooner_than_their_interval() {
    let plan = plan(ask(10_000));
    // What was measured for 10,000 sessions was 3,354 a second.
    assert_eq!(plan.separate.renewals_per_1000_s(), 333_444);
    assert_eq!((plan.coalesced.sessions, plan.separate.sessions), (1, 1_000));
    assert_eq!(plan.coalesced.renewals_per_day, 86_400_000 / 2_999);
    assert_eq!(plan.coalesced.bytes_per_day, plan.coalesced.renewals_per_day * BYTES_ALONE);
    let fixed = Plan::of(Ask { schedule: Schedule::Fixed, ..ask(10_000) }, 32_769, NO_POLICIES);
    assert_eq!((fixed.coalesced.sessions, fixed.coalesced.renewals_per_day), (2, 2 * 86_400_000 / 3_333));
}

/// Whether a warning applies to each of two asks.
fn edge(warning: Warning, at: [Ask; 2]) -> [bool; 2] {
    at.map(|ask| plan(ask).warnings.contains(&warning))
}

#[test]
fn a_ttl_below_three_seconds_without_a_clock_bound_is_warned_of() {
    assert_eq!(edge(Warning::ShortTtl, [ask(2_999), ask(3_000)]), [true, false]);
    let bounded = Ask { clock_bound: Some(ms(5)), ..ask(2_999) };
    assert!(!plan(bounded).warnings.contains(&Warning::ShortTtl));
}

#[test]
fn a_ttl_below_two_round_trips_and_a_pause_is_warned_of() {
    let with = |pause| Ask { round_trip: Some(ms(500)), pause: Some(ms(pause)), ..ask(10_000) };
    assert_eq!(edge(Warning::BelowRoundTrips, [with(9_001), with(9_000)]), [true, false]);
}

#[test]
fn a_ttl_below_two_pauses_is_warned_of() {
    let with = |pause| Ask { pause: Some(ms(pause)), ..ask(10_000) };
    assert_eq!(edge(Warning::BelowPauses, [with(5_001), with(5_000)]), [true, false]);
}

#[test]
fn a_ttl_below_three_intervals_is_warned_of() {
    let with = |every| Ask { renew_every: Some(ms(every)), ..ask(10_000) };
    assert_eq!(edge(Warning::BelowRenewals, [with(3_334), with(3_333)]), [true, false]);
}

#[test]
fn a_ttl_above_five_minutes_is_warned_of() {
    let with = |ttl| Ask { max_ttl: LONGEST_MAX_TTL, ..ask(ttl) };
    assert_eq!(edge(Warning::LongTtl, [with(300_001), with(300_000)]), [true, false]);
}

#[test]
fn every_warning_has_a_name_and_a_reason_of_its_own() {
    for (index, one) in Warning::ALL.iter().enumerate() {
        for other in &Warning::ALL[index + 1..] {
            assert_ne!(one.name(), other.name());
            assert_ne!(one.reason(), other.reason());
            assert_ne!(one.condition(), other.condition());
        }
    }
}

#[test]
fn the_interval_comes_down_first() {
    let half = Ask { renew_every: Some(ms(5_000)), ..ask(10_000) };
    let (found, changed) = nearest(half).unwrap();
    assert_eq!(changed, vec![Changed::RenewEvery(Some(ms(4_449)))]);
    assert_eq!(found, Ask { renew_every: Some(ms(4_449)), ..half });
    let far = Ask { round_trip: Some(ms(300)), ..ask(1_000) };
    assert_eq!(nearest(far).unwrap().1, vec![Changed::RenewEvery(Some(ms(299)))]);
}

#[test]
fn a_margin_goes_up_to_what_safety_needs() {
    let none = Ask { margin: Some(ms(0)), in_flight: Some(ms(500)), ..ask(10_000) };
    assert_eq!(nearest(none).unwrap().1, vec![Changed::Margin(ms(510))]);
}

#[test]
fn a_ttl_goes_up_only_where_nothing_else_helps() {
    let paused = Ask { pause: Some(ms(12_000)), ..ask(10_000) };
    let (found, changed) = nearest(paused).unwrap();
    assert_eq!(changed, vec![Changed::Ttl(found.ttl)]);
    let shorter = Ask { ttl: ms(found.ttl.get() - 2), ..found };
    assert!(Numbers::check(shorter).is_err(), "{found:?} is not the shortest");
}

/// There to find: the shortest ttl that fits at all, which is one that is renewed a hundred times a second.
#[test]
fn where_only_a_flood_of_renewals_fits_the_longest_ttl_needs_the_fewest() {
    let late = Ask { in_flight: Some(ms(290_000)), ..ask(10_000) };
    let (found, _) = nearest(late).unwrap();
    assert_eq!(found.ttl, late.max_ttl);
    assert!(found.renew_every.unwrap() > ms(4_000), "{found:?}");
    // A longer one would do without.
    let (found, changed) = nearest(Ask { max_ttl: ms(86_400_000), ..late }).unwrap();
    assert_eq!(changed, vec![Changed::Ttl(found.ttl)]);
}

#[test]
fn what_no_ttl_can_satisfy_has_no_nearest() {
    assert_eq!(nearest(Ask { pause: Some(ms(300_000)), ..ask(10_000) }), None);
    assert_eq!(nearest(Ask { max_ttl: ms(400), ..ask(10_000) }), None);
}

#[test]
fn halves_with_no_room_for_their_second_attempt_are_renewed_evenly() {
    let drift = Drift::from_ppm(200_000).unwrap();
    let (found, _) = nearest(Ask { schedule: Schedule::Halves, drift, ..ask(10_000) }).unwrap();
    assert_eq!(found.schedule, Schedule::Even);
    let given = Ask { schedule: Schedule::Halves, renew_every: Some(ms(1_000)), ..ask(10_000) };
    assert_eq!(nearest(given).unwrap().1, vec![Changed::RenewEvery(None)]);
}

#[test]
fn presets_have_names_of_their_own_and_ours_are_accepted() {
    for (index, preset) in PRESETS.iter().enumerate() {
        assert!(PRESETS[index + 1..].iter().all(|other| other.name != preset.name));
        assert_eq!(Preset::named(preset.name), Some(preset));
        let plan = Plan::of(preset.ask, 1, preset.policies);
        assert_eq!(preset.policies.check(), Ok(()));
        assert!(!preset.ours || (plan.is_accepted() && plan.warnings.is_empty()), "{plan:?}");
        assert!(nearest(preset.ask).is_some(), "{}", preset.name);
    }
    assert_eq!(Preset::named("consul").unwrap().unplanned_gap(), ms(50_000));
    assert_eq!(Preset::named("kubernetes").unwrap().unplanned_gap(), ms(19_400));
}

#[test]
fn absurd_lengths_come_to_figures_and_not_to_a_panic() {
    let huge = Some(ms(u64::MAX));
    for ask in [
        ask(u64::MAX),
        ask(0),
        Ask { renew_every: huge, round_trip: huge, pause: huge, ..ask(10_000) },
        Ask { renew_every: Some(ms(0)), margin: huge, clock_bound: huge, in_flight: huge, ..ask(10_000) },
    ] {
        let policies = Policies { grace: ms(u64::MAX), hard: ms(u64::MAX), delay: ms(u64::MAX) };
        let plan = Plan::of(ask, u64::MAX, policies);
        assert!(!plan.is_accepted());
        let _ = nearest(ask);
    }
}

fn asks() -> impl Strategy<Value = Ask> {
    let length = |most: u64| proptest::option::of(0..most);
    let schedule = prop_oneof![Just(Schedule::Even), Just(Schedule::Fixed), Just(Schedule::Halves)];
    let numbers = (0_u64..400_000, length(60_000), length(60_000), length(60_000));
    let bounds = (length(5_000), length(10_000), length(120_000), length(20_000), 0_u32..=500_000);
    (numbers, bounds, schedule).prop_map(|(numbers, bounds, schedule)| {
        let (ttl, renew_every, margin, round_trip) = numbers;
        let (clock_bound, in_flight, pause, stop_within, ppm) = bounds;
        Ask {
            renew_every: renew_every.map(ms),
            schedule,
            margin: margin.map(ms),
            clock_bound: clock_bound.map(ms),
            round_trip: round_trip.map(ms),
            in_flight: in_flight.map(ms),
            stop_within: stop_within.map(ms),
            pause: pause.map(ms),
            drift: Drift::from_ppm(ppm).unwrap(),
            ..ask(ttl)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_nearest_numbers_are_accepted_and_accepted_ones_are_their_own(ask in asks()) {
        let accepted = Numbers::check(ask).is_ok();
        match nearest(ask) {
            Some((found, changed)) => {
                prop_assert!(Numbers::check(found).is_ok(), "{found:?}");
                prop_assert_eq!(accepted, found == ask);
                prop_assert_eq!(accepted, changed.is_empty());
                // What is known about the world stays as it is.
                prop_assert_eq!((ask.pause, ask.drift, ask.in_flight), (found.pause, found.drift, found.in_flight));
                prop_assert_eq!((ask.clock_bound, ask.stop_within), (found.clock_bound, found.stop_within));
            }
            None => {
                let easiest = Ask {
                    ttl: ask.max_ttl,
                    schedule: Schedule::Even,
                    renew_every: Some(crate::numbers::MIN_RENEW_EVERY),
                    round_trip: ask.round_trip.map(|bound| bound.max(ms(1))),
                    margin: Some(Numbers::filled(&Ask { ttl: ask.max_ttl, ..ask }).guard()),
                    ..ask
                };
                prop_assert!(Numbers::check(easiest).is_err(), "{easiest:?} would do");
            }
        }
    }
}
