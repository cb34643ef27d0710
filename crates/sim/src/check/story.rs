//! What the committed logs say happened: every entry replayed by a fresh table, once, and what checkers ask for put in order.

mod told;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use leasehold_core::{
    Answer, Applied, Command, Ending, Entry, Event as TableEvent, ItemKind, LeaseTable, LogTime, Millis, Op,
    Operator, Policies, Reply, SessionCommand, SessionId, Token,
};

pub use self::told::Told;
use self::told::{concerns, told_of};
use super::points::Points;
use super::{Id, Violation};
use crate::record::{ClientId, Committed, Event, LogId, Place, Record, RequestKey, TrueTime, hash};

/// The table looks through itself for contradictions once in so many entries; each look goes through all of it.
const ENTRIES_PER_LOOK: usize = 512;

/// One entry and what it did.
#[derive(Debug, Clone)]
pub struct Step<'r> {
    /// Of which log.
    pub log: LogId,
    /// Its place.
    pub index: u64,
    /// When it was first applied.
    pub applied: TrueTime,
    /// What it says.
    pub entry: &'r Entry,
    /// What it did.
    pub outcome: Applied,
}

impl Step<'_> {
    /// The commands of sessions that were carried out, with their numbers and answers.
    pub fn answers(&self) -> impl Iterator<Item = (&SessionCommand, u64, &Answer)> {
        // Answers of streams stand in the order of their commands.
        let mut items = self.outcome.items.iter();
        self.entry.commands.iter().zip(&self.outcome.replies).filter_map(move |(command, reply)| {
            let Command::Session(command) = command else { return None };
            match reply {
                Reply::Plain { number, answer, .. } => Some((command, number.get(), answer)),
                Reply::Applied { number } => items.find_map(|(session, item)| match &item.kind {
                    ItemKind::Answer { command: answered, answer }
                        if (*session, answered) == (command.session, number) =>
                    {
                        Some((command, number.get(), answer))
                    }
                    _ => None,
                }),
                _ => None,
            }
        })
    }
}

/// One lease, from its grant on.
#[derive(Debug, Clone)]
pub struct Lease {
    /// The step that granted it.
    pub step: usize,
    /// Of what.
    pub place: Place,
    /// Whether it is shared.
    pub shared: bool,
    /// Its token.
    pub token: Token,
    /// The token that its holder fences with.
    pub fence: Token,
    /// Whose.
    pub session: SessionId,
    /// By which command.
    pub command: u64,
    /// Its end.
    pub end: Option<End>,
}

impl Lease {
    /// Whether no two holders may have both: not in two slots, nor if both share.
    pub fn excludes(&self, other: &Self) -> bool {
        !(self.place.is_apart(other.place) || self.shared && other.shared)
    }

    /// Whether a command of its client gives it up: a release of its token, which its machine sends by itself for a lease that was cancelled
    /// too late, or the close of its session.
    pub fn is_given_up_by(&self, command: &Command) -> bool {
        let Command::Session(command) = command else { return false };
        let gives_up = match &command.op {
            Op::Release { token, .. } => *token == self.token,
            op => matches!(op, Op::Close),
        };
        command.session == self.session && gives_up
    }
}

/// The end of a lease.
#[derive(Debug, Clone)]
pub struct End {
    /// The step that ended it.
    pub step: usize,
    /// How.
    pub how: Ending,
    /// The step in which somebody said that nobody need be waited for: the same, or a later one.
    pub at_once: Option<usize>,
}

/// A renewal, or the open, that counted.
#[derive(Debug, Clone, Copy)]
pub struct Renewal {
    /// Its number; none for the open.
    pub number: u64,
    /// The step in which it counted.
    pub step: usize,
    /// When it was first sent.
    pub sent: Option<TrueTime>,
    /// When its client heard that it counted.
    pub heard: Option<TrueTime>,
}

/// One session.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// Of which log.
    pub log: LogId,
    /// Its ttl.
    pub ttl: Millis,
    /// ttl - margin in milliseconds, once its client has said so.
    pub usable_ms: Option<u64>,
    /// What happens when it is not renewed.
    pub policies: Policies,
    /// Whose, if the client heard of it.
    pub client: Option<ClientId>,
    /// The open, then its renewals, in the order in which they counted.
    pub renewals: Vec<Renewal>,
    /// The step that ended it.
    pub over: Option<usize>,
    /// When the client was through with it.
    pub client_over: Option<TrueTime>,
    /// When the client's process died with it.
    pub died: Option<TrueTime>,
}

