//! What a client measures and warns of, in a world whose clock is moved by hand. Each test says which mistake it is there to find.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::testing::{TestStore, World};
use leasehold::{Broken, Session, SessionOptions};

const SECOND: Duration = Duration::from_secs(1);
/// Time moves in steps of this length.
const STEP: Duration = Duration::from_millis(10);

/// ttl 10 s, margin 1 s, renewed every 3333 ms: a round trip of 2334 ms is one too many.
fn open(world: &World, store: &TestStore) -> Session {
    world.run(store.session_with(&SessionOptions::new().ttl(SECOND * 10))).unwrap()
}

/// Lets the next renewal wait so long for its answer.
fn slow_renewal(world: &World, store: &TestStore, took: Duration) {
    store.hold_back_answers();
    let sent = store.figures().renewals_sent;
    while store.figures().renewals_sent == sent {
        world.advance(STEP);
    }
    world.advance(took);
    store.deliver();
    world.advance(SECOND);
}

/// There to find: renewals that are counted when they are due and not when they are sent; answers counted twice.
#[test]
fn a_quiet_minute_is_counted() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store);
    world.advance(SECOND * 60);
    let figures = store.figures();
    assert!((18..=23).contains(&figures.renewals_sent), "{figures:?}");
    assert_eq!((figures.renewals_confirmed, figures.renewals_lost), (figures.renewals_sent, 0));
    assert_eq!(figures.round_trips_total, figures.renewals_sent);
    assert_eq!(figures.round_trips.longest, Duration::ZERO, "in this world an answer takes no time");
    assert!(figures.longest_pause <= STEP, "{figures:?}");
    assert_eq!((figures.retrying, figures.uncertain, figures.lapsed), Default::default());
    assert_eq!((figures.last_warning, figures.wall_steps), (None, 0));
    assert_eq!(figures.rates.unwrap().disagreement_ppm(), 0);
    drop(session);
}

/// There to find: a warning that is said at every look, and one that is never said again.
#[test]
fn slow_answers_are_warned_of_once_and_again_after_they_were_fast() {
    let world = World::new();
    let store = world.store();
    let _session = open(&world, &store);
    let mut warnings = store.warnings();
    slow_renewal(&world, &store, SECOND * 2);
    assert_eq!(warnings.try_next(), None, "two seconds still fit");
    slow_renewal(&world, &store, Duration::from_millis(2_500));
    let warning = world.run(warnings.next()).unwrap();
    assert!(matches!(warning, Broken::RoundTrip { .. }), "{warning}");
    let said = warning.to_string();
    for part in
        ["round trips take up to 25", " = 6666 ms + 25", "10000 ms - 1000 ms = 9000 ms; renew every 32"]
    {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    assert_eq!(store.figures().last_warning, Some(warning));
    slow_renewal(&world, &store, SECOND * 3);
    world.advance(SECOND * 60);
    assert_eq!(warnings.try_next(), None, "it is known already");
    // Two minutes later it is forgotten, and comes anew.
    world.advance(SECOND * 61);
    assert!(store.figures().round_trips.longest < SECOND);
    slow_renewal(&world, &store, Duration::from_millis(2_500));
    assert!(matches!(warnings.try_next(), Some(Broken::RoundTrip { .. })));
    assert_eq!(warnings.try_next(), None);
}

/// There to find: a pause that is taken for a slow store.
#[test]
fn a_process_that_stood_still_is_warned_of_its_pause_and_not_of_the_store() {
    let world = World::new();
    let store = world.store();
    let _session = open(&world, &store);
    world.advance(SECOND * 20);
    let mut warnings = store.warnings();
    store.pause();
    world.advance(SECOND * 7);
    store.unpause();
    world.advance(SECOND * 2);
    let figures = store.figures();
    assert!(figures.longest_pause > SECOND * 6 && figures.longest_pause <= SECOND * 7, "{figures:?}");
    assert!(figures.round_trips.longest < SECOND, "{figures:?}");
    assert_eq!(figures.pauses_over[2], 1);
    let warning = warnings.try_next().unwrap();
    assert!(matches!(warning, Broken::Pause { .. }), "{warning}");
    assert!(warning.to_string().contains("; renew every 2"), "{warning}");
    assert_eq!(warnings.try_next(), None);
    world.advance(SECOND * 121);
    let figures = store.figures();
    assert!(figures.longest_pause <= STEP && figures.longest_pause_ever > SECOND * 6, "{figures:?}");
}

/// There to find: renewals on a connection that is gone, counted as if they were still on their way.
#[test]
fn time_that_sessions_do_not_stand_well_adds_up() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store);
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    store.hold_back_answers();
    world.advance(SECOND * 4);
    store.cut();
    assert!(store.figures().renewals_lost >= 1, "what was on its way is lost");
    // The deadline is 9 s after the opening.
    world.advance(SECOND * 8);
    let figures = store.figures();
    let about = |length: Duration, expected: Duration| length.abs_diff(expected) <= STEP * 3;
    assert!(about(figures.lapsed, SECOND * 3), "{figures:?}");
    // It was sent after 2.7 to 3.4 s, and missed 0.4 s later.
    assert!(figures.retrying > SECOND * 5 && figures.retrying < SECOND * 6, "{figures:?}");
    store.heal();
    world.advance(SECOND);
    let well = store.figures();
    world.advance(SECOND * 30);
    let later = store.figures();
    assert_eq!((well.retrying, well.lapsed), (later.retrying, later.lapsed));
    drop(lease);
}

