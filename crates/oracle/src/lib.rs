//! A naive lease table: the rules of leases written down a second time, as plainly as possible.
//!
//! Every kind of thing is one vector for the whole table (all leases in the order of their grants, all waits in the order of
//! their arrival) and every question is a scan. There are no indexes, no hints and nothing that is skipped because it cannot
//! matter. What is over is ended *at use*, like in the real table: a command brings up to date the resources it names, and
//! those that stand in one unit with the first live waiter of one of them. Within one command resources are served in the order
//! of their names, which decides the order of tokens.
//!
//! Deliberately missing: anything fast, and anything about bytes. Properties that compare bytes compare the real table with itself.
//!
//! The core's properties compare its state with the real table after every entry, the simulator its outcomes after every run.

#![expect(
    missing_docs,
    reason = "fields and questions are those of the real table, where they are described"
)]

mod acquiring;
mod ending;
mod numbered;
mod passing;
mod serving;
mod sessions;

use leasehold_core::answer::{Opened, Renewed};
use leasehold_core::{
    Answer, Applied, CallNumber, Command, CommandNumber, Config, Ending, Entry, Event, Grant, Item, ItemKind,
    ItemNumber, Label, LogTime, Millis, Mode, Nonce, Op, Policies, Refusal, RegisterKey, RenewalNumber,
    Reply, Request, ResourceName, SessionId, SessionKind, System, Token, Value, WaitEnding,
};

/// Everything that is true, in vectors.
#[derive(Debug, Clone, Default)]
pub struct Naive {
    pub config: Config,
    pub epoch: u16,
    pub counter: u64,
    pub now: u64,
    pub nothing_granted_until: Option<u64>,
    /// In the order of their ids; a session that is over stays until somebody tidies it away.
    pub sessions: Vec<Session>,
    pub names: Vec<Name>,
    /// In the order of the grants.
    pub leases: Vec<Lease>,
    /// In the order of arrival.
    pub waits: Vec<Wait>,
    pub cooling: Vec<Cooling>,
    pub registers: Vec<Register>,
    /// Resources of which a token was shown that was never granted, and the greatest such token.
    pub alarms: Vec<(ResourceName, Token)>,
    /// Who has raised an alarm, once for each name.
    pub alarmed: Vec<SessionId>,
    /// Oldest first.
    pub past: Vec<Past>,
    /// What may stand in the log: from 2 on drains are shown, and holders hear that their offers were accepted.
    pub version: u32,
    /// For how long nobody led, in all, as far as the log counts it.
    pub dark: u64,
    /// What the entry that is being applied has done so far.
    out: Applied,
}

#[derive(Debug, Clone)]
pub struct Session {
    pub id: SessionId,
    pub nonce: Nonce,
    pub label: Label,
    pub ttl: Millis,
    pub policies: Policies,
    pub kind: SessionKind,
    pub renewed_at: u64,
    pub renewal: u64,
    pub last_command: u64,
    pub attach: u64,
    pub last_item: u64,
    pub unseen: Vec<Item>,
    /// No numbered call below this is wanted any more.
    pub settled: CallNumber,
    /// Up to here no numbered call that is not remembered is applied any more.
    pub shut: CallNumber,
    /// In the order of their arrival.
    pub calls: Vec<NumberedCall>,
}

/// A numbered call that is remembered.
#[derive(Debug, Clone)]
pub struct NumberedCall {
    pub number: CallNumber,
    /// Nothing if it was cancelled before it arrived.
    pub op: Option<Op>,
    pub command: CommandNumber,
    pub renewal: RenewalNumber,
    /// Its answer: the queue while it waits, the grant afterwards.
    pub answer: Result<Answer, WaitEnding>,
}

