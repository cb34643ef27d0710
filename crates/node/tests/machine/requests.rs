//! Requests that arrive early, from the wrong connection, or for a session that is not there.

use leasehold_core::protocol::{Failure, Response};
use leasehold_core::{Nonce, Refusal, Reply, SessionId};
use leasehold_node::{ConnectionId, Input};

use crate::actor::Actor;
use crate::disk::Crash;
use crate::world::{World, millis};

#[test]
fn what_arrives_before_the_opening_entry_waits_and_is_then_judged() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let mut closed = Actor::up(&mut world, 2, 10_000);
    let close = closed.close();
    assert_eq!(world.reply_to(closed.connection, close), Reply::Closed);
    // The session is in the log behind the last commit that the files noted: only the opening entry brings it back.
    world.crash(Crash::KeepsAcknowledged);
    let attach = actor.attach();
    let attached = actor.send(&mut world, attach);
    let attach = closed.attach();
    let ended = closed.send(&mut world, attach);
    world.turn();
    world.turn();
    assert!(world.sent.is_empty());
    world.rest();
    assert!(matches!(world.response(attached), Some(Response::Reply(Reply::Attached { .. }))));
    let refusal = Refusal::SessionEnded { session: closed.session };
    assert_eq!(world.response(ended), Some(Response::Reply(Reply::Refused(refusal))));
}

#[test]
fn a_wrong_nonce_attaches_nothing() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let mut thief = actor.clone();
    thief.connection = ConnectionId(66);
    thief.nonce = Nonce([0; 16]);
    let attach = thief.attach();
    let not_yours = Failure::NotYourSession { session: actor.session };
    assert_eq!(world.failure_of(thief.connection, attach), not_yours);
    let renew = thief.renew();
    assert_eq!(world.failure_of(thief.connection, renew), not_yours);
    let writes = world.disk.writes;
    let acquire = thief.acquire("a", None);
    assert_eq!(world.failure_of(thief.connection, acquire), not_yours);
    assert_eq!(world.disk.writes, writes, "a refusal before the log writes nothing");
    actor.hold(&mut world, "a");
}

#[test]
fn a_connection_that_neither_opened_nor_attached_is_refused() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let stranger = ConnectionId(66);
    for request in [actor.renew(), actor.acquire("a", None), actor.close()] {
        let failure = world.failure_of(stranger, request);
        assert_eq!(failure, Failure::NotYourSession { session: actor.session });
    }
    assert_eq!(world.node.table().nonce(actor.session), Some(actor.nonce));
}

#[test]
fn an_id_above_the_counter_is_not_said_to_have_ended() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let session = SessionId::from_u64(actor.session.get() + 1);
    actor.session = session;
    for request in [actor.attach(), actor.renew(), actor.close()] {
        assert_eq!(world.failure_of(actor.connection, request), Failure::NotYourSession { session });
    }
}

#[test]
fn an_ended_session_is_said_to_have_ended_to_everybody() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 1_000);
    world.run(millis(2_000));
    let ended = Reply::Refused(Refusal::SessionEnded { session: actor.session });
    for request in [actor.attach(), actor.renew(), actor.acquire("a", None)] {
        assert_eq!(world.reply_to(actor.connection, request.clone()), ended);
        assert_eq!(world.reply_to(ConnectionId(66), request), ended);
    }
}

#[test]
fn a_connection_that_is_gone_has_proven_nothing() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    world.inbox.push(Input::Disconnected(actor.connection));
    world.rest();
    let renew = actor.renew();
    let failure = world.failure_of(actor.connection, renew);
    assert_eq!(failure, Failure::NotYourSession { session: actor.session });
}

#[test]
fn a_command_sent_again_is_applied_once_and_answered_as_before() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let acquire = actor.acquire("a", None);
    actor.send(&mut world, acquire);
    world.turn();
    // The process goes after the sync and before the answer.
    world.restart(Crash::KeepsWritten(1), millis(100));
    assert!(world.sent.is_empty());
    let attach = actor.attach();
    actor.send(&mut world, attach);
    world.rest();
    let before = world.items(actor.connection);
    assert_eq!(before.len(), 1);
    actor.command = leasehold_core::CommandNumber::NONE;
    let again = actor.acquire("a", None);
    assert_eq!(world.reply_to(actor.connection, again), Reply::Repeated { number: actor.command });
    assert!(world.items(actor.connection).is_empty());
    assert_eq!(world.node.table().counters().grants, 1);
}

#[test]
fn a_repeated_open_finds_the_session_again_after_a_restart() {
    let mut world = World::served();
    let mut actor = Actor::new(1, 10_000);
    actor.send(&mut world, actor.open());
    world.turn();
    world.restart(Crash::KeepsWritten(1), millis(100));
    match world.reply_to(actor.connection, actor.open()) {
        Reply::Opened(opened) => {
            assert!(opened.repeated);
            actor.session = opened.session;
        }
        other => panic!("{other:?}"),
    }
    let renew = actor.renew();
    assert!(matches!(world.reply_to(actor.connection, renew), Reply::Renewed(_)));
}
