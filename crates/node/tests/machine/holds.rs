//! Callers that are kept waiting: answered once, when it is decided, and never released on their behalf.

use leasehold_core::protocol::{Failure, RequestId, Response};
use leasehold_core::{Answer, Command, CommandNumber, Op, Refusal, RenewalNumber, Reply, Token, WaitEnding};
use leasehold_node::{ConnectionId, Input};

use crate::actor::{Actor, name, plain_grant};
use crate::disk::Crash;
use crate::world::{World, millis};

/// Single calls share one connection that means nothing.
const CALLS: ConnectionId = ConnectionId(900);
/// A stream that plain calls come through as well.
const STREAM: ConnectionId = ConnectionId(901);

/// A holder of `a`, its token, and somebody who wants it.
fn two(world: &mut World) -> (Actor, Token, Actor) {
    let (holder, waiter) = (Actor::plain(world, 1, 10_000), Actor::plain(world, 2, 10_000));
    let token = holder.take(world, "a");
    (holder, token, waiter)
}

/// The same, and the other one is kept waiting.
fn held(world: &mut World) -> (Actor, Token, Actor, RequestId) {
    let (holder, token, waiter) = two(world);
    let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    world.rest();
    assert!(!world.is_answered(CALLS, id));
    assert_eq!((waiting(world), world.node.stats().held_calls), (1, 1));
    (holder, token, waiter, id)
}

fn waiting(world: &World) -> usize {
    world.node.table().lease(&name("a")).map_or(0, |lease| lease.queue.len())
}

/// Who holds `a`.
fn holder(world: &World) -> Option<leasehold_core::SessionId> {
    let lease = world.node.table().lease(&name("a"))?;
    lease.holders.first().map(|holder| holder.session)
}

fn is_cancel(command: &Command) -> bool {
    matches!(command, Command::Session(command) if matches!(command.op, Op::Cancel { .. }))
}

fn cancels_in_flight(world: &World) -> usize {
    world
        .entry_in_flight()
        .map_or(0, |payload| payload.entry.commands.iter().filter(|c| is_cancel(c)).count())
}

#[test]
fn a_wait_is_answered_when_it_is_granted_and_not_before() {
    let mut world = World::served();
    let (first, token, waiter, id) = held(&mut world);
    world.reply_to(CALLS, first.plain_release("a", token));
    let (number, granted, renewal) = plain_grant(world.response(id));
    assert!(granted > token);
    assert_eq!((number, renewal), (CommandNumber::new(1), RenewalNumber::NONE));
    assert_eq!((holder(&world), world.node.stats().held_calls), (Some(waiter.session), 0));
}

#[test]
fn an_acquire_that_is_not_to_be_held_is_answered_when_it_is_queued() {
    let mut world = World::served();
    let (_, _, mut waiter) = two(&mut world);
    let leasehold_core::protocol::Request::Command(command) = waiter.acquire("a", Some(60_000)) else {
        panic!("an acquire is a command");
    };
    let reply = world.reply_to(CALLS, waiter.plain_op(command.op));
    assert!(matches!(reply, Reply::Plain { answer: Answer::Queued { ahead: 0 }, .. }), "{reply:?}");
}

#[test]
fn the_grant_names_the_renewal_that_was_the_last_when_it_was_granted() {
    let mut world = World::served();
    let (first, token, waiter, id) = held(&mut world);
    for _ in 0..2 {
        world.reply_to(CALLS, waiter.plain_renew());
    }
    // The third is in the very entry of the grant, and goes before it. The fourth is taken in before anybody hears of it.
    world.ask(CALLS, first.plain_release("a", token));
    let third = world.ask(CALLS, waiter.plain_renew());
    world.turn();
    let fourth = world.ask(CALLS, waiter.plain_renew());
    world.turn();
    world.sync_and_turn();
    let (_, granted, renewal) = plain_grant(world.response(id));
    assert_eq!(renewal, RenewalNumber::new(3));
    world.rest();
    for (id, number, expected) in [(third, 3, vec![]), (fourth, 4, vec![granted])] {
        let Some(Response::Reply(Reply::Renewed(renewed))) = world.response(id) else { panic!("renewed") };
        let listed = renewed.holdings.expect("it is plain").leases;
        let tokens: Vec<Token> = listed.iter().map(|lease| lease.grant.token).collect();
        assert_eq!((renewed.number.get(), tokens), (number, expected));
    }
}

