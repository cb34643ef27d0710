//! Files that are put back to an earlier copy of themselves while their node is down, as a snapshot of a machine or a copied directory does.
//!
//! The node has promised by then what it does not know any more: entries that it acknowledged, and votes. Nothing of that is covered.
//! What it may still do is wrong, what it may not do is to be wrong without a word: where it hears of what it has forgotten, and where
//! others find that two logs are both committed, a process stops and says why. Whoever reads that wipes the node.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use leasehold_core::holder::Reading;
use leasehold_node::{Fatal, Input, Node, Output};

use crate::plan::Fault;
use crate::record::{Fault as What, Stopped};
use crate::trace::SECOND;
use crate::world::nodes::End;
use crate::world::process::{Files, Forgot};
use crate::world::{Phase, World};

/// The lock file of a copied directory is this much another one.
const COPIED: u64 = 1 << 20;

/// A member that does not come on for so long is wiped.
const STANDING_STILL: u64 = 5 * SECOND;
/// If nobody serves for so long after the faults, the cluster is given up.
const WITHOUT_LEADER: u64 = 15 * SECOND;

/// What raft says when it finds a log that cannot be: it stops the process rather than overwrite what was committed.
const WORDS_OF_RAFT: [&str; 2] = ["is out of range [", "conflict with committed entry"];

impl World {
    /// Somebody copies the disk of a machine: all files at one moment, with or without what was not synced.
    pub(in crate::world) fn copy_files(&mut self) {
        let on = self.plan.faults.has(Fault::RolledBack) && self.phase == Phase::Faults;
        if !on || !self.chance.one_in(4) {
            return;
        }
        let Some(at) = self.some_running() else { return };
        let mut copy = self.processes[at].disk_mut().clone();
        if self.chance.one_in(2) {
            copy = self.power_lost(&copy);
        }
        self.trace.say(self.now, || format!("the files of n{} are copied", at + 1));
        self.processes[at].earlier = Some(Box::new(copy));
    }

    /// A node is stopped, and starts again with the files that it had when they were copied.
    pub(super) fn roll_back(&mut self) {
        // One at a time: where several forget at once nothing is left that could still hold.
        if !self.all_run() {
            return;
        }
        let copied = self.running().into_iter().filter(|at| self.processes[*at].earlier.is_some());
        let copied: Vec<usize> = copied.collect();
        if copied.is_empty() {
            return;
        }
        let at = *self.chance.pick(&copied);
        self.kill(at, End::Killed);
        self.note_fault(self.node_machine(at), What::RolledBack, false, true);
        self.totals.rolled_back += 1;
        self.faults.set_back = true;
        let is_a_copy = self.chance.one_in(6);
        self.trace.say(self.now, || {
            format!("n{} is rolled back{}", at + 1, if is_a_copy { ", to a copied directory" } else { "" })
        });
        let own = &mut self.processes[at];
        let written = own.log.last_key_value().map_or(0, |(index, _)| *index);
        let Some(earlier) = own.earlier.take() else { return };
        own.files = Files::Disk(earlier);
        own.forgot = Some(Forgot { term: own.term, last: own.noted.max(written) });
        own.lock_inode += if is_a_copy { COPIED } else { 0 };
    }

    /// Where there are two logs, a member may stand still in silence: its leader takes it for one that has everything. Whoever looks
    /// after the cluster sees that it does not come on, and wipes it. If too few are left that agree, one of them is the
    /// beginning of another life.
    pub(in crate::world) fn look_for_two_logs(&mut self) {
        if !self.faults.set_back {
            return;
        }
        let Some(leader) = self.leader() else {
            if self.phase == Phase::Healing && self.now > self.operators.served + WITHOUT_LEADER {
                self.begin_another_life();
            }
            return;
        };
        self.operators.served = self.now;
        let newest = self.processes[leader].node.as_ref().map_or(0, Node::applied);
        for at in self.running() {
            let applied = self.processes[at].node.as_ref().map_or(0, Node::applied);
            let standing = self.operators.standing.entry(at).or_insert((self.now, applied));
            if standing.1 != applied || applied >= newest || self.processes[at].paused {
                *standing = (self.now, applied);
            } else if self.now > standing.0 + STANDING_STILL && self.all_run() {
                // Not while another is down or comes back: that would be two at once.
                self.trace.say(self.now, || format!("n{} does not come on and is wiped", at + 1));
                self.note_fault(self.node_machine(at), What::Wiped, true, true);
                self.take_away(at, Stopped::Crashed);
                return self.replace_damaged(at);
            }
        }
    }

    fn begin_another_life(&mut self) {
        let applied = |at: &usize| self.processes[*at].node.as_ref().map_or(0, Node::applied);
        let Some(survivor) = self.running().into_iter().max_by_key(applied) else { return };
        self.operators.served = self.now;
        self.back_up(survivor);
        self.restore();
    }
}

/// One turn of a node, with the words of raft if it finds what cannot be. Any other panic is one.
pub(in crate::world) fn turn(
    node: &mut Node,
    now: Reading,
    inputs: Vec<Input>,
) -> Result<Result<Vec<Output>, Fatal>, String> {
    catch_unwind(AssertUnwindSafe(|| node.turn(now, inputs))).map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        if WORDS_OF_RAFT.iter().any(|known| words.contains(known)) { words } else { resume_unwind(panic) }
    })
}
