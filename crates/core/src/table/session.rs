//! Sessions: opening, attaching, renewing, closing, and the order of their two streams.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::LeaseTable;
use super::calls::Calls;
use super::gaps::{Outage, Sign};
use super::queue::Wait;
use super::resource::Standing;
use crate::answer::{
    Applied, Ending, Event, Grant, HeldLease, Holdings, Item, ItemKind, Opened, Refusal, Renewed, Reply,
    Waited,
};
use crate::answer::{BadRequest, LimitedThing};
use crate::command::{Attach, Op, Open, Policies, Sequence, SessionKind};
use crate::id::{AttachNumber, CommandNumber, ItemNumber, Nonce, RenewalNumber, SessionId, Token};
use crate::limits::{MAX_PLAIN_HOLDINGS, MIN_TTL};
use crate::name::{Label, ResourceName};
use crate::planted::{Bug, planted};
use crate::time::{Drift, LogTime, Millis};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) nonce: Nonce,
    pub(super) label: Label,
    pub(super) ttl: Millis,
    pub(super) policies: Policies,
    pub(super) kind: SessionKind,
    pub(super) opened: LogTime,
    pub(super) last_renewal: LogTime,
    pub(super) renewal: RenewalNumber,
    /// Places that this session occupies, with the command that brought them: leases held, and revoked ones that it has not
    /// acknowledged yet.
    pub(super) leases: BTreeMap<(ResourceName, Token), CommandNumber>,
    pub(super) waits: BTreeMap<CommandNumber, Wait>,
    pub(super) last_command: CommandNumber,
    pub(super) attach: AttachNumber,
    /// Answers and events that the client has not said it has seen, in order and without gaps.
    pub(super) unseen: VecDeque<Item>,
    pub(super) last_item: ItemNumber,
    /// The last sign of life before it was overdue, the end of its connection included. Behind the table in a snapshot.
    #[serde(skip)]
    pub(super) heard: Sign,
    /// How many names it has stopped by showing tokens that were never granted. Behind the table too.
    #[serde(skip)]
    pub(super) alarms: u32,
    /// The numbered calls of a plain session, once it has made one. Behind the table too.
    #[serde(skip)]
    pub(super) calls: Option<Box<Calls>>,
}

impl Session {
    /// The last sign of life. Before the log counted gaps none was noted but the renewals.
    pub(super) fn last_sign(&self) -> Sign {
        Sign { at: self.heard.at.max(self.last_renewal), ..self.heard }
    }

    /// The session showed that it is there. Whoever has lapsed does not act before its next renewal, whatever is still heard of it.
    pub(super) fn hear(&mut self, now: Sign, drift: Drift, outages: &VecDeque<Outage>) {
        if !self.is_overdue(now.at, drift) && !self.was_away(now, outages) {
            self.heard = now;
        }
    }

    /// Whether its own clock has let go of its leases, though log time stood still: nobody could renew for longer than its ttl.
    pub(super) fn was_away(&self, now: Sign, outages: &VecDeque<Outage>) -> bool {
        let sign = self.last_sign();
        sign.outages < now.outages && self.was_away_since(sign, now, outages)
    }

    /// Whether more than its ttl has passed since its last renewal, if this much has passed since a later sign.
    pub(super) fn was_away_since(&self, sign: Sign, now: Sign, outages: &VecDeque<Outage>) -> bool {
        let sign = sign.max(self.last_sign());
        let silent = sign.passed(now, outages).saturating_add(sign.at.since(self.last_renewal));
        silent > self.ttl && !planted(Bug::GapLapseGone)
    }

    /// Past this point the session is overdue.
    #[inline]
    pub(super) fn overdue_after(&self, drift: Drift) -> LogTime {
        let waits = if planted(Bug::NoDriftFactor) { self.ttl } else { drift.stretch(self.ttl) };
        self.last_renewal.plus(waits)
    }

    /// Past this point its leases go to waiters: grace is over, and so would be the cool-down.
    pub(super) fn takeable_after(&self, drift: Drift) -> LogTime {
        let grace = if planted(Bug::GraceIgnored) { Millis::ZERO } else { self.policies.grace };
        self.overdue_after(drift).plus(grace).plus(self.policies.delay)
    }

