//! A day in the making: the events that will stand in the log, and what is written down beside them.
//!
//! Nothing here asks the table. When a session is overdue, when a place is free and which token a grant gets follows from the rules that
//! the documents give.

use std::collections::BTreeMap;

use leasehold_core::Mode;
use leasehold_core::gap::GapCause;

use super::chance::Chance;
pub(crate) use super::truth::stretch;
use super::truth::{Blackout, GrantId, Lease, Mark, Point, Since, Term, Truth};

/// Milliseconds of the day.
pub(crate) const DAY: u64 = 24 * 60 * 60 * 1_000;
/// Longer than any wait of the day has to be.
pub(crate) const LONG_WAIT: u64 = 20 * 60 * 60 * 1_000;

pub(crate) type SessionNumber = usize;

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Open(SessionNumber),
    Attach(SessionNumber),
    Renew(SessionNumber),
    /// The word about the end of an attachment, of the present one or of one before it.
    Detached(SessionNumber, u64),
    Acquire {
        session: SessionNumber,
        wait: bool,
    },
    Release(SessionNumber, GrantId),
    Value(SessionNumber, GrantId),
    Ready(SessionNumber, GrantId, bool),
    Offer(SessionNumber, GrantId, SessionNumber),
    Accept(SessionNumber, GrantId),
    Close(SessionNumber),
    Revoke {
        grant: GrantId,
        now: bool,
    },
    /// A session shows a token that was never granted.
    Alarm(SessionNumber),
    Clear,
    Tidy,
    Unserved(Option<u64>),
    Restored {
        wait: u64,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) at: u64,
    pub(crate) name: usize,
    pub(crate) what: What,
    /// What is granted by it, in order.
    pub(crate) grants: Vec<GrantId>,
    /// Whether everything that is true by then must be shown behind it.
    pub(crate) check: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    pub(crate) ttl: u64,
    pub(crate) grace: u64,
    pub(crate) hard: u64,
    pub(crate) delay: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) name: usize,
    pub(crate) numbers: Numbers,
    pub(crate) attach: u64,
    pub(crate) renewed: u64,
    /// The last sign of life.
    pub(crate) sign: Point,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) session: SessionNumber,
    pub(crate) grant: GrantId,
    pub(crate) granted: Point,
}

/// A gap that lasts, as the incident has it so far.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) words: String,
    pub(crate) since: Since,
    pub(crate) causes: Vec<(GapCause, u64)>,
    pub(crate) before: GrantId,
    /// Up to here nobody can be granted anything.
    pub(crate) free: u64,
    /// From here on the lease has ended for everybody, whoever looks.
    pub(crate) over: u64,
    /// The event at which a waiter is granted at once, if there is one.
    pub(crate) serves: Option<Mark>,
}

impl Open {
    pub(crate) fn add(&mut self, cause: GapCause, until: u64) {
        self.causes.push((cause, until));
        self.free = self.free.max(until);
    }

    pub(crate) fn say(&mut self, words: &str) {
        self.words.push_str(", ");
        self.words.push_str(words);
    }
}

pub(crate) struct Day {
    pub(crate) chance: Chance,
    pub(crate) modes: Vec<Mode>,
    pub(crate) events: Vec<Event>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) grants: usize,
    pub(crate) truths: Vec<Truth>,
    pub(crate) terms: Vec<Term>,
    pub(crate) blackouts: Vec<Blackout>,
    /// From when to when no outage is long.
    pub(crate) calm: Vec<(u64, u64)>,
    /// When somebody waits for a name: whoever tidies up then decides when the waiter is granted.
    pub(crate) waited_for: Vec<(usize, u64, u64)>,
    pub(crate) counts: BTreeMap<&'static str, usize>,
}

