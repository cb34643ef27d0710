//! Leading: stamping and proposing.

use leasehold_core::answer::Renewed;
use leasehold_core::holder::Reading;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{Failure, Request, Response};
use leasehold_core::{Command, Entry, LogTime, Millis, Reply, System};

use super::intake::{respond, unavailable};
use super::{Early, Fatal, Leadership, Node, Output, Place};
use crate::anchor::{Anchor, Resume, resume};
use crate::batch::{Origin, Proposed};
use crate::clock::{LogClock, STALL_CAP};
use crate::payload::Payload;
use crate::reads::{Read, What};

/// Room for the bytes of an entry that is kept from one entry to the next. Larger ones are rare.
const MOST_ENCODING_ROOM: usize = 256 * 1024;

impl Node {
    /// Proposes what is to be proposed, if this node leads and the last write is done. Says whether it did.
    pub(super) fn lead(&mut self, out: &mut Vec<Output>, now: Reading) -> Result<bool, Fatal> {
        let term = self.raft.raft.term;
        if !self.is_leader() || self.leadership.as_ref().is_some_and(|leadership| leadership.term != term) {
            self.step_down(out);
        }
        if !self.is_leader() {
            self.propose_though_deposed();
            return Ok(false);
        }
        // Everything that arrives while a write is on its way goes into the next one.
        if !self.writes.is_empty() || !self.proposed.is_empty() {
            return Ok(false);
        }
        if self.handover.as_ref().is_some_and(|handover| handover.asked) {
            // Raft would drop it.
            return Ok(false);
        }
        if self.leadership.is_none() {
            return self.begin_leadership(now).map(|()| true);
        }
        if !self.is_serving() {
            return Ok(false);
        }
        if self.draining && !self.owes_stamp && self.queue.is_empty() && self.holds.is_empty() {
            // Nobody waits for anything: time and tidying go on when the service does. A slow disk would never be done with them.
            return Ok(false);
        }
        self.raise_version();
        self.note_stall();
        let (mut origins, mut commands) = self.queue.take();
        let stamp = self.leadership.as_ref().expect("it leads").clock.stamp();
        if self.table.next_due().is_some_and(|due| stamp > due) {
            let due = self.table.due(stamp);
            if !due.is_empty() {
                // Last in the entry: whatever was taken in goes first.
                origins.push(Origin::Node);
                commands.push(Command::Tidy(due));
            }
        }
        for command in self.silent.take(&self.table) {
            origins.push(Origin::Node);
            commands.push(command);
        }
        let named = self.kept.named(&mut self.table, stamp);
        if !named.is_empty() {
            origins.push(Origin::Node);
            commands.push(Command::Tidy(named));
        }
        if commands.is_empty() && !self.is_time_due(stamp) {
            return Ok(false);
        }
        if let Some(stalled) = self.told_stall() {
            origins.push(Origin::Node);
            commands.push(stalled);
        }
        self.propose(commands, origins)?;
        Ok(true)
    }

    /// Raises the version of what may stand in the log to the greatest that every member knows.
    fn raise_version(&mut self) {
        let raise = self.version_to_raise();
        self.push_own(raise);
    }

    /// The command that raises the version, if it is to be raised and that is not on its way.
    fn version_to_raise(&mut self) -> Option<Command> {
        let (me, own, present) = (self.id(), self.options.cluster_version, self.roster.version);
        if present >= own {
            return None;
        }
        // Whoever has not been heard of since this process began may have been set back to an older release.
        let knows = |id| {
            if id == me || planted(Bug::VersionRaisedEarly) {
                own
            } else {
                self.known_versions.get(&id).copied().unwrap_or(0)
            }
        };
        // A directory that processes of one machine share has no members: whoever serves it is the only one.
        let common = self.roster.members.iter().map(|member| knows(member.id)).min().unwrap_or(own);
        if common <= present || self.raising.is_some_and(|raising| raising >= common) {
            return None;
        }
        self.raising = Some(common);
        Some(Command::System(System::ClusterVersion { version: common }))
    }

    /// Whether time must be moved though nothing else happens.
    fn is_time_due(&self, stamp: LogTime) -> bool {
        let last = self.leadership.as_ref().map_or(LogTime::ZERO, |leadership| leadership.last_stamp);
        self.owes_stamp || self.time_step().is_some_and(|step| stamp.since(last) >= step)
    }

