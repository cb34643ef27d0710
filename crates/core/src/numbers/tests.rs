use alloc::string::ToString;

use super::*;

fn ms(millis: u64) -> Millis {
    Millis::new(millis)
}

fn ask(ttl: u64) -> Ask {
    Ask::for_ttl(ms(ttl))
}

#[test]
fn the_defaults_of_ten_seconds() {
    let numbers = Numbers::check(Ask::for_ttl(DEFAULT_TTL)).unwrap();
    assert_eq!(numbers.renew_every(), ms(3_333));
    assert_eq!(numbers.margin(), ms(1_000));
    assert_eq!(numbers.clock_bound(), ms(10));
    assert_eq!(numbers.usable(), ms(9_000));
    assert_eq!(numbers.request_timeout(), ms(400));
}

#[test]
fn a_ttl_is_taken_within_its_limits() {
    for (ttl, taken) in
        [(499, false), (500, true), (501, true), (299_999, true), (300_000, true), (300_001, false)]
    {
        assert_eq!(Numbers::check(ask(ttl)).is_ok(), taken, "{ttl} ms");
    }
}

#[test]
fn the_limits_of_the_ttl_are_named() {
    let short = Numbers::check(ask(50)).unwrap_err();
    assert_eq!(short.to_string(), "ttl of 50 ms is below the minimum of 500 ms; raise the ttl");
    let long = Numbers::check(Ask { max_ttl: ms(1_000), ..ask(1_001) }).unwrap_err();
    assert_eq!(
        long.to_string(),
        "ttl of 1001 ms is above the maximum of 1000 ms; lower the ttl, or renew a shorter one"
    );
}

/// There to find: a subtraction that nobody can follow, because what is below nothing was cut off.
#[test]
fn a_margin_above_the_ttl_leaves_less_than_nothing() {
    let words = |ask: Ask| Numbers::check(ask).unwrap_err().to_string();
    let margin = Ask { in_flight: Some(ms(11_000)), ..ask(10_000) };
    let said = words(margin);
    assert!(said.contains("ttl - margin = 10000 ms - 11010 ms = -1010 ms; "), "{said}");
    let halves = words(Ask { schedule: Schedule::Halves, ..margin });
    assert!(halves.contains("10000 ms - 11010 ms = -1010 ms; "), "{halves}");
    let numbers = Numbers::check(ask(1_000)).unwrap();
    let pause = numbers.check_pause(ms(5_000)).unwrap_err().to_string();
    assert!(pause.contains("ttl - margin = 1000 ms - 100 ms = 900 ms; "), "{pause}");
}

#[test]
fn a_third_of_every_ttl_holds_and_half_does_not() {
    for ttl in [500, 501, 502, 1_000, 10_000, 60_000, 300_000] {
        assert!(Numbers::check(ask(ttl)).is_ok(), "{ttl} ms");
        let half = Ask { renew_every: Some(ms(ttl / 2)), ..ask(ttl) };
        assert!(Numbers::check(half).is_err(), "{ttl} ms");
    }
}

#[test]
fn a_renewal_interval_fits_up_to_its_edge() {
    // 2 x 4449 + 100 = 8998, 2 x 4450 + 100 = 9000, and the usable part is 9000.
    for (every, taken) in [(4_448, true), (4_449, true), (4_450, false)] {
        let numbers = Numbers::check(Ask { renew_every: Some(ms(every)), ..ask(10_000) });
        assert_eq!(numbers.is_ok(), taken, "{every} ms");
    }
}

#[test]
fn an_unavailable_schedule_shows_both_sides_and_the_edge() {
    let error = Numbers::check(Ask { renew_every: Some(ms(5_000)), ..ask(10_000) }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "one lost request ends the lease: 2 x 5000 ms + 100 ms = 10100 ms is not below \
         ttl - margin = 10000 ms - 1000 ms = 9000 ms; renew every 4449 ms or sooner, or raise the ttl"
    );
}

#[test]
fn a_margin_that_eats_the_ttl_has_no_room() {
    for margin in [10_000, 20_000] {
        let error = Numbers::check(Ask { margin: Some(ms(margin)), ..ask(10_000) }).unwrap_err();
        assert!(matches!(error, NumbersError::NoRoomToRenew { usable: Millis::ZERO, .. }), "{error}");
    }
}

