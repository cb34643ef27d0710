use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::holder::Reading;
use crate::numbers::{Ask, Numbers, Schedule};
use crate::time::Millis;

const MINUTE: Duration = Duration::from_secs(60);

fn at(ms: u64) -> Reading {
    Reading { boot: ms * 1_000_000, raw: ms * 1_000_000 }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn quantile_of(sorted: &[u64], per_mille: u64) -> u64 {
    let rank = (sorted.len() as u64 * per_mille).div_ceil(1_000).max(1);
    sorted[usize::try_from(rank - 1).unwrap()]
}

proptest! {
    /// There to find: a bound taken from the beginning of its bucket, and a rank that is rounded down.
    #[test]
    fn a_quantile_is_never_too_small_and_at_most_a_sixteenth_too_large(
        mut took in prop::collection::vec(prop_oneof![0_u64..40, 0_u64..5_000_000, 0_u64..1 << 40], 1..300),
        per_mille in 1_u16..=1_000,
    ) {
        let mut trips = RoundTrips::new(MINUTE, at(0));
        took.iter().for_each(|took| trips.add(micros(*took), at(1)));
        took.sort_unstable();
        let exact = quantile_of(&took, u64::from(per_mille));
        let told = u64::try_from(trips.quantile(per_mille).unwrap().as_micros()).unwrap();
        prop_assert!(told >= exact, "{told} below {exact}");
        // Beyond an hour there is one bucket for all.
        prop_assert!(told <= exact + exact / 16 || exact >= 31 << 27, "{told} far above {exact}");
        prop_assert!(told <= took[took.len() - 1]);
    }
}

#[test]
fn a_round_trip_is_rounded_up_to_its_microsecond() {
    let mut trips = RoundTrips::new(MINUTE, at(0));
    assert_eq!(trips.quantile(500), None);
    trips.add(Duration::from_nanos(7_001), at(0));
    trips.add(micros(900), at(0));
    assert_eq!(trips.quantile(500), Some(micros(8)));
    assert_eq!((trips.quantile(999), trips.longest()), (Some(micros(900)), micros(900)));
    assert_eq!((trips.count(), trips.total()), (2, 2));
}

#[test]
fn round_trips_are_forgotten_after_one_to_two_generations_and_totals_never() {
    let mut trips = RoundTrips::new(MINUTE, at(0));
    trips.add(ms(500), at(59_999));
    trips.age(at(60_000));
    assert_eq!((trips.count(), trips.longest()), (1, ms(500)));
    trips.add(ms(2), at(119_999));
    assert_eq!(trips.longest(), ms(500));
    trips.age(at(120_000));
    assert_eq!((trips.count(), trips.longest(), trips.quantile(999)), (1, ms(2), Some(ms(2))));
    trips.age(at(1_000_000));
    assert_eq!((trips.count(), trips.quantile(999)), (0, None));
    assert_eq!((trips.total(), trips.total_time()), (2, ms(502)));
}

#[test]
fn a_sleep_in_time_is_no_pause_and_what_is_late_is_counted_above_the_thresholds() {
    let mut pauses = Pauses::new(MINUTE, at(0));
    for (asked, took, pause) in
        [(20, 5, 0), (20, 20, 0), (20, 30, 10), (20, 31, 11), (0, 100, 100), (1, 1_002, 1_001)]
    {
        assert_eq!(pauses.slept(ms(asked), ms(took), at(1)), ms(pause));
    }
    assert_eq!(pauses.over(), [3, 1, 1]);
    assert_eq!((pauses.longest(), pauses.last(), pauses.total()), (ms(1_001), Some(ms(1_001)), ms(1_122)));
    pauses.slept(ms(0), ms(50), at(60_000));
    assert_eq!((pauses.longest(), pauses.last()), (ms(1_001), Some(ms(50))));
    pauses.age(at(120_000));
    assert_eq!((pauses.longest(), pauses.longest_ever()), (ms(50), ms(1_001)));
    pauses.age(at(300_000));
    assert_eq!(pauses.longest(), Duration::ZERO);
}

fn clocks(boot: u64, raw: u64, monotonic: u64, wall: u64) -> Clocks {
    let nanos = |micros: u64| micros * 1_000;
    let reading = Reading { boot: nanos(boot), raw: nanos(raw) };
    Clocks { reading, monotonic: nanos(monotonic), wall: nanos(wall) }
}

/// There to find: rates of a clock against itself, and a sign the wrong way round.
#[test]
fn rates_are_told_after_a_second_and_suspend_is_no_rate_of_the_daemon() {
    let mut found = ClockRates::new(clocks(0, 0, 0, 0));
    found.look(clocks(999_999, 999_999, 999_999, 999_999));
    assert_eq!(found.rates(), None);
    found.look(clocks(1_000_050, 1_000_000, 1_000_050, 1_000_050));
    let rates = Rates { monotonic_ppm: 50, boot_ppm: 50 };
    assert_eq!((found.rates(), rates.disagreement_ppm()), (Some(rates), 50));
    // Slewed backwards, and asleep for a second.
    found.look(clocks(2_999_800, 2_000_000, 1_999_800, 2_999_800));
    assert_eq!(found.rates(), Some(Rates { monotonic_ppm: -100, boot_ppm: 499_900 }));
    assert_eq!((found.suspended(), found.steps()), (Duration::from_secs(1), 0));
}

#[test]
fn rates_are_of_the_last_half_minute_to_minute() {
    let mut found = ClockRates::new(clocks(0, 0, 0, 0));
    let second = 1_000_000;
    // A daemon slews by one in a thousand for a minute, then no more.
    for now in 1..=60 {
        found.look(clocks(now * 1_001_000, now * second, now * 1_001_000, now * 1_001_000));
    }
    assert_eq!(found.rates().unwrap().monotonic_ppm, 1_000);
    for now in 61..=125 {
        let slewed = now * second + 60_000;
        found.look(clocks(slewed, now * second, slewed, slewed));
    }
    assert_eq!(found.rates().unwrap().monotonic_ppm, 0);
}

#[test]
fn a_wall_clock_that_is_set_is_counted_above_fifty_milliseconds() {
    let mut found = ClockRates::new(clocks(0, 0, 0, 5_000_000));
    found.look(clocks(1_000_000, 1_000_000, 1_000_000, 6_050_000));
    assert_eq!((found.steps(), found.last_step()), (0, None));
    found.look(clocks(2_000_000, 2_000_000, 2_000_000, 7_100_001));
    assert_eq!(found.last_step(), Some(WallStep { by: micros(50_001), forwards: true }));
    found.look(clocks(3_000_000, 3_000_000, 3_000_000, 100_001));
    assert_eq!(found.last_step(), Some(WallStep { by: ms(8_000), forwards: false }));
    assert_eq!((found.steps(), found.stepped()), (2, micros(8_050_001)));
}

#[test]
fn a_warning_is_said_once_and_again_after_it_was_good_but_not_within_a_minute() {
    let mut said = Said::default();
    let looks = [
        (0, true, true),
        (1, true, false),
        (200, true, false),
        (201, false, false),
        (202, true, true),
        (203, false, false),
        (204, true, false),
        (261, true, false),
        (262, true, true),
    ];
    for (second, bad, now) in looks {
        assert_eq!(said.look(bad, at(second * 1_000)), now, "second {second}");
    }
}

/// ttl 10 s, margin 1 s, renewed every 3333 ms.
fn numbers() -> Numbers {
    Numbers::check(Ask::for_ttl(Millis::new(10_000))).unwrap()
}

fn broken(numbers: &Numbers, measured: Measured) -> Vec<Broken> {
    judge(numbers, &measured).collect()
}

/// There to find: a bound that is rounded down, and `<=` for `<`.
#[test]
fn the_longest_round_trip_and_pause_that_fit_are_the_last_below_the_bound() {
    let trip = |length| Measured { round_trip: Some(length), ..Measured::default() };
    assert!(broken(&numbers(), trip(ms(2_333))).is_empty());
    assert_eq!(broken(&numbers(), trip(ms(2_333) + Duration::from_nanos(1))).len(), 1);
    let pause = |pause| Measured { round_trip: Some(ms(67)), pause: Some(pause), ..Measured::default() };
    assert!(broken(&numbers(), pause(ms(5_599))).is_empty());
    assert_eq!(broken(&numbers(), pause(ms(5_600)))[0].name(), "pause");
    let rate = |ppm| Measured { rate_ppm: Some(ppm), ..Measured::default() };
    assert!(broken(&numbers(), rate(100_000)).is_empty());
    assert_eq!(broken(&numbers(), rate(100_001))[0].name(), "clock-rate");
}

#[test]
fn what_was_not_measured_breaks_nothing() {
    assert!(broken(&numbers(), Measured::default()).is_empty());
}

#[test]
fn what_is_broken_is_said_with_both_sides_and_the_number_to_change() {
    let measured = Measured { round_trip: Some(ms(2_500)), pause: Some(ms(7_000)), rate_ppm: Some(120_000) };
    let said: Vec<_> = broken(&numbers(), measured).iter().map(Broken::to_string).collect();
    assert_eq!(
        said,
        [
            "round trips take up to 2500 ms, so one lost request may end the lease: second attempt + round trip = 6666 ms + 2500 ms = \
             9166 ms, which is not below ttl - margin = 10000 ms - 1000 ms = 9000 ms; renew every 3249 ms",
            "the process stood still for up to 7000 ms, which may end the lease: renewal interval + pause + round trip = 3333 ms + \
             7000 ms + 2500 ms = 12833 ms, which is not below ttl - margin = 10000 ms - 1000 ms = 9000 ms; raise the ttl to 17000 ms",
            "a clock is adjusted by 120000 parts per million, which is 1200 ms in a ttl of 10000 ms: clock bound + in-flight bound = \
             1200 ms + 0 ms = 1200 ms, which is above the margin of 1000 ms; raise the margin to 1200 ms",
        ]
    );
}

/// What is advised holds, and a little less does not.
#[test]
fn the_advice_is_followed_with_success() {
    for (ttl, trip, pause) in
        [(500, 130, 0), (500, 60, 900), (10_000, 2_400, 0), (10_000, 9_000, 0), (10_000, 50, 30_000)]
    {
        let measured = Measured { round_trip: Some(ms(trip)), pause: Some(ms(pause)), rate_ppm: None };
        let before = Numbers::check(Ask::for_ttl(Millis::new(ttl))).unwrap();
        let broken = broken(&before, measured);
        // Whoever follows the last advice has followed the greatest.
        let change = match broken.last().unwrap() {
            Broken::RoundTrip { change, .. } | Broken::Pause { change, .. } => *change,
            Broken::ClockRate { .. } => unreachable!("no rate was measured"),
        };
        let ask = Ask { round_trip: measured.round_trip_bound(), ..Ask::for_ttl(before.ttl()) };
        let follow = |by: u64| match change {
            Change::RenewEvery(interval) => {
                Ask { renew_every: Some(Millis::new(interval.get() + by)), ..ask }
            }
            Change::Ttl(ttl) => Ask { ttl: Millis::new(ttl.get() - by * 1_000), ..ask },
            Change::Nothing => unreachable!("a day is long enough"),
        };
        let holds =
            |ask| Numbers::check(ask).is_ok_and(|numbers| judge(&numbers, &measured).next().is_none());
        assert!(holds(follow(0)), "{change}");
        assert!(!holds(follow(1)), "{change} is more than is needed");
    }
}

#[test]
fn halves_have_no_interval_to_change_and_nothing_helps_against_a_day() {
    let halves = Ask { schedule: Schedule::Halves, ..Ask::for_ttl(Millis::new(10_000)) };
    let halves = Ask { margin: Some(Millis::new(500)), ..halves };
    let numbers = Numbers::check(halves).unwrap();
    let measured = Measured { pause: Some(ms(4_500)), ..Measured::default() };
    assert!(matches!(broken(&numbers, measured)[..], [Broken::Pause { change: Change::Ttl(_), .. }]));
    let day = Measured { pause: Some(Duration::from_secs(86_400)), ..Measured::default() };
    let said = broken(&numbers, day)[0].to_string();
    assert!(said.ends_with("no ttl is long enough for that: find out what takes so long"), "{said}");
}
