//! Connections between members break, in one direction or both, and the ends notice when they do.

use leasehold_core::Reply;
use leasehold_core::protocol::Response;
use leasehold_node::{CALLS, Input};

use crate::actor::{Actor, name};
use crate::world::{World, id_of, is_unknown};

#[test]
fn answers_that_a_broken_connection_has_lost_are_unknown() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let plain = Actor::plain(&mut world, follower, 1, 60_000);
    let mut stream = Actor::streamed(&mut world, follower, 2, 60_000);
    let acquires = world.ask(follower, CALLS, plain.held_acquire("job", 1, 1));
    let renew = stream.renew();
    let renews = stream.send(&mut world, renew);
    world.turn(follower);
    // The requests arrive; what comes back does not.
    world.net.cut(leader, follower, world.now, (200_000_000, 250_000_000));
    world.run(300);
    assert_eq!(world.checks.count(1), 1);
    assert!(is_unknown(&world.response(acquires).expect("the connection was lost")));
    assert!(world.response(renews).is_none() && world.is_closed(stream.connection));
    world.net.heal_all();
    stream.attaches(&mut world, follower);
    assert!(matches!(world.call(follower, plain.plain_renew()), Response::Reply(Reply::Renewed(_))));
}

#[test]
fn a_leader_that_has_lost_a_follower_lets_go_of_its_callers() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let holds = Actor::plain(&mut world, leader, 1, 60_000);
    holds.take(&mut world, "job");
    let plain = Actor::plain(&mut world, follower, 2, 60_000);
    let waits = world.ask(follower, CALLS, plain.held_acquire("job", 60_000, 1));
    world.run(100);
    world.net.cut(follower, leader, world.now, (0, 0));
    world.run(100);
    assert!(is_unknown(&world.response(waits).expect("the connection was lost")));
    let lease = world.checks.table.lease(&name("job")).expect("it is held");
    assert!(lease.queue.is_empty(), "nobody waits for this wait");
}

#[test]
fn the_loss_of_an_old_connection_that_is_noticed_late_leaves_nobody_waiting() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let holds = Actor::plain(&mut world, leader, 1, 60_000);
    holds.take(&mut world, "job");
    let plain = Actor::plain(&mut world, follower, 2, 60_000);
    let mut stream = Actor::streamed(&mut world, follower, 3, 60_000);
    // The follower has noticed long ago, dialled again and sent these on the new connection.
    let waits = world.ask(follower, CALLS, plain.held_acquire("job", 60_000, 1));
    let read = world.ask(follower, CALLS, crate::actor::look("job"));
    world.run(3);
    world.processes[leader].inbox.push(Input::PeerLost(id_of(follower)));
    world.run(200);
    assert!(is_unknown(&world.response(waits).expect("the leader has forgotten it")));
    assert!(matches!(world.response(read), Some(Response::Read { .. })));
    assert!(world.is_closed(stream.connection), "its stream is cut");
    stream.attaches(&mut world, follower);
    stream.renewed(&mut world);
}

#[test]
fn a_follower_that_hears_nothing_does_not_disturb_the_others() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let mut stream = Actor::streamed(&mut world, leader, 1, 5_000);
    world.net.cut(leader, follower, world.now, (0, 0));
    for _ in 0..10 {
        world.run(500);
        stream.renewed(&mut world);
    }
    assert_eq!(world.leader(), Some(leader));
    assert!(!world.is_closed(stream.connection));
    world.net.heal_all();
    world.run(1_000);
    assert_eq!(world.node(follower).applied(), world.checks.applied());
    assert!(!world.is_closed(stream.connection), "a node that comes back pulls nobody down");
}

#[test]
fn a_leader_that_is_not_heard_makes_room() {
    let mut world = World::cluster(3);
    let old = world.the_leader();
    for other in world.followers() {
        world.net.cut(old, other, world.now, (0, 0));
    }
    // It hears the others, which can elect one of them without it.
    world.run_until(5_000, |world| world.leader().is_some_and(|leader| leader != old));
    let plain = Actor::plain(&mut world, (old + 1) % 3, 1, 5_000);
    plain.take(&mut world, "job");
}
