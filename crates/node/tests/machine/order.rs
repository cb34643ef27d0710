//! What goes to a connection goes in an order that its client can rely on.

use leasehold_core::protocol::{Response, ToClient};
use leasehold_core::{Acquire, Item, Mode, Op, Policies, Reply, Value, command};
use leasehold_node::ConnectionId;

use crate::actor::{Actor, granted, name};
use crate::world::{World, millis};

/// What a connection got, in short: `attached`, `renewed 3` (naming item 3), `items 1..=3`.
fn short(messages: &[ToClient]) -> Vec<String> {
    let one = |message: &ToClient| match message {
        ToClient::Items { items, .. } => span(items),
        ToClient::Response { response: Response::Reply(Reply::Attached { .. }), .. } => "attached".to_owned(),
        ToClient::Response { response: Response::Reply(Reply::Renewed(renewed)), .. } => {
            format!("renewed {}", renewed.after)
        }
        ToClient::Response { response, .. } => format!("{response:?}"),
        ToClient::Hint { .. } => "hint".to_owned(),
        ToClient::Watched { .. } => "watched".to_owned(),
    };
    messages.iter().map(one).collect()
}

fn span(items: &[Item]) -> String {
    for pair in items.windows(2) {
        assert_eq!(pair[0].number.next(), pair[1].number, "items have no gaps");
    }
    match (items.first(), items.last()) {
        (Some(first), Some(last)) => format!("items {}..={}", first.number, last.number),
        _ => "no items".to_owned(),
    }
}

#[test]
fn items_go_before_the_renewal_that_names_them() {
    let mut world = World::served();
    let mut holder = Actor::up(&mut world, 1, 10_000);
    let token = holder.hold(&mut world, "a");
    let mut waiter = Actor::new(2, 1_000);
    waiter.policies = Policies { hard: leasehold_core::Millis::new(60_000), ..Policies::default() };
    let mut waiter = waiter.opened(&mut world);
    let acquire = waiter.acquire("a", Some(60_000));
    waiter.send(&mut world, acquire);
    // The waiter is overdue when the resource becomes free, and is passed over until its renewal.
    world.run(millis(1_500));
    let release = holder.release("a", token);
    holder.send(&mut world, release);
    world.rest();
    assert_eq!(short(&world.received(waiter.connection)), ["items 1..=1"]);
    let renew = waiter.renew();
    waiter.send(&mut world, renew);
    world.rest();
    assert_eq!(short(&world.received(waiter.connection)), ["items 2..=2", "renewed 2"]);
}

#[test]
fn a_connection_that_attaches_gets_everything_unseen_behind_the_answer() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    for resource in ["a", "b", "c"] {
        actor.hold(&mut world, resource);
    }
    actor.connection = ConnectionId(77);
    let attach = actor.attach();
    actor.send(&mut world, attach);
    world.rest();
    assert_eq!(short(&world.received(actor.connection)), ["attached", "items 1..=3"]);
}

#[test]
fn a_renewal_beside_an_attach_is_answered_behind_the_unseen_items() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    for resource in ["a", "b"] {
        actor.hold(&mut world, resource);
    }
    actor.connection = ConnectionId(77);
    let attach = actor.attach();
    actor.send(&mut world, attach);
    let renew = actor.renew();
    actor.send(&mut world, renew);
    world.rest();
    assert_eq!(short(&world.received(actor.connection)), ["attached", "items 1..=2", "renewed 2"]);
}

#[test]
fn items_that_arise_in_the_entry_of_an_attach_are_sent_once_and_to_the_new_connection() {
    // The command stands before the attach in one case, behind it in the other.
    for command_first in [true, false] {
        let mut world = World::served();
        let mut actor = Actor::up(&mut world, 1, 10_000);
        actor.hold(&mut world, "a");
        let old = actor.connection;
        let new = ConnectionId(77);
        let mut requests = vec![(old, actor.acquire("b", None))];
        requests.push((new, actor.attach()));
        if !command_first {
            requests.remove(0);
            actor.command = leasehold_core::CommandNumber::new(1);
            requests.push((new, actor.acquire("b", None)));
        }
        for (connection, request) in requests {
            world.ask(connection, request);
        }
        world.rest();
        assert_eq!(short(&world.received(new)), ["attached", "items 1..=2"], "{command_first}");
        assert_eq!(short(&world.received(old)), Vec::<String>::new(), "{command_first}");
    }
}

