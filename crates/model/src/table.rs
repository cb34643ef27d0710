//! The lease table, driven by a log: one resource, its queue, and the sessions that want it.
//!
//! Grace, cool-down and the later limits of a session are none, so that a session ends when it is overdue. Every entry carries one command;
//! a batch with one `at` is several entries with the same one.

use std::fmt;

use crate::rules::{Rules, WrongRule};
use crate::time::{LogTime, Tick, overdue_units};

/// How many clients there are.
pub const CLIENTS: usize = 2;
/// How many sessions one client may open, one after the other.
pub const LIVES: usize = 2;

/// Which client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u8);

/// Which session: a client, and which of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// Whose it is.
    pub client: ClientId,
    /// A client that restarts has a new life and forgets everything.
    pub life: u8,
}

impl SessionId {
    /// Its place in [`Table::sessions`].
    pub fn index(self) -> usize {
        usize::from(self.client.0) * LIVES + usize::from(self.life)
    }

    fn of_index(index: usize) -> SessionId {
        let narrow = |number: usize| u8::try_from(number).expect("there are only a few sessions");
        SessionId { client: ClientId(narrow(index / LIVES)), life: narrow(index % LIVES) }
    }
}

/// A fencing token: the restore epoch, then the number of the grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// Raised by every restore.
    pub epoch: u8,
    /// Raised by every grant.
    pub number: u8,
}

/// What an entry asks of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Open a session.
    Open {
        /// Which.
        session: SessionId,
        /// When it was sent: for the invariants only.
        sent: Tick,
    },
    /// Get the resource, or wait for it.
    Acquire {
        /// For whom.
        session: SessionId,
    },
    /// Renew a session.
    Renew {
        /// Which.
        session: SessionId,
        /// Every sending has a new one.
        number: u8,
        /// When it was sent: for the invariants only.
        sent: Tick,
    },
    /// Give a lease back.
    Release {
        /// Whose lease.
        session: SessionId,
        /// Which lease.
        token: Token,
    },
    /// The leader found a lease overdue.
    Expire {
        /// Which lease.
        token: Token,
    },
    /// Nothing but its `at`.
    Time,
}

/// An entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The term of the leader that stamped it.
    pub term: u8,
    /// Log time.
    pub at: LogTime,
    /// The true time of the stamp: for the invariants only.
    pub stamped: Tick,
    /// What to do.
    pub command: Command,
}

/// A session as the table knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Session {
    /// Log time of the last open or renewal.
    pub renewed: LogTime,
    /// The number of the last renewal.
    pub number: u8,
    /// When that was sent, in true time: for the invariants only.
    pub sent: Tick,
    /// When that was stamped, in true time: for the invariants only.
    pub stamped: Tick,
    /// The term in which that was stamped: for the invariants only.
    pub term: u8,
}

/// Who holds the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The session.
    pub session: SessionId,
    /// Its token.
    pub token: Token,
}

/// What the table tells: to a client, or to the invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The session is open.
    Opened(SessionId),
    /// The session is renewed by this number.
    Renewed(SessionId, u8),
    /// The resource is the session's now.
    Granted(Holder),
    /// The session's release of that token was carried out.
    Released(Holder),
    /// A lease has ended that its holder did not give back, and this is what the table knew of the session.
    Lost(Holder, Session),
    /// As `Lost`, and it was not overdue.
    LostEarly(Holder, Session),
    /// The session is over.
    SessionEnded(SessionId),
    /// An entry was stamped earlier than the one before it.
    TimeFell,
}

/// The state that follows from a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Table {
    /// The restore epoch.
    pub epoch: u8,
    /// The number of the last grant.
    pub grants: u8,
    /// The `at` of the last entry.
    pub last_at: LogTime,
    /// Living sessions, by [`SessionId::index`].
    pub sessions: [Option<Session>; CLIENTS * LIVES],
    /// Who has the resource.
    pub holder: Option<Holder>,
    /// Who waits for it, first come first.
    pub queue: Vec<SessionId>,
    /// After a restore: nothing is granted up to here.
    pub closed_until: Option<LogTime>,
    /// The term of the last entry, where a rule is broken that looks at it.
    term: u8,
}

impl Table {
    /// A table in which both clients have opened their first session at time zero.
    pub fn new() -> Table {
        let zero = Tick::default();
        let open = Session { renewed: LogTime::default(), number: 0, sent: zero, stamped: zero, term: 0 };
        let mut sessions = [None; CLIENTS * LIVES];
        for session in sessions.iter_mut().step_by(LIVES) {
            *session = Some(open);
        }
        Table {
            epoch: 0,
            grants: 0,
            last_at: LogTime::default(),
            sessions,
            holder: None,
            queue: Vec::new(),
            closed_until: None,
            term: 0,
        }
    }

    /// What a restore makes of this table, kept in a backup. `epoch` is the highest that was ever used.
    pub fn restored(&self, rules: Rules, epoch: u8) -> Table {
        let wait = self.last_at.plus(overdue_units(rules));
        Table {
            epoch: if rules.has(WrongRule::RestoreKeepsEpoch) { self.epoch } else { epoch + 1 },
            sessions: [None; CLIENTS * LIVES],
            holder: None,
            queue: Vec::new(),
            closed_until: (!rules.has(WrongRule::RestoreWithoutWait)).then_some(wait),
            ..self.clone()
        }
    }

