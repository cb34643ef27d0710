//! From steps to entries: references are looked up in the naive table at the moment the step's entry is made.

use leasehold_core::table::NUMBERS_CALLS;
use leasehold_core::{
    Acquire, Answer, Attach, AttachNumber, CallNumber, Command, CommandNumber, Config, Drift, Due, Entry,
    Epoch, ItemNumber, Label, LeaseTable, Limits, LogTime, Millis, Mode, Nonce, Numbered, Offer, Op, Open,
    Operator, Policies, Reason, RegisterKey, RenewalNumber, Request, ResourceName, Sequence, SessionCommand,
    SessionId, SessionKind, Successor, System, Token, Value,
};

use super::moment::{Moment, renewal};
use super::steps::{
    EntryStep, LimitsPick, ModePick, OpStep, OpenPick, Script, SeenPick, Step, SuccessorPick, TokenPick,
};
use leasehold_oracle::{Naive, Session};

/// The config that a script runs with.
pub(crate) fn config(script: &Script) -> Config {
    let limits = match script.limits {
        LimitsPick::Default => Limits::default(),
        LimitsPick::Small => Limits {
            leases_per_session: 4,
            waits_per_session: 2,
            sessions: 5,
            waiters_per_resource: 2,
            resources: 2,
            idle_resources: 1,
            history: 2,
            registers_per_resource: 1,
            unseen: 6,
            tidy_leases: 1,
        },
    };
    let drift = Drift::from_ppm(script.drift_ppm).expect("scripts pick possible drifts");
    Config { max_ttl: Millis::new(60_000), drift, limits }
}

pub(crate) fn resource(nth: u8) -> ResourceName {
    ResourceName::new(["a", "b", "c"][usize::from(nth % 3)]).expect("a letter is a name")
}

fn label(nth: u8) -> Label {
    Label::new(["odd", "even"][usize::from(nth % 2)]).expect("a word is a label")
}

fn value(nth: u64) -> Value {
    Value::new(nth.to_le_bytes()[..2].to_vec()).expect("two bytes are a value")
}

/// The entry with which every script begins: its sessions, and the first attachment of each that is streamed.
pub(crate) fn openings(script: &Script) -> Entry {
    let version =
        script.version_raised.then_some(Command::System(System::ClusterVersion { version: NUMBERS_CALLS }));
    let opens = script.openings.iter().map(|pick| Command::Open(open(*pick)));
    Entry { at: LogTime::ZERO, commands: version.into_iter().chain(opens).collect() }
}

fn open(pick: OpenPick) -> Open {
    let hard = i64::from(pick.grace) + i64::from(pick.hard_above_grace);
    Open {
        nonce: Nonce([pick.who; 16]),
        label: label(pick.who),
        ttl: Millis::new(u64::from(pick.ttl)),
        policies: Policies {
            grace: Millis::new(u64::from(pick.grace)),
            hard: Millis::new(u64::try_from(hard).expect("a script goes at most one below a grace of ten")),
            delay: Millis::new(u64::from(pick.delay)),
        },
        kind: if pick.plain { SessionKind::Plain } else { SessionKind::Streamed },
    }
}

/// The entry of a step. The real table is asked for one thing only, what its leader would tidy.
pub(crate) fn entry(
    script: &Script,
    naive: &Naive,
    table: &mut LeaseTable,
    step: &EntryStep,
    moment: &Moment,
) -> Entry {
    let mut resolver =
        Resolver { openings: &script.openings, naive, table, at: moment.at, taken: Vec::new() };
    let renewing = naive.sessions.iter().filter(|session| moment.renews(session));
    let mut commands: Vec<Command> = renewing.map(renewal).collect();
    commands.extend(step.steps.iter().flat_map(|step| resolver.commands(step)));
    // Renewals go first wherever they stand: let them stand last now and then.
    let by = usize::from(step.renewing) % commands.len().max(1);
    commands.rotate_left(if step.renewing & 8 == 0 { by } else { 0 });
    Entry { at: LogTime::new(moment.at), commands }
}

