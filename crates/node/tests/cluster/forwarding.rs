//! Requests that reach a node that does not lead.

use leasehold_core::protocol::Response;
use leasehold_core::{Op, Reply};
use leasehold_node::{CALLS, Input};

use crate::actor::{Actor, granted, holder, look, name, order, plain_grant};
use crate::world::{World, is_unavailable, is_unknown};
use leasehold_core::protocol::ClusterCommand;

fn queue_length(world: &World, resource: &str) -> usize {
    world.checks.table.lease(&name(resource)).map_or(0, |lease| lease.queue.len())
}

#[test]
fn streams_and_held_calls_are_served_through_a_follower() {
    let mut world = World::cluster(3);
    let [one, two] = world.followers()[..] else { panic!("two follow") };
    let mut first = Actor::streamed(&mut world, one, 1, 5_000);
    let token = first.hold(&mut world, "job");
    let plain = Actor::plain(&mut world, two, 2, 5_000);
    let waits = world.ask(two, CALLS, plain.held_acquire("job", 4_000, 1));
    let mut second = Actor::streamed(&mut world, two, 3, 5_000);
    let acquire = second.acquire("job", Some(4_000));
    second.send(&mut world, acquire);
    world.run(300);
    assert_eq!(queue_length(&world, "job"), 2);
    assert!(world.response(waits).is_none());
    let release = first.release("job", token);
    first.send(&mut world, release);
    let later = plain_grant(&world.wait(waits));
    assert!(later > token);
    assert!(matches!(world.call(one, plain.plain_release("job", later)), Response::Reply(_)));
    world.run(100);
    let items = world.items(second.connection);
    assert_eq!(granted(&items).len(), 1, "{items:?}");
    first.renewed(&mut world);
    second.renewed(&mut world);
}

#[test]
fn a_caller_at_a_follower_that_gives_up_takes_its_wait_with_it() {
    let mut world = World::cluster(3);
    let follower = world.followers()[0];
    let holder = Actor::plain(&mut world, follower, 1, 9_000);
    holder.take(&mut world, "job");
    let plain = Actor::plain(&mut world, follower, 2, 9_000);
    let waits = world.ask(follower, CALLS, plain.held_acquire("job", 60_000, 1));
    world.run(100);
    assert_eq!(queue_length(&world, "job"), 1);
    world.processes[follower].inbox.push(Input::Abandoned { connection: CALLS, id: waits });
    world.run(100);
    assert_eq!(queue_length(&world, "job"), 0);
    assert!(world.response(waits).is_none());
}

#[test]
fn a_connection_at_a_follower_that_goes_takes_its_waits_with_it() {
    let mut world = World::cluster(3);
    let follower = world.followers()[0];
    let holder = Actor::plain(&mut world, follower, 1, 9_000);
    holder.take(&mut world, "job");
    let plain = Actor::plain(&mut world, follower, 2, 9_000);
    let connection = world.connection();
    let waits = world.ask(follower, connection, plain.held_acquire("job", 60_000, 1));
    world.run(100);
    assert_eq!(queue_length(&world, "job"), 1);
    world.processes[follower].inbox.push(Input::Disconnected(connection));
    world.run(100);
    assert_eq!(queue_length(&world, "job"), 0);
    assert!(world.response(waits).is_none());
}

#[test]
fn another_leader_means_unknown_for_calls_an_end_for_streams_and_another_try_for_reads() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let mut stream = Actor::streamed(&mut world, follower, 1, 5_000);
    stream.hold(&mut world, "job");
    let plain = Actor::plain(&mut world, follower, 2, 5_000);
    let waits = world.ask(follower, CALLS, plain.held_acquire("job", 60_000, 1));
    world.run(100);
    let renews = world.ask(follower, CALLS, plain.plain_renew());
    let read = world.ask(follower, CALLS, look("job"));
    world.turn(follower);
    world.crash(leader);
    world.run_until(3_000, |world| world.leader().is_some());
    world.run(100);
    assert!(is_unknown(&world.response(waits).expect("its leader is gone")));
    assert!(is_unknown(&world.response(renews).expect("its leader is gone")));
    assert!(world.is_closed(stream.connection));
    assert!(matches!(world.wait(read), Response::Read { .. }));
    stream.attaches(&mut world, follower);
    stream.renewed(&mut world);
}