    /// The session, if it lives.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions[id.index()].as_ref()
    }

    /// Whether an entry at `at` would end the present lease: what a leader looks at before it proposes an expiry.
    pub fn is_holder_overdue(&self, rules: Rules, at: LogTime) -> bool {
        let session = self.holder.and_then(|holder| self.session(holder.session));
        session.is_some_and(|session| is_overdue(rules, session, at))
    }

    /// Whether an entry at `at` would end a session or serve a waiter, whatever its command.
    pub fn is_due(&self, rules: Rules, at: LogTime) -> bool {
        let open_again = self.closed_until.is_some_and(|until| at > until) && !self.queue.is_empty();
        open_again || self.sessions.iter().flatten().any(|session| is_overdue(rules, session, at))
    }

    /// Applies one entry.
    pub fn apply(&mut self, rules: Rules, entry: &Entry) -> Vec<Outcome> {
        let mut out = Vec::new();
        if entry.at < self.last_at {
            out.push(Outcome::TimeFell);
        }
        self.last_at = entry.at;
        if rules.has(WrongRule::FreshTtlPerFailover) && entry.term > self.term {
            self.term = entry.term;
            for session in self.sessions.iter_mut().flatten() {
                session.renewed = entry.at;
            }
        }
        if self.closed_until.is_some_and(|until| entry.at > until) {
            self.closed_until = None;
        }
        self.end_overdue(rules, &mut out);
        self.serve(&mut out);
        self.obey(rules, entry, &mut out);
        self.serve(&mut out);
        out
    }

    /// Validity is decided at use: whatever is overdue has ended before the command is looked at.
    fn end_overdue(&mut self, rules: Rules, out: &mut Vec<Outcome>) {
        for index in 0..self.sessions.len() {
            let Some(session) = self.sessions[index] else { continue };
            if !is_overdue(rules, &session, self.last_at) {
                continue;
            }
            let id = SessionId::of_index(index);
            if let Some(holder) = self.holder.take_if(|holder| holder.session == id) {
                out.push(Outcome::Lost(holder, session));
            }
            self.queue.retain(|waiter| *waiter != id);
            self.sessions[index] = None;
            out.push(Outcome::SessionEnded(id));
        }
    }

    fn obey(&mut self, rules: Rules, entry: &Entry, out: &mut Vec<Outcome>) {
        let opened = |number, sent| Session {
            renewed: entry.at,
            number,
            sent,
            stamped: entry.stamped,
            term: entry.term,
        };
        match entry.command {
            Command::Open { session, sent } => {
                self.sessions[session.index()] = Some(opened(0, sent));
                out.push(Outcome::Opened(session));
            }
            Command::Acquire { session } => {
                let has_it = self.holder.is_some_and(|holder| holder.session == session);
                if self.session(session).is_some() && !has_it && !self.queue.contains(&session) {
                    self.queue.push(session);
                }
            }
            Command::Renew { session, number, sent } => {
                let known = &mut self.sessions[session.index()];
                let newer = known.as_ref().is_some_and(|known| number > known.number);
                if newer || (known.is_none() && rules.has(WrongRule::EndedRevived)) {
                    *known = Some(opened(number, sent));
                    out.push(Outcome::Renewed(session, number));
                }
            }
            Command::Release { session, token } => {
                let theirs = |holder: &Holder| {
                    holder.session == session
                        && (holder.token == token || rules.has(WrongRule::ReleaseIgnoresToken))
                };
                let ended = self.holder.filter(theirs);
                if let Some(holder) = ended {
                    self.holder = None;
                    let named = holder.token == token;
                    out.push(if named { Outcome::Released(holder) } else { self.lost_early(holder) });
                }
            }
            // With its guard it does nothing here: what it names has ended above, or is not overdue.
            Command::Expire { .. } if !rules.has(WrongRule::ExpiryUnguarded) => {}
            Command::Expire { .. } => {
                if let Some(holder) = self.holder.take() {
                    out.push(self.lost_early(holder));
                }
            }
            Command::Time => {}
        }
    }

    fn lost_early(&self, holder: Holder) -> Outcome {
        let session = self.session(holder.session).expect("a holder's session lives");
        Outcome::LostEarly(holder, *session)
    }

    /// Grants to the first who waits, if the resource is free.
    fn serve(&mut self, out: &mut Vec<Outcome>) {
        if self.holder.is_some() || self.closed_until.is_some() || self.queue.is_empty() {
            return;
        }
        let session = self.queue.remove(0);
        self.grants += 1;
        let holder = Holder { session, token: Token { epoch: self.epoch, number: self.grants } };
        self.holder = Some(holder);
        out.push(Outcome::Granted(holder));
    }
}

fn is_overdue(rules: Rules, session: &Session, at: LogTime) -> bool {
    at > session.renewed.plus(overdue_units(rules))
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.client, self.life)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.number)
    }
}

impl Default for Table {
    fn default() -> Table {
        Table::new()
    }
}
