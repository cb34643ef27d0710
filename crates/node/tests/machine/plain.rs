//! Plain sessions: every request proves by itself for whom it speaks, and nothing belongs to a connection.

use leasehold_core::answer::Renewed;
use leasehold_core::protocol::{Failure, Plain, Request, Response};
use leasehold_core::{Answer, CommandNumber, Nonce, Op, Refusal, RenewalNumber, Reply, SessionId, Token};
use leasehold_node::{ConnectionId, Operation, Outcome};

use crate::actor::{Actor, plain_grant};
use crate::disk::Crash;
use crate::world::{World, millis};

/// Belongs to nobody: single calls share one.
const CALLS: ConnectionId = ConnectionId(900);

fn renewed(response: Option<Response>) -> Renewed {
    match response {
        Some(Response::Reply(Reply::Renewed(renewed))) => renewed,
        other => panic!("not renewed: {other:?}"),
    }
}

fn tokens(renewed: &Renewed) -> Vec<Token> {
    let holdings = renewed.holdings.as_ref().expect("the answer to a plain session lists what it has");
    holdings.leases.iter().map(|lease| lease.grant.token).collect()
}

fn waits(renewed: &Renewed) -> Vec<CommandNumber> {
    let holdings = renewed.holdings.as_ref().expect("the answer to a plain session lists what it has");
    holdings.waits.iter().map(|wait| wait.acquire).collect()
}

#[test]
fn a_plain_session_is_answered_directly_through_any_connection() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    let response = world.response_to(CALLS, actor.held_acquire("a", 1));
    let (number, token, renewal) = plain_grant(Some(response));
    assert_eq!((number, renewal), (CommandNumber::new(1), RenewalNumber::NONE));
    let response = world.response_to(ConnectionId(901), actor.plain_renew());
    let renewed = renewed(Some(response));
    assert_eq!((renewed.number, tokens(&renewed)), (RenewalNumber::new(1), vec![token]));
    let released = world.reply_to(CALLS, actor.plain_release("a", token));
    assert!(matches!(released, Reply::Plain { answer: Answer::Released, .. }), "{released:?}");
}

#[test]
fn a_wrong_nonce_is_refused_before_the_log() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    let token = actor.take(&mut world, "a");
    let thief = Actor { nonce: Nonce([9; 16]), ..actor.clone() };
    let writes = world.disk.writes;
    let not_yours = Failure::NotYourSession { session: actor.session };
    // The very connection that the session was opened through proves nothing either.
    for connection in [actor.connection, CALLS] {
        for request in [
            thief.plain_renew(),
            thief.held_acquire("b", 1_000),
            thief.plain_release("a", token),
            thief.plain_op(Op::Close),
        ] {
            assert_eq!(world.failure_of(connection, request), not_yours);
        }
    }
    assert_eq!(world.disk.writes, writes);
    assert_eq!(world.node.stats().held_calls, 0);
    assert_eq!(world.node.stats().operations[&(Operation::Renew, Outcome::Failed)], 2);
}

#[test]
fn a_session_that_is_over_is_said_to_be_over_and_one_that_never_was_is_not() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    assert_eq!(world.reply_to(CALLS, actor.plain_op(Op::Close)), Reply::Closed);
    let ended = Refusal::SessionEnded { session: actor.session };
    for request in [actor.plain_renew(), actor.held_acquire("a", 1)] {
        assert_eq!(world.reply_to(CALLS, request), Reply::Refused(ended.clone()));
    }
    let session = SessionId::from_u64(actor.session.get() + 1);
    let later = Actor { session, ..actor };
    assert_eq!(world.failure_of(CALLS, later.plain_renew()), Failure::NotYourSession { session });
}

#[test]
fn two_renewals_in_one_entry_get_two_numbers_in_their_order() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    let other = Actor::plain(&mut world, 2, 10_000);
    let writes = world.disk.writes;
    let asked = [&actor, &other, &actor, &actor].map(|actor| world.ask(CALLS, actor.plain_renew()));
    world.rest();
    assert_eq!(world.disk.writes, writes + 1);
    let numbers = asked.map(|id| renewed(world.response(id)).number.get());
    assert_eq!(numbers, [1, 1, 2, 3]);
}

#[test]
fn a_streamed_session_used_plain_is_refused_and_nothing_changes() {
    let mut world = World::served();
    let mut streamed = Actor::up(&mut world, 1, 10_000);
    let token = streamed.hold(&mut world, "a");
    let wrong = Reply::Refused(Refusal::WrongSessionKind);
    for request in
        [streamed.plain_renew(), streamed.held_acquire("b", 1_000), streamed.plain_release("a", token)]
    {
        assert_eq!(world.reply_to(CALLS, request), wrong);
    }
    assert_eq!(world.node.stats().held_calls, 0);
    // Its own streams go on with the next numbers.
    streamed.renewed(&mut world);
    streamed.hold(&mut world, "b");
}

