use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::id::{ItemNumber, RenewalNumber};
use crate::numbers::{Ask, Numbers, Schedule};
use crate::time::Millis;

const NO_JITTER: Fraction = Fraction::from_bits(0);

/// Both clocks run alike.
fn at(ms: u64) -> Reading {
    apart(ms, ms)
}

fn apart(boot_ms: u64, raw_ms: u64) -> Reading {
    Reading { boot: boot_ms * 1_000_000, raw: raw_ms * 1_000_000 }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn number(value: u64) -> RenewalNumber {
    RenewalNumber::new(value)
}

/// ttl 10 s, margin 1 s, renewal every 3333 ms, request timeout 400 ms.
fn scheduler() -> Scheduler {
    Scheduler::new(Numbers::check(Ask::for_ttl(Millis::new(10_000))).unwrap(), at(0), NO_JITTER)
}

fn sends(scheduler: &mut Scheduler, now: Reading) -> Vec<u64> {
    let outputs = scheduler.poll(now, NO_JITTER).into_iter();
    outputs
        .filter_map(|output| if let Output::SendRenewal(n) = output { Some(n.get()) } else { None })
        .collect()
}

fn standing(scheduler: &Scheduler, now: Reading) -> Standing {
    scheduler.belief().standing(now)
}

#[test]
fn a_renewal_is_sent_after_its_interval() {
    let mut scheduler = scheduler();
    assert_eq!(scheduler.poll_timeout(at(0)), Some(ms(3_333)));
    assert!(sends(&mut scheduler, at(3_332)).is_empty());
    assert_eq!(sends(&mut scheduler, at(3_333)), [1]);
    assert!(sends(&mut scheduler, at(3_334)).is_empty());
}

#[test]
fn the_deadline_counts_from_the_sending_and_not_from_the_answer() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    scheduler.answered(number(1), ItemNumber::NONE, at(8_000));
    assert_eq!(standing(&scheduler, at(8_000)), Standing::Held { until: at(12_333) });
    assert!(matches!(standing(&scheduler, at(12_332)), Standing::Held { .. }));
    assert_eq!(standing(&scheduler, at(12_333)), Standing::Lapsed { since: at(12_333) });
}

#[test]
fn every_sending_has_a_new_number_and_its_answer_counts_from_it() {
    let mut scheduler = scheduler();
    assert_eq!(sends(&mut scheduler, at(3_333)), [1]);
    assert!(sends(&mut scheduler, at(3_732)).is_empty());
    assert_eq!(sends(&mut scheduler, at(3_733)), [2]);
    scheduler.answered(number(1), ItemNumber::NONE, at(3_800));
    assert_eq!(scheduler.belief().until(), at(12_333));
    scheduler.answered(number(2), ItemNumber::NONE, at(3_900));
    assert_eq!(scheduler.belief().until(), at(12_733));
}

#[test]
fn an_earlier_answer_behind_a_later_one_does_not_move_the_deadline_back() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    sends(&mut scheduler, at(3_733));
    scheduler.answered(number(2), ItemNumber::NONE, at(3_800));
    scheduler.answered(number(1), ItemNumber::NONE, at(3_801));
    assert_eq!(scheduler.belief().until(), at(12_733));
}

#[test]
fn retries_go_on_past_the_deadline_and_a_confirmed_one_brings_the_session_back() {
    let mut scheduler = scheduler();
    let mut sent = 0;
    for now in 0..20_000 {
        sent += sends(&mut scheduler, at(now)).len() as u64;
    }
    assert_eq!(sent, 1 + (19_999 - 3_333) / 400);
    assert!(matches!(standing(&scheduler, at(20_000)), Standing::Lapsed { .. }));
    scheduler.answered(number(sent), ItemNumber::NONE, at(20_000));
    assert!(matches!(standing(&scheduler, at(20_000)), Standing::Held { .. }));
}