/// There to find: time that is counted twice, as retrying and as lapsed, for a lapse that is noticed late.
#[test]
fn a_lapse_that_is_noticed_late_ends_the_retrying_at_the_deadline() {
    let world = World::new();
    let store = world.store();
    let _session = open(&world, &store);
    world.advance(STEP);
    store.cut();
    world.advance(SECOND * 4);
    store.pause();
    world.advance(SECOND * 8);
    store.unpause();
    let figures = store.figures();
    assert!(figures.lapsed.abs_diff(SECOND * 3) <= STEP * 3, "{figures:?}");
    // Cut off, it retries from when the renewal was due, 2.7 to 3.4 s after the opening, to the deadline at 9 s.
    assert!(figures.retrying > SECOND * 5 && figures.retrying < Duration::from_millis(6_500), "{figures:?}");
}

/// There to find: the deadline that passed while nobody looked, counted from when somebody did.
#[test]
fn a_lapse_counts_from_the_deadline_also_when_the_process_slept_through_it() {
    let world = World::new();
    let store = world.store();
    let _session = open(&world, &store);
    world.advance(SECOND);
    store.pause();
    world.advance(SECOND * 9);
    store.unpause();
    let figures = store.figures();
    assert!(figures.lapsed.abs_diff(SECOND) <= STEP * 2, "{figures:?}");
    assert!(figures.retrying <= STEP, "{figures:?}");
}

/// There to find: the slowest renewals of all, left out because they were never answered.
#[test]
fn a_renewal_that_is_never_answered_counts_for_as_long_as_it_waited() {
    let world = World::new();
    let store = world.store();
    let _session = open(&world, &store);
    world.advance(SECOND * 20);
    assert_eq!(store.figures().longest_unanswered, Duration::ZERO);
    store.hold_back_answers();
    let sent = store.figures().renewals_sent;
    while store.figures().renewals_sent == sent {
        world.advance(STEP);
    }
    world.advance(SECOND * 2);
    let about = |expected: Duration| store.figures().longest_unanswered.abs_diff(expected) <= STEP * 2;
    assert!(about(SECOND * 2), "so far: {:?}", store.figures());
    // The connection ends, and the answers on it with it. Until another renewal is confirmed the first one waits.
    store.cut();
    world.advance(SECOND);
    assert!(about(SECOND * 3), "{:?}", store.figures());
    store.heal();
    world.advance(SECOND);
    let figures = store.figures();
    assert!(
        figures.longest_unanswered >= SECOND * 3 && figures.longest_unanswered < SECOND * 4,
        "{figures:?}"
    );
    assert!(figures.round_trips.longest < SECOND && figures.renewals_lost > 0, "{figures:?}");
    world.advance(SECOND * 20);
    assert_eq!(store.figures().longest_unanswered, figures.longest_unanswered);
}

/// There to find: a wait that goes on when there is no session any more that could be renewed; a pause of this process that is taken for one.
#[test]
fn nobody_waits_for_an_answer_without_a_session_or_while_the_process_stands_still() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store);
    world.advance(SECOND * 20);
    store.pause();
    world.advance(SECOND * 7);
    store.unpause();
    world.advance(SECOND * 2);
    assert!(store.figures().longest_unanswered < SECOND, "{:?}", store.figures());
    world.run(session.close()).unwrap();
    world.advance(SECOND * 60);
    assert!(store.figures().longest_unanswered < SECOND, "{:?}", store.figures());
}

/// There to find: a suspend that is taken for a step of the wall clock.
#[test]
fn the_clocks_are_compared() {
    let world = World::new();
    let store = world.store();
    let _session = open(&world, &store);
    world.advance(SECOND * 2);
    store.step_wall_clock(SECOND * 3);
    world.advance(SECOND * 2);
    let figures = store.figures();
    assert_eq!((figures.wall_steps, figures.wall_stepped), (1, SECOND * 3));
    assert!(figures.last_wall_step.unwrap().forwards);
    // No answer comes at once: the clocks are in doubt for a while.
    store.hold_back_answers();
    store.suspend(SECOND * 2);
    world.advance(SECOND * 2);
    store.deliver();
    world.advance(SECOND);
    let figures = store.figures();
    assert_eq!((figures.wall_steps, figures.suspended), (1, SECOND * 2));
    assert!(figures.uncertain >= SECOND && figures.uncertain <= SECOND * 3, "{figures:?}");
    assert!(figures.rates.unwrap().disagreement_ppm() > 100_000);
    assert_eq!(figures.rates.unwrap().monotonic_ppm, 0);
    assert!(figures.longest_pause >= SECOND, "who sleeps stands still: {figures:?}");
}

/// There to find: a renewal that is sent beside one that is unanswered.
#[test]
fn a_renewal_that_is_wanted_now_is_sent_once() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store);
    world.advance(STEP);
    for _ in 0..5 {
        session.renew_now();
        world.advance(STEP);
    }
    assert_eq!((store.figures().renewals_sent, store.figures().renewals_confirmed), (5, 5));
    store.hold_back_answers();
    for _ in 0..5 {
        session.renew_now();
        world.advance(STEP);
    }
    assert_eq!(store.figures().renewals_sent, 6);
}

/// There to find: a reader that waits for ever.
#[test]
fn warnings_end_with_the_store() {
    let world = World::new();
    let store = world.store();
    let mut warnings = store.warnings();
    // The thread of the driver ends by itself and not by the clock of the world: it is waited for.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let closed = async {
        (*store).clone().close().await;
        warnings.next().await
    };
    let ended = runtime.block_on(async { tokio::time::timeout(SECOND * 20, closed).await });
    assert_eq!(ended, Ok(None));
}
