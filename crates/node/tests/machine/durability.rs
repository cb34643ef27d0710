//! Nothing is said before it is synced, and nothing that was said is lost.

use leasehold_core::protocol::{Query, ReadAnswer, Response, TokenCheck};
use leasehold_core::{Command, Config, Operator, Reply, Token};
use leasehold_node::{Options, Place};

use crate::actor::{Actor, granted, name};
use crate::disk::Crash;
use crate::world::{World, millis};

#[test]
fn an_open_is_answered_only_after_its_write_was_synced() {
    let mut world = World::served();
    let actor = Actor::new(1, 10_000);
    let id = actor.send(&mut world, actor.open());
    world.turn();
    for _ in 0..10 {
        world.pass(millis(20));
        world.turn();
    }
    assert!(world.sent.is_empty());
    world.sync_and_turn();
    assert!(matches!(world.response(id), Some(Response::Reply(Reply::Opened(_)))));
}

#[test]
fn a_renewal_is_answered_only_after_its_write_was_synced() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let renew = actor.renew();
    let id = actor.send(&mut world, renew);
    world.turn();
    world.pass(millis(5_000));
    world.turn();
    assert!(world.sent.is_empty());
    world.sync_and_turn();
    assert!(matches!(world.response(id), Some(Response::Reply(Reply::Renewed(_)))));
}

#[test]
fn a_grant_is_pushed_only_after_its_write_was_synced() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let acquire = actor.acquire("a", None);
    actor.send(&mut world, acquire);
    world.turn();
    world.turn();
    assert!(world.sent.is_empty());
    world.sync_and_turn();
    assert_eq!(granted(&world.items(actor.connection)).len(), 1);
}

#[test]
fn nothing_is_judged_before_the_opening_entry_is_synced() {
    let mut world = World::begin(Place::Served, Config::default(), Options::default());
    let actor = Actor::new(1, 10_000);
    let id = actor.send(&mut world, actor.open());
    world.turn();
    // The vote and raft's own entry; nothing of ours may be among them.
    assert!(world.entry_in_flight().is_none());
    assert!(world.disk.in_flight[0].vote.is_some());
    world.sync_and_turn();
    let opening = world.entry_in_flight().expect("the opening entry");
    assert!(matches!(opening.entry.commands[..], [Command::System(_), Command::System(_)]));
    assert!(world.sent.is_empty() && !world.node.is_serving());
    world.sync_and_turn();
    assert!(world.node.is_serving());
    assert!(world.sent.is_empty(), "the open was taken in, and is not synced");
    world.sync_and_turn();
    assert!(matches!(world.response(id), Some(Response::Reply(Reply::Opened(_)))));
}

#[test]
fn everything_that_arrives_while_a_write_is_in_flight_goes_into_one_entry() {
    let mut world = World::served();
    let mut actors: Vec<Actor> = (1..=20).map(|number| Actor::up(&mut world, number, 10_000)).collect();
    let writes = world.disk.writes;
    let renew = actors[0].renew();
    actors[0].send(&mut world, renew);
    world.turn();
    let mut ids = Vec::new();
    for actor in &mut actors {
        let renew = actor.renew();
        ids.push(actor.send(&mut world, renew));
        let acquire = actor.acquire(&format!("r{}", actor.session), None);
        actor.send(&mut world, acquire);
        world.pass(millis(1));
        world.turn();
    }
    assert_eq!(world.disk.writes, writes + 1);
    world.sync_and_turn();
    let entry = world.entry_in_flight().expect("everything else").entry;
    let renewals = entry.commands.iter().filter(|command| matches!(command, Command::Renew { .. })).count();
    assert_eq!((entry.commands.len(), renewals), (40, 20));
    assert!(ids.iter().all(|id| world.response(*id).is_none()));
    world.sync_and_turn();
    assert_eq!(world.disk.writes, writes + 2);
    assert!(ids.iter().all(|id| world.response(*id).is_some()));
}

#[test]
fn the_stamp_is_taken_after_the_last_command_was_taken_in() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let before = world.last_at().get();
    world.pass(millis(73));
    let renew = actor.renew();
    actor.send(&mut world, renew);
    world.turn();
    assert_eq!(world.entry_in_flight().unwrap().entry.at.get(), before + 73);
}