#[test]
fn an_unanswered_renewal_is_retrying_until_an_answer_comes() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    assert!(matches!(standing(&scheduler, at(3_733)), Standing::Held { .. }));
    sends(&mut scheduler, at(3_733));
    assert_eq!(standing(&scheduler, at(3_733)), Standing::Retrying { since: at(3_733), until: at(9_000) });
    scheduler.answered(number(1), ItemNumber::NONE, at(3_734));
    assert!(matches!(standing(&scheduler, at(3_734)), Standing::Held { .. }));
}

#[test]
fn an_answer_is_kept_until_the_items_before_it_are_processed() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    scheduler.answered(number(1), ItemNumber::new(7), at(3_400));
    assert!(scheduler.keeps_an_answer());
    scheduler.processed(ItemNumber::new(6), at(3_500));
    assert_eq!(scheduler.belief().until(), at(9_000));
    scheduler.processed(ItemNumber::new(7), at(3_600));
    assert_eq!(scheduler.belief().until(), at(12_333));
    assert!(!scheduler.keeps_an_answer());
}

#[test]
fn a_stale_renewal_counts_for_nothing_and_raises_the_number() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    scheduler.stale(number(1), number(9), at(3_400));
    scheduler.answered(number(1), ItemNumber::NONE, at(3_401));
    assert_eq!(scheduler.belief().until(), at(9_000));
    assert_eq!(sends(&mut scheduler, at(3_733)), [10]);
}

#[test]
fn a_grant_moves_no_deadline() {
    let mut scheduler = scheduler();
    assert_eq!(scheduler.granted(at(8_000)), None);
    assert_eq!(scheduler.belief().until(), at(9_000));
}

#[test]
fn a_grant_after_the_deadline_needs_a_renewal_sent_later() {
    let mut scheduler = scheduler();
    scheduler.poll(at(3_333), NO_JITTER);
    assert_eq!(scheduler.granted(at(8_999)), None);
    assert_eq!(scheduler.granted(at(9_000)), Some(number(2)));
    assert_eq!(sends(&mut scheduler, at(9_000)), [2], "it is sent at once");
}

#[test]
fn jitter_only_shortens_and_by_a_fifth_at_most() {
    let numbers = Numbers::check(Ask::for_ttl(Millis::new(10_000))).unwrap();
    for (bits, expected) in [(0, 3_333_000), (1 << 31, 2_999_700), (u32::MAX, 2_666_401)] {
        let scheduler = Scheduler::new(numbers, at(0), Fraction::from_bits(bits));
        let wake = scheduler.poll_timeout(at(0)).unwrap();
        assert!(wake.as_micros().abs_diff(expected) <= 1, "{bits}: {wake:?}");
    }
}

#[test]
fn a_hint_is_heard_within_the_safe_window_only() {
    // From the request timeout after the last sending to the last moment that leaves room for a second attempt.
    for (hint, heard) in
        [(0, 400), (399, 400), (400, 400), (2_000, 2_000), (5_567, 5_567), (5_568, 5_567), (60_000, 5_567)]
    {
        let mut scheduler = scheduler();
        scheduler.hint(ms(hint), at(0));
        assert_eq!(scheduler.poll_timeout(at(0)), Some(ms(heard)), "{hint} ms");
        assert_eq!(scheduler.belief().until(), at(9_000), "a hint renews nothing");
    }
}