    /// Past this point the session is over.
    pub(super) fn ended_after(&self, drift: Drift) -> LogTime {
        let hard = if planted(Bug::HardLimitIgnored) { self.policies.grace } else { self.policies.hard };
        self.overdue_after(drift).plus(hard)
    }

    #[inline]
    pub(super) fn is_overdue(&self, at: LogTime, drift: Drift) -> bool {
        let early = Millis::new(u64::from(planted(Bug::OverdueEarly)));
        !self.is_fresh(at) && at.plus(early) > self.overdue_after(drift)
    }

    #[inline]
    pub(super) fn is_ended(&self, at: LogTime, drift: Drift) -> bool {
        !self.is_fresh(at) && at > self.ended_after(drift)
    }

    /// Whether it was renewed within its plain ttl: then it is neither, and nothing has to be divided to say so.
    #[inline]
    fn is_fresh(&self, at: LogTime) -> bool {
        at <= self.last_renewal.plus(self.ttl) && !planted(Bug::TtlOverflow)
    }

    /// Leases held or asked for: what the session would hold if everything it waits for were granted.
    pub(super) fn leases_wanted(&self) -> usize {
        self.leases.len() + self.waits.values().map(|wait| wait.requests.len()).sum::<usize>()
    }

    /// Whether a command gives up something that the session has. It is taken in whatever else is full, and there can be only
    /// as many of them as the session has leases and waits.
    fn gives_up(&self, op: &Op) -> bool {
        match op {
            Op::Release { resource, token, .. } => self.leases.contains_key(&(resource.clone(), *token)),
            Op::Cancel { acquire } => self.waits.contains_key(acquire),
            Op::Close => true,
            _ => false,
        }
    }

    /// Takes note of what the client has processed.
    fn see(&mut self, seen: ItemNumber) -> Result<(), Refusal> {
        if seen > self.last_item {
            return Err(Refusal::SeenAhead { seen, newest: self.last_item });
        }
        while self.unseen.front().is_some_and(|item| item.number <= seen) {
            self.unseen.pop_front();
        }
        Ok(())
    }
}

impl LeaseTable {
    pub(super) fn open(&mut self, out: &mut Applied, open: &Open) -> Reply {
        if let Some(&session) = self.index.nonces.get(&open.nonce)
            && let Ok(existing) = self.living(session)
        {
            let same = existing.ttl == open.ttl
                && existing.label == open.label
                && existing.policies == open.policies
                && existing.kind == open.kind;
            if !same {
                // Whoever this is, it does not ask for the session that it would get.
                return Reply::Refused(Refusal::BadRequest { what: BadRequest::NonceTaken });
            }
            let ttl = existing.ttl;
            if planted(Bug::RepeatedOpenRenews) {
                let at = self.last_at;
                self.sessions.get_mut(&session).into_iter().for_each(|session| session.last_renewal = at);
            }
            return Reply::Opened(Opened { session, ttl, drift: self.config.drift, repeated: true });
        }
        match self.begin_session(open) {
            Ok(session) => {
                Self::event(out, Event::SessionOpened { session, label: open.label.clone() });
                Reply::Opened(Opened { session, ttl: open.ttl, drift: self.config.drift, repeated: false })
            }
            Err(refusal) => Reply::Refused(refusal),
        }
    }

    fn begin_session(&mut self, open: &Open) -> Result<SessionId, Refusal> {
        if open.ttl < MIN_TTL || open.ttl > self.config.max_ttl {
            return Err(Refusal::TtlOutOfRange { ttl: open.ttl, min: MIN_TTL, max: self.config.max_ttl });
        }
        open.policies.check().map_err(|_| Refusal::BadPolicies)?;
        let limit = self.config.limits.sessions;
        if self.sessions.len() >= limit {
            return Err(Refusal::LimitReached { what: LimitedThing::Sessions, limit });
        }
        let id = SessionId::from(self.draw().map_err(|_| Refusal::TokensExhausted)?);
        if planted(Bug::OpenDrawsNothing) {
            self.counter -= 1;
        }
        let session = Session {
            nonce: open.nonce,
            label: open.label.clone(),
            ttl: open.ttl,
            policies: open.policies,
            kind: open.kind,
            opened: self.last_at,
            last_renewal: self.last_at,
            renewal: RenewalNumber::NONE,
            leases: BTreeMap::new(),
            waits: BTreeMap::new(),
            last_command: CommandNumber::NONE,
            attach: AttachNumber::NONE,
            unseen: VecDeque::new(),
            last_item: ItemNumber::NONE,
            heard: if self.counts_gaps() { self.now() } else { Sign::default() },
            alarms: 0,
            calls: None,
        };
        self.index.add_session(id, &session, self.config.drift);
        self.sessions.insert(&id, session);
        Ok(id)
    }

