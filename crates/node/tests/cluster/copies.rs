//! Copies of the state: sent to those that need more than the log has, compared, old, other, or gone.

use leasehold_core::protocol::ClusterCommand;
use leasehold_node::payload::NodeSnapshot;
use leasehold_node::{Fatal, Options};

use crate::actor::{Actor, holder, order};
use crate::world::{World, id_of, member};

/// Snapshots after a few entries, so that a leader that was started again has a short log.
fn short_logs() -> World {
    let options = Options { snapshot_entries: 12, ..Options::default() };
    let mut world = World::founded(3, options, 9);
    world.run_until(3_000, |world| world.leader().is_some());
    world
}

/// Makes entries with something to watch.
fn busy(world: &mut World, at: usize, number: u64, entries: usize) -> Actor {
    let mut client = Actor::streamed(world, at, number, 60_000);
    for _ in 0..entries {
        let token = client.hold(world, "busy");
        let release = client.release("busy", token);
        client.send(world, release);
        world.run(20);
    }
    client
}

#[test]
fn a_follower_that_is_far_behind_gets_a_snapshot_and_its_watchers_go_on_from_it() {
    let mut world = short_logs();
    let behind = world.followers()[0];
    world.crash(behind);
    let leader = world.the_leader();
    busy(&mut world, leader, 1, 20);
    // Whoever begins anew has what is behind its snapshot, and no more.
    for process in (0..3).filter(|process| *process != behind) {
        world.crash(process);
        world.start(process);
    }
    world.run_until(3_000, |world| world.leader().is_some());
    world.start(behind);
    world.run(1_500);
    assert!(world.processes[behind].replaced > 0, "it got a snapshot");
    assert_eq!(world.node(behind).applied(), world.checks.applied());
    for process in 0..3 {
        let node = world.processes[process].node.as_ref().expect("it runs");
        world.checks.compare_changes(node);
        assert!(node.is_caught_up());
    }
    assert!(world.node(behind).changes().kept().count() >= 40);
    // What was installed is what it finds again.
    world.crash(behind);
    world.start(behind);
    world.run(300);
    assert_eq!(world.node(behind).applied(), world.checks.applied());
}

#[test]
fn a_process_that_dies_before_its_snapshot_is_synced_has_acknowledged_nothing() {
    let mut world = World::cluster(1);
    busy(&mut world, 0, 1, 3);
    let blank = world.add_process(None);
    order(&mut world, 0, ClusterCommand::Add(member(blank)));
    world.disk_delay = (30_000_000, 30_000_000);
    world.run_until(2_000, |world| world.processes[blank].replaced == 1);
    world.processes[blank].disk.stuck = true;
    world.disk_delay = (0, 0);
    world.run(300);
    assert!(!world.processes[blank].disk.is_idle());
    let refused = order(&mut world, 0, ClusterCommand::Promote { name: "n2".into() });
    assert!(format!("{refused:?}").contains("NotCaughtUp"), "{refused:?}");
    world.crash(blank);
    assert_eq!(world.processes[blank].disk.covered(), 0);
    world.start(blank);
    world.run(1_500);
    assert_eq!(world.processes[blank].replaced, 2, "it is sent again");
    assert_eq!(world.node(blank).applied(), world.checks.applied());
}

#[test]
fn an_older_snapshot_of_its_own_does_not_replace_the_one_it_was_sent() {
    let mut world = short_logs();
    let behind = world.followers()[0];
    let leader = world.the_leader();
    busy(&mut world, leader, 1, 3);
    // Its own snapshot is on its way to a disk that stands still.
    world.processes[behind].disk.stuck = true;
    busy(&mut world, leader, 2, 8);
    world.isolate(behind);
    busy(&mut world, leader, 3, 10);
    for process in (0..3).filter(|process| *process != behind) {
        world.crash(process);
        world.start(process);
    }
    world.run_until(3_000, |world| world.leader().is_some());
    world.net.heal_all();
    world.run(500);
    world.processes[behind].disk.stuck = false;
    world.run(1_000);
    let (covered, applied) = (world.processes[behind].disk.covered(), world.node(behind).applied());
    assert_eq!(applied, world.checks.applied());
    world.crash(behind);
    world.start(behind);
    world.run(300);
    assert!(world.processes[behind].disk.covered() >= covered);
    assert!(world.node(behind).applied() >= applied);
}

/// Somebody else joins while a snapshot is being made for one that is gone by then: that one would not find itself in it.
#[test]
fn a_snapshot_made_before_the_members_changed_is_sent_to_nobody() {
    let mut world = World::cluster(1);
    busy(&mut world, 0, 1, 3);
    world.processes[0].makes_nothing = true;
    let gone = world.add_process(None);
    order(&mut world, 0, ClusterCommand::Add(member(gone)));
    world.run_until(2_000, |world| world.processes[0].making.is_some());
    order(&mut world, 0, ClusterCommand::Remove { name: member(gone).name });
    let comes = world.add_process(None);
    order(&mut world, 0, ClusterCommand::Add(member(comes)));
    world.run(300);
    world.processes[0].makes_nothing = false;
    world.run_until(3_000, |world| world.processes[comes].replaced > 0);
    world.run(300);
    assert_eq!(world.node(comes).applied(), world.checks.applied());
}

