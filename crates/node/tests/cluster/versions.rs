//! The version of what may stand in the log: raised when every member knows it, and handed on with everything else that is known of the
//! cluster.

use leasehold_core::protocol::{ClusterCommand, Query, ReadAnswer, Request, Response};
use leasehold_core::{Answer, ItemKind, Millis, Op, Refusal, Reply};
use leasehold_node::members::CLUSTER_VERSION;
use leasehold_node::payload::NodeSnapshot;
use leasehold_node::{Fatal, Input, Options, SavedSnapshot, founding_snapshot};

use crate::actor::{Actor, name, order};
use crate::world::{World, id_of, member};

/// The version that a node knows, that it has told its driver, and that its leader shows.
fn versions(world: &mut World, at: usize) -> (u32, Option<u32>, u32) {
    let shown = match world.call(at, Request::Read(Query::Cluster)) {
        Response::Read { answer: ReadAnswer::Cluster(view), .. } => view.version,
        other => panic!("{other:?}"),
    };
    let told = world.processes[at].members.as_ref().map(|members| members.version);
    (world.node(at).membership().version, told, shown)
}

#[test]
fn a_cluster_comes_to_the_version_of_its_founders_and_hands_it_to_whoever_joins() {
    let mut world = World::cluster(1);
    assert_eq!(versions(&mut world, 0), (CLUSTER_VERSION, Some(CLUSTER_VERSION), CLUSTER_VERSION));
    assert_eq!(world.node(0).table().version(), CLUSTER_VERSION);
    let blank = world.add_process(None);
    world.run(100);
    assert_eq!(world.node(blank).membership().version, 0, "it does not know any cluster");
    order(&mut world, 0, ClusterCommand::Add(member(blank)));
    world.run(300);
    assert_eq!(versions(&mut world, blank), (CLUSTER_VERSION, Some(CLUSTER_VERSION), CLUSTER_VERSION));
    world.crash(blank);
    world.start(blank);
    assert_eq!(world.node(blank).membership().version, CLUSTER_VERSION);
}

#[test]
fn a_later_version_is_kept_by_entries_snapshots_and_restarts() {
    // Peers compare it when they meet: a node that took it for its own would be let in where it should not be.
    let later = CLUSTER_VERSION + 1;
    let SavedSnapshot { index, term, bytes } =
        founding_snapshot(&leasehold_core::Config::default(), (0..3).map(member).collect());
    let mut read = NodeSnapshot::decode(&bytes).expect("it was just written");
    read.roster.version = later;
    let changes = read.changes.expect("it has changes");
    let bytes =
        NodeSnapshot::encode(read.voters, &read.roster, read.outcomes, read.stamped, &changes, &read.table);
    let options = Options { snapshot_entries: 10, cluster_version: later, ..Options::default() };
    let mut world = World::founded(3, options, 3);
    for process in 0..3 {
        world.crash(process);
        world.processes[process].disk.corrupt(|_| bytes.clone());
        world.start(process);
    }
    assert_eq!((index, term), (1, 1));
    world.run_until(3_000, |world| world.leader().is_some());
    let new = world.add_process(None);
    order(&mut world, 0, ClusterCommand::Add(member(new)));
    world.run_until(3_000, |world| !world.node(new).membership().is_blank());
    let mut client = Actor::streamed(&mut world, new, 1, 2_000);
    for _ in 0..10 {
        world.run(500);
        client.renewed(&mut world);
    }
    for process in 0..4 {
        assert!(world.processes[process].disk.covered() > 10, "a snapshot was taken");
        world.crash(process);
    }
    for process in 0..4 {
        world.start(process);
        assert_eq!(world.node(process).membership().version, later);
    }
    world.run_until(3_000, |world| world.leader().is_some());
    for process in 0..4 {
        assert_eq!(versions(&mut world, process).2, later);
    }
}

/// What each process tells every other when they meet.
fn meet(world: &mut World, knows: [u32; 3]) {
    for one in 0..3 {
        for other in (0..3).filter(|other| *other != one) {
            let knows = Input::PeerKnows { member: id_of(one), version: knows[one] };
            world.processes[other].inbox.push(knows);
        }
    }
    world.run(500);
}

