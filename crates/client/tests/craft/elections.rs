//! Election: warm candidates, a signal in time, no oscillation.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use leasehold::core::gap::GapCause;
use leasehold::core::numbers::NumbersError;
use leasehold::testing::{TestStore, World};
use leasehold::{Drain, Election, Error, Label, Leader, Leadership, ResourceName, StepDown};
use tokio::sync::watch;

use super::{MOMENT, Running, SECOND, named};

/// How a candidacy ended.
type Led = Result<Option<Leader>, Error>;

/// What a candidate has lived through, in order.
type Diary = Rc<RefCell<Vec<String>>>;

fn candidate(store: &TestStore, label: &str) -> Election {
    store.election("leader").session(named(label)).value(label).build().unwrap()
}

/// Work that writes down its beginning and why it was told to stop, and stops at once.
async fn obedient(leadership: Leadership, diary: Diary) {
    diary.borrow_mut().push(format!("leads {}", leadership.token().unwrap()));
    let word = match leadership.cancelled().await {
        StepDown::Asked(request) => format!("asked by {}", request.by),
        StepDown::Unready => "unready".to_owned(),
        StepDown::Stopped => "stopped".to_owned(),
        StepDown::Deadline { .. } => "late".to_owned(),
        StepDown::Ended(why) => format!("ended {why:?}"),
        other => format!("{other:?}"),
    };
    diary.borrow_mut().push(word);
}

fn leading<'a>(world: &'a World, election: &'a Election, diary: &Diary) -> Running<'a, Led> {
    let diary = Rc::clone(diary);
    Running::new(world, election.lead(move |leadership| obedient(leadership, Rc::clone(&diary))))
}

/// Lets several candidates go on together.
fn together(world: &World, candidates: &mut [&mut Running<'_, Led>], length: Duration) {
    let mut left = length;
    while !left.is_zero() {
        for candidate in candidates.iter_mut() {
            assert!(candidate.go_on(Duration::ZERO).is_none(), "a candidacy ended");
        }
        world.advance(MOMENT);
        left = left.saturating_sub(MOMENT);
    }
}

fn words(diary: &Diary) -> Vec<String> {
    diary.borrow().clone()
}

fn leader(world: &World, store: &TestStore) -> Option<String> {
    let name = ResourceName::new("leader").unwrap();
    let view = world.run(store.lease(&name)).unwrap()?;
    view.holders.first().map(|holder| holder.label.to_string())
}

#[test]
fn only_ready_candidates_campaign_and_one_that_becomes_unready_steps_down() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (ready, readiness) = watch::channel(false);
    let first = one.election("leader").session(named("first")).when_ready(readiness).build().unwrap();
    let second = candidate(&two, "second");
    let (mine, other) = (Diary::default(), Diary::default());
    let mut leads_first = leading(&world, &first, &mine);
    together(&world, &mut [&mut leads_first], SECOND * 3);
    assert!(words(&mine).is_empty(), "it is not ready");
    assert_eq!(leader(&world, &one), None);

    ready.send(true).unwrap();
    together(&world, &mut [&mut leads_first], MOMENT * 2);
    let mut leads_second = leading(&world, &second, &other);
    together(&world, &mut [&mut leads_first, &mut leads_second], SECOND);
    assert_eq!((words(&mine).len(), words(&other).len()), (1, 0));

    ready.send(false).unwrap();
    together(&world, &mut [&mut leads_first, &mut leads_second], MOMENT * 2);
    assert_eq!(words(&mine)[1], "unready");
    assert_eq!(leader(&world, &one).unwrap(), "second");
    together(&world, &mut [&mut leads_first, &mut leads_second], SECOND * 30);
    assert_eq!(words(&mine).len(), 2, "it stays away until it is ready");
}

#[test]
fn a_waiting_candidate_that_becomes_unready_gives_up_its_place() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let first = candidate(&one, "first");
    let (ready, readiness) = watch::channel(true);
    let second = two.election("leader").session(named("second")).when_ready(readiness).build().unwrap();
    let diary = Diary::default();
    let mut leads_first = leading(&world, &first, &diary);
    together(&world, &mut [&mut leads_first], MOMENT);
    let mut leads_second = leading(&world, &second, &diary);
    together(&world, &mut [&mut leads_first, &mut leads_second], MOMENT * 2);
    let name = ResourceName::new("leader").unwrap();
    assert_eq!(world.run(one.lease(&name)).unwrap().unwrap().waiting, 1);
    ready.send(false).unwrap();
    together(&world, &mut [&mut leads_first, &mut leads_second], MOMENT * 2);
    assert_eq!(world.run(one.lease(&name)).unwrap().unwrap().waiting, 0);
}