/// A thousand sessions whose renewals went out at one moment, as after a reconnection, and are not answered.
#[test]
fn retries_of_many_are_spread_and_none_is_late() {
    let mut per_10_ms = [[0_u32; 40]; 3];
    for session in 0..1_000_u32 {
        let draw = |round: u32| Fraction::from_bits((session * 3 + round).wrapping_mul(2_654_435_761));
        let mut scheduler = scheduler();
        let mut now = at(3_333);
        assert!(!scheduler.poll(now, draw(0)).is_empty());
        for round in 1..=3_u32 {
            let wait = scheduler.poll_timeout(now).expect("an answer is missing");
            assert!(wait > ms(320) - ms(1) && wait <= ms(400), "{wait:?}");
            now = now.plus(wait);
            assert!(!scheduler.poll(now, draw(round)).is_empty());
            let late = at(3_333 + 400 * u64::from(round)).since(now).greater();
            per_10_ms[round as usize - 1][usize::try_from(late.as_millis() / 10).unwrap()] += 1;
        }
        assert_eq!(scheduler.belief().until(), at(9_000), "the deadline knows nothing of it");
    }
    let most = per_10_ms.map(|counts| counts.into_iter().max());
    // Over 80 ms, then over 160 and 240.
    assert!(most.into_iter().flatten().all(|most| most < 200), "{most:?}");
}

/// There to find: a wish that sends while an answer is missing, and is then taken for a retry.
#[test]
fn a_renewal_is_sent_when_one_is_wanted_but_not_beside_one_that_is_unanswered() {
    let mut scheduler = scheduler();
    scheduler.renew_now(at(100));
    assert_eq!(sends(&mut scheduler, at(100)), [1]);
    scheduler.renew_now(at(110));
    assert!(sends(&mut scheduler, at(110)).is_empty());
    scheduler.answered(number(1), ItemNumber::NONE, at(120));
    assert_eq!(scheduler.belief().until(), at(9_100));
    scheduler.renew_now(at(130));
    assert_eq!(sends(&mut scheduler, at(130)), [2]);
    assert!(matches!(standing(&scheduler, at(130)), Standing::Held { .. }));
}

/// There to find: a wish that is taken for granted by the answer to what was sent before it.
#[test]
fn a_renewal_that_is_waited_for_is_sent_from_then_on_and_never_beside_another() {
    let mut scheduler = scheduler();
    assert_eq!(scheduler.renew(at(100)), number(1));
    assert_eq!(sends(&mut scheduler, at(100)), [1]);
    assert_eq!(scheduler.renew(at(110)), number(2), "the one under way was sent before");
    assert!(sends(&mut scheduler, at(110)).is_empty());
    scheduler.answered(number(1), ItemNumber::NONE, at(120));
    assert_eq!(sends(&mut scheduler, at(120)), [2]);
    assert_eq!(scheduler.renew(at(130)), number(3));
    assert_eq!(sends(&mut scheduler, at(520)), [3], "what is sent again is as good");
    scheduler.answered(number(3), ItemNumber::NONE, at(530));
    assert_eq!(scheduler.confirmed_number(), number(3));
    assert!(sends(&mut scheduler, at(530)).is_empty());
}

/// There to find: very many sessions on a slow connection that all send again what waits there, and make it slower.
#[test]
fn a_connection_that_was_measured_to_be_slow_is_waited_for_up_to_half_the_interval() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    scheduler.round_trips_take(ms(200));
    assert!(sends(&mut scheduler, at(3_333 + 799)).is_empty());
    assert_eq!(scheduler.poll_timeout(at(3_333 + 799)), Some(ms(1)));
    scheduler.round_trips_take(ms(100));
    assert_eq!(sends(&mut scheduler, at(3_333 + 799)), [2], "the bound alone counts again");
    scheduler.round_trips_take(ms(60_000));
    assert!(sends(&mut scheduler, at(4_132 + 1_666)).is_empty());
    assert_eq!(sends(&mut scheduler, at(4_132 + 1_667)), [3]);
    assert_eq!(scheduler.belief().until(), at(9_000), "the deadline knows nothing of it");
}

#[test]
fn a_hint_does_not_delay_a_retry() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    scheduler.hint(ms(3_000), at(3_400));
    assert_eq!(sends(&mut scheduler, at(3_733)), [2]);
}