struct Resolver<'a> {
    openings: &'a [OpenPick],
    naive: &'a Naive,
    table: &'a mut LeaseTable,
    at: u64,
    /// How many numbers earlier commands of this entry use up, by session.
    taken: Vec<SessionId>,
}

impl<'a> Resolver<'a> {
    fn commands(&mut self, step: &Step) -> Vec<Command> {
        match step {
            Step::RenewAll => self.naive.sessions.iter().map(renewal).collect(),
            other => self.command(other).into_iter().collect(),
        }
    }

    fn command(&mut self, step: &Step) -> Option<Command> {
        Some(match step {
            Step::Open(pick) => Command::Open(open(*pick)),
            Step::Attach { who, delta, seen } => {
                let session = self.session(*who)?;
                let attach = AttachNumber::new(shift(session.attach, *delta));
                Command::Attach(Attach { session: session.id, attach, seen: pick_seen(session, *seen) })
            }
            Step::Renew { who, delta, seen } => {
                let session = self.session(*who)?;
                let plain = session.kind == SessionKind::Plain;
                // Plain sessions seldom have numbers; a streamed one is refused without.
                if (plain && *delta != 3) || (!plain && *delta == 3) {
                    return Some(Command::RenewPlain { session: session.id });
                }
                let number = RenewalNumber::new(shift(session.renewal, *delta));
                Command::Renew { session: session.id, number, seen: pick_seen(session, *seen) }
            }
            Step::RenewAll => return None,
            Step::Session { who, number, attach, seen, op } => {
                let op = &self.instead(*who, op);
                let Some(session) =
                    self.actor(*who, op).filter(|session| *number != 0 || self.lives(session))
                else {
                    return self
                        .openings
                        .iter()
                        .find(|pick| pick.who == *who)
                        .map(|pick| Command::Open(open(*pick)));
                };
                let before = self.taken.iter().filter(|id| **id == session.id).count() as u64;
                let (number_step, number) = (*number, shift(session.last_command + 1 + before, *number));
                if session.kind == SessionKind::Plain
                    && let Some(command) = self.numbered(session, (before, number_step, *seen), op)
                {
                    self.taken.push(session.id);
                    return Some(command);
                }
                let sequence = match session.kind {
                    SessionKind::Plain => Sequence::Plain,
                    SessionKind::Streamed => Sequence::Streamed {
                        attach: AttachNumber::new(shift(session.attach, *attach)),
                        number: CommandNumber::new(number),
                        seen: pick_seen(session, *seen),
                    },
                };
                if matches!(op, OpStep::NoRoom) {
                    // Plain sessions are refused without the log.
                    if session.kind == SessionKind::Plain {
                        return None;
                    }
                    self.taken.push(session.id);
                    return Some(Command::NoRoom { session: session.id, sequence });
                }
                let op = self.op(session, op);
                self.taken.push(session.id);
                Command::Session(SessionCommand { session: session.id, sequence, op })
            }
            Step::Ask { resource: r, token, successor } => Command::Operator(Operator::AskRelease {
                resource: resource(*r),
                token: token.map(|token| self.token(None, *r, token).1),
                successor: successor.map(|successor| self.successor(successor)),
                by: label(0),
            }),
            Step::Revoke { resource: r, token, now } => {
                let (resource, token) = self.token(None, *r, *token);
                let reason = Reason::new("test").expect("a word is a reason");
                Command::Operator(Operator::Revoke { resource, token, by: label(1), reason, now: *now })
            }
            Step::ChangeKind { resource: r, mode } => {
                let name = resource(*r);
                let mode = self.mode(&name, *mode);
                Command::Operator(Operator::ChangeKind { resource: name, mode, by: label(0) })
            }
            Step::ClearAlarm { resource: r, right } => {
                let name = resource(*r);
                let alarm = self.naive.alarms.iter().find(|(alarmed, _)| *alarmed == name || !right);
                let token = alarm.map_or(Token::from_u64(1), |(_, token)| *token);
                let reason = Reason::new("looked").expect("a word is a reason");
                Command::Operator(Operator::ClearAlarm { resource: name, token, by: label(2), reason })
            }
            Step::TidyDue => Command::Tidy(self.table.due(LogTime::new(self.at))),
            Step::TidyResource { resource: r } => Command::Tidy(vec![Due::Resource(resource(*r))]),
            Step::TidySession { who } => Command::Tidy(vec![Due::Session(self.session(*who)?.id)]),
            Step::Rebooted => Command::System(System::Rebooted),
            Step::Restored { epoch_up, wait } => Command::System(System::Restored {
                epoch: Epoch::new(self.naive.epoch + u16::from(*epoch_up)).expect("scripts restore seldom"),
                wait: Millis::new(u64::from(*wait)),
            }),
            Step::Detached { who } => {
                let session = self.session(*who)?;
                let attach = AttachNumber::new(session.attach);
                Command::Detached { session: session.id, attach }
            }
            Step::Unserved { length } => {
                let length = (*length > 0).then(|| Millis::new(u64::from(*length)));
                Command::System(System::Unserved { length })
            }
            Step::Version => Command::System(System::ClusterVersion { version: 7 }),
            Step::Found => Command::System(System::Found(Config::default())),
        })
    }

