//! Snapshots: a restart from one gives the same table, whatever was on its way.

use leasehold_core::Config;
use leasehold_core::protocol::{Query, ReadAnswer};
use leasehold_node::payload::NodeSnapshot;
use leasehold_node::{Fatal, Node, Options, Place, Recovered, Setup, Vote};

use crate::actor::{Actor, name};
use crate::disk::Crash;
use crate::world::{World, embedded, machine, millis};

fn every(snapshot_entries: u64) -> Options {
    Options { snapshot_entries, ..Options::default() }
}

/// Holds resources until a snapshot is asked for.
fn until_snapshot(world: &mut World, actor: &mut Actor) -> usize {
    for count in 0..100 {
        if world.disk.saving.is_some() {
            return count;
        }
        actor.hold(world, &format!("r{count}"));
    }
    panic!("no snapshot was asked for");
}

#[test]
fn a_snapshot_is_asked_for_after_so_many_entries_and_once_at_a_time() {
    let mut world = World::begin(Place::Served, Config::default(), every(10)).up();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    until_snapshot(&mut world, &mut actor);
    let saving = world.disk.saving.as_ref().unwrap();
    assert_eq!((saving.index(), world.node.applied()), (10, 10));
    // The fake disk panics at a second one; until the first is safe none is due.
    for _ in 0..30 {
        actor.renewed(&mut world);
    }
    world.save_snapshot();
    world.rest();
    assert_eq!(world.disk.saving.as_ref().map(|saving| saving.index()), Some(40));
}

#[test]
fn a_snapshot_is_asked_for_after_so_many_bytes() {
    let options = Options { snapshot_bytes: 200_000, ..Options::default() };
    let mut world = World::begin(Place::Served, Config::default(), options).up();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let value = leasehold_core::Value::new(vec![7; 60_000]).unwrap();
    for resource in ["a", "b", "c", "d"] {
        assert!(world.disk.saving.is_none());
        let acquire = actor.acquire_with(resource, None, value.clone());
        actor.send(&mut world, acquire);
        world.rest();
    }
    assert!(world.disk.saving.is_some());
}

#[test]
fn a_restart_in_every_state_around_a_snapshot_gives_the_same_table() {
    for saved in [false, true] {
        for heard in [false, true] {
            for behind in 0..4 {
                let mut world = World::begin(Place::Served, Config::default(), every(10)).up();
                let mut actor = Actor::up(&mut world, 1, 60_000);
                until_snapshot(&mut world, &mut actor);
                if saved {
                    world.save_snapshot();
                    if heard {
                        world.rest();
                    }
                }
                for _ in 0..behind {
                    let renew = actor.renew();
                    actor.send(&mut world, renew);
                    world.rest();
                }
                // The oracle compares the tables, byte for byte, with a replay of everything from the first entry.
                world.restart(Crash::KeepsAcknowledged, millis(500));
                let attach = actor.attach();
                actor.send(&mut world, attach);
                world.rest();
                assert_eq!(world.items(actor.connection).len() as u64, actor.command.get());
                world.restart(Crash::KeepsAcknowledged, millis(500));
            }
        }
    }
}

#[test]
fn a_snapshot_that_covers_the_whole_log_is_enough() {
    for place in [Place::Served, embedded(machine(1, 7), false)] {
        let mut world = World::begin(place.clone(), Config::default(), every(10)).up();
        let mut actor = Actor::up(&mut world, 1, 60_000);
        until_snapshot(&mut world, &mut actor);
        let last = world.last_at().get();
        world.save_snapshot();
        world.rest();
        world.restart(Crash::KeepsAcknowledged, millis(7_000));
        let counted = if matches!(place, Place::Served) { 0 } else { 7_000 };
        assert_eq!(world.last_at().get(), last + counted);
        assert!(matches!(world.read(Query::Lease(name("r0"))), ReadAnswer::Lease(Some(_))));
    }
}

#[test]
fn a_restart_with_many_entries_behind_the_snapshot_asks_for_one_of_them_all() {
    let mut world = World::begin(Place::Served, Config::default(), every(10)).up();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    until_snapshot(&mut world, &mut actor);
    let synced = world.disk.synced.len() as u64;
    world.crash(Crash::KeepsAcknowledged);
    world.turn();
    assert!(world.disk.saving.is_none(), "nothing is applied yet");
    world.rest();
    assert!(world.disk.saving.as_ref().is_some_and(|saving| saving.index() > synced));
}

#[test]
fn snapshots_follow_one_another_through_restarts() {
    let mut world = World::begin(embedded(machine(1, 7), false), Config::default(), every(3)).up();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    for round in 0..40 {
        actor.renewed(&mut world);
        if world.disk.saving.is_some() && round % 3 != 0 {
            world.save_snapshot();
        }
        if round % 7 == 6 {
            world.restart(Crash::KeepsWritten(1), millis(300));
            let attach = actor.attach();
            actor.send(&mut world, attach);
            world.rest();
        }
    }
    assert!(world.disk.saved.as_ref().is_some_and(|(index, ..)| *index > 30));
}

#[test]
fn a_snapshot_says_who_votes_and_which_clocks_it_was_stamped_by() {
    let mut world = World::begin(embedded(machine(1, 7), false), Config::default(), every(10)).up();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    until_snapshot(&mut world, &mut actor);
    let snapshot = NodeSnapshot::decode(&world.disk.saving.as_ref().unwrap().save().bytes).unwrap();
    assert_eq!((snapshot.voters.voters, snapshot.voters.learners), (vec![1], vec![]));
    let (at, anchor) = snapshot.stamped.unwrap();
    let anchor = anchor.unwrap();
    assert_eq!(at, world.last_at());
    assert_eq!((anchor.machine, anchor.boot, anchor.raw), (machine(1, 7), world.clock.boot, world.clock.raw));
}

#[test]
fn a_log_that_ends_before_its_commit_is_refused_with_both_numbers() {
    let recovered = Recovered { vote: Vote { term: 3, vote: 1, commit: 9 }, ..Recovered::default() };
    let setup = Setup {
        place: Place::Served,
        member: leasehold_node::FOUNDER,
        start: leasehold_node::Start::Alone,
        config: Config::default(),
        recovered,
        options: Options::default(),
        version: String::new(),
        pid: 1,
        seed: 1,
    };
    let error = Node::start(setup, leasehold_core::holder::Reading::default()).err();
    let Some(Fatal::Invariant(why)) = error else { panic!("{error:?}") };
    assert!(why.contains('9') && why.contains('0'), "{why}");
}