#[test]
fn without_a_connection_nothing_is_sent_and_afterwards_the_unanswered_at_once() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    scheduler.disconnected(at(3_350));
    assert!(sends(&mut scheduler, at(5_000)).is_empty());
    assert!(matches!(standing(&scheduler, at(5_000)), Standing::Retrying { .. }));
    assert_eq!(scheduler.poll_timeout(at(5_000)), Some(ms(4_000)), "only the lapse is left to wake for");
    scheduler.connected(at(5_001));
    assert_eq!(scheduler.poll_timeout(at(5_001)), Some(Duration::ZERO));
    assert_eq!(sends(&mut scheduler, at(5_001)), [2]);
}

#[test]
fn a_short_interruption_with_nothing_unanswered_sends_nothing() {
    let mut scheduler = scheduler();
    scheduler.disconnected(at(100));
    scheduler.connected(at(200));
    assert!(sends(&mut scheduler, at(200)).is_empty());
}

#[test]
fn the_clock_that_moved_further_ends_belief() {
    let scheduler = scheduler();
    assert!(matches!(standing(&scheduler, apart(9_000, 100)), Standing::Lapsed { .. }));
    assert!(matches!(standing(&scheduler, apart(100, 9_000)), Standing::Lapsed { .. }));
}

#[test]
fn a_suspend_makes_uncertain_until_a_renewal_sent_afterwards_is_confirmed() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    let awake = apart(7_000, 3_400);
    assert!(matches!(standing(&scheduler, awake), Standing::Uncertain { .. }), "seen by whoever asks first");
    assert_eq!(sends(&mut scheduler, awake), [2], "a renewal is sent at once");
    scheduler.answered(number(1), ItemNumber::NONE, apart(7_010, 3_410));
    assert!(
        matches!(standing(&scheduler, apart(7_010, 3_410)), Standing::Uncertain { .. }),
        "sent before it"
    );
    scheduler.answered(number(2), ItemNumber::NONE, apart(7_050, 3_450));
    assert!(matches!(standing(&scheduler, apart(7_050, 3_450)), Standing::Held { .. }));
}

#[test]
fn a_disagreement_once_noticed_does_not_fade() {
    let mut scheduler = scheduler();
    scheduler.poll(apart(300, 200), NO_JITTER);
    // By now 100 ms are within the tolerated tenth, but something was wrong.
    assert!(!apart(2_100, 2_000).since(at(0)).disagrees());
    assert!(matches!(standing(&scheduler, apart(2_100, 2_000)), Standing::Uncertain { .. }));
}

#[test]
fn a_second_suspend_after_the_confirming_sending_is_noticed() {
    let mut scheduler = scheduler();
    assert_eq!(sends(&mut scheduler, apart(1_000, 100)), [1]);
    scheduler.answered(number(1), ItemNumber::NONE, apart(3_000, 200));
    assert!(matches!(standing(&scheduler, apart(3_000, 200)), Standing::Uncertain { .. }));
    assert_eq!(sends(&mut scheduler, apart(3_000, 200)), [2]);
}

#[test]
fn a_grant_to_an_uncertain_session_needs_a_later_renewal() {
    let mut scheduler = scheduler();
    assert_eq!(scheduler.granted(apart(1_000, 100)), Some(number(1)));
}

#[test]
fn readings_in_the_wrong_order_do_not_turn_time_back() {
    let mut scheduler = scheduler();
    assert_eq!(sends(&mut scheduler, at(3_333)), [1]);
    assert!(sends(&mut scheduler, at(3_000)).is_empty());
    scheduler.answered(number(1), ItemNumber::NONE, at(2_000));
    assert_eq!(scheduler.belief().until(), at(12_333));
}