impl Day {
    pub(crate) fn new(seed: u64, modes: Vec<Mode>) -> Self {
        Self {
            chance: Chance::new(seed),
            modes,
            events: Vec::new(),
            sessions: Vec::new(),
            grants: 0,
            truths: Vec::new(),
            terms: Vec::new(),
            blackouts: Vec::new(),
            calm: Vec::new(),
            waited_for: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    pub(crate) fn count(&mut self, incident: &'static str) {
        *self.counts.entry(incident).or_default() += 1;
    }

    pub(crate) fn push(&mut self, at: u64, name: usize, what: What) -> Mark {
        self.events.push(Event { at, name, what, grants: Vec::new(), check: false });
        self.events.len() - 1
    }

    /// A session that is attached and has renewed nothing yet.
    pub(crate) fn open(&mut self, at: u64, name: usize, numbers: Numbers) -> SessionNumber {
        let session = self.sessions.len();
        self.push(at, name, What::Open(session));
        let mark = self.push(at, name, What::Attach(session));
        let sign = Point { at, mark };
        self.sessions.push(Session { name, numbers, attach: 1, renewed: at, sign });
        session
    }

    /// Something by which a session shows that it is there.
    pub(crate) fn act(&mut self, at: u64, session: SessionNumber, what: What) -> Mark {
        let mark = self.push(at, self.sessions[session].name, what);
        // Renewals are written down up to some point at once, and something else may have been written down for before it.
        if at >= self.sessions[session].sign.at {
            self.sessions[session].sign = Point { at, mark };
        }
        mark
    }

    pub(crate) fn renew(&mut self, at: u64, session: SessionNumber) -> Mark {
        let mark = self.act(at, session, What::Renew(session));
        self.sessions[session].renewed = at;
        mark
    }

    /// Renews every third of the ttl, up to `until`.
    pub(crate) fn keep(&mut self, session: SessionNumber, until: u64) {
        let period = self.sessions[session].numbers.ttl / 3;
        while self.sessions[session].renewed + period <= until {
            self.renew(self.sessions[session].renewed + period, session);
        }
    }

    pub(crate) fn overdue(&self, session: SessionNumber) -> u64 {
        self.sessions[session].renewed + stretch(self.sessions[session].numbers.ttl)
    }

    /// The place in front of which a grant happens.
    pub(crate) fn grant_by(&mut self, mark: Mark, session: SessionNumber) -> Holder {
        let grant = self.grants;
        self.grants += 1;
        self.events[mark].grants.push(grant);
        Holder { session, grant, granted: Point { at: self.events[mark].at, mark } }
    }

    /// A newcomer that is granted what is free.
    pub(crate) fn acquire(&mut self, at: u64, session: SessionNumber) -> Holder {
        let mark = self.act(at, session, What::Acquire { session, wait: false });
        self.grant_by(mark, session)
    }

    /// Nobody leads for a while, at this point of the log.
    pub(crate) fn black_out(&mut self, at: u64, length: Option<u64>) {
        let mark = self.push(at, 0, What::Unserved(length));
        self.blackouts.push(Blackout { mark, at, length });
        self.count(if length.is_some() { "outage" } else { "outage of unknown length" });
    }

    /// Once in a while nobody leads right here.
    pub(crate) fn perhaps_black_out(&mut self, at: u64) {
        if self.chance.once_in(9) {
            let short = self.chance.between(20, 9_000);
            let long = self.chance.between(90_000, 110_000);
            let length = self.chance.one_of(&[Some(short), Some(short), Some(long), None]);
            self.black_out(at, length);
        }
    }

    /// The gap ends here.
    pub(crate) fn close(&mut self, name: usize, open: Open, to: Point, after: GrantId) {
        let Open { words, since, causes, before, .. } = open;
        self.truths.push(Truth { name, words, since, to, causes, before, after });
    }

    /// The holder has acted up to its last sign of life.
    pub(crate) fn end_term(&mut self, name: usize, holder: Holder) {
        let (lease, to) = (self.lease(holder), self.sessions[holder.session].sign.mark);
        self.terms.push(Term { name, grant: holder.grant, lease, to });
    }

    pub(crate) fn lease(&self, holder: Holder) -> Lease {
        let Holder { session, granted, .. } = holder;
        Lease { session, ttl: self.sessions[session].numbers.ttl, granted }
    }

    /// Since the last sign of life of a holder, before this event if there is one.
    pub(crate) fn silent(&self, holder: Holder, before: Option<Mark>) -> Since {
        Since::Silent(self.lease(holder), before)
    }

    /// Long outages stay away from each other, so that names with several holders outlive them, and from what would be told otherwise with them.
    pub(crate) fn shorten_blackouts(&mut self) {
        const SHORT: u64 = 2_000;
        const APART: u64 = 400_000;
        self.blackouts.sort_by_key(|blackout| blackout.at);
        let mut free = 0;
        for blackout in &mut self.blackouts {
            let Some(length) = blackout.length.filter(|length| *length > SHORT) else { continue };
            let calm = self.calm.iter().any(|(from, to)| (*from..=*to).contains(&blackout.at));
            if blackout.at < free || calm {
                blackout.length = Some(SHORT.min(length));
                self.events[blackout.mark].what = What::Unserved(blackout.length);
            } else {
                free = blackout.at + APART;
            }
        }
    }

    /// What falls silent with its last sign of life: the causes up to where somebody else can be granted its only place.
    pub(crate) fn silence(&self, session: SessionNumber) -> Vec<(GapCause, u64)> {
        let numbers = &self.sessions[session].numbers;
        let overdue = self.overdue(session);
        let grace = overdue + numbers.grace;
        vec![
            (GapCause::Detection, overdue),
            (GapCause::Grace, grace),
            (GapCause::CoolDown, grace + numbers.delay),
        ]
    }
}