    pub(super) fn attach(&mut self, attach: &Attach) -> Reply {
        if let Err(refusal) = self.living(attach.session) {
            return Reply::Refused(refusal);
        }
        let session = self.sessions.get_mut(&attach.session).expect("a living session is in the table");
        if session.kind != SessionKind::Streamed {
            return Reply::Refused(Refusal::WrongSessionKind);
        }
        if attach.attach <= session.attach {
            return Reply::Refused(Refusal::OlderAttach { attach: attach.attach, current: session.attach });
        }
        if let Err(refusal) = session.see(attach.seen) {
            return Reply::Refused(refusal);
        }
        session.attach = attach.attach;
        self.hear(attach.session);
        self.forget_at_attach(attach.session);
        let session = &self.sessions[&attach.session];
        Reply::Attached { last_command: session.last_command, last_item: session.last_item }
    }

    /// Takes note of a renewal. Resources that the session waits for and was passed over for join `revived`: they are served
    /// once every renewal of the entry is in, so that the order of renewals decides nothing.
    pub(super) fn renew(
        &mut self,
        out: &mut Applied,
        revived: &mut BTreeSet<ResourceName>,
        id: SessionId,
        number: RenewalNumber,
        seen: ItemNumber,
    ) -> Result<(), Reply> {
        let (at, drift) = (self.last_at, self.config.drift);
        let now = self.counts_gaps().then(|| self.now());
        let mut session = self.living_mut(id).map_err(Reply::Refused)?;
        session.see(seen).map_err(Reply::Refused)?;
        if number <= session.renewal && !(planted(Bug::StaleRenewalCounted) && number == session.renewal) {
            return Err(Reply::StaleRenewal { number, highest: session.renewal });
        }
        let was_overdue = session.is_overdue(at, drift);
        if was_overdue || now.is_some_and(|now| session.last_sign().outages < now.outages) {
            self.note_return(out, id);
            session = self.sessions.get_mut(&id).expect("a living session is in the table");
        }
        session.renewal = number;
        session.last_renewal = at;
        if let Some(now) = now {
            // Renewed right now, it is not overdue.
            session.heard = now;
        }
        self.counters.renewals += 1;
        if was_overdue {
            let session = &self.sessions[&id];
            let requests = session.waits.values().flat_map(|wait| &wait.requests);
            let waited_for: Vec<ResourceName> = requests.map(|request| request.resource.clone()).collect();
            let overdue_after = session.overdue_after(drift);
            for name in &waited_for {
                self.lower_due(name, overdue_after);
            }
            revived.extend(waited_for);
            if !planted(Bug::ReviveForgetsTakers) {
                self.expect_takers(id);
            }
        }
        if planted(Bug::RevokeAckedByRenewal) {
            for (name, token) in self.acknowledged_by_renewal(id) {
                self.vacate(&name, token);
                revived.insert(name);
            }
        }
        Ok(())
    }

    /// Takes note of a renewal without a number: it gets the next one.
    pub(super) fn renew_plain(
        &mut self,
        out: &mut Applied,
        revived: &mut BTreeSet<ResourceName>,
        id: SessionId,
    ) -> Result<RenewalNumber, Reply> {
        let session = self.living(id).map_err(Reply::Refused)?;
        if session.kind != SessionKind::Plain {
            return Err(Reply::Refused(Refusal::WrongSessionKind));
        }
        let number = session.renewal.next();
        self.renew(out, revived, id, number, ItemNumber::NONE).map(|()| number)
    }

    /// A session that was overdue has come back: whoever waits for its leases may take them only at a new point.
    fn expect_takers(&mut self, id: SessionId) {
        let session = &self.sessions[&id];
        let takeable_after = session.takeable_after(self.config.drift);
        let contended = |name: &&ResourceName| self.resources.get(*name).is_some_and(|r| !r.queue.is_empty());
        let names: Vec<ResourceName> =
            session.leases.keys().map(|(name, _)| name).filter(contended).cloned().collect();
        for name in &names {
            self.lower_due(name, takeable_after);
        }
    }