/// The story of a run.
#[derive(Debug)]
pub struct Story<'r> {
    /// The record it is made of.
    pub record: &'r Record,
    /// Entries with commands or time, log by log.
    pub steps: Vec<Step<'r>>,
    /// Leases in the order of their grants, log by log.
    pub leases: Vec<Lease>,
    /// Places in `leases`. Of two grants with one token the first counts.
    pub by_token: HashMap<Token, usize>,
    /// Gaps that ended.
    pub gaps: Vec<Told>,
    /// Sessions.
    pub sessions: BTreeMap<SessionId, Session>,
    /// When clients died. Another process may go on under the same id, with other sessions.
    pub deaths: Vec<(TrueTime, ClientId)>,
    /// When holders gave their leases up.
    pub let_go: HashMap<Token, TrueTime>,
    /// Hashes of the table where nodes said theirs.
    pub states: BTreeMap<(LogId, u64), u64>,
    /// Holders where reads showed them.
    pub holders: BTreeMap<(LogId, u64, u32), Option<Token>>,
    /// What replaying itself found wrong.
    pub broken: Vec<Violation>,
    /// Epochs that were given to a second life, because an operator had forgotten the first, and since when.
    twice: Vec<(u16, TrueTime)>,
}

impl<'r> Story<'r> {
    /// Replays a record.
    pub fn of(record: &'r Record) -> Self {
        let mut story = Self {
            record,
            steps: Vec::new(),
            leases: Vec::new(),
            by_token: HashMap::new(),
            gaps: Vec::new(),
            sessions: BTreeMap::new(),
            deaths: Vec::new(),
            let_go: HashMap::new(),
            states: BTreeMap::new(),
            holders: BTreeMap::new(),
            broken: Vec::new(),
            twice: epochs_given_twice(record),
        };
        let asked = Points::of(record);
        for (log, _) in record.lives() {
            story.replay(log, &asked);
        }
        story.hear();
        story
    }

    /// Whether a session or a token is one of a life whose epoch was used before: the same number was another's there. Nothing is
    /// promised for it, and what is known of the other must not be taken from it.
    pub fn is_second_of_its_name(&self, number: u64, moment: TrueTime) -> bool {
        self.twice.iter().any(|(epoch, since)| number >> EPOCH_SHIFT == u64::from(*epoch) && moment >= *since)
    }

    /// When the entry of a step was first applied.
    pub fn time(&self, step: usize) -> TrueTime {
        self.steps[step].applied
    }

    /// Log time of a step.
    pub fn at(&self, step: usize) -> LogTime {
        self.steps[step].entry.at
    }

    /// The lease with this token.
    pub fn lease(&self, token: Token) -> Option<&Lease> {
        self.by_token.get(&token).map(|place| &self.leases[*place])
    }

    /// The last renewal of a session that counted up to a step; renewals come first in their entry.
    pub fn renewal_by(&self, session: SessionId, step: usize) -> Option<&Renewal> {
        let renewals = &self.sessions.get(&session)?.renewals;
        let after = renewals.partition_point(|renewal| renewal.step <= step);
        renewals.get(after.checked_sub(1)?)
    }

    /// Past this point in log time the session is overdue, judged at a step.
    pub fn overdue_after(&self, session: SessionId, step: usize) -> Option<LogTime> {
        let renewal = self.renewal_by(session, step)?;
        let ttl = self.sessions.get(&session)?.ttl;
        Some(self.at(renewal.step).plus(self.record.config.drift.stretch(ttl)))
    }

    /// The place of an entry in `steps`.
    pub fn step_of(&self, log: LogId, index: u64) -> Option<usize> {
        self.steps.binary_search_by_key(&(log, index), |step| (step.log, step.index)).ok()
    }

