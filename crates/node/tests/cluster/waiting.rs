//! Requests while nobody leads, and while there is no room.

use leasehold_core::protocol::{Failure, RequestId, Response};
use leasehold_core::{Answer, ItemKind, Reply};
use leasehold_node::{CALLS, Input, PeerMessage};

use crate::actor::{Actor, look, plain_grant};
use crate::world::{World, id_of, is_unavailable};

/// Requests that wait at most, for a leader or for a leader's disk.
const MAX_QUEUED: usize = 65_536;

#[test]
fn requests_wait_for_somebody_to_lead() {
    let mut world = World::cluster(3);
    let (leader, one) = (world.the_leader(), world.followers()[0]);
    let plain = Actor::plain(&mut world, one, 1, 60_000);
    world.crash(leader);
    world.run_until(2_000, |world| world.node(one).leader().is_none());
    let acquires = world.ask(one, CALLS, plain.held_acquire("job", 1, 1));
    plain_grant(&world.wait(acquires));
}

#[test]
fn nobody_waits_for_a_leader_for_ever() {
    let mut world = World::cluster(3);
    let (leader, followers) = (world.the_leader(), world.followers());
    let plain = Actor::plain(&mut world, followers[0], 1, 60_000);
    world.crash(leader);
    world.crash(followers[1]);
    world.run_until(2_000, |world| world.node(followers[0]).leader().is_none());
    let begin = world.now;
    let acquires = world.ask(followers[0], CALLS, plain.held_acquire("job", 1, 1));
    let read = world.ask(followers[0], CALLS, look("job"));
    let response = world.wait(acquires);
    let waited = (world.now - begin) / 1_000_000;
    assert!((4_900..5_200).contains(&waited), "answered after {waited} ms");
    let Response::Failed(Failure::Unavailable { why }) = &response else { panic!("{response:?}") };
    assert!(why.contains("no node leads"), "{why}");
    assert!(is_unavailable(&world.wait(read)));
    world.start(leader);
    world.run_until(3_000, |world| world.leader().is_some());
    world.run(500);
    assert_eq!(world.checks.count(1), 0, "what was refused takes no effect");
}

#[test]
fn a_request_that_was_sent_in_vain_has_waited_since_it_came() {
    // A leader is silent for 300 to 600 ms before it counts as lost; or it says, after a while, that it does not lead.
    for says_so in [false, true] {
        let mut world = World::cluster(3);
        let (leader, followers) = (world.the_leader(), world.followers());
        world.crash(followers[1]);
        world.processes[leader].stalled = true;
        let begin = world.now;
        let asks = world.ask(followers[0], CALLS, look("job"));
        world.run(200);
        if says_so {
            let message = PeerMessage::NotLeading { connection: CALLS, id: asks };
            world.processes[followers[0]].inbox.push(Input::Peer { from: id_of(leader), message });
        }
        assert!(is_unavailable(&world.wait(asks)));
        let waited = (world.now - begin) / 1_000_000;
        assert!((4_990..=5_020).contains(&waited), "told after {waited} ms");
    }
}

#[test]
fn more_than_may_wait_for_a_leader_is_refused_at_once() {
    let mut world = World::cluster(3);
    let (leader, followers) = (world.the_leader(), world.followers());
    world.crash(leader);
    world.crash(followers[1]);
    world.run_until(2_000, |world| world.node(followers[0]).leader().is_none());
    let ids: Vec<RequestId> = (0..=MAX_QUEUED).map(|_| world.ask(followers[0], CALLS, look("job"))).collect();
    world.turn(followers[0]);
    assert_eq!(world.sent.len(), 1);
    assert!(is_unavailable(&world.response(ids[MAX_QUEUED]).expect("there is no room for it")));
    world.run(6_000);
    assert_eq!(world.sent.len(), MAX_QUEUED, "and everybody else is told in the end");
}