    /// The answer to a renewal that was taken note of.
    pub(super) fn renewed(&self, id: SessionId, number: RenewalNumber) -> Reply {
        let session = &self.sessions[&id];
        let holdings = (session.kind == SessionKind::Plain).then(|| self.holdings(session));
        let after = if planted(Bug::RenewalOvertakesEvents) { ItemNumber::NONE } else { session.last_item };
        Reply::Renewed(Renewed { number, after, holdings })
    }

    /// What a session holds and waits for.
    fn holdings(&self, session: &Session) -> Holdings {
        let held = |(resource, token): &(ResourceName, Token)| {
            let holder = self.resources.get(resource)?.holder(*token)?;
            let grant =
                Grant { resource: resource.clone(), token: *token, fence: holder.fence, slot: holder.slot };
            let held = HeldLease { grant, release_requested: holder.asks > 0 };
            matches!(holder.standing, Standing::Held).then_some(held)
        };
        let waited = |(acquire, wait): (&CommandNumber, &Wait)| Waited {
            acquire: *acquire,
            resources: wait.requests.iter().map(|request| request.resource.clone()).collect(),
        };
        Holdings {
            leases: session.leases.keys().filter_map(held).collect(),
            waits: session.waits.iter().map(waited).collect(),
        }
    }

    /// Leases that a session may hold or ask for.
    pub(super) fn lease_limit(&self, session: &Session) -> usize {
        let limit = self.config.limits.leases_per_session;
        match session.kind {
            SessionKind::Streamed => limit,
            SessionKind::Plain => limit.min(MAX_PLAIN_HOLDINGS),
        }
    }

    /// Checks the place of a command in its session's stream, and takes the number.
    pub(super) fn admit(
        &mut self,
        id: SessionId,
        sequence: &Sequence,
        op: Option<&Op>,
    ) -> Result<CommandNumber, Reply> {
        let hard_limit = self.config.limits.unseen.saturating_mul(2);
        let (drift, now) = (self.config.drift, self.counts_gaps().then(|| self.now()));
        let session = self.living_mut(id).map_err(Reply::Refused)?;
        let expected = session.last_command.next();
        match (sequence, session.kind) {
            (Sequence::Plain | Sequence::Numbered(_), SessionKind::Plain) => {}
            (Sequence::Streamed { attach, number, seen }, SessionKind::Streamed) => {
                if *attach != session.attach && !(planted(Bug::OlderAttachTaken) && *attach < session.attach)
                {
                    let refusal = Refusal::OlderAttach { attach: *attach, current: session.attach };
                    return Err(Reply::Refused(refusal));
                }
                session.see(*seen).map_err(Reply::Refused)?;
                if *number < expected && planted(Bug::RetryExecutesTwice) {
                    return Ok(*number);
                }
                if *number < expected {
                    return Err(Reply::Repeated { number: *number });
                }
                if *number > expected {
                    return Err(Reply::Refused(Refusal::CommandGap { number: *number, expected }));
                }
                if session.unseen.len() >= hard_limit && !op.is_some_and(|op| session.gives_up(op)) {
                    return Err(Reply::Refused(Refusal::TooManyUnseen { limit: hard_limit }));
                }
            }
            _ => return Err(Reply::Refused(Refusal::WrongSessionKind)),
        }
        session.last_command = expected;
        match now {
            Some(now) if session.last_sign().outages < now.outages => self.hear(id),
            Some(now) => session.hear(now, drift, &VecDeque::new()),
            None => {}
        }
        Ok(expected)
    }

    /// Adds an answer or event to the stream of a session. Plain sessions have none: they ask, or look at the events.
    pub(super) fn push_item(&mut self, out: &mut Applied, id: SessionId, kind: ItemKind) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.kind == SessionKind::Streamed {
            session.last_item = session.last_item.next();
            let item = Item { number: session.last_item, kind };
            session.unseen.push_back(item.clone());
            out.items.push((id, item));
        }
    }

    pub(super) fn close(&mut self, out: &mut Applied, id: SessionId) {
        let mut budget = usize::MAX;
        self.end_session(out, id, &Ending::SessionClosed, &mut budget);
    }
}
