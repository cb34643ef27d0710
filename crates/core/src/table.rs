//! The lease table: what is true, driven by a log.
//!
//! [`LeaseTable::apply`] is the only way in. It takes an entry (a point in log time and the commands that share it) and gives
//! back replies, items for the sessions' streams, and events. It reads no clock; time is the `at` of the entry. Replaying the
//! same entries gives the same table, byte for byte, whether or not a snapshot was taken on the way.
//!
//! **Validity is decided at use.** Nothing ends by itself: every command first treats as ended what is over at its `at`, on the
//! resources it names. Tidying entries, proposed by the leader, only do the same for resources that nobody names, so that
//! waiters and watchers hear of it in time. Tidying a resource right before a command that names it changes nothing; tidying it
//! *earlier* serves a waiter earlier, which is its purpose. (Limits count what is not tidied up yet.)
//!
//! **Hints are not state.** The index (what may be due when) is derived, is not in snapshots, and is only ever too early. It
//! decides when the leader proposes tidying and lets a settled resource skip work; it decides no outcome.
//!
//! What the table does not do: it does not check nonces or rights (done before the log), and it does not know wall time.

mod acquire;
mod alarms;
mod calls;
mod draining;
mod endings;
mod gap_changes;
mod gap_views;
mod gaps;
mod handover;
mod idle;
mod index;
mod invariants;
mod known;
mod operator;
mod planted;
mod queue;
mod read;
mod ready;
mod registers;
mod resource;
mod session;
mod snapshot;
mod tidy;
mod version;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Applied, Event, ItemKind, Refusal, Reply};
use crate::command::{Command, Entry, Op, Sequence, SessionCommand, System};
use crate::gap::GapNote;
use crate::id::{CallNumber, CommandNumber, Epoch, SessionId, Token, TokensExhausted};
use crate::limits::{DEFAULT_MAX_TTL, Limits};
use crate::name::ResourceName;
use crate::planted::{Bug, planted};
use crate::time::{Drift, LogTime, Millis};

use alarms::Alarm;
pub use alarms::AlarmView;
pub use gap_views::{MAX_GAPS_SHOWN, MAX_NAMES_SCANNED};
use gaps::Outage;
use index::Index;
use known::Known;
pub use read::{
    DrainingView, HolderView, HoldingState, LeaseView, MAX_HOLDERS_SHOWN, MAX_VALUES_SHOWN_BYTES,
    MAX_WAITERS_SHOWN, OfferView, PastView, ReadinessView, SessionView, WaiterView,
};
use resource::Resource;
use session::Session;
pub use snapshot::TableImage;
pub use version::{
    COUNTS_GAPS, FIRST_VERSION, GAPS_HAVE_TWO_LENGTHS, NUMBERS_CALLS, SHOWS_DRAINS, needs, refusal_of,
    stands_in,
};

/// The choices made when a log begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The longest ttl that a session may ask for.
    pub max_ttl: Millis,
    /// The rate error that every clock is trusted to keep.
    pub drift: Drift,
    /// The limits of what clients can create.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_ttl: DEFAULT_MAX_TTL, drift: Drift::DEFAULT, limits: Limits::default() }
    }
}

/// Totals since the log began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Leases granted.
    pub grants: u64,
    /// Renewals applied.
    pub renewals: u64,
    /// Leases ended because the holder asked for it.
    pub voluntary_endings: u64,
    /// Leases ended in any other way.
    pub involuntary_endings: u64,
}

/// Sessions, resources and everything that is promised about them.
#[derive(Debug, Clone, Deserialize)]
pub struct LeaseTable {
    config: Config,
    epoch: Epoch,
    /// Grants and sessions opened so far: the lower 48 bits of the last token or session id drawn.
    counter: u64,
    last_at: LogTime,
    /// Nothing is granted up to this point (the wait after a restore).
    granting_after: Option<LogTime>,
    /// The place that the next waiter gets; places are of the whole table, so that units keep one order in all their queues.
    next_place: u64,
    sessions: Known<SessionId, Session>,
    resources: Known<ResourceName, Resource>,
    counters: Counters,
    /// Resources of which a token was shown that was never granted.
    alarms: BTreeMap<ResourceName, Alarm>,
    /// When nobody led, oldest first. Behind the table in a snapshot.
    #[serde(skip)]
    outages: VecDeque<Outage>,
    /// The version of what may stand in the log. A snapshot of the first says nothing of it.
    #[serde(skip, default = "version::first")]
    version: u32,
    #[serde(skip)]
    index: Index,
}