/// A name that the table knows.
#[derive(Debug, Clone)]
pub struct Name {
    pub name: ResourceName,
    /// The number of slots, or nothing for a lock.
    pub slots: Option<u32>,
    pub grants: u64,
    pub idle_since: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Lease {
    pub resource: ResourceName,
    pub session: SessionId,
    pub command: CommandNumber,
    pub token: Token,
    pub fence: Token,
    pub slot: Option<u32>,
    pub shared: bool,
    pub value: Value,
    pub since: u64,
    /// For how long nobody had led before its grant.
    pub dark: u64,
    pub revoked: Option<Revoked>,
    pub offer: Option<OfferMade>,
    pub asks: u32,
    /// How many pieces of work are under way, and until when at most.
    pub draining: Option<(u32, u64)>,
    /// What it said of its readiness: nothing yet, that it is warming up, or so long after its grant that it is ready.
    pub ready: Option<Option<u64>>,
}

/// The lease is over, and its place stays taken because the holder may not know.
#[derive(Debug, Clone)]
pub struct Revoked {
    pub until: u64,
    /// The kind of the name changed meanwhile: the place stands in the way of every other.
    pub of_another_kind: bool,
}

#[derive(Debug, Clone)]
pub struct OfferMade {
    pub to: SessionId,
    pub until: u64,
    pub ready: Option<Ready>,
    /// Whether the holder was told that it was accepted.
    pub told: bool,
}

#[derive(Debug, Clone)]
pub struct Ready {
    pub command: CommandNumber,
    /// The accept itself waits with this value; nothing when it is a wait in the queue that is passed on to.
    pub own_value: Option<Value>,
}

#[derive(Debug, Clone)]
pub struct Wait {
    pub session: SessionId,
    pub command: CommandNumber,
    pub requests: Vec<Request>,
    pub value: Value,
    pub until: u64,
}

#[derive(Debug, Clone)]
pub struct Cooling {
    pub resource: ResourceName,
    pub slot: Option<u32>,
    pub until: u64,
}

#[derive(Debug, Clone)]
pub struct Register {
    pub resource: ResourceName,
    pub key: RegisterKey,
    pub value: Value,
    pub token: Token,
    pub with_lease: bool,
}

#[derive(Debug, Clone)]
pub struct Past {
    pub resource: ResourceName,
    pub token: Token,
    pub session: SessionId,
    pub how: Ending,
}

impl Naive {
    pub fn new(config: Config) -> Self {
        Self { config, version: 1, ..Self::default() }
    }

    pub fn apply(&mut self, entry: &Entry) -> Applied {
        self.now = entry.at.get();
        // What stood still did so before the entry. Then all renewals count; then waiters that were passed over are served; only then is
        // each renewal answered.
        for command in &entry.commands {
            match command {
                Command::System(System::ClusterVersion { version }) => {
                    self.version = self.version.max(*version)
                }
                Command::System(System::Unserved { length }) if self.version >= 3 => {
                    self.dark += length.map_or(0, Millis::get);
                }
                Command::System(System::Unstamped { length }) => self.dark += length.get(),
                _ => {}
            }
        }
        let mut revived = Vec::new();
        let mut renewals = Vec::new();
        for command in &entry.commands {
            match command {
                Command::Renew { session, number, seen } => {
                    renewals.push((*session, *number, self.renew(&mut revived, *session, *number, *seen)));
                }
                Command::RenewPlain { session } => {
                    let (number, counted) = self.renew_plain(&mut revived, *session);
                    renewals.push((*session, number, counted));
                }
                _ => {}
            }
        }
        self.serve(revived);
        let answer = |(session, number, counted): (_, _, Result<(), Reply>)| match counted {
            Ok(()) => self.renewed(session, number),
            Err(reply) => reply,
        };
        let mut renewals = renewals.into_iter().map(answer).collect::<Vec<_>>().into_iter();
        for command in &entry.commands {
            let reply = match command {
                Command::Renew { .. } | Command::RenewPlain { .. } => {
                    renewals.next().expect("each renewal was answered")
                }
                other => self.command(other),
            };
            self.out.replies.push(reply);
        }
        std::mem::take(&mut self.out)
    }

    fn command(&mut self, command: &Command) -> Reply {
        let reply = match command {
            Command::Open(open) => self.open(open),
            Command::Attach(attach) => self.attach(attach),
            Command::Renew { .. } | Command::RenewPlain { .. } => {
                unreachable!("renewals are applied before all others")
            }
            Command::Session(command) => {
                self.session_command(command.session, command.sequence, Some(&command.op))
            }
            Command::NoRoom { session, sequence } => self.session_command(*session, *sequence, None),
            Command::Operator(operator) => self.operator(operator),
            Command::Tidy(due) => self.tidy(due),
            Command::System(system) => self.system(system),
            Command::Detached { .. } => Reply::Done,
        };
        self.forget_unused();
        reply
    }

    fn system(&mut self, system: &System) -> Reply {
        match system {
            System::Found(config) => {
                if self.counter == 0 && self.names.is_empty() {
                    self.config = config.clone();
                }
            }
            System::ClusterVersion { .. } if self.version >= 4 => {
                let (kept, beyond) = self.alarms.drain(..).partition(|(_, token)| token.get() < 1 << 63);
                self.alarms = kept;
                let beyond: Vec<(ResourceName, Token)> = beyond;
                self.serve(beyond.into_iter().map(|(name, _)| name));
            }
            System::ClusterVersion { .. } | System::Unserved { .. } | System::Unstamped { .. } => {}
            System::Rebooted => self.end_everything(&Ending::Rebooted),
            System::Restored { epoch, wait } => {
                self.epoch = self.epoch.max(epoch.get());
                let newest = self.newest();
                self.alarms.retain(|(_, token)| token.get() > newest);
                // Without a wait all holders are stopped; any other wait shortens none that still runs.
                self.nothing_granted_until = match (wait.get(), self.nothing_granted_until) {
                    (0, _) => None,
                    (wait, earlier) => Some((self.now + wait).max(earlier.unwrap_or(0))),
                };
                self.end_everything(&Ending::Restored);
            }
        }
        Reply::Done
    }