    /// The first entry of a leadership: it fixes where log time goes on, and nothing is judged before it is applied.
    fn begin_leadership(&mut self, now: Reading) -> Result<(), Fatal> {
        let last = self.last_stamped()?;
        let at = last.as_ref().map_or(self.table.last_at(), |(at, _)| *at);
        let found = self.found.take().filter(|_| last.is_none());
        let mut commands: Vec<Command> =
            found.map(|config| Command::System(System::Found(config))).into_iter().collect();
        let base = match &self.place {
            Place::Served => at,
            Place::Embedded { machine, end_all_after_wait } => {
                let anchored =
                    last.as_ref().and_then(|(at, anchor)| anchor.as_ref().map(|anchor| (*at, anchor)));
                match resume(anchored, machine, now, *end_all_after_wait)? {
                    Resume::At(resumed) => resumed.max(at),
                    Resume::Rebooted(at) => {
                        commands.push(Command::System(System::Rebooted));
                        at
                    }
                    Resume::EndAll(at) => {
                        let wait = self.table.config().drift.stretch(self.table.config().max_ttl);
                        commands.push(Command::System(System::Restored { epoch: self.table.epoch(), wait }));
                        at
                    }
                }
            }
        };
        if self.applied == self.raft.raft.raft_log.last_index() {
            // Nothing before this entry could add a member that knows less.
            commands.extend(self.version_to_raise());
        }
        commands.extend(self.stood_still(last.as_ref(), now, &commands));
        let base =
            if planted(Bug::BaseFromOwnClock) { base.max(LogTime::new(now.raw / 1_000_000)) } else { base };
        let term = self.raft.raft.term;
        let clock = self.kept.clock(LogClock::start(base, now));
        self.leadership = Some(Leadership {
            term,
            began: now,
            clock,
            opening: None,
            last_stamp: base,
            cut_seen: Millis::ZERO,
            stalled: Millis::ZERO,
        });
        let origins = commands.iter().map(|_| Origin::Node).collect();
        let index = self.propose(commands, origins)?;
        if let Some(leadership) = &mut self.leadership {
            leadership.opening = Some(index);
        }
        self.pass_on_if_full();
        Ok(())
    }

    /// The last stamp in the log, applied or not, and the clocks behind it.
    pub(super) fn last_stamped(&self) -> Result<Option<(LogTime, Option<Anchor>)>, Fatal> {
        use raft::Storage;
        let log = self.raft.store();
        let (first, last) = (log.first_index(), log.last_index());
        let (Ok(first), Ok(last)) = (first, last) else { return Ok(self.stamped.clone()) };
        let context = raft::GetEntriesContext::empty(false);
        let entries = log.entries(first, last + 1, None, context).unwrap_or_default();
        for entry in entries.iter().rev() {
            if !entry.data.is_empty() && entry.get_entry_type() == raft::eraftpb::EntryType::EntryNormal {
                let payload = Payload::decode(&entry.data)?;
                return Ok(Some((payload.entry.at, payload.anchor)));
            }
        }
        Ok(self.stamped.clone())
    }

    /// Stamps and proposes in one step, and only as the leader of the present term.
    fn propose(&mut self, commands: Vec<Command>, origins: Vec<Origin>) -> Result<u64, Fatal> {
        let term = self.raft.raft.term;
        let leads = self.is_leader();
        let leadership = self.leadership.as_mut().filter(|leadership| leads && leadership.term == term);
        let leadership = leadership.expect("whoever proposes has made sure that it leads in this term");
        let at = self.kept.stamp(leadership.clock.stamp());
        leadership.last_stamp = at;
        self.owes_stamp = false;
        let reading = leadership.clock.reading();
        let anchor = match &self.place {
            Place::Embedded { machine, .. } => Some(Anchor::new(machine.clone(), reading)),
            // It moves no time here: it says for how long nobody served.
            Place::Served => self.options.machine.clone().map(|machine| Anchor::new(machine, reading)),
        };
        // What was applied is everything before this entry, or there is nothing to compare.
        let outcomes = self.outcomes.filter(|_| self.applied == self.raft.raft.raft_log.last_index());
        let payload = Payload { entry: Entry { at, commands }, anchor, outcomes };
        let bytes = payload.encode_into(std::mem::take(&mut self.encoding));
        self.raft.propose(Vec::new(), bytes.to_vec()).map_err(|error| Fatal::Raft(error.to_string()))?;
        if bytes.capacity() <= MOST_ENCODING_ROOM {
            self.encoding = bytes;
        }
        let index = self.raft.raft.raft_log.last_index();
        self.write_allowance = STALL_CAP;
        let payload = Some(payload);
        self.proposed.push_back(Proposed { term, index, payload, origins, since: self.now });
        Ok(index)
    }