#[test]
fn the_signal_comes_early_enough_and_is_never_taken_back() {
    let world = World::new();
    let store = world.store();
    let election = store.election("leader").stop_within(SECOND * 2).build().unwrap();
    let leadership = world.run(election.campaign()).unwrap();
    let deadline = leadership.lease().deadline().unwrap();
    store.cut();
    let mut told = Running::new(&world, leadership.cancelled());
    let early = deadline.since(store.now()).greater() - SECOND * 2;
    assert!(told.go_on(early - MOMENT).is_none(), "one lost request is no reason to stop");
    let Some(StepDown::Deadline { remaining }) = told.go_on(MOMENT * 2) else { panic!("it is told in time") };
    assert!(remaining <= SECOND * 2 && remaining > SECOND * 2 - MOMENT * 2, "{remaining:?}");

    // The renewal is confirmed after all. Whoever was told to stop is not told to go on.
    store.heal();
    world.advance(SECOND);
    assert!(leadership.token().is_ok());
    assert!(leadership.is_cancelled());
    assert!(matches!(world.run(leadership.cancelled()), StepDown::Deadline { .. }));
}

#[test]
fn work_that_does_not_stop_is_dropped_at_the_deadline_and_the_process_goes_on() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (candidate(&one, "first"), candidate(&two, "second"));
    let began = Rc::new(RefCell::new(Vec::new()));
    let dropped = Rc::new(RefCell::new(Vec::new()));
    struct Deaf(Rc<RefCell<Vec<bool>>>, Leadership);
    impl Drop for Deaf {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1.token().is_ok());
        }
    }
    let mut leads = Running::new(&world, {
        let (began, dropped) = (Rc::clone(&began), Rc::clone(&dropped));
        first.lead(move |leadership| {
            began.borrow_mut().push(leadership.lease().granted().token);
            let deaf = Deaf(Rc::clone(&dropped), leadership);
            async move {
                std::future::pending::<()>().await;
                drop(deaf);
            }
        })
    });
    together(&world, &mut [&mut leads], SECOND);
    let diary = Diary::default();
    let mut leads_second = leading(&world, &second, &diary);
    together(&world, &mut [&mut leads, &mut leads_second], MOMENT);
    one.cut();
    together(&world, &mut [&mut leads, &mut leads_second], SECOND * 9);
    assert_eq!(*dropped.borrow(), [false], "dropped, and not while it was held");
    assert!(words(&diary).is_empty(), "before anybody else leads");
    together(&world, &mut [&mut leads, &mut leads_second], SECOND * 3);
    assert_eq!(words(&diary).len(), 1);

    one.heal();
    together(&world, &mut [&mut leads, &mut leads_second], SECOND * 30);
    second.stop();
    assert!(leads_second.go_on(SECOND).expect("it was stopped").is_ok());
    together(&world, &mut [&mut leads], SECOND);
    assert_eq!(began.borrow().len(), 2, "it leads again in the same process");
    assert!(began.borrow()[1] > began.borrow()[0]);
}

/// Cuts the leader off until it has lost, and heals it. Counts how long it stays out of the queue.
fn lose_and_come_back(
    world: &World,
    store: &TestStore,
    candidates: &mut [&mut Running<'_, Led>],
) -> Duration {
    store.cut();
    together(world, candidates, SECOND * 12);
    store.heal();
    let name = ResourceName::new("leader").unwrap();
    let mut away = Duration::ZERO;
    while world.run(store.lease(&name)).unwrap().unwrap().waiting == 0 {
        together(world, candidates, MOMENT * 10);
        away += MOMENT * 10;
        assert!(away < SECOND * 200, "it never comes back");
    }
    away
}

#[test]
fn a_candidate_that_was_late_rests_longer_each_time() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (candidate(&one, "first"), candidate(&two, "second"));
    let (mine, other) = (Diary::default(), Diary::default());
    let mut leads_first = leading(&world, &first, &mine);
    together(&world, &mut [&mut leads_first], MOMENT);
    let mut leads_second = leading(&world, &second, &other);
    together(&world, &mut [&mut leads_first, &mut leads_second], MOMENT);
    let mut rests = Vec::new();
    for _ in 0..3 {
        rests.push(lose_and_come_back(&world, &one, &mut [&mut leads_first, &mut leads_second]));
        // The other one is asked to step down, so that the late one leads again.
        let name = ResourceName::new("leader").unwrap();
        let by = Label::new("operator").unwrap();
        world.run(one.ask_release(&name, None, None, by)).unwrap();
        together(&world, &mut [&mut leads_first, &mut leads_second], SECOND);
        assert_eq!(leader(&world, &one).unwrap(), "first");
    }
    // Part of each rest passes while it is still cut off; each is at least a fifth shorter than its length.
    for (rest, whole) in rests.iter().zip([10, 20, 40]) {
        let cut_off = SECOND * 4;
        assert!(*rest + cut_off >= SECOND * whole * 4 / 5, "{rests:?}");
        assert!(*rest <= SECOND * whole, "{rests:?}");
    }
}