#[test]
fn a_margin_is_safe_from_its_edge_on() {
    for (margin, taken) in [(1_009, false), (1_010, true), (1_011, true)] {
        let asked = Ask { margin: Some(ms(margin)), in_flight: Some(ms(1_000)), ..ask(10_000) };
        assert_eq!(Numbers::check(asked).is_ok(), taken, "{margin} ms");
    }
}

#[test]
fn an_unsafe_margin_shows_both_sides() {
    let asked = Ask { margin: Some(ms(500)), in_flight: Some(ms(1_000)), ..ask(10_000) };
    assert_eq!(
        Numbers::check(asked).unwrap_err().to_string(),
        "margin of 500 ms is below clock bound + in-flight bound = 10 ms + 1000 ms = 1010 ms; \
         raise the margin to 1010 ms or lower a bound"
    );
}

#[test]
fn thirty_seconds_with_a_fifth_of_drift_leave_twenty_three() {
    let drift = Drift::from_ppm(200_000).unwrap();
    let asked = Ask { clock_bound: Some(ms(6_000)), in_flight: Some(ms(1_000)), drift, ..ask(30_000) };
    let numbers = Numbers::check(asked).unwrap();
    assert_eq!((numbers.margin(), numbers.usable()), (ms(7_000), ms(23_000)));
    let left_open = Numbers::check(Ask { clock_bound: None, ..asked }).unwrap();
    assert_eq!(left_open, numbers, "the clock bound is drift times ttl by default");
}

#[test]
fn the_clock_bound_is_rounded_up() {
    let drift = Drift::from_ppm(1).unwrap();
    assert_eq!(Numbers::check(Ask { drift, ..ask(10_000) }).unwrap().clock_bound(), ms(1));
}

#[test]
fn the_request_timeout_is_the_smaller_of_half_an_interval_and_four_round_trips() {
    for (round_trip, timeout) in [(1, 4), (415, 1_660), (416, 1_664), (417, 1_666), (1_000, 1_666)] {
        let numbers = Numbers::check(Ask { round_trip: Some(ms(round_trip)), ..ask(10_000) }).unwrap();
        assert_eq!(numbers.request_timeout(), ms(timeout), "{round_trip} ms");
    }
}

#[test]
fn schedules_without_pauses_are_refused() {
    let flood = Numbers::check(Ask { renew_every: Some(ms(9)), ..ask(10_000) });
    assert!(matches!(flood, Err(NumbersError::TooShort { what: "renewal interval", .. })));
    assert!(Numbers::check(Ask { renew_every: Some(ms(10)), ..ask(10_000) }).is_ok());
    let instant = Numbers::check(Ask { round_trip: Some(ms(0)), ..ask(10_000) });
    assert!(matches!(instant, Err(NumbersError::TooShort { what: "round-trip bound", .. })));
}

#[test]
fn huge_numbers_are_refused_and_do_not_overflow() {
    let huge = Some(ms(u64::MAX));
    for asked in [
        Ask { renew_every: huge, ..ask(10_000) },
        Ask { margin: huge, ..ask(10_000) },
        Ask { clock_bound: huge, in_flight: huge, ..ask(10_000) },
        Ask { round_trip: huge, ..ask(10_000) },
    ] {
        assert!(Numbers::check(asked).is_err(), "{asked:?}");
    }
}

#[test]
fn a_hint_leaves_room_for_a_second_attempt() {
    let numbers = Numbers::check(Ask::for_ttl(DEFAULT_TTL)).unwrap();
    assert_eq!(numbers.latest_renewal(), ms(9_000 - 3_333 - 100));
    assert!(numbers.latest_renewal() >= numbers.renew_every());
}

#[test]
fn a_fixed_interval_is_judged_as_an_even_one() {
    for (every, taken) in [(4_449, true), (4_450, false)] {
        let ask = Ask { renew_every: Some(ms(every)), schedule: Schedule::Fixed, ..ask(10_000) };
        assert_eq!(Numbers::check(ask).is_ok(), taken, "{every} ms");
    }
}

