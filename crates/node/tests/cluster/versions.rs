//! The version of what may stand in the log: founded with the cluster, and handed on with everything else that is known of it.

use leasehold_core::protocol::{ClusterCommand, Query, ReadAnswer, Request, Response};
use leasehold_node::members::CLUSTER_VERSION;
use leasehold_node::payload::NodeSnapshot;
use leasehold_node::{Options, SavedSnapshot, founding_snapshot};

use crate::actor::{Actor, order};
use crate::mistake::Mistake;
use crate::world::{World, member};

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
fn a_cluster_has_the_version_of_its_founders_and_hands_it_to_whoever_joins() {
    let mut world = World::cluster(1);
    assert_eq!(versions(&mut world, 0), (CLUSTER_VERSION, None, CLUSTER_VERSION));
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
    let options = Options { snapshot_entries: 10, ..Options::default() };
    let mut world = World::founded(3, options, 3, Mistake::None);
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