/// Two clients open, hold, renew, hand on and close; at most so many writes are synced. Gives back the tokens that the clients
/// were told and have not given back, and whether the second was told that its session was opened.
fn worked(world: &mut World, syncs: usize) -> (Vec<(&'static str, Token)>, Vec<Actor>) {
    let mut left = syncs;
    let mut settle = |world: &mut World| {
        world.turn();
        while left > 0 && world.sync() {
            left -= 1;
            world.turn();
        }
        world.disk.in_flight.is_empty()
    };
    let (mut first, mut second) = (Actor::new(1, 10_000), Actor::new(2, 10_000));
    let (mut held, mut told) = (Vec::new(), Vec::new());
    if !settle(world) {
        return (held, told);
    }
    for actor in [&mut first, &mut second] {
        let id = actor.send(world, actor.open());
        settle(world);
        let Some(Response::Reply(Reply::Opened(opened))) = world.response(id) else { return (held, told) };
        actor.session = opened.session;
        told.push(actor.clone());
        let attach = actor.attach();
        actor.send(world, attach);
        if !settle(world) {
            return (held, told);
        }
    }
    let steps = [(true, "a", None), (true, "b", None), (false, "c", None), (false, "a", Some(60_000))];
    for (is_first, resource, wait) in steps {
        let actor = if is_first { &mut first } else { &mut second };
        let acquire = actor.acquire(resource, wait);
        actor.send(world, acquire);
        let done = settle(world);
        held.extend(granted(&world.items(actor.connection)).into_iter().map(|token| (resource, token)));
        if !done {
            return (held, told);
        }
    }
    let (_, given_back) = held.remove(0);
    let release = first.release("a", given_back);
    first.send(world, release);
    settle(world);
    held.extend(granted(&world.items(second.connection)).into_iter().map(|token| ("a", token)));
    (held, told)
}

/// Writes that [`worked`] makes in all: vote, opening entry, two opens, two attaches, four acquires, a release.
const WRITES_OF_WORK: usize = 11;

#[test]
fn a_crash_after_any_prefix_of_syncs_loses_nothing_that_was_said() {
    for syncs in 0..=WRITES_OF_WORK {
        for crash in [Crash::KeepsAcknowledged, Crash::KeepsWritten(1)] {
            let mut world = World::begin(Place::Served, Config::default(), Options::default());
            let (held, told) = worked(&mut world, syncs);
            assert_eq!(world.disk.in_flight.is_empty(), syncs == WRITES_OF_WORK, "{syncs}");
            world.restart(crash, millis(30_000));
            for actor in &told {
                assert_eq!(world.node.table().nonce(actor.session), Some(actor.nonce), "{syncs} {crash:?}");
            }
            for (resource, token) in &held {
                let query = Query::Check { resource: name(resource), token: *token };
                assert_eq!(world.read(query), ReadAnswer::Check(TokenCheck::Current), "{syncs} {crash:?}");
            }
            let mut late = Actor::up(&mut world, 9, 10_000);
            let token = late.hold(&mut world, "z");
            assert!(held.iter().all(|(_, earlier)| *earlier < token), "a token was given twice");
            assert!(told.iter().all(|actor| actor.session < late.session), "a session id was given twice");
        }
    }
}

#[test]
fn a_crash_in_every_state_of_the_first_start_leaves_a_log_that_serves() {
    for syncs in 0..3 {
        for crash in [Crash::KeepsAcknowledged, Crash::KeepsWritten(1)] {
            let mut world = World::begin(Place::Served, Config::default(), Options::default());
            world.turn();
            for _ in 0..syncs {
                world.sync();
                world.turn();
            }
            world.restart(crash, millis(1));
            Actor::up(&mut world, 1, 10_000).hold(&mut world, "a");
        }
    }
}

#[test]
fn an_operators_word_is_answered_after_its_sync_and_touches_only_the_token_named() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let token = actor.hold(&mut world, "a");
    let revoke = |token| {
        leasehold_core::protocol::Request::Operator(Operator::Revoke {
            resource: name("a"),
            token,
            by: leasehold_core::Label::new("op").unwrap(),
            reason: leasehold_core::Reason::new("test").unwrap(),
            now: false,
        })
    };
    let other = world.reply_to(actor.connection, revoke(Token::from_u64(token.get() + 1)));
    assert!(matches!(other, Reply::Refused(_)), "{other:?}");
    let id = actor.send(&mut world, revoke(token));
    world.turn();
    assert!(world.sent.is_empty());
    world.sync_and_turn();
    assert!(matches!(world.response(id), Some(Response::Reply(Reply::Revoked { .. }))));
}