    fn replay(&mut self, log: LogId, asked: &Points) {
        let mut table = LeaseTable::new(self.record.config.clone());
        for committed in inherited(self.record, log) {
            if let Some(entry) = committed.entry.as_ref().filter(|entry| entry.at >= table.last_at()) {
                table.apply(entry);
            }
        }
        self.look(log, self.record.logs[usize::from(log.0)].first - 1, &table, asked);
        for (nth, committed) in self.record.logs[usize::from(log.0)].entries.iter().enumerate() {
            if let Some(entry) = &committed.entry {
                if entry.at < table.last_at() {
                    let (before, index) = (table.last_at(), committed.index);
                    let what = format!("log time fell from {before} to {} at entry {index}", entry.at);
                    self.broken.push(Violation::new(Id::I12, committed.applied, what));
                    return;
                }
                let outcome = table.apply(entry);
                self.see_gaps(&table, &outcome);
                self.took(log, committed, entry, outcome);
            }
            self.look(log, committed.index, &table, asked);
            if nth % ENTRIES_PER_LOOK == ENTRIES_PER_LOOK - 1
                && let Err(why) = table.check_invariants()
            {
                self.broken.push(Violation::new(Id::Model, committed.applied, why));
                return;
            }
        }
        if let Err(why) = table.check_invariants() {
            self.broken.push(Violation::new(Id::Model, self.record.end(), why));
        }
    }

    /// What nodes and reads said about this very point of the log.
    fn look(&mut self, log: LogId, index: u64, table: &LeaseTable, asked: &Points) {
        if asked.states.contains(&(log, index)) {
            self.states.insert((log, index), hash(&table.encode()));
        }
        for point in asked.reads.range((log, index, 0)..=(log, index, u32::MAX)) {
            let name = &self.record.names[point.2 as usize];
            let holder = table.lease(name).and_then(|view| view.holders.first().map(|holder| holder.token));
            self.holders.insert(*point, holder);
        }
    }

    fn took(&mut self, log: LogId, committed: &Committed, entry: &'r Entry, outcome: Applied) {
        let step = self.steps.len();
        for (command, reply) in entry.commands.iter().zip(&outcome.replies) {
            self.renewed((log, committed.applied), step, command, reply);
        }
        for event in &outcome.events {
            if !concerns(event).is_some_and(|number| self.is_second_of_its_name(number, committed.applied)) {
                self.happened(step, event);
            }
        }
        for command in &entry.commands {
            if let Command::Operator(Operator::Revoke { token, now: true, .. }) = command {
                self.revoked_at_once(step, *token);
            }
        }
        let (index, applied) = (committed.index, committed.applied);
        self.steps.push(Step { log, index, applied, entry, outcome });
    }

    fn renewed(&mut self, at: (LogId, TrueTime), step: usize, command: &Command, reply: &Reply) {
        let (log, applied) = at;
        let (session, number) = match (command, reply) {
            (Command::Open(open), Reply::Opened(opened)) if !opened.repeated => {
                let renewals = vec![Renewal { number: 0, step, sent: None, heard: None }];
                let (ttl, policies) = (open.ttl, open.policies);
                let session = Session { log, ttl, policies, renewals, ..Session::default() };
                if !self.is_second_of_its_name(opened.session.get(), applied) {
                    self.sessions.insert(opened.session, session);
                }
                return;
            }
            (Command::Renew { session, .. } | Command::RenewPlain { session }, Reply::Renewed(renewed)) => {
                (session, renewed.number.get())
            }
            _ => return,
        };
        if self.is_second_of_its_name(session.get(), applied) {
            return;
        }
        if let Some(session) = self.sessions.get_mut(session) {
            session.renewals.push(Renewal { number, step, sent: None, heard: None });
        }
    }

    /// A lease, which may have been revoked before with a wait for its holder, is waited for no longer.
    fn revoked_at_once(&mut self, step: usize, token: Token) {
        let lease = self.by_token.get(&token).map(|place| &mut self.leases[*place]);
        if let Some(end) = lease.and_then(|lease| lease.end.as_mut()) {
            end.at_once.get_or_insert(step);
        }
    }

