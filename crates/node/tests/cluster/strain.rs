//! Slow disks, full disks, members that are behind: what costs time must cost nobody a lease.

use leasehold_core::answer::Renewed;
use leasehold_core::protocol::{ClusterCommand, Request, Response};
use leasehold_core::{Answer, CommandNumber, ItemKind, Op, Refusal, Reply};
use leasehold_node::{CALLS, Input};

use crate::actor::{Actor, holder, order, plain_grant};
use crate::world::{World, is_unknown};

fn is_renewed(response: Option<&Response>) -> bool {
    matches!(response, Some(Response::Reply(Reply::Renewed(Renewed { .. }))))
}

#[test]
fn disks_that_take_longer_than_an_election_are_served() {
    for delay in [50, 320, 400, 600] {
        let mut world = World::cluster(3);
        let leader = world.the_leader();
        let plain = Actor::plain(&mut world, leader, 1, 200_000);
        world.disk_delay = (delay * 1_000_000, delay * 1_000_000);
        world.run(5_000);
        let asked: Vec<_> = (0..20)
            .map(|_| {
                let id = world.ask(leader, CALLS, plain.plain_renew());
                world.run(500);
                id
            })
            .collect();
        world.run(5_000);
        let renewed = asked.iter().filter(|id| is_renewed(world.response(**id).as_ref())).count();
        assert!(renewed >= 18, "with {delay} ms for a write {renewed} of 20 renewals: {}", world.standing());
    }
}

#[test]
fn slow_disks_elect_a_leader() {
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    world.disk_delay = (500_000_000, 500_000_000);
    world.run(3_000);
    world.crash(leader);
    let took = world.run_until(20_000, |world| world.leader().is_some_and(|now| now != leader));
    assert!(took < 15_000, "{took} ms: {}", world.standing());
}

#[test]
fn a_disk_that_stands_still_for_good_does_not_look_alive() {
    let mut world = World::cluster(3);
    let (leader, followers) = (world.the_leader(), world.followers());
    let plain = Actor::plain(&mut world, leader, 1, 200_000);
    for follower in followers {
        world.processes[follower].disk.stuck = true;
    }
    let asks = world.ask(leader, CALLS, plain.plain_renew());
    world.run(8_000);
    assert!(is_unknown(&world.response(asks).expect("it is told")), "it was proposed, and nobody can say");
    assert_eq!(world.leader(), None, "two of three write nothing");
}

#[test]
fn a_caller_of_a_follower_that_stops_is_not_told_that_nothing_happened() {
    let mut world = World::cluster(3);
    let follower = world.followers()[0];
    let plain = Actor::plain(&mut world, follower, 1, 60_000);
    world.net.delay = (20_000_000, 20_000_000);
    let id = world.ask(follower, CALLS, plain.held_acquire("job", 10_000, 77));
    world.run_until(1_000, |world| world.checks.count(77) == 1);
    assert!(world.response(id).is_none(), "it is granted, and the answer is on its way");
    world.processes[follower].inbox.push(Input::Drain);
    assert!(is_unknown(&world.wait(id)));
}

#[test]
fn a_full_disk_that_comes_to_lead_lets_one_with_room_lead() {
    let mut world = World::cluster(3);
    let (leader, full) = (world.the_leader(), world.followers()[0]);
    let plain = Actor::plain(&mut world, leader, 1, 60_000);
    world.processes[full].inbox.push(Input::Space { enough: false });
    world.run(100);
    let to = Some(format!("n{}", full + 1));
    order(&mut world, leader, ClusterCommand::Transfer { to });
    world.run(5_000);
    plain_grant(&world.call(leader, plain.held_acquire("job", 1, 5)));
    assert_ne!(world.leader(), Some(full));
}

#[test]
fn the_only_disk_with_room_comes_to_lead() {
    for with_room in 0..3 {
        let mut world = World::cluster(3);
        let leader = world.the_leader();
        let plain = Actor::plain(&mut world, leader, 1, 60_000);
        for full in (0..3).filter(|node| *node != with_room) {
            world.processes[full].inbox.push(Input::Space { enough: false });
            world.run(300);
        }
        world.run(5_000);
        plain_grant(&world.call(leader, plain.held_acquire("job", 1, 5)));
        assert_eq!(world.leader(), Some(with_room));
    }
}

