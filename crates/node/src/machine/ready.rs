//! Raft's readies: what must be written, sent and applied, in the order that keeps promises.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::MemberId;
use leasehold_core::{Command, LogTime, Revision, System};
use raft::eraftpb::{EntryType, HardState, Message, MessageType, Snapshot};
use raft::{ProgressState, Ready};

use super::pace::Pace;
use super::start::{check_version, from_conf_state, to_conf_state};
use super::{Fatal, LogEntry, LogWrite, Node, Output, SavedSnapshot, SinceSnapshot, Vote};
use crate::changes::ChangeLog;
use crate::clock::STALL_CAP;
use crate::payload::{Head, NodeSnapshot, Payload, SnapshotImage};
use crate::peer::PeerMessage;

/// A node whose disk has not finished a write for so long says nothing any more: it counts as gone.
const DEAD_DISK: Duration = Duration::from_secs(2);

impl Node {
    pub(super) fn handle_ready(&mut self, out: &mut Vec<Output>) -> Result<(), Fatal> {
        self.draw_election_timeout();
        while self.raft.has_ready() {
            let ready = self.raft.ready();
            self.one_ready(out, ready)?;
            self.draw_election_timeout();
        }
        Ok(())
    }

    fn one_ready(&mut self, out: &mut Vec<Output>, mut ready: Ready) -> Result<(), Fatal> {
        let number = ready.number();
        for state in ready.take_read_states() {
            self.reads.confirm(&state.request_ctx, state.index);
        }
        let install = if ready.snapshot().get_metadata().index == 0 {
            None
        } else {
            let snapshot = ready.snapshot().clone();
            Some(self.install(out, &snapshot)?)
        };
        let entries = ready.take_entries();
        // Readable from the storage before raft is told to go on.
        self.raft.mut_store().append(&entries);
        let vote_changed = ready.hs().is_some_and(|hs| self.note_hard_state(hs));
        let committed = ready.take_committed_entries();
        // Whoever learns that it is removed stops. Those who stay may have needed its vote to find out that this was decided: they
        // write it down before they say so.
        let changes_members = committed.iter().any(|entry| entry.get_entry_type() != EntryType::EntryNormal);
        let vote_changed = vote_changed || changes_members;
        let (now, mut later) = (ready.take_messages(), ready.take_persisted_messages());
        let must_write = vote_changed || !entries.is_empty() || install.is_some();
        if vote_changed {
            self.vote_write = Some(number);
        }
        if !later.is_empty() && self.vote_write.is_none() && self.write_waited < DEAD_DISK {
            // That this node lives and in which term does not depend on entries that are still being written. A slow disk must not
            // look like a dead node.
            let (alive, rest) = later.into_iter().partition(says_only_alive);
            later = rest;
            send(out, alive);
        }
        if vote_changed && planted(Bug::ReadyBeforeTerm) {
            send(out, now);
            send(out, std::mem::take(&mut later));
        } else if vote_changed {
            // A changed term or vote is synced before any message of its ready goes out, leader or not.
            later.splice(0..0, now);
        } else {
            send(out, now);
        }
        self.raft.advance_append_async(ready);
        if must_write {
            // With entries goes how far the log was known to be committed when they came. Raft counts votes by the members of what
            // it knows as committed: a member that forgot that after two changes would count by a list from before both.
            let with_commit = vote_changed || (!entries.is_empty() && !self.is_alone());
            let vote = with_commit.then(|| self.vote());
            let vote =
                vote.map(|vote| if planted(Bug::VoteNotPersisted) { Vote { vote: 0, ..vote } } else { vote });
            if planted(Bug::AppendAckedBeforeSync) && !vote_changed {
                send(out, std::mem::take(&mut later));
            }
            let entries = entries.iter().map(from_raft).collect();
            self.installing = install.as_ref().map(|_| number).or(self.installing);
            out.push(Output::Write(LogWrite { number, install, vote, entries }));
            if self.writes.is_empty() {
                if self.proposed.is_empty() {
                    self.write_allowance = STALL_CAP;
                }
                self.write_waited = Duration::ZERO;
            }
            self.writes.push_back((number, later));
        } else if self.writes.is_empty() {
            self.raft.on_persist_ready(number);
            send(out, later);
        } else {
            // Nothing of its own to write, but it may not overtake what is on its way.
            let (_, waiting) = self.writes.back_mut().expect("it is not empty");
            waiting.extend(later);
        }
        for entry in committed {
            self.apply(out, &entry)?;
        }
        Ok(())
    }