#[test]
fn a_grant_in_the_entry_that_queued_it_is_answered_once_and_as_granted() {
    let mut world = World::served();
    let (first, token, waiter) = two(&mut world);
    let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    world.ask(CALLS, first.plain_release("a", token));
    world.turn();
    assert_eq!(world.entry_in_flight().expect("both").entry.commands.len(), 2);
    world.sync_and_turn();
    assert_eq!(plain_grant(world.response(id)).0, CommandNumber::new(1));
    world.rest();
    assert_eq!((holder(&world), world.node.stats().held_calls), (Some(waiter.session), 0));
}

#[test]
fn a_caller_that_gives_up_takes_its_wait_with_it() {
    let mut world = World::served();
    let (first, token, _, id) = held(&mut world);
    world.give_up(CALLS, id);
    world.turn();
    assert_eq!((cancels_in_flight(&world), world.node.stats().held_calls), (1, 0));
    world.rest();
    assert_eq!(waiting(&world), 0);
    world.reply_to(CALLS, first.plain_release("a", token));
    assert_eq!(holder(&world), None);
    assert!(!world.is_answered(CALLS, id));
}

#[test]
fn a_caller_that_gives_up_before_its_acquire_was_applied_leaves_no_wait() {
    // In the same turn, while the entry is on its way, and when it is synced and not heard of.
    for moment in 0..3 {
        let mut world = World::served();
        let (_, _, waiter) = two(&mut world);
        let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
        if moment > 0 {
            world.turn();
        }
        if moment == 1 {
            world.give_up(CALLS, id);
            world.turn();
        }
        if moment == 2 {
            world.sync();
        }
        if moment != 1 {
            // Behind the report of the sync, as it may arrive.
            world.inbox.insert(world.inbox.len().min(1), Input::Abandoned { connection: CALLS, id });
            world.turn();
        }
        if moment < 2 {
            assert_eq!(cancels_in_flight(&world), 0, "nothing is there to be cancelled yet");
            world.sync_and_turn();
        }
        assert_eq!(cancels_in_flight(&world), 1, "cancelled in the entry after the one that queued it");
        world.rest();
        assert_eq!((waiting(&world), world.node.stats().held_calls), (0, 0));
        assert!(!world.is_answered(CALLS, id));
    }
}

#[test]
fn a_caller_that_gives_up_before_its_acquire_was_granted_at_once_keeps_the_lease() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    let id = world.ask(CALLS, actor.held_acquire("a", 60_000));
    world.turn();
    world.give_up(CALLS, id);
    world.rest();
    assert_eq!((holder(&world), world.node.stats().held_calls), (Some(actor.session), 0));
}

/// A renewal may list the lease already, and then its holder acts on it.
#[test]
fn a_caller_that_gives_up_just_as_it_is_granted_keeps_the_lease() {
    let mut world = World::served();
    let (first, token, waiter, id) = held(&mut world);
    world.ask(CALLS, first.plain_release("a", token));
    world.turn();
    // The release is on its way to the disk when the caller goes.
    world.give_up(CALLS, id);
    world.turn();
    world.sync_and_turn();
    assert_eq!(cancels_in_flight(&world), 1, "the node could not know");
    world.rest();
    assert_eq!(holder(&world), Some(waiter.session), "a cancel that comes too late changes nothing");
    let reply = world.reply_to(CALLS, waiter.plain_renew());
    let Reply::Renewed(renewed) = reply else { panic!("{reply:?}") };
    assert_eq!(renewed.holdings.expect("it is plain").leases.len(), 1);
    world.run(millis(5_000));
    assert_eq!(holder(&world), Some(waiter.session));
    assert!(!world.is_answered(CALLS, id));
}