#[test]
fn of_two_attaches_in_one_entry_the_later_gets_the_items() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    actor.hold(&mut world, "a");
    let (first, second) = (ConnectionId(77), ConnectionId(78));
    for connection in [first, second] {
        let attach = actor.attach();
        world.ask(connection, attach);
    }
    world.rest();
    assert_eq!(short(&world.received(first)), ["attached"]);
    assert_eq!(short(&world.received(second)), ["attached", "items 1..=1"]);
}

#[test]
fn a_connection_that_attaches_twice_in_one_entry_gets_the_items_once() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    actor.hold(&mut world, "a");
    for _ in 0..2 {
        let attach = actor.attach();
        actor.send(&mut world, attach);
    }
    world.rest();
    assert_eq!(short(&world.received(actor.connection)), ["attached", "attached", "items 1..=1"]);
}

#[test]
fn an_older_attach_gets_nothing_any_more() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let old = actor.connection;
    actor.connection = ConnectionId(77);
    let attach = actor.attach();
    actor.send(&mut world, attach);
    world.rest();
    actor.hold(&mut world, "a");
    assert!(world.received(old).is_empty());
    // And its attach number is refused, without harm to the newer one.
    let mut late = actor.clone();
    late.attach = leasehold_core::AttachNumber::NONE;
    let attach = late.attach();
    assert!(matches!(world.reply_to(old, attach), Reply::Refused(_)));
    let token = actor.hold(&mut world, "b");
    assert!(token.get() > 0 && world.received(old).is_empty());
}

#[test]
fn every_waiter_of_an_entry_is_told_once_and_in_order() {
    let mut world = World::served();
    let mut holder = Actor::up(&mut world, 1, 10_000);
    let tokens = [holder.hold(&mut world, "a"), holder.hold(&mut world, "b")];
    let mut waiters: Vec<Actor> = (2..6).map(|number| Actor::up(&mut world, number, 10_000)).collect();
    for waiter in &mut waiters {
        for resource in ["a", "b"] {
            let acquire = waiter.acquire(resource, Some(60_000));
            waiter.send(&mut world, acquire);
        }
    }
    world.rest();
    for waiter in &waiters {
        assert_eq!(short(&world.received(waiter.connection)), ["items 1..=2"]);
    }
    for (resource, token) in ["a", "b"].into_iter().zip(tokens) {
        let release = holder.release(resource, token);
        holder.send(&mut world, release);
    }
    world.rest();
    assert_eq!(granted(&world.items(waiters[0].connection)).len(), 2);
    assert!(waiters[1..].iter().all(|waiter| world.received(waiter.connection).is_empty()));
}

#[test]
fn many_unseen_items_come_in_messages_that_fit_a_frame() {
    const FRAME: usize = 4 * 1024 * 1024;
    const COMMANDS: usize = 200;
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    // The longest names, the most resources: the answer to each acquire is as large as an answer can be.
    for number in 0..COMMANDS {
        let requests = (0..64).map(|slot| command::Request {
            resource: name(&format!("{number:03}-{slot:02}-{}", "x".repeat(500))),
            mode: Mode::Exclusive,
        });
        let acquire = Acquire { requests: requests.collect(), value: Value::default(), wait: None };
        let request = actor.op(Op::Acquire(acquire));
        actor.send(&mut world, request);
    }
    world.rest();
    for connection in [actor.connection, ConnectionId(77)] {
        if connection != actor.connection {
            let attach = actor.attach();
            assert!(matches!(world.reply_to(connection, attach), Reply::Attached { .. }));
        }
        let mut next = 1;
        for message in world.received(connection) {
            let ToClient::Items { items, .. } = message else { panic!("{message:?}") };
            let bytes: usize = items.iter().map(|item| format!("{item:?}").len()).sum();
            // Text of an item is longer than its bytes.
            assert!(bytes < FRAME, "{} items of {bytes} bytes in one message", items.len());
            for item in items {
                assert_eq!(item.number.get(), next);
                next += 1;
            }
        }
        assert_eq!(next, COMMANDS as u64 + 1);
    }
}
