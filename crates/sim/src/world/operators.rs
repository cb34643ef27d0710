//! Whoever looks after the cluster: adds, removes and replaces nodes, hands leadership over, revokes, takes backups and restores them.
//!
//! It works as people do: it looks at what the leader says, asks for the next step, and asks again when nobody answered.

use std::collections::BTreeMap;

use leasehold_core::protocol::{
    ClusterCommand, Failure, Incarnation, Member, MemberRole, Request, RequestId, Response,
};
use leasehold_core::{Command, Entry, Epoch, Label, Millis, Mode, Operator, Reason, Revision, System};
use leasehold_node::payload::{NodeSnapshot, Voters};
use leasehold_node::{CALLS, ChangeLog, Input, Roster, SavedSnapshot};

use super::app::Kind;
use super::nodes::{End, OPERATOR_PAUSE, disk_with};
use super::peers::{NEXT_VERSION, OLD_VERSION};
use super::process::{Files, Standing};
use super::{Event, Phase, World};
use crate::record::{Event as Noted, LogId, NodeId, RequestKey, Stopped, TrueTime, hash};
use crate::trace::{MILLI, SECOND};

/// A call is given up after so long.
const CALL_TIME: u64 = 6 * SECOND;

/// What is wanted of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// It is to become a voter.
    Join,
    /// It is to be removed.
    Leave,
}

/// A copy of the state.
struct Backup {
    log: LogId,
    snapshot: SavedSnapshot,
}

/// A call under way: to which node, which life of it, and how records name it.
struct Call {
    at: usize,
    life: u32,
    key: Option<RequestKey>,
}

/// What the operators know.
#[derive(Default)]
pub(super) struct Operators {
    wishes: BTreeMap<usize, Wish>,
    calls: BTreeMap<RequestId, Call>,
    next_call: u64,
    /// A call about the members is under way.
    changing: Option<RequestId>,
    backup: Option<Backup>,
    /// The last epoch handed out.
    epoch: u16,
    /// Members that do not come on, by slot: since when, and at which entry.
    pub(super) standing: BTreeMap<usize, (u64, u64)>,
    /// When somebody served last.
    pub(super) served: u64,
}

impl Operators {
    pub(super) fn is_content(&self) -> bool {
        self.wishes.is_empty()
    }
}

impl World {
    pub(super) fn operate(&mut self) {
        let pause = if self.phase == Phase::Healing { 200 * MILLI } else { 700 * MILLI };
        let pause = self.chance.around(pause);
        self.queue.push(self.now + pause, Event::Operator);
        self.take_backup();
        self.copy_files();
        self.look_for_two_logs();
        self.answer_alarms();
        if self.operators.changing.is_none() {
            self.next_step();
        }
    }

    fn call(&mut self, at: usize, request: Request) -> RequestId {
        self.operators.next_call += 1;
        let id = RequestId(self.operators.next_call);
        let soon = self.soon();
        let key = match &request {
            Request::Operator(operator) => {
                Some(RequestKey::Operator(hash(format!("{operator:?}").as_bytes())))
            }
            _ => None,
        };
        if let Some(key) = key {
            self.notes.record.push(TrueTime(self.now), Noted::RequestSent { key });
        }
        let own = &mut self.processes[at];
        self.operators.calls.insert(id, Call { at, life: own.life, key });
        own.push(Input::Request { connection: CALLS, id, request }, soon);
        self.queue.push(self.now + CALL_TIME, Event::CallTimesOut { id });
        id
    }

    pub(super) fn call_answered(&mut self, at: usize, id: RequestId, response: Response) {
        self.trace.say(self.now, || format!("operator hears from n{}: {response:?}", at + 1));
        let Some(call) = self.operators.calls.remove(&id) else { return };
        self.operators.changing.take_if(|changing| *changing == id);
        let now = TrueTime(self.now);
        match (call.key, response) {
            (Some(key), Response::Reply(reply)) => self.notes.record.replied(now, key, reply),
            (Some(key), Response::Failed(failure)) => {
                let definite = !matches!(failure, Failure::OutcomeUnknown);
                self.notes.record.push(now, Noted::RequestFailed { key, definite });
            }
            _ => {}
        }
    }

    pub(super) fn call_times_out(&mut self, id: RequestId) {
        let Some(Call { at, life, .. }) = self.operators.calls.remove(&id) else { return };
        self.operators.changing.take_if(|changing| *changing == id);
        if self.processes[at].life == life {
            let soon = self.soon();
            self.processes[at].push(Input::Abandoned { connection: CALLS, id }, soon);
        }
    }

