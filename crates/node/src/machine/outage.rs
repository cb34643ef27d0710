//! What the log is told about silence: connections that ended, and times in which nobody led. Neither changes who is granted what.

use std::collections::VecDeque;

use leasehold_core::holder::Reading;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::MemberId;
use leasehold_core::table::{COUNTS_GAPS, GAPS_HAVE_TWO_LENGTHS};
use leasehold_core::{
    Applied, AttachNumber, Command, Ending, Entry, Event, LeaseTable, LogTime, Millis, SessionId, System,
};

use super::{Node, Output, Place};
use crate::anchor::{Anchor, elapsed_since};
use crate::meter::{GapPattern, Leaderless};
use crate::payload::Payload;
use crate::peer::PeerMessage;
use crate::routes::ConnectionId;

/// Connections that may wait to be noted. Where more end at once it is not their holders that fell silent.
const MAX_SILENT: usize = 4_096;
/// How many of them one entry notes: other work waits for it.
const MAX_SILENT_PER_ENTRY: usize = 1_024;
/// A leader that stood still for less is a slow one, and not away.
const SHORTEST_STALL: Millis = Millis::new(200);
/// Shorter times without a leader are those of every orderly handover.
const SHORTEST_OUTAGE: Millis = Millis::new(10);
/// A process that has seen little of the log says so of no shorter time: leadership passes on in order right after a start too.
const SHORTEST_UNSURE: Millis = Millis::new(1_000);
/// Log time stands still for at most so long while nobody uses the service: what passes behind the last stamp is lost with its leader, or
/// taken for a part of the outage. A tenth of what a single session costs.
const IDLE_STEP: Millis = Millis::new(10_000);

/// Sessions whose connections ended, in a lane of their own: nothing is refused, delayed or kept from ending for their sake.
#[derive(Debug, Default)]
pub(super) struct Silent(VecDeque<(SessionId, AttachNumber)>);

impl Silent {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Some of them, as commands. A session that has attached anew since is not silent.
    pub(super) fn take(&mut self, table: &LeaseTable) -> Vec<Command> {
        let some = self.0.drain(..self.0.len().min(MAX_SILENT_PER_ENTRY));
        let still = some.filter(|(session, attach)| table.attachment(*session) == Some(*attach));
        still.map(|(session, attach)| Command::Detached { session, attach }).collect()
    }
}

/// For how long log time stood still, as a command has it; no length where nobody knows.
fn told(command: &Command) -> Option<Option<Millis>> {
    match command {
        Command::System(System::Unserved { length }) => Some(*length),
        Command::System(System::Unstamped { length }) => Some(Some(*length)),
        _ => None,
    }
}

impl Node {
    /// The client of a connection has ended it: its sessions may have died with it.
    pub(super) fn note_hung_up(&mut self, out: &mut Vec<Output>, connection: ConnectionId) {
        if self.roster.version < COUNTS_GAPS {
            return;
        }
        if self.forwards.has_stream(connection)
            && let Some((to, _)) = self.forwards.leader()
        {
            out.push(Output::SendPeer { to, message: PeerMessage::HungUp { connection } });
        }
        if !self.is_serving() || self.draining || self.handover.is_some() {
            return;
        }
        for session in self.routes.attached_through(connection) {
            if self.silent.0.len() >= MAX_SILENT {
                return;
            }
            self.silent.0.extend(self.table.attachment(session).map(|attach| (session, attach)));
        }
    }

    /// Another member was heard: if it leads, somebody does.
    pub(super) fn note_leader(&mut self, from: MemberId) {
        if self.leader() == Some(from) {
            self.led = Some(self.now);
        }
    }

    /// Whoever serves is the leader that it knows of.
    pub(super) fn note_serving(&mut self) {
        if self.is_serving() {
            self.led = Some(self.now);
        }
    }

