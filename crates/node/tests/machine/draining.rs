//! Stopping: what was taken in is answered, and a wait is said to be withdrawn only after it is.

use leasehold_core::protocol::{Failure, Query, Request, RequestId, Response};
use leasehold_core::{Config, Reply};
use leasehold_node::{ConnectionId, Input, Options, Place};

use crate::actor::{Actor, name, plain_grant};
use crate::disk::Crash;
use crate::world::{World, millis};

const CALLS: ConnectionId = ConnectionId(900);

fn drain(world: &mut World) {
    world.inbox.push(Input::Drain);
}

/// Whether a request was answered as not taken in, or withdrawn: the reason.
fn why_unavailable(world: &mut World, id: RequestId) -> String {
    match world.response(id) {
        Some(Response::Failed(Failure::Unavailable { why })) => why,
        other => panic!("{other:?}"),
    }
}

fn waiting(world: &World) -> usize {
    world.node.table().lease(&name("a")).map_or(0, |lease| lease.queue.len())
}

#[test]
fn a_node_that_has_nothing_to_do_is_drained_at_once_and_not_before_it_is_told() {
    let mut world = World::served();
    assert!(!world.node.is_drained());
    drain(&mut world);
    world.turn();
    assert!(world.node.is_drained());
    drain(&mut world);
    world.turn();
    assert!(world.node.is_drained());
}

#[test]
fn a_wait_is_said_to_be_withdrawn_only_after_its_cancel_is_applied() {
    let mut world = World::served();
    let (holder, waiter) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
    holder.take(&mut world, "a");
    let ids = [(); 3].map(|()| world.ask(CALLS, waiter.held_acquire("a", 60_000)));
    world.rest();
    drain(&mut world);
    world.turn();
    for _ in 0..5 {
        world.pass(millis(20));
        world.turn();
        assert!(world.sent.is_empty() && !world.node.is_drained());
    }
    world.sync_and_turn();
    for id in ids {
        assert!(why_unavailable(&mut world, id).contains("withdrawn"));
    }
    assert_eq!(waiting(&world), 0);
    assert!(world.node.is_drained());
}

#[test]
fn a_wait_that_is_granted_after_all_is_answered_as_granted() {
    // Released in an entry on its way, and in the very entry of the cancel.
    for on_its_way in [true, false] {
        let mut world = World::served();
        let (holder, waiter) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
        let token = holder.take(&mut world, "a");
        let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
        world.rest();
        let release = world.ask(CALLS, holder.plain_release("a", token));
        if on_its_way {
            world.turn();
        }
        drain(&mut world);
        world.turn();
        assert!(world.sent.is_empty() && !world.node.is_drained());
        world.rest();
        assert!(plain_grant(world.response(id)).1 > token);
        assert!(matches!(world.response(release), Some(Response::Reply(Reply::Plain { .. }))));
        assert!(world.node.is_drained());
        let lease = world.node.table().lease(&name("a")).expect("it is held");
        assert_eq!(lease.holders[0].session, waiter.session, "nothing is released for anybody");
    }
}

#[test]
fn what_is_in_the_queue_is_written_and_answered() {
    let mut world = World::served();
    let (holder, waiter) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
    holder.take(&mut world, "a");
    world.ask(CALLS, holder.plain_renew());
    world.turn();
    // That one is on its way. These are taken in with the drain and wait for the next entry.
    let renew = world.ask(CALLS, waiter.plain_renew());
    let held = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    let free = world.ask(CALLS, waiter.held_acquire("b", 60_000));
    let read = world.ask(CALLS, Request::Read(Query::Status));
    drain(&mut world);
    world.turn();
    assert!(!world.node.is_drained());
    world.sync_and_turn();
    // The acquire is being written; its wait is not there to be cancelled yet.
    assert!(!world.node.is_drained());
    assert!(!world.is_answered(CALLS, held));
    world.sync_and_turn();
    assert!(!world.node.is_drained() && !world.is_answered(CALLS, held), "it was queued a moment ago");
    world.sync_and_turn();
    assert!(why_unavailable(&mut world, held).contains("withdrawn"));
    assert!(matches!(world.response(renew), Some(Response::Reply(Reply::Renewed(_)))));
    plain_grant(world.response(free));
    assert!(matches!(world.response(read), Some(Response::Read { .. })));
    assert_eq!(waiting(&world), 0);
    assert!(world.node.is_drained());
}

#[test]
fn a_grant_in_the_entry_that_queued_it_is_answered_also_while_draining() {
    let mut world = World::served();
    let (holder, waiter) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
    let token = holder.take(&mut world, "a");
    let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    world.ask(CALLS, holder.plain_release("a", token));
    drain(&mut world);
    world.rest();
    plain_grant(world.response(id));
    assert!(world.node.is_drained());
    assert_eq!(world.node.table().lease(&name("a")).expect("it is held").holders[0].session, waiter.session);
}

#[test]
fn the_wait_of_a_caller_that_is_gone_is_cancelled_before_the_node_is_drained() {
    let mut world = World::served();
    let (holder, waiter) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
    holder.take(&mut world, "a");
    let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    world.turn();
    world.give_up(CALLS, id);
    drain(&mut world);
    world.turn();
    while !world.node.is_drained() {
        world.sync_and_turn();
    }
    assert_eq!(waiting(&world), 0);
    assert!(!world.is_answered(CALLS, id));
}

#[test]
fn nothing_is_taken_in_any_more() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    drain(&mut world);
    world.turn();
    let writes = world.disk.writes;
    for request in
        [actor.open(), actor.plain_renew(), actor.held_acquire("a", 1), Request::Read(Query::Status)]
    {
        let id = world.ask(CALLS, request);
        world.turn();
        assert!(why_unavailable(&mut world, id).contains("stopping"));
    }
    assert_eq!(world.disk.writes, writes);
    assert!(world.node.is_drained());
}

#[test]
fn what_waits_for_the_opening_entry_is_answered_as_not_taken_in() {
    let mut world = World::begin(Place::Served, Config::default(), Options::default());
    let actor = Actor::new(1, 10_000);
    let id = world.ask(CALLS, actor.open());
    world.turn();
    assert!(world.sent.is_empty());
    drain(&mut world);
    world.turn();
    assert!(why_unavailable(&mut world, id).contains("stopping"));
    world.rest();
    assert!(world.node.is_drained());
    assert_eq!(world.node.table().sizes().0, 0);
}

#[test]
fn what_was_answered_while_draining_is_there_afterwards() {
    let mut world = World::served();
    let (holder, waiter) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
    let token = holder.take(&mut world, "a");
    let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    world.ask(CALLS, holder.plain_release("a", token));
    drain(&mut world);
    world.rest();
    assert!(world.node.is_drained());
    let (_, granted, _) = plain_grant(world.response(id));
    world.restart(Crash::KeepsAcknowledged, millis(500));
    let lease = world.node.table().lease(&name("a")).expect("it is held");
    assert_eq!((lease.holders[0].session, lease.holders[0].token), (waiter.session, granted));
}

#[test]
fn a_disk_slower_than_the_steps_of_time_does_not_keep_a_node_from_being_drained() {
    let mut world = World::served();
    let holder = Actor::plain(&mut world, 1, 500);
    holder.take(&mut world, "a");
    world.rest();
    drain(&mut world);
    // Each write takes longer than an eighth of the ttl, after which time would be due again.
    for _ in 0..5 {
        world.pass(millis(90));
        world.turn();
        if world.node.is_drained() {
            return;
        }
        world.pass(millis(90));
        world.sync_and_turn();
    }
    panic!("it is still writing");
}