    /// The last number of that counter.
    pub fn newest(&self) -> u64 {
        (u64::from(self.epoch) << 48) | self.counter
    }

    /// The next number of the one counter that grants and sessions share.
    pub(crate) fn draw(&mut self) -> Token {
        self.counter += 1;
        Token::from_u64((u64::from(self.epoch) << 48) | self.counter)
    }

    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id)
    }

    pub(crate) fn session_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.id == id)
    }

    /// Past this point the session is overdue: `ttl * (1 + drift) / (1 - drift)` after its last renewal, rounded up.
    pub fn overdue_after(&self, session: &Session) -> u64 {
        let ppm = u64::from(self.config.drift.ppm());
        let (counted, whole) = (session.ttl.get() * (1_000_000 + ppm), 1_000_000 - ppm);
        session.renewed_at + counted / whole + u64::from(counted % whole > 0)
    }

    pub fn ended_after(&self, session: &Session) -> u64 {
        self.overdue_after(session) + session.policies.hard.get()
    }

    /// Past this point a waiter may take a lease of the session: grace is over, and so is the cool-down that begins with its end.
    pub fn takeable_after(&self, session: &Session) -> u64 {
        self.overdue_after(session) + session.policies.grace.get() + session.policies.delay.get()
    }

    pub fn is_live(&self, id: SessionId) -> bool {
        self.session(id).is_some_and(|session| self.now <= self.overdue_after(session))
    }

    pub fn is_over(&self, id: SessionId) -> bool {
        self.session(id).is_none_or(|session| self.now > self.ended_after(session))
    }

    pub fn name(&self, name: &ResourceName) -> Option<&Name> {
        self.names.iter().find(|known| known.name == *name)
    }

    pub fn lease(&self, name: &ResourceName, token: Token) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.resource == *name && lease.token == token)
    }

    pub(crate) fn lease_mut(&mut self, name: &ResourceName, token: Token) -> Option<&mut Lease> {
        self.leases.iter_mut().find(|lease| lease.resource == *name && lease.token == token)
    }

    pub fn leases_on<'a>(&'a self, name: &'a ResourceName) -> impl Iterator<Item = &'a Lease> {
        self.leases.iter().filter(move |lease| lease.resource == *name)
    }

    pub fn queue<'a>(&'a self, name: &'a ResourceName) -> impl Iterator<Item = &'a Wait> {
        self.waits.iter().filter(move |wait| wait.requests.iter().any(|request| request.resource == *name))
    }

    pub(crate) fn how_it_ended(&self, name: &ResourceName, token: Token) -> Option<Ending> {
        let past = self.past.iter().find(|past| past.resource == *name && past.token == token);
        past.map(|past| past.how.clone())
    }

    pub(crate) fn push_item(&mut self, id: SessionId, kind: ItemKind) {
        if let Some(session) = self.session_mut(id).filter(|session| session.kind == SessionKind::Streamed) {
            session.last_item += 1;
            let item = Item { number: ItemNumber::new(session.last_item), kind };
            session.unseen.push(item.clone());
            self.out.items.push((id, item));
        }
    }

    /// A name is forgotten when nothing was ever granted under it and nothing keeps it; or when too many lie idle.
    pub(crate) fn forget_unused(&mut self) {
        let names: Vec<ResourceName> = self.names.iter().map(|known| known.name.clone()).collect();
        for name in names {
            let used = self.leases_on(&name).next().is_some()
                || self.queue(&name).next().is_some()
                || self.cooling.iter().any(|cooling| cooling.resource == name)
                || self.registers.iter().any(|register| register.resource == name);
            let now = self.now;
            let known =
                self.names.iter_mut().find(|known| known.name == name).expect("names are not doubled");
            known.idle_since = if used { None } else { known.idle_since.or(Some(now)) };
            if !used && known.grants == 0 {
                self.names.retain(|known| known.name != name);
            }
        }
        loop {
            let idle = self.names.iter().filter_map(|known| Some((known.idle_since?, known.name.clone())));
            let mut idle: Vec<(u64, ResourceName)> = idle.collect();
            idle.sort();
            if idle.len() <= self.config.limits.idle_resources {
                break;
            }
            let oldest = idle.swap_remove(0).1;
            self.names.retain(|known| known.name != oldest);
            self.past.retain(|past| past.resource != oldest);
        }
    }
}

pub(crate) fn slots_of(mode: Mode) -> Option<u32> {
    match mode {
        Mode::Exclusive | Mode::Shared => None,
        Mode::Slot { of } => Some(of),
    }
}

pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).expect("tests queue few")
}