#[test]
fn a_replica_that_came_to_something_else_stops() {
    let mut world = short_logs();
    let leader = world.the_leader();
    let mut client = busy(&mut world, leader, 1, 10);
    let other = world.followers()[0];
    world.run(200);
    world.crash(other);
    assert!(world.processes[other].disk.covered() > 1);
    // The same members and the same hash of all that was before, but a table in which none of it happened.
    world.processes[other].disk.corrupt(|bytes| {
        let read = NodeSnapshot::decode(bytes).expect("it was just written");
        let changes = read.changes.expect("it has changes");
        let table = leasehold_core::LeaseTable::new(read.table.config().clone());
        NodeSnapshot::encode(read.voters, &read.roster, read.outcomes, read.stamped, &changes, &table)
    });
    world.start(other);
    client.hold(&mut world, "job");
    world.run(3_000);
    let fatal = world.processes[other].fatal.take();
    assert!(matches!(fatal, Some(Fatal::Diverged { .. })), "{fatal:?}");
    // The others go on, and what the checks saw of the wrong table was planted.
    client.renewed(&mut world);
    assert!(world.checks.violations.iter().all(|what| what.contains("not what the log says")
        || what.contains("out of turn")
        || what.contains("not told")));
    world.checks.violations.clear();
}

#[test]
fn a_directory_that_was_set_back_stops() {
    let mut world = World::cluster(3);
    let (leader, set_back) = (world.the_leader(), world.followers()[0]);
    let copy = world.processes[set_back].disk.copy();
    let mut client = busy(&mut world, leader, 1, 5);
    world.crash(set_back);
    world.processes[set_back].disk = copy;
    world.start(set_back);
    world.run(500);
    let fatal = world.processes[set_back].fatal.clone();
    assert!(matches!(&fatal, Some(Fatal::Invariant(why)) if why.contains("old copy")), "{fatal:?}");
    client.renewed(&mut world);
}

#[test]
fn a_member_whose_committed_entries_were_overwritten_by_those_who_forgot_them_stops() {
    for entries_of_the_others in [1, 20] {
        let mut world = World::cluster(3);
        let (leader, followers) = (world.the_leader(), world.followers());
        let (set_back, behind) = (followers[0], followers[1]);
        let copy = world.processes[set_back].disk.copy();
        world.isolate(behind);
        busy(&mut world, leader, 1, 5);
        world.crash(leader);
        world.crash(set_back);
        world.processes[set_back].disk = copy;
        world.net.heal_all();
        world.start(set_back);
        world.run_until(3_000, |world| world.leader().is_some());
        // They are fewer entries than were forgotten, or more.
        let other = world.the_leader();
        busy(&mut world, other, 2, entries_of_the_others);
        world.start(leader);
        world.run(1_500);
        let fatal = world.processes[leader].fatal.take();
        assert!(matches!(&fatal, Some(Fatal::Invariant(why)) if why.contains("set back")), "{fatal:?}");
        // What the checks saw was planted.
        assert!(!world.checks.violations.is_empty());
        world.checks.violations.clear();
    }
}

#[test]
fn a_founder_that_is_still_blank_gets_a_snapshot_and_counts() {
    let mut world = World::founded(3, Options::default(), 4);
    // It crashed after the others had learnt its id, and before it wrote anything.
    world.crash(2);
    world.processes[2].disk = crate::disk::Disk::with(None);
    world.start(2);
    world.run_until(3_000, |world| world.leader().is_some());
    world.run(500);
    assert_eq!(world.processes[2].replaced, 1);
    assert_eq!(world.node(2).applied(), world.checks.applied());
    let other = world.followers().into_iter().find(|process| *process != 2).expect("two follow");
    if world.leader() != Some(2) {
        world.crash(other);
    }
    let plain = Actor::plain(&mut world, 2, 1, 5_000);
    plain.take(&mut world, "job");
}

#[test]
fn a_member_that_was_wiped_is_somebody_else() {
    let mut world = World::cluster(3);
    let (leader, wiped) = (world.the_leader(), world.followers()[0]);
    let mut client = Actor::streamed(&mut world, leader, 1, 5_000);
    let token = client.hold(&mut world, "job");
    world.crash(wiped);
    // Its directory has another id now. It is no member: it is told nothing, and its votes count for nobody.
    let other = world.add_process(None);
    world.run(1_000);
    assert!(world.node(other).membership().is_blank());
    assert_eq!(world.node(leader).membership().members.len(), 3);
    order(&mut world, leader, ClusterCommand::Remove { name: format!("n{}", wiped + 1) });
    order(&mut world, leader, ClusterCommand::Add(member(other)));
    world.run(300);
    order(&mut world, leader, ClusterCommand::Promote { name: format!("n{}", other + 1) });
    world.run(100);
    let left = world.followers().into_iter().find(|process| *process != other).expect("one is left");
    world.crash(left);
    client.renewed(&mut world);
    assert_eq!(holder(&mut world, other, "job"), Some(token));
    assert_eq!(world.node(other).leader(), Some(id_of(leader)));
}

#[test]
fn two_lists_of_founders_have_nothing_to_do_with_each_other() {
    let config = leasehold_core::Config::default();
    let founding = |ids: [usize; 3]| {
        let bytes = leasehold_node::founding_snapshot(&config, ids.into_iter().map(member).collect()).bytes;
        NodeSnapshot::decode(&bytes).expect("it was just written").roster.incarnation
    };
    assert_eq!(founding([0, 1, 2]), founding([2, 1, 0]));
    assert_ne!(founding([0, 1, 2]), founding([0, 1, 3]));
}