    /// What may stand in the log behind these commands.
    fn version_behind(&self, commands: &[Command]) -> u32 {
        let raised = commands.iter().filter_map(|command| match command {
            Command::System(System::ClusterVersion { version }) => Some(*version),
            _ => None,
        });
        raised.max().unwrap_or(0).max(self.roster.version)
    }

    /// Takes note of when an entry came. What was in the log when this process began came earlier.
    pub(super) fn note_pace(&mut self, index: u64, entry: &Entry) {
        entry.commands.iter().filter_map(told).for_each(|length| self.pace.shift(length));
        if index > self.recovered {
            self.pace.note(entry.at, self.now);
        }
    }

    /// What the first entry of a leadership says behind these commands of the time in which log time stood still: the time in which
    /// nobody led, or that nobody knows how long that was, and before it the time that the last leader did not stamp.
    pub(super) fn stood_still(
        &self,
        last: Option<&(LogTime, Option<Anchor>)>,
        now: Reading,
        commands: &[Command],
    ) -> Vec<Command> {
        let version = self.version_behind(commands);
        let (Some((stamp, anchor)), true) = (last, version >= COUNTS_GAPS) else {
            // A log without a stamp has never been led.
            return Vec::new();
        };
        let unserved = |length| Command::System(System::Unserved { length });
        if let Place::Embedded { machine, .. } = &self.place {
            // Time without a server counts there, if it can be counted.
            let counted = anchor.as_ref().is_some_and(|anchor| elapsed_since(anchor, machine, now).is_ok());
            return if counted { Vec::new() } else { vec![unserved(None)] };
        }
        let led = self.led.map(|led| Millis::from_duration(now.since(led).smaller()));
        // What the last leader said of its own standstill may stand in the log and not be applied yet.
        let stood = self.pace.stood_still(*stamp, now).filter(|_| self.stamps_time());
        let stood = stood.map(|stood| stood.saturating_sub(self.told_ahead()));
        let stood = stood.filter(|_| !planted(Bug::OutageFromLeader));
        // The clocks behind the last stamp know best, where they are those of this machine.
        let by_clocks = self.unserved_since(anchor.as_ref(), now);
        let Some(length) = by_clocks.or_else(|| led.max(stood)) else { return vec![unserved(None)] };
        // What this process saw was all of it, or it was short and somebody was heard who led.
        let is_all =
            by_clocks.is_some() || self.pace.is_sure() || (led.is_some() && length < SHORTEST_UNSURE);
        let step = self.time_step().filter(|_| version >= GAPS_HAVE_TWO_LENGTHS).unwrap_or(Millis::ZERO);
        let unstamped = led.map_or(Millis::ZERO, |led| length.saturating_sub(led).min(step));
        let dark = length.saturating_sub(unstamped);
        let unstamped = Some(unstamped).filter(|length| *length >= SHORTEST_OUTAGE);
        let unstamped = unstamped.map(|length| Command::System(System::Unstamped { length }));
        let dark = Some(dark).filter(|length| *length >= SHORTEST_OUTAGE);
        let more = (!is_all).then(|| unserved(None));
        unstamped.into_iter().chain(dark.map(|length| unserved(Some(length)))).chain(more).collect()
    }

    /// What the log says of standstills behind what is applied.
    fn told_ahead(&self) -> Millis {
        use raft::Storage;
        let log = self.raft.store();
        let (from, to) = (self.applied + 1, log.last_index().unwrap_or(self.applied) + 1);
        let context = raft::GetEntriesContext::empty(false);
        let entries =
            if from < to { log.entries(from, to, None, context).unwrap_or_default() } else { Vec::new() };
        let normal = |entry: &&raft::eraftpb::Entry| {
            !entry.data.is_empty() && entry.get_entry_type() == raft::eraftpb::EntryType::EntryNormal
        };
        let payloads = entries.iter().filter(normal).filter_map(|entry| Payload::decode(&entry.data).ok());
        let lengths =
            payloads.flat_map(|payload| payload.entry.commands).filter_map(|command| told(&command)?);
        lengths.fold(Millis::ZERO, Millis::saturating_add)
    }

