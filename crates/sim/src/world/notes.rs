//! What is written down for the checkers and for the summary.

use std::sync::Arc;

use leasehold_core::SessionId;
use leasehold_core::protocol::Changes;
use leasehold_node::LogEntry;
use leasehold_node::payload::{NodeSnapshot, Payload};

use super::World;
use super::clients::client_number;
use super::nodes::{config, entry_hash};
use crate::plan::Plan;
use crate::record::{
    Bounds, ClientId, Event, Fault, Machine, NodeId, Published, Record, Stopped, TrueTime, VoterSet,
};
use crate::trace::{MILLI, SECOND, fault};

macro_rules! totals {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a run came to, in numbers.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Totals {
            /// Name and number of everything.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            /// Adds another run's.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

totals! {
    /// Turns of nodes.
    turns,
    /// Turns of clients.
    client_turns,
    /// Commands submitted by applications.
    operations,
    /// Renewals sent.
    renewals_sent,
    /// Reads answered.
    reads,
    /// Leases that applications were given.
    grants,
    /// Writes that reached receivers.
    writes,
    /// Writes that a fence refused.
    fenced_off,
    /// Guards that were refused.
    guards_refused,
    /// Entries committed.
    entries,
    /// Leaderships.
    elections,
    /// Leases that ended because nobody renewed them.
    expiries,
    /// Sessions that the service ended.
    sessions_lost,
    /// Restores from a backup.
    restores,
    /// Starts of nodes.
    starts,
    /// Snapshots saved.
    snapshots,
    /// Snapshots installed from others.
    installs,
    /// Changes of the members.
    member_changes,
    /// Times that a disk had no space.
    short_of_space,
    /// Deaths of clients.
    client_crashes,
    /// Faults that were made.
    faults,
    /// Nodes whose files were put back to an earlier copy.
    rolled_back,
    /// Nodes that raft stopped with a panic, because others had been rolled back.
    panics,
}

/// The record, and what the world itself finds wrong.
pub(super) struct Notes {
    pub(super) record: Record,
    pub(super) violations: Vec<String>,
    reads: u64,
    /// The furthest entry applied in each log.
    furthest: Vec<u64>,
}

/// Violations after which going on shows nothing more.
const ENOUGH: usize = 3;

impl Notes {
    pub(super) fn new(plan: &Plan) -> Self {
        // There and back at its slowest after the faults.
        let calm = 4 * (plan.peer_delay.0 + 2 * MILLI) + 4 * (plan.client_delay.0 + 4 * MILLI);
        let bounds = Bounds {
            leader: 1_200 * MILLI + calm,
            handover: 50 * MILLI + calm,
            in_flight: plan.in_flight + MILLI,
            ..Bounds::default()
        };
        Self {
            record: Record::new(config(plan), bounds),
            violations: Vec::new(),
            reads: 0,
            furthest: vec![1],
        }
    }

    pub(super) fn violated(&mut self, what: String) {
        self.violations.push(what);
    }

    pub(super) const fn is_hopeless(&self) -> bool {
        self.violations.len() >= ENOUGH
    }

    pub(super) const fn next_read(&mut self) -> u64 {
        self.reads += 1;
        self.reads
    }

    pub(super) fn began_log(&mut self, index: u64) {
        self.furthest.push(index);
    }
}

/// So many of the changes that a node begins with are looked at.
const NEWEST_KEPT: usize = 32;

impl World {
    fn node_id(&self, at: usize) -> NodeId {
        NodeId(self.processes[at].member.id.0)
    }

    /// What a turn of a node changed: entries applied, leadership.
    pub(super) fn note_turn(&mut self, at: usize) {
        let id = self.node_id(at);
        let now = TrueTime(self.now);
        let own = &mut self.processes[at];
        let Some(node) = &own.node else { return };
        let (applied, leads) = (node.applied(), (node.leader() == Some(node.id())).then_some(own.term));
        let hands_over = node.is_handing_over();
        while own.noted < applied {
            own.noted += 1;
            let index = own.noted;
            let Some(entry) = own.log.remove(&index) else {
                self.notes.violated(format!("n{} applied entry {index}, which it was never given", at + 1));
                continue;
            };
            let what = (index, entry.term, entry_hash(entry.kind, &entry.payload));
            self.trace.note(self.now, 10, index ^ what.2);
            let furthest = &mut self.notes.furthest[usize::from(own.state.0)];
            if index > *furthest {
                *furthest = index;
                self.totals.entries += 1;
            }
            let decode = || {
                let is_stamped = entry.kind == 0 && !entry.payload.is_empty();
                is_stamped
                    .then(|| Payload::decode(&entry.payload).ok())
                    .flatten()
                    .map(|payload| payload.entry)
            };
            self.notes.record.applied(now, (own.state, id), what, decode);
        }
        self.count_applied(at, applied, leads.is_some());
        let own = &mut self.processes[at];
        if leads != own.leads {
            let before = std::mem::replace(&mut own.leads, leads);
            if let Some(term) = before {
                self.notes.record.push(now, Event::LeadsNoMore { node: id, term });
            }
            if let Some(term) = leads {
                self.notes.record.push(now, Event::Leads { node: id, term });
                self.totals.elections += 1;
                self.trace.say(self.now, || format!("n{} leads in term {term}", at + 1));
            }
            self.interesting();
        }
        if std::mem::replace(&mut self.processes[at].hands_over, hands_over) != hands_over && hands_over {
            self.note_handover();
        }
    }

    /// What a leader sends to its log, it has stamped in the same turn.
    pub(super) fn note_stamped(&mut self, at: usize, entries: &[LogEntry]) {
        let (now, node, own) = (TrueTime(self.now), self.node_id(at), &self.processes[at]);
        if own.node.as_ref().is_none_or(|node| node.leader() != Some(node.id())) {
            return;
        }
        let (log, term) = (own.state, own.term);
        let stamped = entries.iter().filter(|entry| entry.kind == 0 && !entry.payload.is_empty());
        for index in stamped.filter(|entry| entry.term == term).map(|entry| entry.index) {
            self.count_stamp(at, index);
            let (free, idle) = self.processes[at].stalls.free_and_idle();
            let free = TrueTime(free);
            self.notes.record.push(now, Event::Stamped { log, node, index, term, free, idle });
        }
    }

    /// Leadership may be handed over from now on.
    pub(super) fn note_handover(&mut self) {
        self.notes.record.push(TrueTime(self.now), Event::HandingOver);
    }

    pub(super) fn note_started(&mut self, at: usize) {
        let (now, node) = (TrueTime(self.now), self.node_id(at));
        self.notes.record.push(now, Event::Started { node });
        self.note_voters(at);
        self.note_state(at);
    }

    pub(super) fn note_stopped(&mut self, node: NodeId, why: Stopped) {
        self.notes.record.push(TrueTime(self.now), Event::Stopped { node, why });
    }

    pub(super) fn note_durable(&mut self, at: usize, spans: &[(u64, u64, u64)]) {
        let (now, node, log) = (TrueTime(self.now), self.node_id(at), self.processes[at].state);
        for (first, last, term) in spans.iter().copied() {
            self.notes.record.push(now, Event::Durable { log, node, first, last, term });
        }
    }

    pub(super) fn note_installed(&mut self, at: usize, index: u64) {
        let (now, node, log) = (TrueTime(self.now), self.node_id(at), self.processes[at].state);
        self.notes.record.push(now, Event::Installed { log, node, index });
    }

    /// What a node's table comes to.
    pub(super) fn note_state(&mut self, at: usize) {
        let (now, node, log) = (TrueTime(self.now), self.node_id(at), self.processes[at].state);
        let Some(own) = &self.processes[at].node else { return };
        if own.membership().is_blank() {
            return;
        }
        let (index, hash) = (own.applied(), crate::record::hash(&own.table().encode()));
        self.notes.record.push(now, Event::State { log, node, index, hash });
    }

    pub(super) fn note_changes(&mut self, at: usize, changes: Arc<Changes>) {
        let (node, own) = (self.node_id(at), &self.processes[at]);
        let (log, since) = (own.state, TrueTime(own.told_since));
        self.notes.record.published.push(Published { log, node, since, at: TrueTime(self.now), changes });
    }

    /// A life of a node begins: what it has for watchers who were told by an earlier one, up to what it tells by itself.
    pub(super) fn note_kept_changes(&mut self, at: usize, before: u64) {
        let Some(node) = &self.processes[at].node else { return };
        let state = self.processes[at].state;
        let inherited = self.notes.record.logs[usize::from(state.0)].from.map_or(0, |(_, index)| index + 1);
        let kept = node.changes().kept().filter(|changes| {
            let revision = changes.revision.get();
            revision > inherited && revision < before
        });
        let kept: Vec<Arc<Changes>> = kept.cloned().collect();
        let newest = kept.len().saturating_sub(NEWEST_KEPT);
        for changes in kept.into_iter().skip(newest) {
            self.note_changes(at, changes);
        }
    }

    /// The members are others.
    pub(super) fn note_members(&mut self, at: usize) {
        self.totals.member_changes += 1;
        self.note_voters(at);
    }

    /// By whom a node counts, as its snapshot would say it. Those who vote are members; those who voted before a change that is not
    /// complete need not be any more.
    fn note_voters(&mut self, at: usize) {
        let (id, state) = (self.node_id(at), self.processes[at].state);
        let Some(node) = self.processes[at].node.as_ref().filter(|node| !node.membership().is_blank()) else {
            return;
        };
        let read = NodeSnapshot::decode(&node.snapshot().bytes).expect("a snapshot just made reads back");
        let is_member = |voter: &u64| read.roster.members.iter().any(|member| member.id.0 == *voter);
        let voters = read.voters.voters.iter().copied().filter(is_member).map(NodeId).collect();
        let outgoing = read.voters.outgoing.iter().copied().map(NodeId).collect();
        let set = VoterSet { voters, outgoing };
        self.notes.record.voters(TrueTime(self.now), (state, id), node.applied(), set);
    }

    pub(super) fn note_opened(&mut self, client: usize, session: SessionId) {
        let own = &self.clients[client];
        let first_sent = TrueTime(own.first_sent.map_or(self.now, |(_, at)| at));
        let Some((ttl_ms, usable_ms)) =
            own.app.numbers.map(|numbers| (numbers.ttl().get(), numbers.usable().get()))
        else {
            return;
        };
        let client = ClientId(client_number(client));
        let opened = Event::SessionOpened { client, session, ttl_ms, usable_ms, first_sent };
        self.notes.record.push(TrueTime(self.now), opened);
    }

    pub(super) fn note_fault(&mut self, machine: Machine, what: Fault, within: bool, begins: bool) {
        let over = if begins { "" } else { ": over" };
        self.trace.say(self.now, || format!("fault: {}{over}", fault(machine, what)));
        self.notes.record.push(TrueTime(self.now), Event::Fault { machine, what, within, begins });
    }

    pub(super) fn node_machine(&self, at: usize) -> Machine {
        Machine::Node(self.node_id(at))
    }

    /// Whether everybody was served since faults stopped, and enough time has passed to see what became of the rest.
    pub(super) fn is_served(&self) -> bool {
        // Long enough for everything that is judged only once nothing is excused any more.
        let bounds = &self.notes.record.bounds;
        let judged = bounds.recovery + bounds.answer + 3 * SECOND;
        let settled = self.plan.fault_length + judged.max(SECOND * 10 + self.plan.ttl.1 * MILLI * 4);
        self.now > settled
            && self.clients.iter().all(|client| client.served)
            && self.operators.is_content()
            && self.leader().is_some()
    }

    pub(super) fn report_not_served(&mut self) {
        let unserved: Vec<usize> =
            (0..self.clients.len()).filter(|client| !self.clients[*client].served).collect();
        let leader = self.leader().map(|at| at + 1);
        let content = self.operators.is_content();
        self.notes.violated(format!(
            "after the faults not everybody was served: leader {leader:?}, members settled: {content}, clients without an answer: {unserved:?}"
        ));
    }

    /// The last words of a run.
    pub(super) fn end(&mut self) {
        for at in 0..self.processes.len() {
            self.end_stalls(at);
            self.note_state(at);
        }
        if let Some(leader) = self.leader()
            && let Some(node) = &self.processes[leader].node
        {
            self.totals.expiries = node.table().counters().involuntary_endings;
        }
        self.notes.record.push(TrueTime(self.now), Event::Ended);
    }

    /// What was found wrong while it ran.
    pub fn violations(&self) -> &[String] {
        &self.notes.violations
    }

    /// Everything that happened, for the checkers.
    pub const fn record(&self) -> &Record {
        &self.notes.record
    }

    /// What it came to, in numbers.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }
}