    /// A write and all before it are synced.
    pub(super) fn written(&mut self, out: &mut Vec<Output>, number: u64) {
        while self.writes.front().is_some_and(|(waiting, _)| *waiting <= number) {
            let (_, messages) = self.writes.pop_front().expect("the front was just looked at");
            send(out, messages);
        }
        self.answer_before_quorum(out);
        self.raft.on_persist_ready(number);
        if self.vote_write.is_some_and(|write| write <= number) {
            self.vote_write = None;
        }
        // The slow ones are remembered for a while.
        self.write_took = self.write_waited.max(self.write_took * 7 / 8);
        if self.installing.is_some_and(|installing| installing <= number) {
            self.installing = None;
            let log = &self.raft.raft.raft_log;
            let reached = self.applied.min(log.committed).min(log.persisted);
            if reached > log.applied() {
                self.raft.advance_apply_to(reached);
            }
        }
        self.write_waited = Duration::ZERO;
    }

    /// A snapshot of another member takes the place of everything here. Nobody is answered from it before it is on disk: whoever
    /// receives one does not lead.
    fn install(&mut self, out: &mut Vec<Output>, snapshot: &Snapshot) -> Result<SavedSnapshot, Fatal> {
        let meta = snapshot.get_metadata();
        let (index, term) = (meta.index, meta.term);
        let read = NodeSnapshot::decode(&snapshot.data)?;
        check_version(read.roster.version, &self.options)?;
        read.table.check_invariants().map_err(Fatal::Invariant)?;
        self.raft.mut_store().install(index, term, to_conf_state(read.voters));
        let counted = self.table.last_at();
        self.table = read.table;
        self.roster = read.roster;
        self.outcomes = read.outcomes;
        self.stamped = read.stamped;
        self.pace = Pace::begun(self.stamped.as_ref().map_or(LogTime::ZERO, |(at, _)| *at), self.now);
        self.changes = read.changes.unwrap_or_else(|| ChangeLog::after(Revision::new(index)));
        (self.applied, self.applied_term) = (index, term);
        self.since_snapshot =
            SinceSnapshot { saving: self.since_snapshot.saving, ..SinceSnapshot::default() };
        self.meter.begin(&self.table, counted);
        out.push(Output::Replaced);
        out.push(Output::Members(Arc::new(self.membership())));
        Ok(SavedSnapshot { index, term, bytes: snapshot.data.to_vec() })
    }

    /// Keeps term, vote and commit; says whether term or vote changed.
    fn note_hard_state(&mut self, new: &HardState) -> bool {
        let old = self.raft.store().hard_state();
        let changed = old.term != new.term || old.vote != new.vote;
        self.raft.mut_store().set_hard_state(new.clone());
        changed
    }

    fn vote(&self) -> Vote {
        let state = self.raft.store().hard_state();
        Vote { term: state.term, vote: state.vote, commit: state.commit }
    }

    fn apply(&mut self, out: &mut Vec<Output>, entry: &raft::eraftpb::Entry) -> Result<(), Fatal> {
        if entry.get_entry_type() == EntryType::EntryNormal && !entry.data.is_empty() {
            let payload = match self.own_payload(entry) {
                Some(own) => own,
                None => Payload::decode(&entry.data)?,
            };
            match (self.outcomes, payload.outcomes) {
                (Some(ours), Some(theirs)) if ours != theirs => {
                    return Err(Fatal::Diverged { index: entry.index, ours, theirs });
                }
                (None, theirs) => self.outcomes = theirs,
                _ => {}
            }
            self.note_version(out, &payload.entry.commands)?;
            self.note_pace(entry.index, &payload.entry);
            self.stamped = Some((payload.entry.at, payload.anchor));
            let applied = self.table.apply(&payload.entry);
            self.outcomes = self.outcomes.map(|before| outcomes(before, &applied, self.table.newest()));
            self.stats.entries += 1;
            self.stats.entry_bytes += entry.data.len() as u64;
            self.stats.batch_commands.add(payload.entry.commands.len() as u64);
            self.count_gaps(entry.index, payload.entry.at, &applied);
            self.deliver(out, entry.term, entry.index, &payload.entry.commands, applied);
        }
        self.applied = entry.index;
        self.applied_term = entry.term;
        if entry.get_entry_type() != EntryType::EntryNormal {
            self.apply_change(out, entry)?;
        }
        self.answer_change(out, entry);
        self.since_snapshot.entries += 1;
        self.since_snapshot.bytes += entry.data.len() as u64;
        self.raft.advance_apply_to(entry.index);
        Ok(())
    }

    /// What this node itself has proposed for this place in this term: raft has one entry for both, so these are its bytes.
    fn own_payload(&mut self, entry: &raft::eraftpb::Entry) -> Option<Payload> {
        let mut proposed = self.proposed.iter_mut();
        let own = proposed.find(|own| (own.term, own.index) == (entry.term, entry.index))?.payload.take()?;
        debug_assert_eq!(Payload::decode(&entry.data).as_ref(), Ok(&own), "it reads back as it was written");
        Some(own)
    }

    /// From here on entries of a later version may follow.
    fn note_version(&mut self, out: &mut Vec<Output>, commands: &[Command]) -> Result<(), Fatal> {
        let raised = |command: &Command| match command {
            Command::System(System::ClusterVersion { version }) => Some(*version),
            _ => None,
        };
        let Some(version) = commands.iter().filter_map(raised).max() else { return Ok(()) };
        check_version(version, &self.options)?;
        if version > self.roster.version {
            self.roster.version = version;
            if !self.roster.members.is_empty() {
                out.push(Output::Members(Arc::new(self.membership())));
            }
        }
        Ok(())
    }