#[test]
fn release_and_cancel_in_one_entry_are_judged_in_their_order() {
    for release_first in [true, false] {
        let mut world = World::served();
        let (first, token, waiter, id) = held(&mut world);
        // Something on its way, so that both wait for the next entry.
        world.ask(CALLS, first.plain_renew());
        world.turn();
        if release_first {
            world.ask(CALLS, first.plain_release("a", token));
            world.give_up(CALLS, id);
        } else {
            world.give_up(CALLS, id);
            world.ask(CALLS, first.plain_release("a", token));
        }
        world.turn();
        world.sync_and_turn();
        let commands = world.entry_in_flight().expect("both of them").entry.commands;
        assert_eq!((commands.len(), is_cancel(&commands[usize::from(release_first)])), (2, true));
        world.rest();
        assert_eq!(holder(&world), release_first.then_some(waiter.session));
        assert!(!world.is_answered(CALLS, id));
    }
}

#[test]
fn a_caller_that_gives_up_is_granted_in_the_entry_that_queued_it_and_keeps_the_lease() {
    let mut world = World::served();
    let (first, token, waiter) = two(&mut world);
    let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    world.ask(CALLS, first.plain_release("a", token));
    world.turn();
    world.give_up(CALLS, id);
    world.turn();
    world.rest();
    assert_eq!(holder(&world), Some(waiter.session));
    assert!(!world.is_answered(CALLS, id));
}

#[test]
fn giving_up_what_was_answered_or_never_asked_does_nothing() {
    let mut world = World::served();
    let (first, token, waiter, id) = held(&mut world);
    world.reply_to(CALLS, first.plain_release("a", token));
    plain_grant(world.response(id));
    let writes = world.disk.writes;
    world.give_up(CALLS, id);
    world.give_up(CALLS, RequestId(77_777));
    world.give_up(STREAM, id);
    world.rest();
    assert_eq!((world.disk.writes, holder(&world)), (writes, Some(waiter.session)));
}

#[test]
fn a_session_that_ends_ends_the_calls_of_its_waits() {
    for closes in [true, false] {
        let mut world = World::served();
        let holder = Actor::plain(&mut world, 1, 60_000);
        holder.take(&mut world, "a");
        holder.take(&mut world, "b");
        let waiter = Actor::plain(&mut world, 2, 1_000);
        let ids = ["a", "b"].map(|resource| world.ask(CALLS, waiter.held_acquire(resource, 60_000)));
        world.rest();
        if closes {
            assert_eq!(world.reply_to(CALLS, waiter.plain_op(Op::Close)), Reply::Closed);
        } else {
            world.run(millis(2_000));
        }
        let ended = Reply::Refused(Refusal::SessionEnded { session: waiter.session });
        for id in ids {
            assert_eq!(world.response(id), Some(Response::Reply(ended.clone())));
        }
        assert_eq!((waiting(&world), world.node.stats().held_calls), (0, 0));
    }
}

#[test]
fn a_session_that_is_granted_and_closed_in_one_entry_is_said_to_have_ended() {
    let mut world = World::served();
    let (first, token, waiter, id) = held(&mut world);
    world.ask(CALLS, first.plain_release("a", token));
    let close = world.ask(CALLS, waiter.plain_op(Op::Close));
    world.rest();
    assert_eq!(world.response(close), Some(Response::Reply(Reply::Closed)));
    let ended = Reply::Refused(Refusal::SessionEnded { session: waiter.session });
    assert_eq!(world.response(id), Some(Response::Reply(ended)));
    assert_eq!(holder(&world), None);
}