    pub(super) fn calls_of_the_dead(&mut self, at: usize) {
        let dead: Vec<RequestId> =
            self.operators.calls.iter().filter(|(_, call)| call.at == at).map(|(id, _)| *id).collect();
        for id in dead {
            self.operators.calls.remove(&id);
            self.operators.changing.take_if(|changing| *changing == id);
        }
    }

    /// The next change of the members that is wanted and possible.
    fn next_step(&mut self) {
        let Some(leader) = self.leader() else { return };
        let membership = std::sync::Arc::clone(&self.processes[leader].membership);
        let wishes: Vec<(usize, Wish)> =
            self.operators.wishes.iter().map(|(slot, wish)| (*slot, *wish)).collect();
        for (slot, wish) in wishes {
            let own = &self.processes[slot];
            let named = membership.members.iter().find(|(member, _)| member.name == own.member.name);
            let command = match (wish, named) {
                (Wish::Join, Some((member, _))) if member.id != own.member.id => {
                    Some(ClusterCommand::Remove { name: member.name.clone() })
                }
                (Wish::Join, Some((_, MemberRole::Voter))) => {
                    self.operators.wishes.remove(&slot);
                    None
                }
                (Wish::Join, Some((member, MemberRole::Learner))) => {
                    Some(ClusterCommand::Promote { name: member.name.clone() })
                }
                (Wish::Join, None) if own.is_running() => Some(ClusterCommand::Add(own.member.clone())),
                (Wish::Join, None) => None,
                (Wish::Leave, Some((member, _))) => {
                    Some(ClusterCommand::Remove { name: member.name.clone() })
                }
                (Wish::Leave, None) => {
                    self.operators.wishes.remove(&slot);
                    self.forget(slot);
                    None
                }
            };
            if let Some(command) = command {
                self.trace.say(self.now, || format!("operator asks n{}: {command:?}", leader + 1));
                let id = self.call(leader, Request::Cluster(command));
                self.operators.changing = Some(id);
                return;
            }
        }
    }

    /// A node that was removed is stopped, if it has not noticed by itself.
    fn forget(&mut self, slot: usize) {
        self.take_away(slot, Stopped::Removed);
        self.processes[slot].standing = Standing::Unused;
    }

    /// The process of a slot ends, and does not come back.
    pub(super) fn take_away(&mut self, slot: usize, why: Stopped) {
        // One that is down already stays down for this reason from now on.
        self.note_stopped(NodeId(self.processes[slot].member.id.0), why);
        if self.processes[slot].is_running() {
            self.end_process(slot, End::Killed);
        }
    }

    /// A slot that is blank is started, to become a member.
    fn start_blank(&mut self, slot: usize, state: LogId) {
        self.wipe(slot);
        let own = &mut self.processes[slot];
        own.standing = Standing::Used;
        own.state = state;
        own.life += 1;
        let life = own.life;
        self.operators.wishes.insert(slot, Wish::Join);
        self.queue.push(self.now + OPERATOR_PAUSE / 4, Event::Starts { at: slot, life });
    }

    /// A node whose files are damaged comes back empty, under another id.
    pub(super) fn replace_damaged(&mut self, slot: usize) {
        let state = self.processes[slot].state;
        self.start_blank(slot, state);
    }

    /// One more, one less, or another one in the place of one.
    pub(super) fn change_members(&mut self) {
        if !self.operators.wishes.is_empty() {
            return;
        }
        let Some(leader) = self.leader() else { return };
        let state = self.processes[leader].state;
        let used: Vec<usize> = (0..self.processes.len())
            .filter(|slot| self.processes[*slot].standing == Standing::Used)
            .collect();
        let unused: Vec<usize> = (0..self.processes.len()).filter(|slot| !used.contains(slot)).collect();
        let slot = *self.chance.pick(&used);
        match self.chance.below(3) {
            0 if !unused.is_empty() => {
                let slot = *self.chance.pick(&unused);
                self.start_blank(slot, state);
            }
            1 if used.len() > 3 => {
                self.operators.wishes.insert(slot, Wish::Leave);
            }
            _ if self.all_run() => {
                self.trace.say(self.now, || format!("n{} is wiped", slot + 1));
                self.note_fault(self.node_machine(slot), crate::record::Fault::Wiped, true, true);
                self.take_away(slot, Stopped::Crashed);
                self.start_blank(slot, state);
            }
            _ => {}
        }
    }

