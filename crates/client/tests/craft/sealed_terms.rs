//! Terms that begin with a seal: the gap goes on until it is done, and a candidate that cannot seal lets another lead.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use leasehold::core::gap::{GapCause, GapView};
use leasehold::fence::{Outcome, Receiver, Stamp};
use leasehold::testing::{TestStore, World};
use leasehold::{Election, Error, Label, Leadership, Reason, ResourceName, Token};

use super::scripted::{Say, Scripted};
use super::{MOMENT, Running, SECOND, named};

fn candidate(store: &TestStore, label: &str, receiver: Arc<dyn Receiver>) -> Election {
    store.election("leader").seal_at(receiver).session(named(label)).build().unwrap()
}

fn leader(world: &World, store: &TestStore) -> Option<(String, Token)> {
    let view = world.run(store.lease(&ResourceName::new("leader").unwrap())).unwrap()?;
    view.holders.first().map(|holder| (holder.label.to_string(), holder.token))
}

type Campaign<'a> = Running<'a, Result<Leadership, Error>>;

/// Lets campaigns go on side by side until one of them leads: which, and after how long.
fn first_of(
    world: &World,
    campaigns: &mut [&mut Campaign<'_>],
    limit: Duration,
) -> (usize, Leadership, Duration) {
    let mut waited = Duration::ZERO;
    while waited <= limit {
        for (number, campaign) in campaigns.iter_mut().enumerate() {
            if let Some(led) = campaign.go_on(Duration::ZERO) {
                return (number, led.unwrap(), waited);
            }
        }
        world.advance(MOMENT);
        waited += MOMENT;
    }
    panic!("nobody leads within {limit:?}")
}

#[test]
fn a_candidate_that_cannot_seal_lets_another_lead_and_campaigns_again() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (broken, good) = (Scripted::new("broken", &[], Say::Failed), Scripted::honest("good"));
    let (election, second) =
        (candidate(&one, "first", broken.clone()), candidate(&two, "second", good.clone()));
    let mut first = Running::new(&world, election.campaign());
    assert!(election.trouble().is_none());
    assert!(first.go_on(SECOND).is_none());
    assert_eq!(leader(&world, &one).unwrap().0, "first", "granted, and not given out");
    let mut second = Running::new(&world, second.campaign());
    let (number, leads, waited) = first_of(&world, &mut [&mut first, &mut second], SECOND * 9);
    assert_eq!(number, 1);
    assert!(waited <= SECOND * 8 + MOMENT * 5, "as soon as the first gives up: {waited:?}");
    assert_eq!(good.highest("leader"), Some(leads.token().unwrap().get()));

    // It is a candidate again, and leads once its receiver is back. Meanwhile it says what is wrong.
    assert!(first.go_on(SECOND).is_none());
    assert!(matches!(&*election.trouble().unwrap(), Error::NotSealed { .. }));
    broken.answer_with(Say::Rule);
    world.run(leads.resign()).unwrap();
    let leads = first.go_on(SECOND).expect("it waited").unwrap();
    assert_eq!(broken.highest("leader"), Some(leads.token().unwrap().get()));
    assert!(election.trouble().is_none());
}

#[test]
fn a_candidate_whose_tokens_fell_is_told_so() {
    let world = World::new();
    let store = world.store();
    let database = Scripted::honest("database");
    database.write(&Stamp::new("leader", 4711).unwrap()).unwrap();
    let election = candidate(&store, "first", database);
    let Error::NotSealed { source, .. } = world.run(election.campaign()).unwrap_err() else {
        panic!("it does not pass by itself")
    };
    assert_eq!(source.outcome(), Outcome::Stale);
    assert_eq!(leader(&world, &store), None);
}