#[test]
fn what_a_leader_has_no_room_for_is_refused_through_a_follower() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let plain = Actor::plain(&mut world, follower, 1, 60_000);
    world.processes[leader].disk.stuck = true;
    let first = world.ask(follower, CALLS, plain.plain_renew());
    world.run(20);
    // That one is on its way to the disk; these wait for it.
    let ids: Vec<RequestId> =
        (0..=MAX_QUEUED).map(|_| world.ask(follower, CALLS, plain.plain_renew())).collect();
    world.run(20);
    assert!(is_unavailable(&world.response(ids[MAX_QUEUED]).expect("there is no room for it")));
    assert!(world.response(first).is_none() && world.response(ids[MAX_QUEUED - 1]).is_none());
    world.processes[leader].disk.stuck = false;
    world.run(200);
    assert_eq!(world.sent.len(), MAX_QUEUED + 1);
}

#[test]
fn a_caller_that_gives_up_while_nobody_leads_is_forgotten() {
    let mut world = World::cluster(3);
    let (leader, followers) = (world.the_leader(), world.followers());
    let plain = Actor::plain(&mut world, followers[0], 1, 60_000);
    world.crash(leader);
    world.run_until(2_000, |world| world.node(followers[0]).leader().is_none());
    let acquires = world.ask(followers[0], CALLS, plain.held_acquire("job", 1, 1));
    world.turn(followers[0]);
    world.processes[followers[0]].inbox.push(Input::Abandoned { connection: CALLS, id: acquires });
    world.run(3_000);
    assert!(world.leader().is_some());
    assert_eq!(world.checks.count(1), 0);
    assert!(world.response(acquires).is_none());
}

#[test]
fn a_leader_whose_disk_is_full_lets_another_lead() {
    let mut world = World::cluster(3);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let plain = Actor::plain(&mut world, follower, 2, 60_000);
    world.processes[leader].inbox.push(Input::Space { enough: false });
    world.run(1_000);
    assert_ne!(world.the_leader(), leader);
    plain.take(&mut world, "job");
}

#[test]
fn a_full_disk_refuses_what_takes_room_and_takes_in_what_renews_or_ends() {
    // Nobody else could lead.
    let mut world = World::cluster(1);
    let leader = world.the_leader();
    let follower = leader;
    let mut stream = Actor::streamed(&mut world, follower, 1, 5_000);
    let token = stream.hold(&mut world, "job");
    let plain = Actor::plain(&mut world, leader, 2, 5_000);
    world.processes[leader].inbox.push(Input::Space { enough: false });
    let response = world.call(follower, plain.held_acquire("other", 1, 1));
    let Response::Failed(Failure::Unavailable { why }) = &response else { panic!("{response:?}") };
    assert!(why.contains("full"), "{why}");
    let open = Actor::new(follower, CALLS, 9, 5_000).open();
    assert!(is_unavailable(&world.call(follower, open)));
    stream.renewed(&mut world);
    assert!(matches!(world.call(follower, plain.plain_renew()), Response::Reply(Reply::Renewed(_))));
    let release = stream.release("job", token);
    stream.send(&mut world, release);
    world.run(100);
    let items = world.items(stream.connection);
    let released = |kind: &ItemKind| matches!(kind, ItemKind::Answer { answer: Answer::Released, .. });
    assert!(items.iter().any(|item| released(&item.kind)), "{items:?}");
    world.processes[leader].inbox.push(Input::Space { enough: true });
    plain.take(&mut world, "job");
}

#[test]
fn a_later_request_does_not_keep_an_earlier_one_waiting() {
    let mut world = World::cluster(3);
    let (leader, followers) = (world.the_leader(), world.followers());
    let one = followers[0];
    world.crash(followers[1]);
    world.processes[leader].stalled = true;
    let begin = world.now;
    let first = world.ask(one, CALLS, look("job"));
    // Somebody asks in every turn, so also in the one in which the silence of the leader is noticed.
    for _ in 0..140 {
        world.hop();
        world.ask(one, CALLS, look("job"));
    }
    world.wait(first);
    let waited = (world.now - begin) / 1_000_000;
    assert!((4_990..=5_020).contains(&waited), "told after {waited} ms");
}