    /// One more node is stopped and started with the next release; now and then one with the one before, while that may be.
    pub(super) fn upgrade(&mut self) {
        let Some(at) = self.some_running() else { return };
        let raised = self.processes.iter().any(|own| own.membership.version > OLD_VERSION);
        let back = !raised && self.chance.one_in(6);
        let own = &mut self.processes[at];
        own.set_back = back && (own.set_back || own.knows > OLD_VERSION);
        own.knows = if back { OLD_VERSION } else { NEXT_VERSION };
        self.trace.say(self.now, || {
            format!("n{} gets {} release", at + 1, if back { "the old" } else { "the next" })
        });
        if self.chance.one_in(2) {
            self.ask_to_drain(at);
        } else {
            self.kill(at, End::Killed);
        }
    }

    /// Whether no node is down, damaged or being replaced: one more may be hurt.
    pub(super) fn all_run(&self) -> bool {
        self.operators.wishes.is_empty()
            && self.processes.iter().all(|own| {
                own.standing == Standing::Unused || (own.is_running() && !own.damaged && own.is_whole())
            })
            && self.leader().is_some()
    }

    pub(super) fn transfer(&mut self) {
        let (Some(at), Some(to)) = (self.some_running(), self.some_running()) else { return };
        let to = self.chance.one_in(2).then(|| self.processes[to].member.name.clone());
        self.note_handover();
        self.call(at, Request::Cluster(ClusterCommand::Transfer { to }));
    }

    /// Ends somebody's lease, or asks for it.
    pub(super) fn revoke(&mut self) {
        let running = self.running();
        if self.chance.one_in(10) {
            return self.change_kind();
        }
        let Some(leader) = self.leader() else { return };
        let (name, _) = self.chance.pick(&self.names.names).clone();
        let node = self.processes[leader].node.as_ref();
        let holder =
            node.and_then(|node| node.table().lease(&name)).and_then(|view| view.holders.first().cloned());
        let Some(token) = holder.map(|holder| holder.token) else { return };
        let at = *self.chance.pick(&running);
        let by = Label::new("operator").expect("a good label");
        let operator = if self.chance.one_in(3) {
            Operator::AskRelease { resource: name, token: Some(token), successor: None, by }
        } else {
            let reason = Reason::new("simulated").expect("a good reason");
            let now = self.chance.one_in(8);
            Operator::Revoke { resource: name, token, by, reason, now }
        };
        self.call(at, Request::Operator(operator));
    }

    /// The last name gets another number of slots.
    fn change_kind(&mut self) {
        let running = self.running();
        let of = u32::try_from(self.chance.between(2, 4)).expect("a few");
        let Some((name, kind)) = self.names.names.last_mut().filter(|_| !running.is_empty()) else { return };
        *kind = Kind::Slots(of);
        let by = Label::new("operator").expect("a good label");
        let operator = Operator::ChangeKind { resource: name.clone(), mode: Mode::Slot { of }, by };
        let at = *self.chance.pick(&running);
        self.call(at, Request::Operator(operator));
    }

    /// Somebody looks at alarms after a while, and at once when nothing else is wrong.
    fn answer_alarms(&mut self) {
        if self.phase == Phase::Faults && !self.chance.one_in(8) {
            return;
        }
        let Some(leader) = self.leader() else { return };
        let node = self.processes[leader].node.as_ref();
        let alarms: Vec<_> = node.into_iter().flat_map(|node| node.table().alarms()).collect();
        for alarm in alarms {
            let by = Label::new("operator").expect("a good label");
            let reason = Reason::new("looked at").expect("a good reason");
            let operator = Operator::ClearAlarm { resource: alarm.resource, token: alarm.token, by, reason };
            self.call(leader, Request::Operator(operator));
        }
    }

    fn take_backup(&mut self) {
        if !self.plan.faults.has(crate::plan::Fault::Restore) || !self.chance.one_in(10) {
            return;
        }
        if let Some(at) = self.some_running() {
            self.back_up(at);
        }
    }

    pub(super) fn back_up(&mut self, at: usize) {
        let own = &self.processes[at];
        if let Some(node) = own.node.as_ref().filter(|node| !node.membership().is_blank()) {
            self.operators.backup = Some(Backup { log: own.state, snapshot: node.snapshot() });
        }
    }