    pub(super) fn snapshot_if_due(&mut self, out: &mut Vec<Output>) {
        let due = self.since_snapshot.entries >= self.options.snapshot_entries
            || self.since_snapshot.bytes >= self.options.snapshot_bytes;
        if !due || self.since_snapshot.saving {
            return;
        }
        self.stats.snapshots += 1;
        self.since_snapshot = SinceSnapshot { entries: 0, bytes: 0, saving: true };
        let (mut index, mut term) = (self.applied, self.applied_term);
        if planted(Bug::ApplyIndexBehindState)
            && let Ok(before) = raft::Storage::term(self.raft.store(), index - 1)
        {
            (index, term) = (index - 1, before);
        }
        out.push(Output::SaveSnapshot(Box::new(self.image_as(index, term))));
    }

    fn image_as(&self, index: u64, term: u64) -> SnapshotImage {
        let head = Head {
            voters: from_conf_state(self.raft.store().conf_state()),
            stamped: self.stamped.clone(),
            roster: self.roster.clone(),
            outcomes: self.outcomes,
        };
        SnapshotImage::new((index, term), head, self.changes.clone(), self.table.image())
    }

    /// Everything that a backup needs, as of the last entry applied, to be made into bytes by whoever wants them.
    pub fn image(&self) -> SnapshotImage {
        self.image_as(self.applied, self.applied_term)
    }

    /// Has a snapshot made for a member that needs more than the log has, if raft has asked for one.
    pub(super) fn make_wanted_snapshot(&mut self, out: &mut Vec<Output>) {
        // Whoever does not lead any more was asked before.
        if self.making.is_some() || !self.raft.mut_store().takes_wanted_snapshot() || !self.is_leader() {
            return;
        }
        self.making = Some((self.applied, self.raft.store().conf_state().clone()));
        out.push(Output::MakeSnapshot(Box::new(self.image())));
    }

    /// Up to where somebody has, or will have, a copy of everything that is being made or sent; the oldest of them.
    pub(super) fn copied(&self) -> Option<u64> {
        let sent =
            self.raft.raft.prs().iter().filter(|(_, progress)| progress.state == ProgressState::Snapshot);
        let sent = sent.map(|(_, progress)| progress.pending_snapshot);
        sent.chain(self.making.as_ref().map(|(index, _)| *index)).min()
    }

    /// A snapshot that was wanted is made. Raft asks again for one that is of no use any more.
    pub(super) fn offer_snapshot(&mut self, made: SavedSnapshot) {
        let SavedSnapshot { index, term, bytes } = made;
        let Some((_, conf)) = self.making.take_if(|making| making.0 == index) else { return };
        // Nobody asks one that does not lead any more, and it may be many megabytes.
        if !self.is_leader() {
            return;
        }
        // It would not know those that came since, and it may be one of those that it is meant for.
        if conf != *self.raft.store().conf_state() {
            return;
        }
        let mut snapshot = Snapshot { data: bytes.into(), ..Snapshot::default() };
        let meta = snapshot.mut_metadata();
        (meta.index, meta.term) = (index, term);
        meta.set_conf_state(conf);
        self.raft.mut_store().offer_snapshot(snapshot);
    }
}

/// What all outcomes so far come to, with those of one more entry: replicas that agree in everything they did agree in this.
fn outcomes(before: u64, applied: &leasehold_core::Applied, newest: u64) -> u64 {
    let outcomes = (before, newest, &applied.items, &applied.events);
    postcard::serialize_with_flavor(&outcomes, Fnv(0xcbf2_9ce4_8422_2325)).expect("nothing in it can fail")
}

/// FNV-1a of 64 bits over what is serialized, without keeping it.
struct Fnv(u64);

impl postcard::ser_flavors::Flavor for Fnv {
    type Output = u64;

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, hash);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<u64> {
        Ok(self.0)
    }
}

/// Whether a message promises nothing about the log.
fn says_only_alive(message: &Message) -> bool {
    message.get_msg_type() == MessageType::MsgHeartbeatResponse
}

fn send(out: &mut Vec<Output>, messages: Vec<Message>) {
    if messages.is_empty() {
        // As always where a node is alone.
        return;
    }
    out.extend(messages.into_iter().map(|message| Output::SendPeer {
        to: MemberId(message.to),
        message: PeerMessage::Raft(Box::new(message)),
    }));
}

fn from_raft(entry: &raft::eraftpb::Entry) -> LogEntry {
    let kind = match entry.get_entry_type() {
        EntryType::EntryNormal => 0,
        EntryType::EntryConfChange => 1,
        EntryType::EntryConfChangeV2 => 2,
    };
    LogEntry { index: entry.index, term: entry.term, kind, payload: entry.data.to_vec() }
}