#[test]
fn a_plain_session_used_streamed_is_refused_and_nothing_changes() {
    let mut world = World::served();
    let mut plain = Actor::plain(&mut world, 1, 10_000);
    let token = plain.take(&mut world, "a");
    let wrong = Reply::Refused(Refusal::WrongSessionKind);
    plain.kind = leasehold_core::SessionKind::Streamed;
    for request in [plain.attach(), plain.renew(), plain.acquire("b", None), plain.release("a", token)] {
        assert_eq!(world.reply_to(plain.connection, request), wrong);
    }
    let response = world.response_to(CALLS, plain.plain_renew());
    let renewed = renewed(Some(response));
    assert_eq!((renewed.number, tokens(&renewed)), (RenewalNumber::new(1), vec![token]));
}

/// The table counts the renewals of a plain session. A number of the client's own could leave it none to go on with.
#[test]
fn the_highest_number_does_not_stop_the_renewals_of_a_plain_session() {
    let mut world = World::served();
    let plain = Actor::plain(&mut world, 1, 10_000);
    let (session, number) = (plain.session, RenewalNumber::new(u64::MAX));
    let highest = Request::Renew { session, number, seen: leasehold_core::ItemNumber::NONE };
    world.response_to(plain.connection, highest);
    let response = world.response_to(CALLS, plain.plain_renew());
    assert_eq!(renewed(Some(response)).number, RenewalNumber::new(1));
}

#[test]
fn an_acquire_whose_answer_was_lost_is_found_in_the_answer_to_a_renewal() {
    let mut world = World::served();
    let (first, second) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
    world.ask(CALLS, first.held_acquire("a", 1_000));
    world.turn();
    // The process goes after the sync and before the answer; so does the next, with a wait.
    world.restart(Crash::KeepsWritten(1), millis(100));
    let response = world.response_to(CALLS, first.plain_renew());
    let listed = renewed(Some(response));
    assert_eq!(tokens(&listed).len(), 1);
    world.ask(CALLS, second.held_acquire("a", 60_000));
    world.turn();
    world.restart(Crash::KeepsWritten(1), millis(100));
    let response = world.response_to(CALLS, second.plain_renew());
    let waiting = renewed(Some(response));
    assert_eq!((tokens(&waiting), waits(&waiting)), (vec![], vec![CommandNumber::new(1)]));
    // By its number it can be cancelled, instead of queueing behind itself.
    let cancel = second.plain_op(Op::Cancel { acquire: waits(&waiting)[0] });
    let cancelled = world.reply_to(CALLS, cancel);
    assert!(matches!(cancelled, Reply::Plain { answer: Answer::Cancelled, .. }), "{cancelled:?}");
    assert_eq!(world.node.table().lease(&crate::actor::name("a")).expect("it is held").waiting, 0);
}

#[test]
fn nothing_of_a_plain_session_is_answered_before_its_write_was_synced() {
    let mut world = World::served();
    let (holder, waiter) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
    let token = holder.take(&mut world, "a");
    let steps = [
        (waiter.held_acquire("a", 60_000), false),
        (waiter.plain_renew(), true),
        (holder.plain_release("a", token), true),
    ];
    let mut held = None;
    for (request, is_answered) in steps {
        let id = world.ask(CALLS, request);
        held.get_or_insert(id);
        world.turn();
        world.pass(millis(50));
        world.turn();
        assert!(world.sent.is_empty(), "{:?}", world.sent);
        world.sync_and_turn();
        assert_eq!(world.is_answered(CALLS, id), is_answered);
        if id != held.expect("it was just put there") {
            world.response(id);
        }
    }
    // The release and the grant that it made are one entry.
    assert!(plain_grant(world.response(held.expect("there was one"))).1 > token);
}

#[test]
fn a_command_that_is_no_acquire_is_not_held() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    let op = Op::Cancel { acquire: CommandNumber::new(7) };
    let plain = Plain::Command { op, hold: true, numbered: None };
    let request = Request::Plain { session: actor.session, nonce: actor.nonce, plain };
    assert!(matches!(world.reply_to(CALLS, request), Reply::Plain { answer: Answer::Refused(_), .. }));
    assert_eq!(world.node.stats().held_calls, 0);
}
