//! Writes that a crash cuts in two, while the members change.

use leasehold_core::protocol::{ClusterCommand, Request};
use leasehold_node::{CALLS, Fatal, Options};

use crate::actor::{Actor, order};
use crate::world::{World, member, process_of};

/// Who leads in the schedule below.
const LEADER: usize = 0;
/// Who crashes in it.
const CRASHES: usize = 1;
/// Who is on the same side of the cut.
const BESIDE: usize = 2;
/// Who becomes a voter meanwhile.
const NEW: [usize; 2] = [3, 4];

/// Three voters become five, one by one. One of the three has both changes in its log and has not heard that they are committed when it
/// crashes; of what was on its way to its disk all but the last `lost` batches are there, both changes among them. By
/// the list from before both it and one other are a majority; by the list behind them the other three are.
pub(crate) fn two_changes_and_a_crash(lost: usize) -> World {
    let mut world = World::founded(3, Options::default(), 1);
    world.run_until(5_000, |world| world.leader().is_some());
    for new in NEW {
        assert_eq!(world.add_process(None), new);
        order(&mut world, 0, ClusterCommand::Add(member(new)));
        world.run(300);
    }
    order(&mut world, 0, ClusterCommand::Transfer { to: Some(member(LEADER).name) });
    world.run_until(1_000, |world| world.leader() == Some(LEADER));
    world.run(100);
    world.processes[CRASHES].disk.stuck = true;
    for new in NEW {
        let promote = Request::Cluster(ClusterCommand::Promote { name: member(new).name });
        let asks = world.ask(LEADER, CALLS, promote);
        world.wait(asks);
        world.run(10);
    }
    let under_way = world.processes[CRASHES].disk.batches_in_flight();
    world.crash_keeping(CRASHES, under_way - lost);
    let entries = world.processes[CRASHES].disk.recovered().entries;
    let changes = entries.iter().filter(|entry| entry.kind != 0).count();
    assert_eq!(changes, 2 * NEW.len(), "both were added before");
    for one in [CRASHES, BESIDE] {
        for other in [LEADER, NEW[0], NEW[1]] {
            world.net.cut(one, other, world.now, (0, 0));
            world.net.cut(other, one, world.now, (0, 0));
        }
    }
    // Those with the majority elect anew, so that both sides come to the same term.
    world.crash(LEADER);
    world.start(LEADER);
    world.start(CRASHES);
    world.run(3_000);
    world
}

#[test]
fn a_member_that_crashed_behind_two_changes_does_not_count_by_the_list_before_them() {
    let mut world = two_changes_and_a_crash(0);
    world.is_sound();
    let leader = world.leader().expect("three of five are a majority");
    assert!(leader != CRASHES && leader != BESIDE);
    for one in [CRASHES, BESIDE] {
        assert_ne!(world.node(one).leader().map(process_of), Some(CRASHES), "two of five elect nobody");
    }
    world.net.heal_all();
    let plain = Actor::plain(&mut world, CRASHES, 1, 60_000);
    plain.take(&mut world, "job");
    assert_eq!(world.node(CRASHES).membership().members.len(), 5);
}

/// A follower that is behind gets many entries and their commit in one write, and crashes when so many batches of it are written.
pub(crate) fn catches_up_and_crashes(written: usize) -> (World, usize, Result<(), Fatal>) {
    let mut world = World::founded(3, Options::default(), 1);
    world.run_until(5_000, |world| world.leader().is_some());
    let (leader, behind) = (world.the_leader(), world.followers()[0]);
    world.isolate(behind);
    let plain = Actor::plain(&mut world, leader, 1, 60_000);
    for number in 0..4 {
        plain.take(&mut world, &format!("job/{number}"));
    }
    world.processes[behind].disk.stuck = true;
    world.net.heal_all();
    world.run_until(1_000, |world| world.processes[behind].disk.batches_in_flight() > 4);
    world.crash_keeping(behind, written);
    let started = world.try_start(behind);
    (world, behind, started)
}

#[test]
fn a_write_that_is_cut_anywhere_leaves_a_log_that_opens() {
    for written in 0..8 {
        let (mut world, behind, started) = catches_up_and_crashes(written);
        assert_eq!(started, Ok(()), "with {written} batches");
        world.run(1_000);
        assert_eq!(world.node(behind).applied(), world.checks.applied());
    }
}