#[test]
fn a_late_candidate_does_not_leave_a_name_without_a_leader() {
    let world = World::new();
    let store = world.store();
    let election = candidate(&store, "only");
    let diary = Diary::default();
    let mut leads = leading(&world, &election, &diary);
    together(&world, &mut [&mut leads], SECOND);
    store.cut();
    together(&world, &mut [&mut leads], SECOND * 12);
    assert_eq!(words(&diary)[1], "late");
    store.heal();
    // Nobody else is there: it rests no longer than until its next look, a quarter of the ttl.
    together(&world, &mut [&mut leads], SECOND * 3);
    assert_eq!(words(&diary).len(), 3, "{:?}", words(&diary));
}

#[test]
fn a_leader_that_is_asked_resigns_and_the_next_in_line_leads() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (candidate(&one, "first"), candidate(&two, "second"));
    let (mine, other) = (Diary::default(), Diary::default());
    let mut leads_first = leading(&world, &first, &mine);
    together(&world, &mut [&mut leads_first], MOMENT);
    let mut leads_second = leading(&world, &second, &other);
    together(&world, &mut [&mut leads_first, &mut leads_second], MOMENT);
    let name = ResourceName::new("leader").unwrap();
    world.run(two.ask_release(&name, None, None, Label::new("operator").unwrap())).unwrap();
    together(&world, &mut [&mut leads_first, &mut leads_second], MOMENT * 3);
    assert_eq!(words(&mine)[1], "asked by operator");
    assert_eq!(words(&other).len(), 1, "no time has to pass for that");
    let view = world.run(one.lease(&name)).unwrap().unwrap();
    assert_eq!(view.queue[0].label.as_str(), "first", "it is a candidate again");
}

#[test]
fn a_stopped_election_gives_up_its_place_and_is_no_error() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (candidate(&one, "first"), candidate(&two, "second"));
    let diary = Diary::default();
    let mut leads_first = leading(&world, &first, &diary);
    together(&world, &mut [&mut leads_first], MOMENT);
    let mut leads_second = leading(&world, &second, &diary);
    together(&world, &mut [&mut leads_first, &mut leads_second], MOMENT);
    second.stop();
    assert!(leads_second.go_on(MOMENT).expect("it waits for nothing more").is_ok());
    first.stop();
    assert!(leads_first.go_on(MOMENT).expect("its work stops at once").is_ok());
    assert_eq!(words(&diary)[1], "stopped");
    world.advance(MOMENT);
    assert_eq!(leader(&world, &one), None);
    assert!(matches!(world.run(first.campaign()), Err(Error::Cancelled)));
}

#[test]
fn observers_see_who_leads_with_its_value_and_when_nobody_does() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let election = candidate(&one, "first");
    let mut observer = candidate(&two, "observer").observe();
    assert_eq!(world.run(observer.next()).unwrap(), None);
    let leadership = world.run(election.campaign()).unwrap();
    let seen = world.run_for(SECOND, observer.next()).unwrap().unwrap().unwrap();
    assert_eq!((seen.label.as_str(), seen.value.as_slice()), ("first", b"first".as_slice()));
    assert_eq!(seen.token, leadership.lease().granted().token);
    world.run(leadership.lease().set_value(b"elsewhere")).unwrap();
    let seen = world.run_for(SECOND, observer.next()).unwrap().unwrap().unwrap();
    assert_eq!(seen.value, b"elsewhere");
    world.run(leadership.resign()).unwrap();
    assert_eq!(world.run_for(SECOND, observer.next()).unwrap().unwrap(), None);
}

#[test]
fn work_that_cannot_stop_in_time_is_refused_before_it_leads() {
    let world = World::new();
    let refused = world.store().election("leader").stop_within(SECOND * 3).build().unwrap_err();
    assert!(matches!(refused, Error::Numbers(NumbersError::StopsTooSlowly { .. })), "{refused}");
}

#[test]
fn an_outage_of_the_store_is_waited_out() {
    let world = World::new();
    let store = world.store();
    let election = candidate(&store, "first");
    store.cut();
    let diary = Diary::default();
    let mut leads = leading(&world, &election, &diary);
    together(&world, &mut [&mut leads], SECOND * 60);
    assert!(words(&diary).is_empty());
    store.heal();
    together(&world, &mut [&mut leads], SECOND * 5);
    assert_eq!(words(&diary).len(), 1);
}

#[test]
fn a_stopped_leader_names_its_successor() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let first = one.election("leader").session(named("first")).await_successor(SECOND).build().unwrap();
    let second = candidate(&two, "second");
    let diary = Diary::default();
    let mut leads_first = leading(&world, &first, &diary);
    together(&world, &mut [&mut leads_first], MOMENT);
    let mut leads_second = leading(&world, &second, &diary);
    together(&world, &mut [&mut leads_first, &mut leads_second], MOMENT);
    first.stop();
    let next = leads_first.go_on(SECOND).expect("it was stopped").unwrap();
    assert_eq!(next.expect("somebody waited").label.as_str(), "second");
}