impl LeaseTable {
    /// An empty table.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            epoch: Epoch::default(),
            counter: 0,
            last_at: LogTime::ZERO,
            granting_after: None,
            next_place: 1,
            sessions: Known::default(),
            resources: Known::default(),
            counters: Counters::default(),
            alarms: BTreeMap::new(),
            outages: VecDeque::new(),
            version: FIRST_VERSION,
            index: Index::default(),
        }
    }

    /// Another life of a state may have another longest ttl, and this is how it is told; no log has an entry for it.
    pub fn set_max_ttl(&mut self, max_ttl: Millis) {
        self.config.max_ttl = max_ttl;
    }

    /// Applies one entry.
    ///
    /// # Panics
    /// When log time falls: then the log is not one that this code wrote, and going on would break promises.
    pub fn apply(&mut self, entry: &Entry) -> Applied {
        assert!(entry.at >= self.last_at, "log time fell from {} to {}", self.last_at, entry.at);
        self.last_at = entry.at;
        let mut out = Applied::default();
        // Most commands bring an answer and an event; renewals neither.
        let most = entry.commands.iter().filter(|command| !command.is_renewal()).count();
        out.items.reserve(most);
        out.events.reserve(most);
        let mut replies: Vec<Reply> = Vec::new();
        replies.resize_with(entry.commands.len(), || Reply::Done);
        // What stood still did so before anything in this entry was taken in.
        let first = entry.commands.iter().filter_map(|command| match command {
            Command::System(system) if comes_first(system) => Some(system),
            _ => None,
        });
        if !planted(Bug::GapStandstillLast) {
            first.clone().for_each(|system| self.system(&mut out, system));
        }
        if most < entry.commands.len() && !planted(Bug::RenewalsLast) {
            self.renewals(&mut out, &entry.commands, &mut replies);
        }
        for (command, reply) in entry.commands.iter().zip(&mut replies) {
            if !command.is_renewal() {
                *reply = self.command(&mut out, command);
            }
        }
        if planted(Bug::RenewalsLast) {
            self.renewals(&mut out, &entry.commands, &mut replies);
        }
        if planted(Bug::GapStandstillLast) {
            first.for_each(|system| self.system(&mut out, system));
        }
        let forgotten = core::mem::take(&mut self.index.forgotten);
        out.gaps.extend(forgotten.into_iter().map(|resource| GapNote::Forgotten { resource }));
        out.replies = replies;
        out
    }

    /// All renewals of an entry: first they all count, then waiters that were passed over are served, then each is answered.
    fn renewals(&mut self, out: &mut Applied, commands: &[Command], replies: &mut [Reply]) {
        let mut revived = BTreeSet::new();
        let mut counted = Vec::with_capacity(commands.iter().filter(|command| command.is_renewal()).count());
        for (command, reply) in commands.iter().zip(replies) {
            let renewed = match command {
                Command::Renew { session, number, seen } => {
                    self.renew(out, &mut revived, *session, *number, *seen).map(|()| (*session, *number))
                }
                Command::RenewPlain { session } => {
                    self.renew_plain(out, &mut revived, *session).map(|number| (*session, number))
                }
                _ => continue,
            };
            match renewed {
                Ok(renewed) => counted.push((reply, renewed)),
                Err(refused) => *reply = refused,
            }
            if planted(Bug::ServedBetweenRenewals) {
                self.serve(out, core::mem::take(&mut revived));
            }
        }
        if !revived.is_empty() {
            self.serve(out, revived);
        }
        for (reply, (session, number)) in counted {
            *reply = self.renewed(session, number);
        }
    }

    fn command(&mut self, out: &mut Applied, command: &Command) -> Reply {
        match command {
            Command::Open(open) => self.open(out, open),
            Command::Attach(attach) => self.attach(attach),
            Command::Renew { .. } | Command::RenewPlain { .. } => {
                unreachable!("renewals are answered before all other commands")
            }
            Command::Session(command) => self.session_command(out, command),
            Command::NoRoom { session, sequence } => self.no_room(out, *session, sequence),
            Command::Operator(operator) => self.operator(out, operator),
            Command::Tidy(due) => self.tidy(out, due),
            Command::System(system) => {
                match system {
                    // Renewals of this entry have been taken in.
                    System::ClusterVersion { .. } => self.narrow_alarms(out),
                    System::Unserved { .. } | System::Unstamped { .. } => {}
                    other => self.system(out, other),
                }
                Reply::Done
            }
            Command::Detached { session, attach } => {
                self.detached(*session, *attach);
                Reply::Done
            }
        }
    }

    /// One command of a session: its place in the stream is checked first, then it is carried out and answered.
    fn session_command(&mut self, out: &mut Applied, command: &SessionCommand) -> Reply {
        let id = command.session;
        if let Sequence::Numbered(call) = command.sequence {
            return self.numbered_command(out, id, call, &command.op);
        }
        if let Some(settled) = self.cancels_settled(id, &command.op, CallNumber::NONE) {
            return settled;
        }
        let number = match self.admit(id, &command.sequence, Some(&command.op)) {
            Ok(number) => number,
            Err(reply) => return reply,
        };
        if matches!(command.op, Op::Close) {
            self.close(out, id);
            return Reply::Closed;
        }
        let answer = self.op(out, id, number, &command.op);
        match command.sequence {
            Sequence::Streamed { .. } => {
                self.push_item(out, id, ItemKind::Answer { command: number, answer });
                Reply::Applied { number }
            }
            Sequence::Plain | Sequence::Numbered(_) => {
                let renewal = self.sessions.get(&id).map_or_else(Default::default, |session| session.renewal);
                Reply::Plain { number, answer, renewal }
            }
        }
    }

    /// One command of a stream that was not taken in, and must not hold up the others.
    fn no_room(&mut self, out: &mut Applied, id: SessionId, sequence: &Sequence) -> Reply {
        match self.admit(id, sequence, None) {
            Ok(number) => {
                let answer = Answer::Refused(Refusal::NoRoom);
                self.push_item(out, id, ItemKind::Answer { command: number, answer });
                Reply::Applied { number }
            }
            Err(reply) => reply,
        }
    }

    fn op(&mut self, out: &mut Applied, id: SessionId, number: CommandNumber, op: &Op) -> Answer {
        let done = match op {
            Op::Acquire(acquire) => self.acquire(out, id, number, acquire),
            Op::Cancel { acquire } => self.cancel(out, id, *acquire),
            Op::SetValue { resource, token, value } => self.set_value(out, id, resource, *token, value),
            Op::WriteRegister { resource, token, key, value, with_lease } => {
                self.settle(out, resource);
                self.check_shown(out, resource, *token, id).and_then(|()| {
                    self.write_register(out, resource, *token, key, value.as_ref(), *with_lease)
                })
            }
            Op::Offer(offer) => self.offer(out, id, offer),
            Op::Accept { resource, token, value } => self.accept(out, id, number, resource, *token, value),
            Op::Release { resource, token, drained } => self.release(out, id, resource, *token, *drained),
            Op::Close => unreachable!("a close is carried out by session_command"),
            Op::CancelCall { call } => self.cancel_call(out, id, *call),
            Op::SetDraining { resource, token, in_flight, within } => {
                self.set_draining(out, id, resource, *token, (*in_flight, *within))
            }
            Op::SetReady { resource, token, ready } => self.set_ready(out, id, resource, *token, *ready),
        };
        done.unwrap_or_else(Answer::Refused)
    }

    fn system(&mut self, out: &mut Applied, system: &System) {
        match system {
            System::Found(config) => {
                if self.counter == 0 && self.sessions.is_empty() && self.resources.is_empty() {
                    self.config = config.clone();
                }
            }
            System::ClusterVersion { version } => self.version = self.version.max(*version),
            System::Unserved { length } => self.stood_still(out, *length, false),
            System::Unstamped { length } => self.stood_still(out, Some(*length), true),
            System::Rebooted => self.end_everything(out, &crate::answer::Ending::Rebooted),
            System::Restored { epoch, wait } => {
                if !planted(Bug::RestoreKeepsEpoch) {
                    self.epoch = self.epoch.max(*epoch);
                }
                self.note_restore(out);
                self.drop_answered_alarms();
                // Nothing to wait for means that all holders are stopped, those from before an earlier restore too. Any
                // other wait never shortens one that still runs.
                let until = (*wait > Millis::ZERO).then(|| self.last_at.plus(*wait));
                self.granting_after = until.max(until.and(self.granting_after));
                if planted(Bug::RestoreWithoutWait) {
                    self.granting_after = None;
                }
                self.end_everything(out, &crate::answer::Ending::Restored);
            }
        }
    }

    /// Draws the next number of the grant counter.
    fn draw(&mut self) -> Result<Token, TokensExhausted> {
        let token = Token::new(self.epoch, self.counter + 1)?;
        self.counter += 1;
        Ok(token)
    }

    /// Whether `count` more tokens can be drawn in this epoch.
    fn can_draw(&self, count: usize) -> bool {
        Token::new(self.epoch, self.counter.saturating_add(count as u64)).is_ok()
    }

    fn event(out: &mut Applied, event: Event) {
        out.events.push(event);
    }

    /// The session, unless it does not exist or is over at this point of the log.
    fn living(&self, id: SessionId) -> Result<&Session, Refusal> {
        self.alive(id).ok_or(Refusal::SessionEnded { session: id })
    }

    /// The same, for whoever asks for nothing but that.
    #[inline]
    fn alive(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id).filter(|session| !session.is_ended(self.last_at, self.config.drift))
    }

    /// The same, to change it.
    fn living_mut(&mut self, id: SessionId) -> Result<&mut Session, Refusal> {
        let (at, drift) = (self.last_at, self.config.drift);
        self.sessions
            .get_mut(&id)
            .filter(|session| !session.is_ended(at, drift))
            .ok_or(Refusal::SessionEnded { session: id })
    }
}

/// Whether this is taken in before everything else that its entry says: what may stand in the log, and what was before the entry.
const fn comes_first(system: &System) -> bool {
    matches!(system, System::ClusterVersion { .. } | System::Unserved { .. } | System::Unstamped { .. })
}