    /// The newest session that was opened with this nonce, over or not.
    /// A call of a plain session with a number: mostly a new one, else one that was sent before, as it was or with something else in it.
    fn numbered(
        &self,
        session: &Session,
        (before, step, seen): (u64, i8, SeenPick),
        op: &OpStep,
    ) -> Option<Command> {
        let SeenPick::Behind(pick) = seen else { return None };
        if self.naive.version < NUMBERS_CALLS || matches!(op, OpStep::NoRoom) {
            return None;
        }
        let newest = session.calls.iter().map(|call| call.number.get()).max().unwrap_or(0);
        let newest = newest.max(session.settled.get());
        let known = session.calls.get(session.calls.len().saturating_sub(usize::from(pick)));
        let (mut number, mut settled) = (newest + 1 + before, session.settled.get());
        let mut op = match op {
            OpStep::Cancel { nth } if nth % 2 == 1 => {
                let waits =
                    session.calls.iter().find(|call| matches!(call.answer, Ok(Answer::Queued { .. })));
                let other = CallNumber::new((newest + 2).saturating_sub(u64::from(pick)));
                Op::CancelCall { call: waits.map_or(other, |call| call.number) }
            }
            op => self.op(session, op),
        };
        match (pick, known) {
            (2, Some(known)) => {
                (number, op) = (known.number.get(), known.op.clone().unwrap_or(op));
            }
            (1, Some(known)) if step == 0 && number % 2 == 0 => settled = known.number.get(),
            (1, Some(_)) if step == 0 => settled = number,
            (3, _) if settled > 1 && number % 2 == 0 => number = settled - 1,
            (3, _) => number += 1,
            _ => number = shift(number, step),
        }
        let numbered = Numbered { number: CallNumber::new(number.max(1)), settled: CallNumber::new(settled) };
        let sequence = Sequence::Numbered(numbered);
        Some(Command::Session(SessionCommand { session: session.id, sequence, op }))
    }

