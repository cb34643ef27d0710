//! Queues are bounded, and what does not fit one entry goes into the next.

use leasehold_core::protocol::{Failure, Request, RequestId, Response};
use leasehold_core::{Command, Config, Label, Operator, Reply, Value};
use leasehold_node::{ConnectionId, Options, Place};

use crate::actor::{Actor, name};
use crate::world::{World, millis};

const MAX_QUEUED: usize = 65_536;
const MAX_BATCH_COMMANDS: usize = 4_096;
const OPERATOR: ConnectionId = ConnectionId(500);

/// Something small that needs no session.
fn ask_release() -> Request {
    Request::Operator(Operator::AskRelease {
        resource: name("nobody-holds-this"),
        token: None,
        successor: None,
        by: Label::new("op").expect("a short label"),
    })
}

fn is_unavailable(world: &mut World, id: RequestId) -> bool {
    matches!(world.response(id), Some(Response::Failed(Failure::Unavailable { .. })))
}

#[test]
fn more_than_may_wait_is_refused_as_unavailable_and_the_rest_is_served() {
    let mut world = World::served();
    world.ask(OPERATOR, ask_release());
    world.turn();
    // That one is in flight; these wait for it.
    let ids: Vec<RequestId> = (0..=MAX_QUEUED).map(|_| world.ask(OPERATOR, ask_release())).collect();
    world.turn();
    assert_eq!(world.sent.len(), 1);
    assert!(is_unavailable(&mut world, ids[MAX_QUEUED]));
    world.rest();
    assert_eq!(world.sent.len(), MAX_QUEUED + 1);
}

#[test]
fn more_than_may_wait_for_the_start_is_refused_as_unavailable() {
    let mut world = World::begin(Place::Served, Config::default(), Options::default());
    let ids: Vec<RequestId> = (0..=MAX_QUEUED).map(|_| world.ask(OPERATOR, ask_release())).collect();
    world.turn();
    assert_eq!(world.sent.len(), 1);
    assert!(is_unavailable(&mut world, ids[MAX_QUEUED]));
    world.rest();
    assert_eq!(world.sent.len(), MAX_QUEUED);
}

#[test]
fn many_commands_are_split_into_entries_in_their_order() {
    let mut world = World::served();
    let ids: Vec<RequestId> =
        (0..2 * MAX_BATCH_COMMANDS + 1).map(|_| world.ask(OPERATOR, ask_release())).collect();
    world.turn();
    let mut sizes = Vec::new();
    while let Some(payload) = world.entry_in_flight() {
        sizes.push(payload.entry.commands.len());
        world.sync_and_turn();
    }
    assert_eq!(sizes, [MAX_BATCH_COMMANDS, MAX_BATCH_COMMANDS, 1]);
    let answered: Vec<RequestId> = world
        .received(OPERATOR)
        .into_iter()
        .map(|message| match message {
            leasehold_core::protocol::ToClient::Response { id, .. } => id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(answered, ids);
}

#[test]
fn large_values_are_split_into_entries_by_bytes() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let value = Value::new(vec![7; 64 * 1024]).unwrap();
    for number in 0..40 {
        let acquire = actor.acquire_with(&format!("v{number}"), None, value.clone());
        actor.send(&mut world, acquire);
    }
    world.turn();
    let mut sizes = Vec::new();
    while let Some(payload) = world.entry_in_flight() {
        assert!(payload.encode().len() < 1_200_000);
        sizes.push(payload.entry.commands.len());
        world.sync_and_turn();
    }
    assert_eq!(sizes.iter().sum::<usize>(), 40);
    assert!(sizes.len() > 1);
    assert_eq!(world.node.table().counters().grants, 40);
}

#[test]
fn a_renewal_behind_more_than_an_entry_of_commands_is_in_the_next_entry() {
    let mut world = World::served();
    let mut holder = Actor::up(&mut world, 1, 1_000);
    holder.hold(&mut world, "a");
    // A disk that takes its time, and many commands before the renewal: at the stamp of the next entry the session would be
    // over by a hair if its renewal were not in it.
    world.ask(OPERATOR, ask_release());
    world.turn();
    for _ in 0..10 {
        world.pass(millis(90));
        world.turn();
    }
    for _ in 0..=MAX_BATCH_COMMANDS {
        world.ask(OPERATOR, ask_release());
    }
    let renew = holder.renew();
    let id = holder.send(&mut world, renew);
    world.turn();
    world.sync_and_turn();
    let commands = world.entry_in_flight().unwrap().entry.commands;
    assert!(
        commands.iter().any(|command| matches!(command, Command::Renew { .. })),
        "the renewal has to wait"
    );
    world.pass(millis(90));
    world.turn();
    world.pass(millis(90));
    world.rest();
    assert!(matches!(world.response(id), Some(Response::Reply(Reply::Renewed(_)))));
    assert!(world.node.table().nonce(holder.session).is_some());
}