#[test]
fn a_leader_that_only_looks_sees_that_it_is_to_stop() {
    let world = World::new();
    let store = world.store();
    let election = candidate(&store, "first");
    let leadership = world.run(election.campaign()).unwrap();
    assert!(!leadership.is_cancelled());
    let name = ResourceName::new("leader").unwrap();
    world.run(store.ask_release(&name, None, None, Label::new("operator").unwrap())).unwrap();
    world.advance(MOMENT);
    assert!(leadership.is_cancelled(), "nobody awaits the signal, and it is there");
    assert!(matches!(world.run(leadership.cancelled()), StepDown::Asked(_)));
    // What comes after it can still be awaited.
    store.cut();
    let mut over = Running::new(&world, leadership.over());
    assert!(over.go_on(SECOND * 5).is_none());
    over.go_on(SECOND * 5).expect("the deadline has passed");
}

#[test]
fn a_leader_drains_before_it_resigns() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (candidate(&one, "first"), candidate(&two, "second"));
    let leadership = world.run(first.campaign()).unwrap();
    let diary = Diary::default();
    let mut leads_second = leading(&world, &second, &diary);
    together(&world, &mut [&mut leads_second], MOMENT);
    let drain = Drain::new();
    let work = drain.begin().unwrap();
    let mut draining = Running::new(&world, leadership.drain(&drain, SECOND * 20));
    assert!(draining.go_on(SECOND).is_none());
    let name = ResourceName::new("leader").unwrap();
    let view = world.run(two.lease(&name)).unwrap().unwrap();
    let shown = view.holders[0].draining.expect("waiters see that it drains");
    assert_eq!(shown.in_flight, 1);
    assert!(shown.remaining.duration() <= SECOND * 20);
    drop(work);
    let resigned = draining.go_on(SECOND).expect("nothing is left").unwrap();
    assert_eq!(resigned.successor.unwrap().label.as_str(), "second");

    let again = candidate(&one, "third");
    second.stop();
    assert!(leads_second.go_on(SECOND).unwrap().is_ok());
    let leadership = world.run(again.campaign()).unwrap();
    let drain = Drain::new();
    let _stuck = drain.begin().unwrap();
    let unfinished = world.run_for(SECOND * 3, leadership.drain(&drain, SECOND)).expect("the budget is over");
    assert!(matches!(unfinished.unwrap_err(), Error::Unfinished(left) if left.in_flight == 1));
    assert!(leadership.token().is_ok(), "what still runs is still protected");
}

#[test]
fn work_that_ends_because_it_lost_does_not_end_the_candidacy() {
    let world = World::new();
    let store = world.store();
    let election = candidate(&store, "first");
    let terms = Rc::new(RefCell::new(0));
    let mut leads = Running::new(&world, {
        let (terms, store) = (Rc::clone(&terms), store.clone());
        election.lead(move |leadership| {
            *terms.borrow_mut() += 1;
            let store = store.clone();
            async move {
                // It looks at its token only, and goes home when there is none.
                while leadership.token().is_ok() {
                    store.sleep(MOMENT).await;
                }
            }
        })
    });
    together(&world, &mut [&mut leads], SECOND);
    // The process stands still for two ttls: nothing of it is polled, and its clocks run on.
    store.pause();
    world.advance(SECOND * 20);
    store.unpause();
    together(&world, &mut [&mut leads], SECOND * 15);
    assert_eq!(*terms.borrow(), 2, "it campaigns again");
}

#[test]
fn a_term_that_warms_up_ends_the_gap_before_it_when_it_is_ready() {
    let world = World::new();
    let store = world.store();
    let name = ResourceName::new("leader").unwrap();
    let first = candidate(&store, "first");
    drop(world.run(first.campaign()).unwrap());
    let second = store.election("leader").session(named("second")).warms_up().build().unwrap();
    let leadership = world.run(second.campaign()).unwrap();
    world.advance(SECOND * 3);
    let gap = || world.run(store.gaps(&name, None)).unwrap().unwrap().gaps.remove(0);
    assert_eq!(gap().ended_ago, None);
    leadership.ready();
    world.advance(SECOND);
    let warm_up = gap().caused_by(GapCause::WarmUp).duration();
    assert!(gap().ended_ago.is_some() && warm_up >= SECOND * 3 && warm_up < SECOND * 4, "{warm_up:?}");
    leadership.ready();
    world.advance(SECOND);
    assert_eq!(gap().caused_by(GapCause::WarmUp).duration(), warm_up);
}
