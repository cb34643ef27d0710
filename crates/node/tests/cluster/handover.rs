//! Leadership is handed over: asked for, in order to stop, or because a disk stands still.

use leasehold_core::Reply;
use leasehold_core::protocol::{ClusterCommand, ClusterRefusal, ClusterReply, Response};
use leasehold_node::{CALLS, Input};

use crate::actor::{Actor, holder, order, plain_grant};
use crate::world::{World, id_of, is_unavailable, is_unknown};

fn transfer(to: Option<usize>) -> ClusterCommand {
    ClusterCommand::Transfer { to: to.map(|process| format!("n{}", process + 1)) }
}

#[test]
fn leadership_goes_to_whom_it_is_asked_for() {
    let mut world = World::cluster(3);
    for (at, to) in [(0, 2), (1, 0), (2, 1), (1, 1)] {
        let reply = order(&mut world, at, transfer(Some(to)));
        assert_eq!(reply, ClusterReply::Transferred { to: id_of(to) });
        world.run_until(1_000, |world| world.leader() == Some(to));
    }
}

#[test]
fn leadership_can_be_handed_over_at_any_moment() {
    // Raft forgets at every look for its quorum whom it has heard of; that must not be taken for silence.
    let mut world = World::cluster(3);
    world.net.delay = (20_000_000, 20_000_000);
    for step in 0..30 {
        // A look comes every 300 ms.
        world.run(180 + 5 * step);
        let leader = world.the_leader();
        let reply = order(&mut world, leader, transfer(None));
        assert!(matches!(reply, ClusterReply::Transferred { to } if to != id_of(leader)), "{reply:?}");
        world.run_until(1_000, |world| world.leader().is_some());
    }
}

#[test]
fn nobody_is_handed_over_to_who_cannot_be_reached() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    world.crash(follower);
    world.run(1_000);
    let refused = ClusterReply::Refused(ClusterRefusal::NobodyToTakeOver);
    assert_eq!(order(&mut world, leader, transfer(Some(follower))), refused);
    let nobody = ClusterRefusal::NoSuchMember { name: "n9".into() };
    assert_eq!(order(&mut world, leader, transfer(Some(8))), ClusterReply::Refused(nobody));
    assert_eq!(world.leader(), Some(leader));
}

#[test]
fn a_handover_that_is_lost_on_the_way_is_given_up_and_what_waited_is_served() {
    let mut world = World::cluster(3);
    let (leader, to) = (world.the_leader(), world.followers()[0]);
    let plain = Actor::plain(&mut world, leader, 1, 60_000);
    let asks = world.ask(leader, CALLS, leasehold_core::protocol::Request::Cluster(transfer(Some(to))));
    // The order to begin an election is lost.
    world.net.cut(leader, to, world.now, (1_000_000_000, 1_000_000_000));
    world.run(20);
    let acquires = world.ask(leader, CALLS, plain.held_acquire("job", 1, 1));
    let refused = Response::Cluster(ClusterReply::Refused(ClusterRefusal::NobodyToTakeOver));
    assert_eq!(world.wait(asks), refused);
    plain_grant(&world.wait(acquires));
    assert_eq!(world.leader(), Some(leader));
}

#[test]
fn a_leader_that_is_told_to_stop_hands_over_and_loses_and_doubles_nothing() {
    for phase in 0..13 {
        let mut world = World::cluster(3);
        let (leader, followers) = (world.the_leader(), world.followers());
        let plain: Vec<Actor> =
            (0..6).map(|number| Actor::plain(&mut world, number % 3, number as u64, 60_000)).collect();
        let waits = Actor::plain(&mut world, leader, 20, 60_000);
        plain[0].take(&mut world, "taken");
        let held = world.ask(leader, CALLS, waits.held_acquire("taken", 60_000, 99));
        world.run(60 + 25 * phase);
        let mut asked = Vec::new();
        for round in 0..6 {
            for (number, caller) in plain.iter().enumerate() {
                let tag = 1_000 + round * 10 + number as u64;
                let at = if round > 3 { followers[0] } else { (number + 1) % 3 };
                let acquire = caller.held_acquire(&format!("job/{tag}"), 1, tag);
                asked.push((tag, world.ask(at, CALLS, acquire)));
            }
            if round == 1 {
                world.processes[leader].inbox.push(Input::Drain);
            }
            world.hop();
        }
        world.run_until(3_000, |world| world.node(leader).is_drained());
        world.run_until(1_000, |world| world.leader().is_some());
        assert_ne!(world.leader(), Some(leader));
        assert!(is_unknown(&world.wait(held)), "the new leader knows its wait, and nobody here does");
        for (tag, id) in asked {
            let response = world.wait(id);
            let count = world.checks.count(tag);
            if is_unavailable(&response) {
                assert_eq!(count, 0, "{tag}");
            } else if is_unknown(&response) {
                // It was sent to a leader that was handing over, or by it to the next; whoever sent it does not know how far it came.
                assert!(count <= 1, "{tag}");
            } else {
                plain_grant(&response);
                assert_eq!(count, 1, "{tag}");
            }
        }
    }
}

#[test]
fn a_leader_that_is_alone_stops_without_handing_over() {
    let mut world = World::cluster(3);
    let (leader, followers) = (world.the_leader(), world.followers());
    let plain = Actor::plain(&mut world, leader, 1, 60_000);
    world.crash(followers[0]);
    world.crash(followers[1]);
    let renews = world.ask(leader, CALLS, plain.plain_renew());
    world.processes[leader].inbox.push(Input::Drain);
    world.run_until(6_000, |world| world.node(leader).is_drained());
    assert!(is_unknown(&world.wait(renews)));
}

#[test]
fn a_leader_whose_disk_stands_still_hands_over_in_time() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let mut stream = Actor::streamed(&mut world, leader, 1, 3_000);
    let token = stream.hold(&mut world, "job");
    world.processes[leader].disk.stuck = true;
    let renew = stream.renew();
    let renews = stream.send(&mut world, renew);
    let took = world.run_until(5_000, |world| world.leader().is_some_and(|now| now != leader));
    assert!(took <= 1_200, "it took {took} ms, more than two election timeouts");
    world.run(50);
    assert!(world.is_closed(stream.connection));
    assert!(!matches!(world.response(renews), Some(Response::Reply(Reply::Renewed(_)))));
    stream.attaches(&mut world, follower);
    stream.renewed(&mut world);
    // It follows, and comes back when its disk does.
    world.processes[leader].disk.stuck = false;
    world.run(500);
    assert_eq!(world.node(leader).applied(), world.checks.applied());
    assert_eq!(holder(&mut world, leader, "job"), Some(token));
}

#[test]
fn a_follower_whose_disk_stands_still_holds_nobody_up() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let mut stream = Actor::streamed(&mut world, leader, 1, 3_000);
    world.processes[follower].disk.stuck = true;
    for _ in 0..6 {
        world.run(300);
        stream.renewed(&mut world);
    }
    assert_eq!(world.leader(), Some(leader));
    // What it has not synced it has not acknowledged: without the other one nothing is confirmed.
    let other = 3 - leader - follower;
    world.crash(other);
    let renew = stream.renew();
    let renews = stream.send(&mut world, renew);
    world.run(200);
    assert!(world.response(renews).is_none());
    world.processes[follower].disk.stuck = false;
    assert!(matches!(world.wait(renews), Response::Reply(Reply::Renewed(_))));
}