#[test]
fn where_every_disk_is_full_leadership_comes_to_rest() {
    let mut world = World::cluster(3);
    for node in 0..3 {
        world.processes[node].inbox.push(Input::Space { enough: false });
    }
    world.run(10_000);
    let leader = world.the_leader();
    for _ in 0..100 {
        world.run(100);
        assert_eq!(world.leader(), Some(leader));
    }
}

#[test]
fn a_stream_on_a_full_disk_lets_go_behind_what_was_refused() {
    let mut world = World::cluster(1);
    let leader = world.the_leader();
    let mut stream = Actor::streamed(&mut world, leader, 1, 60_000);
    let token = stream.hold(&mut world, "job");
    world.processes[leader].inbox.push(Input::Space { enough: false });
    let acquire = stream.acquire("other", Some(5_000));
    stream.send(&mut world, acquire);
    let release = stream.release("job", token);
    stream.send(&mut world, release);
    world.run(500);
    let items = world.items(stream.connection).into_iter().map(|item| item.kind);
    let answers: Vec<Answer> = items
        .filter_map(|kind| match kind {
            ItemKind::Answer { answer, .. } => Some(answer),
            _ => None,
        })
        .collect();
    assert!(answers.ends_with(&[Answer::Refused(Refusal::NoRoom), Answer::Released]), "{answers:?}");
    assert_eq!(holder(&mut world, leader, "job"), None, "it is released");
    assert_eq!(holder(&mut world, leader, "other"), None, "nothing is granted without room");
}

#[test]
fn log_time_waits_while_nothing_can_be_committed() {
    let mut world = World::cluster(3);
    let (leader, followers) = (world.the_leader(), world.followers());
    let mut stream = Actor::streamed(&mut world, leader, 1, 10_000);
    let token = stream.hold(&mut world, "job");
    stream.renewed(&mut world);
    // One is far behind and is being brought up; the other dies.
    world.net.held_up = Some((leader, followers[0]));
    world.crash(followers[1]);
    for _ in 0..4 {
        let renewal = stream.renew();
        stream.send(&mut world, renewal);
        world.run(3_300);
    }
    world.net.held_up = None;
    world.run(3_000);
    let now = world.the_leader();
    assert_eq!(holder(&mut world, now, "job"), Some(token));
}

#[test]
fn a_node_is_not_ready_before_it_is_as_far_as_its_leader_was() {
    let mut world = World::cluster(3);
    let (leader, behind) = (world.the_leader(), world.followers()[0]);
    let plain = Actor::plain(&mut world, leader, 1, 200_000);
    world.crash(behind);
    for _ in 0..300 {
        world.call(leader, plain.plain_renew());
    }
    world.start(behind);
    world.net.held_up = Some((leader, behind));
    world.run(3_000);
    assert_eq!(world.node(behind).leader(), world.node(leader).leader(), "it hears its leader");
    assert!(!world.node(behind).is_caught_up());
    world.net.held_up = None;
    world.run_until(3_000, |world| world.node(behind).is_caught_up());
    assert!(world.node(behind).applied() >= 300);
}

#[test]
fn renewals_are_taken_in_while_a_handover_waits_for_the_disk() {
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    world.disk_delay = (90_000_000, 90_000_000);
    let short = Actor::plain(&mut world, leader, 1, 1_000);
    let token = short.take(&mut world, "job");
    let plain = Actor::plain(&mut world, leader, 3, 60_000);
    for _ in 0..40_000 {
        let cancel = plain.plain_op(Op::Cancel { acquire: CommandNumber::new(1) });
        world.ask(leader, CALLS, cancel);
    }
    world.hop();
    world.ask(leader, CALLS, Request::Cluster(ClusterCommand::Transfer { to: None }));
    let mut renewed = 0;
    for _ in 0..10 {
        let id = world.ask(leader, CALLS, short.plain_renew());
        world.run(250);
        renewed += usize::from(is_renewed(world.response(id).as_ref()));
    }
    assert!(renewed >= 3, "{renewed} of 10");
    let now = world.the_leader();
    assert_eq!(holder(&mut world, now, "job"), Some(token));
}