    /// All nodes are lost. What a backup has is restored on one, with a greater epoch, and the others join it.
    pub(super) fn restore(&mut self) {
        let Some(Backup { log: from, snapshot }) = self.operators.backup.take() else { return };
        self.totals.restores += 1;
        for slot in 0..self.processes.len() {
            if self.processes[slot].standing == Standing::Used {
                self.take_away(slot, Stopped::Crashed);
                self.processes[slot].standing = Standing::Unused;
            }
        }
        self.operators.wishes.clear();
        self.operators.changing = None;
        self.wipe(0);
        let member = self.processes[0].member.clone();
        let (restored, entry, epoch, truthful) = self.another_life(&snapshot, &member);
        self.trace.say(self.now, || format!("restored at entry {} with epoch {epoch}", snapshot.index));
        let log = self.notes.record.begin_log(from, snapshot.index);
        self.notes.began_log(restored.index);
        let now = TrueTime(self.now);
        self.notes.record.push(now, Noted::Restored { log, epoch, truthful });
        self.notes.record.inherited(now, log, restored.index, restored.term, Some(entry));
        let own = &mut self.processes[0];
        own.files = Files::Disk(Box::new(disk_with(0, &restored)));
        own.founded = true;
        own.standing = Standing::Used;
        own.state = log;
        let life = own.life;
        self.queue.push(self.now + 100 * MILLI, Event::Starts { at: 0, life });
        for slot in 1..self.plan.nodes {
            self.start_blank(slot, log);
        }
        // The backup stays where it was.
        self.operators.backup = Some(Backup { log: from, snapshot });
    }

    fn another_life(
        &mut self,
        snapshot: &SavedSnapshot,
        member: &Member,
    ) -> (SavedSnapshot, Entry, u16, bool) {
        let read = NodeSnapshot::decode(&snapshot.bytes).expect("a backup reads back");
        let mut table = read.table;
        let whole_wait = table.config().drift.stretch(table.config().max_ttl);
        let lies = self.plan.faults.has(crate::plan::Fault::RestoreWrong) && !self.chance.one_in(4);
        // Only a restore that there was can be forgotten.
        let forgets = lies && self.operators.epoch > table.epoch().get() && !self.chance.one_in(3);
        let known = if forgets { 0 } else { self.operators.epoch };
        let number = known.max(table.epoch().get()) + 1;
        let wait = if lies && !forgets { Millis::ZERO } else { whole_wait };
        // What was forgotten may not have mattered.
        let truthful = wait == whole_wait && number > self.operators.epoch;
        self.operators.epoch = self.operators.epoch.max(number);
        let epoch = Epoch::new(number).expect("few restores");
        let at = table.last_at();
        let entry = Entry { at, commands: vec![Command::System(System::Restored { epoch, wait })] };
        table.apply(&entry);
        let mut roster = Roster { version: read.roster.version, ..Roster::founding(vec![member.clone()]) };
        let drawn = u128::from(self.chance.bits()) << 64 | u128::from(self.chance.bits());
        roster.incarnation = Incarnation((roster.incarnation.0 ^ drawn).max(1));
        let voters = Voters { voters: vec![member.id.0], ..Voters::default() };
        let (index, term) = (snapshot.index + 1, snapshot.term + 1);
        let changes = ChangeLog::after(Revision::new(index));
        let bytes = NodeSnapshot::encode(voters, &roster, Some(0), Some((at, None)), &changes, &table);
        (SavedSnapshot { index, term, bytes }, entry, number, truthful)
    }

    /// A bit flips in the files of a node, which is then started again.
    pub(super) fn flip_bit(&mut self) {
        if !self.all_run() {
            return;
        }
        let running = self.running();
        let at = *self.chance.pick(&running);
        self.kill(at, End::Killed);
        self.note_fault(self.node_machine(at), crate::record::Fault::Damage, true, true);
        self.processes[at].damaged = true;
        let (which, place, bit) = (self.chance.bits(), self.chance.bits(), self.chance.below(8));
        let (where_to, newest) = (self.chance.below(4), self.chance.one_in(2));
        let disk = self.processes[at].disk_mut();
        let Ok(names) = leasehold_wal::Disk::list(disk) else { return };
        let names: Vec<String> = names.into_iter().filter(|name| !name.starts_with("reserve")).collect();
        // The newest segment is often empty: made ahead.
        let segments: Vec<&String> =
            names.iter().filter(|name| name.starts_with("segment")).rev().take(2).collect();
        let name = if newest && !segments.is_empty() {
            segments[usize::try_from(which % segments.len() as u64).expect("few files")]
        } else {
            &names[usize::try_from(which % names.len() as u64).expect("few files")]
        };
        disk.edit(name, |bytes| {
            if !bytes.is_empty() {
                // Most of a segment is empty, and what is there to be lost stands at the end of what is written.
                let written = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1) as u64;
                let place = match where_to {
                    0 => place % bytes.len() as u64,
                    1 => place % written,
                    2 => written - 1 - place % written.min(4096),
                    _ => written - 1 - place % written.min(256),
                };
                let place = usize::try_from(place).expect("small files");
                bytes[place] ^= 1 << bit;
            }
        });
    }
}