    fn happened(&mut self, step: usize, event: &TableEvent) {
        match event {
            TableEvent::Granted { grant, shared, session, command, .. } => {
                let Some(resource) = self.record.known(&grant.resource) else { return };
                self.by_token.entry(grant.token).or_insert(self.leases.len());
                self.leases.push(Lease {
                    step,
                    place: Place { resource, slot: grant.slot },
                    shared: *shared,
                    token: grant.token,
                    fence: grant.fence,
                    session: *session,
                    command: command.get(),
                    end: None,
                });
            }
            TableEvent::Ended { token, how, .. } => {
                if let Some(place) = self.by_token.get(token) {
                    self.leases[*place].end.get_or_insert(End { step, how: how.clone(), at_once: None });
                }
            }
            TableEvent::SessionEnded { session } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.over.get_or_insert(step);
                }
            }
            TableEvent::SessionOpened { .. }
            | TableEvent::ValueSet { .. }
            | TableEvent::DrainingShown { .. }
            | TableEvent::ReadySet { .. }
            | TableEvent::RegisterWritten { .. }
            | TableEvent::WaitGranted { .. }
            | TableEvent::WaitEnded { .. }
            | TableEvent::AlarmRaised { .. }
            | TableEvent::AlarmCleared { .. } => {}
        }
    }

    /// What clients did and heard.
    fn hear(&mut self) {
        let mut sent: HashMap<(SessionId, u64), TrueTime> = HashMap::new();
        let mut heard: HashMap<(SessionId, u64), TrueTime> = HashMap::new();
        for (now, event) in &self.record.events {
            if told_of(event).is_some_and(|number| self.is_second_of_its_name(number, *now)) {
                continue;
            }
            match event {
                Event::SessionOpened { client, session, usable_ms, first_sent, .. } => {
                    if let Some(session) = self.sessions.get_mut(session) {
                        session.client = Some(*client);
                        session.usable_ms = Some(*usable_ms);
                        session.renewals[0].sent = Some(*first_sent);
                        session.renewals[0].heard = Some(*now);
                    }
                }
                Event::SessionOver { session } => {
                    if let Some(session) = self.sessions.get_mut(session) {
                        session.client_over.get_or_insert(*now);
                    }
                }
                Event::Died { client } => {
                    self.deaths.push((*now, *client));
                    let own = self.sessions.values_mut().filter(|session| session.client == Some(*client));
                    for session in own.filter(|session| session.client_over.is_none()) {
                        session.died.get_or_insert(*now);
                    }
                }
                Event::LetGo { token, .. } => {
                    self.let_go.entry(*token).or_insert(*now);
                }
                Event::RenewalSent { session, number } => {
                    sent.entry((*session, *number)).or_insert(*now);
                }
                Event::PlainRenewed { session, number, sent: left } => {
                    sent.insert((*session, *number), *left);
                }
                _ => {}
            }
        }
        for replied in &self.record.replies {
            if let (
                RequestKey::Renew(session, _) | RequestKey::PlainRenew(session),
                Reply::Renewed(renewed),
            ) = (replied.key, &replied.reply)
            {
                heard.entry((session, renewed.number.get())).or_insert(replied.at);
            }
        }
        for (id, session) in &mut self.sessions {
            for renewal in session.renewals.iter_mut().skip(1) {
                renewal.sent = sent.get(&(*id, renewal.number)).copied();
                renewal.heard = heard.get(&(*id, renewal.number)).copied();
            }
        }
    }
}

/// Sessions and tokens have the epoch of their life above this bit.
const EPOCH_SHIFT: u32 = 48;

fn epochs_given_twice(record: &Record) -> Vec<(u16, TrueTime)> {
    let (mut given, mut twice) = (BTreeSet::new(), Vec::new());
    for (now, event) in &record.events {
        if let Event::Restored { epoch, .. } = event
            && !given.insert(*epoch)
        {
            twice.push((*epoch, *now));
        }
    }
    twice
}

/// What a log has from those before it, oldest first.
pub fn inherited(record: &Record, log: LogId) -> Vec<&Committed> {
    let mut entries = Vec::new();
    let mut cursor = record.logs[usize::from(log.0)].from;
    while let Some((parent, last)) = cursor {
        let parent = &record.logs[usize::from(parent.0)];
        entries.extend(parent.entries.iter().rev().filter(|entry| entry.index <= last));
        cursor = parent.from.map(|(log, index)| (log, index.min(last)));
    }
    entries.reverse();
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::Stage;

    #[test]
    fn a_number_means_the_first_that_had_it_where_an_epoch_is_given_twice() {
        let mut stage = Stage::new();
        let (first, again) = (SessionId::from_u64(1 << EPOCH_SHIFT | 7), SessionId::from_u64(7));
        for (at, epoch) in [(100, 1), (200, 2), (300, 1)] {
            let log = stage.record.begin_log(LogId(0), stage.index);
            stage.at(at).push(Event::Restored { log, epoch, truthful: at < 300 });
        }
        let story = Story::of(&stage.record);
        let is_second = |session: SessionId, millis: u64| {
            story.is_second_of_its_name(session.get(), TrueTime(millis * 1_000_000))
        };
        assert_eq!([150, 299, 300].map(|at| is_second(first, at)), [false, false, true]);
        assert!(!is_second(again, 400));
    }
}