#[test]
fn halves_hold_while_seven_eighths_and_a_round_trip_fit() {
    let halves = |ttl, round_trip| {
        let round_trip = Some(ms(round_trip));
        Numbers::check(Ask { schedule: Schedule::Halves, round_trip, ..ask(ttl) })
    };
    let numbers = halves(10_000, 100).unwrap();
    assert_eq!(numbers.renew_every(), ms(5_000));
    assert_eq!(numbers.second_attempt(), ms(8_750));
    // 8750 + 249 = 8999 is below 9000, and 8750 + 250 is not.
    assert!(halves(10_000, 249).is_ok());
    assert_eq!(
        halves(10_000, 250).unwrap_err().to_string(),
        "one lost request ends the lease: second attempt at 7/8 of the ttl + round trip = 8750 ms + 250 ms = 9000 ms is not below \
         ttl - margin = 10000 ms - 1000 ms = 9000 ms; raise the ttl, lower margin or round-trip bound, or renew evenly"
    );
    // The hint's safe window leaves the second attempt its place.
    assert_eq!(numbers.latest_renewal(), ms(9_000 - 3_750 - 100));
}

#[test]
fn halves_have_an_interval_of_their_own() {
    let ask = Ask { schedule: Schedule::Halves, renew_every: Some(ms(1_000)), ..ask(10_000) };
    assert_eq!(Numbers::check(ask).unwrap_err(), NumbersError::IntervalNotFree { renew_every: ms(1_000) });
}

#[test]
fn a_given_clock_bound_replaces_drift_times_ttl() {
    let drift = Drift::from_ppm(100_000).unwrap();
    let ask = Ask { drift, margin: Some(ms(1_000)), ..ask(30_000) };
    let error = Numbers::check(ask).unwrap_err();
    assert!(matches!(error, NumbersError::Unsafe { needed, .. } if needed == ms(3_000)), "{error}");
    let numbers = Numbers::check(Ask { clock_bound: Some(ms(7)), ..ask }).unwrap();
    assert_eq!(numbers.clock_bound(), ms(7));
    assert_eq!(numbers.drift(), drift, "the service's overdue factor keeps the drift");
}

#[test]
fn work_must_stop_in_what_one_lost_request_leaves() {
    let numbers = Numbers::check(ask(10_000)).unwrap();
    // 9000 - 6666 - 100 = 2234.
    assert!(numbers.check_stop_within(ms(2_233)).is_ok());
    let error = numbers.check_stop_within(ms(2_234)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "stopping takes up to 2234 ms, but after one lost request only ttl - margin - second attempt - round trip = \
         10000 ms - 1000 ms - 6666 ms - 100 ms = 2234 ms are left; raise the ttl, renew more often, or stop faster"
    );
}

#[test]
fn a_hint_leaves_time_to_stop() {
    let renew_every = Some(ms(1_000));
    let numbers = Numbers::check(Ask { renew_every, ..ask(10_000) }).unwrap();
    assert_eq!(numbers.latest_renewal(), ms(9_000 - 1_000 - 100));
    let numbers = Numbers::check(Ask { renew_every, stop_within: Some(ms(6_000)), ..ask(10_000) }).unwrap();
    assert_eq!(numbers.latest_renewal(), ms(9_000 - 6_000 - 100));
    let refused =
        Numbers::check(Ask { renew_every, stop_within: Some(ms(6_900)), ..ask(10_000) }).unwrap_err();
    assert!(matches!(refused, NumbersError::StopsTooSlowly { .. }), "{refused}");
}

#[test]
fn a_pause_is_judged_at_its_edge_and_only_if_one_is_given() {
    let with = |pause| Numbers::check(Ask { pause: Some(ms(pause)), ..ask(10_000) });
    assert!(with(5_566).is_ok());
    let error = with(5_567).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a pause of 5567 ms when a renewal is due ends the lease: 3333 ms + 5567 ms + 100 ms = 9000 ms is not below \
         ttl - margin = 10000 ms - 1000 ms = 9000 ms; raise the ttl, renew more often, or stand still for less long"
    );
    assert_eq!(error.inequality(), Some(Inequality::Pause));
    assert!(Numbers::check(ask(10_000)).is_ok());
}