    /// What only a leader knows is discarded; what it had proposed is unknown, what it had not is refused by name.
    fn step_down(&mut self, out: &mut Vec<Output>) {
        let Some(leadership) = self.leadership.take() else { return };
        self.cut_before = self.cut_before.saturating_add(leadership.clock.cut());
        self.kept.over(&leadership.clock);
        self.raising = None;
        self.owes_stamp = false;
        self.silent.clear();
        // Whoever leads next does not know these connections: their clients attach anew.
        let attached =
            self.routes.clear().into_iter().filter(|connection| !self.visitors.is_calls(*connection));
        out.extend(attached.map(Output::Close));
        // In front: what waits already came later.
        let behind = std::mem::take(&mut self.early);
        for Read { connection, id, what } in self.reads.take_unconfirmed() {
            match what {
                What::Unheard(request) => self.take_unheard(out, (connection, id), *request),
                What::Query(query) => {
                    let request = Request::Read(query);
                    self.early.push_back(Early { connection, id, request, since: self.now });
                }
            }
        }
        self.early.extend(behind);
        self.forget_change(out);
        let proposed = self.proposed.drain(..).flat_map(|proposed| proposed.origins);
        answer_all(out, proposed, &Response::Failed(Failure::OutcomeUnknown));
        answer_all(out, self.queue.drain(), &unavailable("this node does not lead any more"));
        // The waits go on in the table, for whoever leads next; nobody here can say what becomes of them.
        for (connection, id) in self.holds.clear() {
            respond(out, connection, id, Response::Failed(Failure::OutcomeUnknown));
        }
    }

    pub(super) fn ask_reads(&mut self) {
        if self.is_serving()
            && let Some(context) = self.reads.ask(self.raft.raft.id, self.raft.raft.term)
        {
            if planted(Bug::ReadWithoutQuorum) {
                return self.reads.confirm(&context, self.applied);
            }
            self.raft.read_index(context);
        }
    }

    /// A known bug: raft sends on to the leader what a follower proposes.
    fn propose_though_deposed(&mut self) {
        if self.leader().is_none() {
            return;
        }
        if let Some(at) = self.kept.deposed_stamp() {
            let commands = vec![Command::Tidy(self.table.due(at))];
            let payload = Payload { entry: Entry { at, commands }, anchor: None, outcomes: None };
            let _ = self.raft.propose(Vec::new(), payload.encode());
        }
    }

    /// A known bug: renewals are answered when they are on this node's disk.
    pub(super) fn answer_before_quorum(&self, out: &mut Vec<Output>) {
        use raft::Storage;
        if !planted(Bug::RenewalAckedBeforeQuorum) || !self.is_leader() || !self.writes.is_empty() {
            return;
        }
        for proposed in &self.proposed {
            let context = raft::GetEntriesContext::empty(false);
            let entries = self.raft.store().entries(proposed.index, proposed.index + 1, None, context);
            let Some(entry) = entries.ok().and_then(|entries| entries.into_iter().next()) else { continue };
            let Ok(payload) = Payload::decode(&entry.data) else { continue };
            for (command, origin) in payload.entry.commands.iter().zip(&proposed.origins) {
                if let (Command::Renew { session, number, .. }, Origin::Client { connection, id }) =
                    (command, origin)
                    && let Some((_, after)) = self.table.stream_position(*session)
                {
                    let renewed = Renewed { number: *number, after, holdings: None };
                    respond(out, *connection, *id, Response::Reply(Reply::Renewed(renewed)));
                }
            }
        }
    }
}

fn answer_all(out: &mut Vec<Output>, origins: impl Iterator<Item = Origin>, response: &Response) {
    for origin in origins {
        if let Origin::Client { connection, id } = origin {
            respond(out, connection, id, response.clone());
        }
    }
}