#[test]
fn a_candidate_that_was_overtaken_while_it_sealed_is_not_told_that_tokens_fell() {
    for hears in [true, false] {
        let world = World::new();
        let (one, two) = (world.store(), world.store());
        let database = Scripted::new("database", &[Say::AtTheGate], Say::Rule);
        let first = candidate(&one, "first", database.clone());
        let second = candidate(&two, "second", database.clone());
        let mut campaign = Running::new(&world, first.campaign());
        assert!(campaign.go_on(MOMENT).is_none());
        // It hears nothing any more. An operator takes the lease from it, and another seals the same receiver.
        one.hold_back_answers();
        let (_, token) = leader(&world, &two).unwrap();
        let (by, reason) = (Label::new("operator").unwrap(), Reason::new("test").unwrap());
        let name = ResourceName::new("leader").unwrap();
        world.run(two.revoke(&name, token, by, reason, true)).unwrap();
        let leads = world.run_for(SECOND, second.campaign()).expect("it is free").unwrap();
        assert!(leads.token().unwrap() > token);
        // By its own clocks the first still holds the lease when the receiver answers.
        database.open_the_gate();
        assert!(campaign.go_on(MOMENT * 20).is_none());
        assert_eq!(database.highest("leader"), Some(leads.token().unwrap().get()));
        if hears {
            one.deliver();
        }
        assert!(campaign.go_on(SECOND * 20).is_none(), "it waits in the queue again");
        one.deliver();
        world.run(leads.resign()).unwrap();
        let again = campaign.go_on(SECOND * 20).expect("it leads again").unwrap();
        assert_eq!(database.highest("leader"), Some(again.token().unwrap().get()));
    }
}

#[test]
fn an_election_that_is_stopped_while_it_seals_gives_the_lease_back() {
    let world = World::new();
    let store = world.store();
    let election = candidate(&store, "first", Scripted::new("database", &[], Say::AtTheGate));
    let mut campaign = Running::new(&world, election.campaign());
    assert!(campaign.go_on(SECOND).is_none());
    assert!(leader(&world, &store).is_some());
    election.stop();
    assert!(matches!(campaign.go_on(MOMENT), Some(Err(Error::Cancelled))));
    world.advance(MOMENT);
    assert_eq!(leader(&world, &store), None);
}

fn newest_gap(world: &World, store: &TestStore, name: &str) -> Option<GapView> {
    let gaps = world.run(store.gaps(&ResourceName::new(name).unwrap(), None)).unwrap()?;
    gaps.gaps.into_iter().next()
}

#[test]
fn the_gap_before_a_term_goes_on_until_its_receivers_are_sealed() {
    let world = World::new();
    let store = world.store();
    drop(world.run(store.election("leader").build().unwrap().campaign()).unwrap());
    world.advance(MOMENT);
    let database = Scripted::new("database", &[], Say::AtTheGate);
    let election = candidate(&store, "first", database.clone());
    let mut campaign = Running::new(&world, election.campaign());
    assert!(campaign.go_on(SECOND * 3).is_none());
    assert_eq!(newest_gap(&world, &store, "leader").unwrap().ended_ago, None);
    database.open_the_gate();
    let leads = campaign.go_on(MOMENT * 20).expect("it is sealed").unwrap();
    world.advance(SECOND);
    let gap = newest_gap(&world, &store, "leader").unwrap();
    let warm_up = gap.caused_by(GapCause::WarmUp).duration();
    assert!(gap.ended_ago.is_some() && warm_up >= SECOND * 3 && warm_up < SECOND * 4, "{warm_up:?}");
    drop(leads);
}

#[test]
fn who_warms_up_after_the_seal_says_itself_when_it_is_ready() {
    let world = World::new();
    let store = world.store();
    drop(world.run(store.election("leader").build().unwrap().campaign()).unwrap());
    world.advance(MOMENT);
    let election = store.election("leader").seal_at(Scripted::honest("database")).warms_up().build().unwrap();
    let leads = world.run(election.campaign()).unwrap();
    world.advance(SECOND);
    assert_eq!(newest_gap(&world, &store, "leader").unwrap().ended_ago, None);
    leads.ready();
    world.advance(SECOND);
    assert!(newest_gap(&world, &store, "leader").unwrap().ended_ago.is_some());

    // The same for a lease alone, with receivers and without.
    let session = world.run(store.session()).unwrap();
    for receivers in [0, 1] {
        drop(world.run(session.acquire("job").into_future()).unwrap());
        world.advance(MOMENT);
        let acquire = session.acquire("job").warms_up();
        let acquire = if receivers == 1 { acquire.seal_at(Scripted::honest("database")) } else { acquire };
        let lease = world.run(acquire.into_future()).unwrap();
        world.advance(SECOND);
        assert_eq!(newest_gap(&world, &store, "job").unwrap().ended_ago, None, "{receivers}");
        lease.ready();
        world.advance(MOMENT);
        assert!(newest_gap(&world, &store, "job").unwrap().ended_ago.is_some(), "{receivers}");
        drop(lease);
        world.advance(MOMENT);
    }
}