#[test]
fn a_guard_is_given_up_to_the_deadline() {
    let belief = scheduler().belief();
    let guard = |how_long| belief.guard(how_long, Strictness::default(), at(7_000));
    assert_eq!(guard(ms(1_999)), Ok(()));
    assert_eq!(guard(ms(2_000)), Ok(()));
    let too_long = NoGuard::TooLong { needed: Millis::new(2_001), left: Millis::new(2_000) };
    assert_eq!(guard(ms(2_001)), Err(too_long));
    assert_eq!(guard(ms(2_000) + Duration::from_nanos(1)), Err(too_long), "never rounded in favour");
    assert_eq!(belief.guard(ms(0), Strictness::default(), at(9_000)), Err(NoGuard::Lapsed));
}

#[test]
fn a_strict_holder_gets_no_guard_while_retrying() {
    let mut scheduler = scheduler();
    sends(&mut scheduler, at(3_333));
    sends(&mut scheduler, at(3_733));
    let belief = scheduler.belief();
    assert_eq!(belief.guard(ms(10), Strictness::UntilDeadline, at(3_740)), Ok(()));
    assert_eq!(belief.guard(ms(10), Strictness::OnlyWhileAnswered, at(3_740)), Err(NoGuard::Retrying));
}

#[test]
fn outstanding_sendings_are_bounded() {
    let mut scheduler = scheduler();
    for now in 0..2_000 {
        sends(&mut scheduler, at(3_333 + 400 * now));
    }
    assert_eq!(scheduler.outstanding(), 1_024);
}

fn scheduled(schedule: Schedule) -> Scheduler {
    let ask = Ask { schedule, ..Ask::for_ttl(Millis::new(10_000)) };
    Scheduler::new(Numbers::check(ask).unwrap(), at(0), Fraction::from_bits(u32::MAX))
}

#[test]
fn a_fixed_schedule_has_no_jitter_and_the_others_only_come_sooner() {
    assert_eq!(scheduled(Schedule::Fixed).poll_timeout(at(0)), Some(ms(3_333)));
    for (schedule, earliest, latest) in [(Schedule::Even, 2_666, 2_668), (Schedule::Halves, 4_000, 4_001)] {
        let due = scheduled(schedule).poll_timeout(at(0)).unwrap();
        assert!(due >= ms(earliest) && due <= ms(latest), "{schedule:?}: {due:?}");
    }
}

#[test]
fn halves_ask_for_another_node_once_at_seven_eighths() {
    let mut scheduler = scheduled(Schedule::Halves);
    let asks =
        |scheduler: &mut Scheduler, now| scheduler.poll(now, NO_JITTER).contains(&Output::TryAnotherNode);
    assert_eq!(sends(&mut scheduler, at(4_001)), [1]);
    for now in [4_001, 6_000, 8_749] {
        assert!(!asks(&mut scheduler, at(now)), "{now}");
    }
    assert!(scheduler.poll_timeout(at(8_749)).unwrap() <= ms(1));
    assert!(asks(&mut scheduler, at(8_750)));
    assert!(!asks(&mut scheduler, at(8_751)), "once is enough");
    // Answered: the next interval begins anew.
    let newest = sends(&mut scheduler, at(9_300)).pop().unwrap();
    scheduler.answered(number(newest), ItemNumber::NONE, at(9_310));
    assert!(!asks(&mut scheduler, at(14_000)));
    assert!(!asks(&mut scheduler, at(18_049)));
    assert!(asks(&mut scheduler, at(18_050)));
}

#[test]
fn an_even_schedule_asks_for_no_other_node() {
    let mut scheduler = scheduler();
    let mut asked = false;
    for now in (0..9_000).step_by(10) {
        asked |= scheduler.poll(at(now), NO_JITTER).contains(&Output::TryAnotherNode);
    }
    assert!(!asked);
}

#[test]
fn a_fixed_schedule_hears_no_wishes() {
    let mut scheduler = scheduled(Schedule::Fixed);
    scheduler.hint(ms(2_000), at(0));
    assert_eq!(scheduler.poll_timeout(at(0)), Some(ms(3_333)));
}
