//! Gaps over a failover: for how long nobody led, and what a follower says of its clients.

use leasehold_core::gap::GapCause;
use leasehold_core::{LogTime, Millis, Op};
use leasehold_node::Input;
use leasehold_node::members::CLUSTER_VERSION;

use crate::actor::{Actor, name};
use crate::world::{World, id_of};

/// Three nodes, all of which know of gaps.
fn cluster() -> World {
    let mut world = World::cluster(3);
    for at in 0..3 {
        for other in (0..3).filter(|other| *other != at) {
            let knows = Input::PeerKnows { member: id_of(other), version: CLUSTER_VERSION };
            world.processes[at].inbox.push(knows);
        }
    }
    world.run(300);
    assert_eq!(world.node(0).table().version(), CLUSTER_VERSION);
    world
}

#[test]
fn a_new_leader_says_for_how_long_nobody_led() {
    let mut world = cluster();
    let leader = world.the_leader();
    let follower = world.followers()[0];
    let mut client = Actor::streamed(&mut world, follower, 1, 60_000);
    let token = client.hold(&mut world, "job");
    let release = client.release("job", token);
    client.send(&mut world, release);
    world.run(300);
    let before = world.node(leader).table().outages(LogTime::ZERO).len();
    let crashed = world.now;
    world.crash(leader);
    world.run_until(5_000, |world| world.leader().is_some());
    let led = (world.now - crashed) / 1_000_000;
    world.run(200);
    let next = world.the_leader();
    let outages = world.node(next).table().outages(LogTime::ZERO);
    assert_eq!(outages.len(), before + 1, "{outages:?}");
    let length = outages[0].length.expect("it was running all the time").get();
    // The last heartbeat came at most 50 ms before the crash, and the first entry is applied a few hops behind the election.
    assert!(length.abs_diff(led) <= 80, "{length} ms, and it took {led} ms");
    let gaps = world.node(next).table().gaps(&name("job"), None, LogTime::ZERO).expect("it was held").gaps;
    assert_eq!(gaps[0].caused_by(GapCause::Outage).get(), length);
}

/// Both followers stand still with a leader that goes on saying that it is there, and dies before they go on. For how long nobody led, as the
/// next leader has it.
pub(crate) fn followers_stood_still_for(millis: u64) -> u64 {
    let mut world = cluster();
    let leader = world.the_leader();
    let _alive = Actor::streamed(&mut world, leader, 1, 60_000);
    world.run(2_000);
    let followers = world.followers();
    followers.iter().for_each(|follower| world.processes[*follower].stalled = true);
    world.run(millis);
    world.crash(leader);
    followers.iter().for_each(|follower| world.processes[*follower].stalled = false);
    world.run_until(5_000, |world| world.leader().is_some());
    world.run(200);
    let next = world.the_leader();
    world.node(next).table().outages(LogTime::ZERO)[0].length.expect("it was running all the time").get()
}

/// There to find: what was sent to them while they stood still is heard when they go on.
#[test]
fn followers_that_stood_still_know_for_how_long() {
    let length = followers_stood_still_for(6_000);
    // Less by what one stamp may be behind, and more by an election.
    assert!((5_000..7_500).contains(&length), "{length} ms");
}

/// There to find: what the last leader told of its own standstill stands in the log, not applied, and the next one tells it again.
#[test]
fn a_standstill_of_all_is_told_once() {
    let mut world = cluster();
    let leader = world.the_leader();
    let mut alive = Actor::streamed(&mut world, leader, 1, 60_000);
    world.run(2_000);
    let all: Vec<usize> = world.followers().into_iter().chain([leader]).collect();
    all.iter().for_each(|node| world.processes[*node].stalled = true);
    world.run(6_000);
    world.processes[leader].stalled = false;
    let acquire = alive.acquire("job", None);
    alive.send(&mut world, acquire);
    world.run(50);
    world.crash(leader);
    all.iter().for_each(|node| world.processes[*node].stalled = false);
    world.run_until(5_000, |world| world.leader().is_some());
    world.run(200);
    let next = world.the_leader();
    let outages = world.node(next).table().outages(LogTime::ZERO);
    let length: u64 = outages.iter().filter_map(|outage| outage.length).map(Millis::get).sum();
    assert!((5_000..8_500).contains(&length), "{outages:?}");
}

#[test]
fn an_orderly_handover_is_no_outage() {
    let mut world = cluster();
    let leader = world.the_leader();
    let _alive = Actor::streamed(&mut world, leader, 1, 60_000);
    world.run(300);
    let before = world.node(leader).table().outages(LogTime::ZERO).len();
    world.processes[leader].inbox.push(Input::Drain);
    world.run_until(5_000, |world| world.leader().is_some_and(|now| now != leader));
    world.run(200);
    let next = world.the_leader();
    let outages = world.node(next).table().outages(LogTime::ZERO);
    let new = outages.len() - before;
    assert!(new == 0 || outages[0].length.is_some_and(|length| length.get() < 60), "{outages:?}");
}

/// A name that nobody holds, and no session that lives.
fn left_alone(world: &mut World, process: usize) {
    let mut client = Actor::streamed(world, process, 1, 60_000);
    let token = client.hold(world, "job");
    let release = client.release("job", token);
    client.send(world, release);
    let close = client.op(Op::Close);
    client.send(world, close);
    world.run(300);
    assert_eq!(world.node(process).table().sizes().0, 0);
}

/// There to find: log time that nobody stamped and that the next leader cannot know of.
#[test]
fn an_idle_leader_stamps_before_it_hands_over() {
    let mut world = cluster();
    let leader = world.the_leader();
    left_alone(&mut world, leader);
    let began = world.now;
    world.run(7_000);
    world.processes[leader].inbox.push(Input::Drain);
    world.run_until(5_000, |world| world.leader().is_some_and(|now| now != leader));
    world.run(200);
    let passed = (world.now - began) / 1_000_000;
    let next = world.the_leader();
    let gaps = world.node(next).table().gaps(&name("job"), None, LogTime::ZERO).expect("it was held").gaps;
    let length = gaps[0].length().get();
    // Up to the first entry of the next leader, and 300 ms of it were over when this began.
    assert!((passed - 300..=passed + 310).contains(&length), "{length} of {passed} ms");
}

#[test]
fn an_idle_leader_without_a_quorum_stops_without_a_stamp() {
    let mut world = cluster();
    let leader = world.the_leader();
    left_alone(&mut world, leader);
    world.run(3_000);
    for follower in world.followers() {
        world.crash(follower);
    }
    world.processes[leader].inbox.push(Input::Drain);
    let took = world.run_until(5_000, |world| world.node(leader).is_drained());
    assert!(took < 3_000, "{took} ms");
}

#[test]
fn a_follower_says_that_its_client_hung_up() {
    let mut world = cluster();
    let follower = world.followers()[0];
    let mut client = Actor::streamed(&mut world, follower, 1, 3_000);
    client.hold(&mut world, "job");
    world.run(900);
    world.processes[follower].inbox.push(Input::HungUp(client.connection));
    world.processes[follower].inbox.push(Input::Disconnected(client.connection));
    world.run(5_000);
    let leader = world.the_leader();
    let gaps = world.node(leader).table().gaps(&name("job"), None, LogTime::ZERO).expect("it was held").gaps;
    let detection = gaps[0].caused_by(GapCause::Detection).get();
    assert!((2_000..2_200).contains(&detection), "900 of 3007 ms were over: {gaps:?}");
}