    /// The time since the last stamp, by the clocks of this machine. Where nothing made whoever led stamp, it says nothing.
    fn unserved_since(&self, anchor: Option<&Anchor>, now: Reading) -> Option<Millis> {
        let (machine, anchor) = (self.options.machine.as_ref()?, anchor?);
        elapsed_since(anchor, machine, now).ok().filter(|_| self.stamps_time())
    }

    /// Whether something makes whoever leads stamp.
    fn stamps_time(&self) -> bool {
        let (sessions, _) = self.table.sizes();
        sessions > 0 || self.stamps_idle_time()
    }

    /// Whether time is stamped though nobody lives whom it could end: a name that is known has a gap then, and log time is what gaps are
    /// told in. A directory counts the time since its last entry, whoever served it.
    fn stamps_idle_time(&self) -> bool {
        let (_, names) = self.table.sizes();
        matches!(self.place, Place::Served) && self.roster.version >= COUNTS_GAPS && names > 0
    }

    /// How long log time may stand still at most.
    pub(super) fn time_step(&self) -> Option<Millis> {
        self.table.time_step().or_else(|| self.stamps_idle_time().then_some(IDLE_STEP))
    }

    /// This leader is about to leave. Where sessions live the last stamp is fresh; where none does, one more tells its idleness from the
    /// outage behind it. It is owed once: on a slow disk the next would be due before it is written.
    pub(super) fn owe_last_stamp(&mut self) {
        let idle = self.is_serving() && self.table.time_step().is_none() && self.stamps_idle_time();
        let unstamped =
            self.leadership.as_ref().map(|leadership| leadership.clock.stamp().since(leadership.last_stamp));
        self.owes_stamp = idle && unstamped.is_some_and(|length| length >= SHORTEST_OUTAGE);
    }

    /// Takes note of what the leader's clock did not count since it could last propose: its loop stood still, or one write did.
    pub(super) fn note_stall(&mut self) {
        let Some(leadership) = &mut self.leadership else { return };
        let cut = leadership.clock.cut();
        let stood = Millis::new(cut.get().saturating_sub(leadership.cut_seen.get()));
        leadership.cut_seen = cut;
        if stood >= SHORTEST_STALL {
            leadership.stalled = leadership.stalled.saturating_add(stood);
        }
    }

    /// What an entry that is proposed anyway says of that. It never causes an entry: on a disk that is always slow, that one would cause the next.
    pub(super) fn told_stall(&mut self) -> Option<Command> {
        let leadership = self.leadership.as_mut().filter(|_| self.roster.version >= COUNTS_GAPS)?;
        let stalled = core::mem::take(&mut leadership.stalled);
        (stalled > Millis::ZERO).then_some(Command::System(System::Unserved { length: Some(stalled) }))
    }

    /// For how long nobody acted on the names of each pattern. A leader that has nothing to put into its log knows what time it is.
    pub fn leaderless(&self) -> Vec<(GapPattern, Leaderless)> {
        let (table, at) = (&self.table, self.table.last_at());
        let now =
            self.leadership.as_ref().filter(|_| self.is_serving()).map(|leadership| leadership.clock.stamp());
        let now = now.unwrap_or(at).max(at);
        self.meter.patterns(at, |name| table.gap_lasts(name, now))
    }

    /// Counts what an entry says of gaps and late endings. What was in the log when this process began was counted by another.
    pub(super) fn count_gaps(&mut self, index: u64, at: LogTime, applied: &Applied) {
        if index <= self.recovered {
            self.meter.pass(&applied.gaps, at);
            return;
        }
        applied.gaps.iter().for_each(|note| self.meter.note(note, at));
        let late = applied.events.iter().filter_map(|event| match event {
            Event::Ended { how: Ending::Expired, when, .. } => Some(at.since(*when)),
            _ => None,
        });
        for late in late {
            self.stats.expiry_late_millis.add(late.get());
        }
    }
}