#[test]
fn a_wait_that_another_call_cancels_is_answered_as_cancelled() {
    let mut world = World::served();
    let (_, _, waiter, id) = held(&mut world);
    let cancel = waiter.plain_op(Op::Cancel { acquire: CommandNumber::new(1) });
    let reply = world.reply_to(STREAM, cancel);
    assert!(matches!(reply, Reply::Plain { answer: Answer::Cancelled, .. }), "{reply:?}");
    let over = Reply::PlainWaitEnded { number: CommandNumber::new(1), why: WaitEnding::Cancelled };
    assert_eq!(world.response(id), Some(Response::Reply(over)));
    assert_eq!((waiting(&world), world.node.stats().held_calls), (0, 0));
}

#[test]
fn a_wait_that_is_too_long_is_answered_as_timed_out() {
    let mut world = World::served();
    let (_, _, waiter) = two(&mut world);
    let id = world.ask(CALLS, waiter.held_acquire("a", 2_000));
    world.run(millis(1_900));
    assert!(!world.is_answered(CALLS, id));
    world.run(millis(400));
    let over = Reply::PlainWaitEnded { number: CommandNumber::new(1), why: WaitEnding::TimedOut };
    assert_eq!(world.response(id), Some(Response::Reply(over)));
    assert_eq!(world.node.stats().held_calls, 0);
}

#[test]
fn a_connection_that_is_gone_takes_its_waits_with_it_and_no_others() {
    let mut world = World::served();
    let (_, _, waiter) = two(&mut world);
    let through_stream = world.ask(STREAM, waiter.held_acquire("a", 60_000));
    let through_calls = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    world.rest();
    // One more that is on its way when the connection goes.
    let on_its_way = world.ask(STREAM, waiter.held_acquire("a", 60_000));
    world.turn();
    world.inbox.push(Input::Disconnected(STREAM));
    world.rest();
    assert_eq!((waiting(&world), world.node.stats().held_calls), (1, 1));
    assert!([through_stream, on_its_way].iter().all(|id| !world.is_answered(STREAM, *id)));
    assert!(!world.is_answered(CALLS, through_calls));
}

#[test]
fn what_a_connection_was_granted_stays_granted_when_it_is_gone() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    plain_grant(Some(world.response_to(STREAM, actor.held_acquire("a", 60_000))));
    world.inbox.push(Input::Disconnected(STREAM));
    world.rest();
    assert_eq!(holder(&world), Some(actor.session));
}

#[test]
fn whoever_goes_before_the_node_serves_leaves_no_wait() {
    for disconnects in [false, true] {
        let mut world = World::served();
        let (_, _, waiter) = two(&mut world);
        world.crash(Crash::KeepsAcknowledged);
        let id = world.ask(STREAM, waiter.held_acquire("a", 60_000));
        world.turn();
        if disconnects {
            world.inbox.push(Input::Disconnected(STREAM));
        } else {
            world.give_up(STREAM, id);
        }
        world.rest();
        assert_eq!((waiting(&world), world.node.stats().held_calls), (0, 0));
        assert!(!world.is_answered(STREAM, id));
    }
}

#[test]
fn a_held_acquire_that_is_refused_or_does_not_fit_is_not_kept() {
    let mut world = World::served();
    let (_, _, waiter) = two(&mut world);
    let too_long = waiter.held_acquire("a", 48 * 3_600_000);
    let reply = world.reply_to(CALLS, too_long);
    assert!(matches!(reply, Reply::Plain { answer: Answer::Refused(_), .. }), "{reply:?}");
    assert_eq!(world.node.stats().held_calls, 0);
    let failure =
        world.failure_of(CALLS, leasehold_core::protocol::Request::StopWatch { watch: RequestId(1) });
    assert!(matches!(failure, Failure::BadRequest { .. }), "{failure:?}");
}