#[test]
fn calls_to_a_leader_are_answered_when_another_one_is_met_in_the_turn_of_a_new_request() {
    let mut world = World::cluster(5);
    let (old, follower) = (world.the_leader(), world.followers()[0]);
    let holds = Actor::plain(&mut world, follower, 1, 60_000);
    holds.take(&mut world, "job");
    let plain = Actor::plain(&mut world, follower, 2, 60_000);
    let waits = world.ask(follower, CALLS, plain.held_acquire("job", 60_000, 1));
    world.run(100);
    // Both stand still, no connection breaks, and the others elect somebody.
    world.processes[old].stalled = true;
    world.processes[follower].stalled = true;
    world.run_until(5_000, |world| world.leader().is_some());
    world.run(300);
    // When the follower wakes, all it has missed and a new request are there at once.
    world.processes[follower].stalled = false;
    let read = world.ask(follower, CALLS, look("job"));
    world.run(100);
    assert!(is_unknown(&world.response(waits).expect("its leader was lost")));
    assert!(matches!(world.response(read), Some(Response::Read { .. })));
}

#[test]
fn a_request_at_a_node_that_leads_no_more_goes_to_whoever_leads() {
    let mut world = World::cluster(3);
    let (old, follower) = (world.the_leader(), world.followers()[0]);
    let other = 3 - old - follower;
    let plain = Actor::plain(&mut world, follower, 1, 9_000);
    let mut stream = Actor::streamed(&mut world, follower, 2, 9_000);
    // Hears nothing of the next leader.
    world.net.cut(other, follower, world.now, (0, 0));
    let to = Some(format!("n{}", other + 1));
    order(&mut world, old, ClusterCommand::Transfer { to });
    world.run_until(1_000, |world| world.leader() == Some(other));
    let acquires = world.ask(follower, CALLS, plain.held_acquire("job", 1, 1));
    let acquire = stream.acquire("other", None);
    stream.send(&mut world, acquire);
    world.run(50);
    assert!(world.response(acquires).is_none());
    assert_eq!(world.checks.count(1), 0);
    world.net.heal_all();
    plain_grant(&world.wait(acquires));
    assert_eq!(world.checks.count(1), 1);
    assert!(world.is_closed(stream.connection));
    stream.attaches(&mut world, follower);
    stream.hold(&mut world, "third");
}

#[test]
fn a_session_opened_by_a_call_outlives_the_leader() {
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    let plain = Actor::plain(&mut world, leader, 1, 9_000);
    let token = plain.take(&mut world, "job");
    order(&mut world, leader, ClusterCommand::Transfer { to: None });
    assert!(matches!(world.call(leader, plain.plain_renew()), Response::Reply(Reply::Renewed(_))));
    assert_eq!(holder(&mut world, leader, "job"), Some(token));
}

#[test]
fn a_stream_may_close_its_session_through_a_follower() {
    let mut world = World::cluster(3);
    let follower = world.followers()[1];
    let mut stream = Actor::streamed(&mut world, follower, 1, 5_000);
    stream.hold(&mut world, "job");
    let close = stream.op(Op::Close);
    assert!(matches!(world.reply(follower, stream.connection, close), Reply::Closed));
    assert_eq!(holder(&mut world, follower, "job"), None);
}

#[test]
fn a_follower_that_is_told_to_stop_answers_everybody() {
    let mut world = World::cluster(3);
    let follower = world.followers()[0];
    let holds = Actor::plain(&mut world, follower, 1, 60_000);
    holds.take(&mut world, "job");
    let plain = Actor::plain(&mut world, follower, 2, 60_000);
    let waits = world.ask(follower, CALLS, plain.held_acquire("job", 60_000, 1));
    world.run(100);
    let renews = world.ask(follower, CALLS, plain.plain_renew());
    world.processes[follower].inbox.push(Input::Drain);
    let late = world.ask(follower, CALLS, plain.plain_renew());
    world.run(200);
    assert!(world.node(follower).is_drained());
    assert!(is_unknown(&world.response(waits).expect("it stops")), "the leader may have granted it by now");
    assert!(matches!(world.response(renews), Some(Response::Reply(Reply::Renewed(_)))));
    assert!(is_unavailable(&world.response(late).expect("it stops")));
    assert_eq!(queue_length(&world, "job"), 0, "the wait was withdrawn");
}
