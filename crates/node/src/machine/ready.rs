//! Raft's readies: what must be written, sent and applied, in the order that keeps promises.

use raft::Ready;
use raft::eraftpb::{EntryType, HardState, Message};

use super::{Fatal, LogEntry, LogWrite, Node, Output, Vote};
use crate::clock::STALL_CAP;
use crate::payload::{NodeSnapshot, Payload};

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
        let entries = ready.take_entries();
        // Readable from the storage before raft is told to go on.
        self.raft.mut_store().append(&entries);
        let vote_changed = ready.hs().is_some_and(|hs| self.note_hard_state(hs));
        let committed = ready.take_committed_entries();
        let (now, mut later) = (ready.take_messages(), ready.take_persisted_messages());
        let must_write = vote_changed || !entries.is_empty();
        if vote_changed {
            // A changed term or vote is synced before any message of its ready goes out, leader or not.
            later.splice(0..0, now);
        } else {
            send(out, now);
        }
        self.raft.advance_append_async(ready);
        if must_write {
            let vote = vote_changed.then(|| self.vote());
            let entries = entries.iter().map(from_raft).collect();
            out.push(Output::Write(LogWrite { number, vote, entries }));
            if self.writes.is_empty() {
                self.write_allowance = STALL_CAP;
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
        self.raft.on_persist_ready(number);
    }

    /// Keeps term, vote and commit; says whether term or vote changed.
    fn note_hard_state(&mut self, new: &HardState) -> bool {
        use raft::Storage;
        let old = self.raft.store().initial_state().expect("the memory log never fails").hard_state;
        self.raft.mut_store().set_hard_state(new.clone());
        old.term != new.term || old.vote != new.vote
    }

    fn vote(&self) -> Vote {
        use raft::Storage;
        let state = self.raft.store().initial_state().expect("the memory log never fails").hard_state;
        Vote { term: state.term, vote: state.vote, commit: state.commit }
    }

    fn apply(&mut self, out: &mut Vec<Output>, entry: &raft::eraftpb::Entry) -> Result<(), Fatal> {
        if entry.get_entry_type() == EntryType::EntryNormal && !entry.data.is_empty() {
            let payload = Payload::decode(&entry.data)?;
            self.stamped = Some((payload.entry.at, payload.anchor));
            let applied = self.table.apply(&payload.entry);
            self.stats.entries += 1;
            self.stats.entry_bytes += entry.data.len() as u64;
            self.stats.batch_commands.add(payload.entry.commands.len() as u64);
            self.deliver(out, entry.term, entry.index, &payload.entry.commands, applied);
        }
        self.applied = entry.index;
        self.applied_term = entry.term;
        self.since_snapshot.entries += 1;
        self.since_snapshot.bytes += entry.data.len() as u64;
        self.raft.advance_apply_to(entry.index);
        Ok(())
    }

    pub(super) fn snapshot_if_due(&mut self, out: &mut Vec<Output>) {
        let due = self.since_snapshot.entries >= self.options.snapshot_entries
            || self.since_snapshot.bytes >= self.options.snapshot_bytes;
        if !due || self.since_snapshot.saving {
            return;
        }
        let conf = self.raft.store().conf_state();
        let bytes = NodeSnapshot::encode(
            &conf.voters,
            &conf.learners,
            self.stamped.clone(),
            &self.changes,
            &self.table,
        );
        self.stats.snapshots += 1;
        self.since_snapshot = super::SinceSnapshot { entries: 0, bytes: 0, saving: true };
        out.push(Output::SaveSnapshot { index: self.applied, term: self.applied_term, bytes });
    }
}

fn send(out: &mut Vec<Output>, messages: Vec<Message>) {
    out.extend(messages.into_iter().map(|message| Output::SendPeer(Box::new(message))));
}

fn from_raft(entry: &raft::eraftpb::Entry) -> LogEntry {
    let kind = match entry.get_entry_type() {
        EntryType::EntryNormal => 0,
        EntryType::EntryConfChange => 1,
        EntryType::EntryConfChangeV2 => 2,
    };
    LogEntry { index: entry.index, term: entry.term, kind, payload: entry.data.to_vec() }
}