    fn session(&self, who: u8) -> Option<&'a Session> {
        self.naive.sessions.iter().rev().find(|session| session.nonce == Nonce([who; 16]))
    }

    /// Where nothing is offered, an accept becomes the offer that it would need.
    fn instead(&self, who: u8, op: &OpStep) -> OpStep {
        match op {
            OpStep::Accept { resource, token: TokenPick::OfferedToMe }
                if self.naive.leases.iter().all(|lease| lease.offer.is_none()) =>
            {
                let (resource, token, to) = (*resource, TokenPick::Own, SuccessorPick::Session(who));
                OpStep::Offer { resource, token, to, length: 6_000 }
            }
            other => other.clone(),
        }
    }

    fn lives(&self, session: &Session) -> bool {
        self.at <= self.naive.ended_after(session)
    }

    /// Whoever can do it, if the one that was picked has nothing to do it with.
    fn actor(&self, who: u8, op: &OpStep) -> Option<&'a Session> {
        let (picked, naive) = (self.session(who), self.naive);
        let id = picked.map(|session| session.id);
        let offered_to = |lease: &'a leasehold_oracle::Lease| lease.offer.as_ref().map(|offer| offer.to);
        let mut able: Vec<SessionId> = match op {
            OpStep::SetValue { token: TokenPick::Own, .. }
            | OpStep::SetDraining { token: TokenPick::Own, .. }
            | OpStep::SetReady { token: TokenPick::Own, .. }
            | OpStep::WriteRegister { token: TokenPick::Own, .. }
            | OpStep::Offer { token: TokenPick::Own, .. } => naive.leases.iter().map(|l| l.session).collect(),
            OpStep::Release { token: TokenPick::Own, .. } => {
                let ready = |l: &&leasehold_oracle::Lease| {
                    l.offer.as_ref().is_some_and(|offer| offer.ready.is_some())
                };
                let handing_over: Vec<_> = naive.leases.iter().filter(ready).map(|l| l.session).collect();
                let all = || naive.leases.iter().map(|l| l.session).collect();
                if handing_over.is_empty() { all() } else { handing_over }
            }
            OpStep::Accept { token: TokenPick::OfferedToMe, .. } => {
                naive.leases.iter().filter_map(offered_to).collect()
            }
            OpStep::Cancel { .. } => naive.waits.iter().map(|wait| wait.session).collect(),
            _ => return picked,
        };
        able.retain(|id| naive.session(*id).is_some_and(|session| self.lives(session)));
        match able.len() {
            0 => picked,
            _ if id.is_some_and(|id| able.contains(&id)) && !matches!(op, OpStep::Offer { .. }) => picked,
            length => naive.session(able[usize::from(who) % length]),
        }
    }

    fn op(&self, session: &Session, op: &OpStep) -> Op {
        match op {
            OpStep::Acquire { requests, wait } => {
                let request = |(r, mode): &(u8, ModePick)| {
                    let resource = resource(*r);
                    Request { mode: self.mode(&resource, *mode), resource }
                };
                Op::Acquire(Acquire {
                    requests: requests.iter().map(request).collect(),
                    value: value(session.last_command),
                    wait: wait.map(|wait| Millis::new(u64::from(wait))),
                })
            }
            OpStep::Cancel { nth } => {
                let mut own: Vec<u64> = self
                    .naive
                    .waits
                    .iter()
                    .filter(|w| w.session == session.id)
                    .map(|w| w.command.get())
                    .collect();
                own.push(session.last_command);
                Op::Cancel { acquire: CommandNumber::new(own[usize::from(*nth) % own.len()]) }
            }
            OpStep::SetValue { resource: r, token } => {
                let (resource, token) = self.token(Some(session.id), *r, *token);
                Op::SetValue { resource, token, value: value(self.at) }
            }
            OpStep::WriteRegister { resource: r, token, key, value: some, with_lease } => {
                let (resource, token) = self.token(Some(session.id), *r, *token);
                let key = RegisterKey::new(["x", "y", "z"][usize::from(*key)]).expect("a letter is a key");
                let value = some.then(|| value(self.at));
                Op::WriteRegister { resource, token, key, value, with_lease: *with_lease }
            }
            OpStep::Offer { resource: r, token, to, length } => {
                let (resource, token) = self.token(Some(session.id), *r, *token);
                let (to, length) = (self.successor(*to), Millis::new(u64::from(*length)));
                Op::Offer(Offer { resource, token, to, length })
            }
            OpStep::Accept { resource: r, token } => {
                let (resource, token) = self.token(Some(session.id), *r, *token);
                Op::Accept { resource, token, value: value(self.at) }
            }
            OpStep::Release { resource: r, token, drained } => {
                let (resource, token) = self.token(Some(session.id), *r, *token);
                Op::Release { resource, token, drained: *drained }
            }
            OpStep::SetReady { resource: r, token, ready } => {
                let (resource, token) = self.token(Some(session.id), *r, *token);
                Op::SetReady { resource, token, ready: *ready }
            }
            OpStep::SetDraining { resource: r, token, in_flight, within } => {
                let (resource, token) = self.token(Some(session.id), *r, *token);
                let (in_flight, within) = (u32::from(*in_flight), Millis::new(u64::from(*within)));
                Op::SetDraining { resource, token, in_flight, within }
            }
            OpStep::NoRoom => unreachable!("it has no operation"),
            OpStep::Close => Op::Close,
        }
    }

    fn token(&self, session: Option<SessionId>, nth: u8, pick: TokenPick) -> (ResourceName, Token) {
        let name = resource(nth);
        let leases = &self.naive.leases;
        let found = match pick {
            TokenPick::Own => {
                let own = || leases.iter().rev().filter(|lease| Some(lease.session) == session);
                own().find(|lease| lease.offer.is_some()).or_else(|| own().next())
            }
            TokenPick::OfferedToMe => {
                leases.iter().find(|l| l.offer.as_ref().is_some_and(|offer| Some(offer.to) == session))
            }
            TokenPick::Holder(_) | TokenPick::Past(_) | TokenPick::Any(_) | TokenPick::Ahead(_) => None,
        };
        if let Some(lease) = found {
            return (lease.resource.clone(), lease.token);
        }
        let present: Vec<Token> = self.naive.leases_on(&name).map(|lease| lease.token).collect();
        let past = self.naive.past.iter().filter(|past| past.resource == name);
        let past: Vec<Token> = past.map(|past| past.token).collect();
        let among = |tokens: &[Token], nth: u8| match tokens.len() {
            0 => Token::from_u64(u64::from(nth)),
            length => tokens[usize::from(nth) % length],
        };
        let token = match pick {
            TokenPick::Own | TokenPick::OfferedToMe => among(&present, 0),
            TokenPick::Holder(nth) => among(&present, nth),
            TokenPick::Past(nth) => among(&past, nth),
            // Not above what was granted: that is for the next.
            TokenPick::Any(number) => Token::from_u64(u64::from(number).min(self.naive.counter)),
            TokenPick::Ahead(by) => self.ahead(by),
        };
        (name, token)
    }

    /// A token above all that were granted, also by what stands before it in this entry: just so, by more, or of a later epoch.
    fn ahead(&self, by: u8) -> Token {
        let newest = self.naive.newest();
        Token::from_u64(if by == 2 { newest + (1 << 48) } else { newest + 100 + u64::from(by) })
    }

    fn successor(&self, pick: SuccessorPick) -> Successor {
        match pick {
            SuccessorPick::FirstWaiter => Successor::FirstWaiter,
            SuccessorPick::Labelled(nth) => Successor::Labelled(label(nth)),
            SuccessorPick::Session(who) => {
                Successor::Session(self.session(who).map_or(SessionId::from_u64(7), |session| session.id))
            }
        }
    }

    fn mode(&self, name: &ResourceName, pick: ModePick) -> Mode {
        let slots = match self.naive.name(name) {
            Some(known) => known.slots,
            None => (name.as_str() == "c").then_some(2),
        };
        match (pick, slots) {
            (ModePick::Fitting | ModePick::Shared, Some(of)) => Mode::Slot { of },
            (ModePick::Fitting | ModePick::Exclusive, _) => Mode::Exclusive,
            (ModePick::Shared, None) => Mode::Shared,
            (ModePick::Slots(of), _) => Mode::Slot { of: u32::from(of) },
        }
    }
}

fn shift(number: u64, by: i8) -> u64 {
    number.saturating_add_signed(i64::from(by))
}

fn pick_seen(session: &Session, pick: SeenPick) -> ItemNumber {
    ItemNumber::new(match pick {
        SeenPick::Nothing => 0,
        SeenPick::Behind(by) => session.last_item.saturating_sub(u64::from(by)),
        SeenPick::Ahead => session.last_item + 1,
    })
}