#[test]
fn the_version_is_raised_when_the_last_member_knows_it_and_not_before() {
    let (now, later) = (CLUSTER_VERSION, CLUSTER_VERSION + 1);
    let mut world = World::cluster(3);
    meet(&mut world, [now; 3]);
    let mut knows = [now; 3];
    world.options.cluster_version = later;
    for upgraded in 0..3 {
        assert!((0..3).all(|process| world.node(process).membership().version == now));
        world.crash(upgraded);
        world.start(upgraded);
        world.run_until(3_000, |world| world.leader().is_some());
        knows[upgraded] = later;
        meet(&mut world, knows);
    }
    world.run(1_000);
    for process in 0..3 {
        let versions = versions(&mut world, process);
        assert_eq!((versions.0, versions.2), (later, later));
    }
    // Whoever is set back to a release that does not know it stops, rather than to read what it does not understand.
    world.options.cluster_version = now;
    world.crash(1);
    let begun = world.try_start(1).map(|()| {
        world.run(2_000);
        world.processes[1].fatal.clone()
    });
    let too_old = Fatal::TooOld { needs: later, knows: now };
    assert!(begun == Ok(Some(too_old.clone())) || begun == Err(too_old), "{begun:?}");
}

/// The answers that a stream has got, in order.
fn answers(world: &mut World, client: &Actor) -> Vec<Answer> {
    let items = world.items(client.connection).into_iter();
    items
        .filter_map(|item| match item.kind {
            ItemKind::Answer { answer, .. } => Some(answer),
            _ => None,
        })
        .collect()
}

#[test]
fn what_came_with_a_version_is_kept_out_of_the_log_until_every_member_knows_it() {
    let mut world = World::founded(3, Options { cluster_version: 1, ..Options::default() }, 7);
    world.run_until(3_000, |world| world.leader().is_some());
    meet(&mut world, [1; 3]);
    let (leader, follower) = (world.the_leader(), world.followers()[0]);
    let mut stream = Actor::streamed(&mut world, follower, 1, 60_000);
    let token = stream.hold(&mut world, "job");
    let plain = Actor::plain(&mut world, leader, 2, 60_000);
    let taken = plain.take(&mut world, "other");
    let shows = |resource: &str, token| Op::SetDraining {
        resource: name(resource),
        token,
        in_flight: 2,
        within: Millis::new(1_000),
    };
    // Through a member that does not lead, and through the one that does.
    for at in [follower, leader] {
        let refused = world.call(at, plain.plain_op(shows("other", taken)));
        assert_eq!(refused, Response::Reply(Reply::Refused(Refusal::NotYetInUse)));
    }
    let drains = stream.op(shows("job", token));
    stream.send(&mut world, drains);
    let number = stream.command;
    let after = stream.acquire("next", None);
    stream.send(&mut world, after);
    world.run(500);
    let heard = answers(&mut world, &stream);
    let in_its_place = Answer::Refused(Refusal::NoSuchWait { acquire: number });
    assert!(matches!(&heard[..], [.., refused, Answer::Granted(_)] if *refused == in_its_place), "{heard:?}");

    world.options.cluster_version = 2;
    for process in 0..3 {
        world.crash(process);
        world.start(process);
        world.run_until(3_000, |world| world.leader().is_some());
    }
    meet(&mut world, [2; 3]);
    world.run(1_000);
    assert!((0..3).all(|process| world.node(process).table().version() == 2));
    let shown = world.call(follower, plain.plain_op(shows("other", taken)));
    let is_shown = matches!(&shown, Response::Reply(Reply::Plain { answer: Answer::DrainingShown, .. }));
    assert!(is_shown, "{shown:?}");
    let view = world.node(follower).table().lease(&name("other")).expect("it is held");
    assert_eq!(view.holders[0].draining.map(|shown| shown.in_flight), Some(2));
}
