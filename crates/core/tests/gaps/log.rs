//! The day as a log: events in order become entries, and grants get their tokens by counting.

use leasehold_core::{
    Acquire, Attach, AttachNumber, Command, CommandNumber, Entry, Epoch, ItemNumber, Label, LogTime, Millis,
    Nonce, Offer, Op, Open, Operator, Policies, Reason, RenewalNumber, Request, ResourceName, Sequence,
    SessionCommand, SessionId, SessionKind, Successor, System, Token, Value,
};

use super::day::{Day, Event, LONG_WAIT, What};
use super::truth::{Heard, Order, Point};

/// An entry, with the names at which everything must be shown behind it, and the tokens that it grants.
pub(crate) struct Step {
    pub(crate) entry: Entry,
    pub(crate) checks: Vec<usize>,
    pub(crate) grants: Vec<Token>,
    /// The place of its last event.
    pub(crate) place: usize,
}

pub(crate) fn name(nth: usize) -> ResourceName {
    ResourceName::new(&format!("name-{nth}")).expect("a short name")
}

struct Writer<'a> {
    day: &'a Day,
    epoch: u16,
    drawn: u64,
    ids: Vec<SessionId>,
    renewals: Vec<u64>,
    commands: Vec<u64>,
    tokens: Vec<Token>,
    alarms: Vec<Token>,
}

impl Writer<'_> {
    fn draw(&mut self) -> Token {
        self.drawn += 1;
        self.ahead(0)
    }

    fn ahead(&self, by: u64) -> Token {
        Token::new(Epoch::new(self.epoch).expect("few"), self.drawn + by).expect("few")
    }

    fn sent(&mut self, session: usize, op: Op) -> Command {
        self.commands[session] += 1;
        let attach = AttachNumber::new(self.day.sessions[session].attach);
        let number = CommandNumber::new(self.commands[session]);
        let sequence = Sequence::Streamed { attach, number, seen: ItemNumber::NONE };
        Command::Session(SessionCommand { session: self.ids[session], sequence, op })
    }

    fn open(&mut self, session: usize) -> Command {
        self.ids[session] = SessionId::from(self.draw());
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&(session as u64).to_le_bytes());
        let numbers = &self.day.sessions[session].numbers;
        Command::Open(Open {
            nonce: Nonce(nonce),
            label: Label::new(&format!("session-{session}")).expect("a short label"),
            ttl: Millis::new(numbers.ttl),
            policies: Policies {
                grace: Millis::new(numbers.grace),
                hard: Millis::new(numbers.hard),
                delay: Millis::new(numbers.delay),
            },
            kind: SessionKind::Streamed,
        })
    }

    fn command(&mut self, event: &Event) -> Command {
        let (resource, mode) = (name(event.name), self.day.modes[event.name]);
        let by = Label::new("ops").expect("a short label");
        let reason = Reason::new("planned").expect("a short reason");
        match event.what {
            What::Open(session) => self.open(session),
            What::Attach(session) => Command::Attach(Attach {
                session: self.ids[session],
                attach: AttachNumber::new(self.day.sessions[session].attach),
                seen: ItemNumber::NONE,
            }),
            What::Renew(session) => {
                self.renewals[session] += 1;
                let number = RenewalNumber::new(self.renewals[session]);
                Command::Renew { session: self.ids[session], number, seen: ItemNumber::NONE }
            }
            What::Detached(session, attach) => {
                Command::Detached { session: self.ids[session], attach: AttachNumber::new(attach) }
            }
            What::Acquire { session, wait } => {
                let wait = wait.then_some(Millis::new(LONG_WAIT));
                let requests = vec![Request { resource, mode }];
                self.sent(session, Op::Acquire(Acquire { requests, value: Value::default(), wait }))
            }
            What::Release(session, grant) => {
                let token = self.tokens[grant];
                self.sent(session, Op::Release { resource, token, drained: false })
            }
            What::Value(session, grant) => {
                let (token, value) = (self.tokens[grant], Value::default());
                self.sent(session, Op::SetValue { resource, token, value })
            }
            What::Ready(session, grant, ready) => {
                let token = self.tokens[grant];
                self.sent(session, Op::SetReady { resource, token, ready })
            }
            What::Offer(session, grant, to) => {
                let to = Successor::Session(self.ids[to]);
                let (token, length) = (self.tokens[grant], Millis::new(60_000));
                self.sent(session, Op::Offer(Offer { resource, token, to, length }))
            }
            What::Accept(session, grant) => {
                let (token, value) = (self.tokens[grant], Value::default());
                self.sent(session, Op::Accept { resource, token, value })
            }
            What::Close(session) => self.sent(session, Op::Close),
            What::Revoke { grant, now } => {
                let token = self.tokens[grant];
                Command::Operator(Operator::Revoke { resource, token, by, reason, now })
            }
            What::Alarm(session) => {
                let token = self.ahead(1_000_000);
                self.alarms[event.name] = token;
                self.sent(session, Op::Release { resource, token, drained: false })
            }
            What::Clear => {
                let token = self.alarms[event.name];
                Command::Operator(Operator::ClearAlarm { resource, token, by, reason })
            }
            What::Tidy => Command::Tidy(vec![leasehold_core::Due::Resource(resource)]),
            What::Unserved(length) => Command::System(System::Unserved { length: length.map(Millis::new) }),
            What::Restored { wait } => {
                self.epoch += 1;
                let epoch = Epoch::new(self.epoch).expect("few");
                Command::System(System::Restored { epoch, wait: Millis::new(wait) })
            }
        }
    }
}

/// Writes the log of a day.
pub(crate) fn write(day: &mut Day) -> (Vec<Step>, Order, Vec<SessionId>) {
    let mut marks: Vec<usize> = (0..day.events.len()).collect();
    marks.sort_by_key(|mark| day.events[*mark].at);
    let mut place = vec![0; marks.len()];
    marks.iter().enumerate().for_each(|(at, mark)| place[*mark] = at);
    day.shorten_blackouts();
    let apart: Vec<bool> = marks.iter().map(|_| day.chance.once_in(2)).collect();
    let day = &*day;
    let none = Token::from_u64(0);
    let mut writer = Writer {
        day,
        epoch: 0,
        drawn: 0,
        ids: vec![SessionId::from_u64(0); day.sessions.len()],
        renewals: vec![0; day.sessions.len()],
        commands: vec![0; day.sessions.len()],
        tokens: vec![none; day.grants],
        alarms: vec![none; day.modes.len()],
    };
    let mut steps: Vec<Step> = Vec::new();
    for (at_place, mark) in marks.iter().enumerate() {
        let event = &day.events[*mark];
        let command = writer.command(event);
        let mut grants = Vec::new();
        for grant in &event.grants {
            writer.tokens[*grant] = writer.draw();
            grants.push(writer.tokens[*grant]);
        }
        let at = LogTime::new(event.at);
        let renews = matches!(event.what, What::Renew(_));
        // Renewals of an entry come before everything else in it, and what stood still before those: neither stands behind anything else.
        let stands_still = matches!(event.what, What::Unserved(_));
        let joins = |step: &&mut Step| {
            let behind = step.entry.commands.iter().all(|command| matches!(command, Command::Renew { .. }));
            step.entry.at == at
                && !apart[at_place]
                && step.checks.is_empty()
                && (behind || !renews)
                && !stands_still
        };
        let checks = if event.check { vec![event.name] } else { Vec::new() };
        match steps.last_mut().filter(joins) {
            Some(step) => {
                step.entry.commands.push(command);
                step.checks.extend(checks);
                step.grants.extend(grants);
                step.place = at_place;
            }
            None => {
                let entry = Entry { at, commands: vec![command] };
                steps.push(Step { entry, checks, grants, place: at_place });
            }
        }
    }
    let heard = heard(day, &place);
    let order = Order { place, token: writer.tokens.clone(), blackouts: ordered(day, &marks), heard };
    (steps, order, writer.ids.clone())
}

/// What each session shows of itself, in the order of the log.
fn heard(day: &Day, place: &[usize]) -> Vec<Vec<Heard>> {
    let mut heard = vec![Vec::new(); day.sessions.len()];
    for (mark, event) in day.events.iter().enumerate() {
        let (session, renews) = match event.what {
            What::Renew(session) => (session, true),
            What::Detached(session, attach) if attach != day.sessions[session].attach => continue,
            What::Open(session)
            | What::Attach(session)
            | What::Detached(session, _)
            | What::Acquire { session, .. }
            | What::Release(session, _)
            | What::Value(session, _)
            | What::Ready(session, _, _)
            | What::Offer(session, _, _)
            | What::Accept(session, _)
            | What::Close(session)
            | What::Alarm(session) => (session, false),
            What::Revoke { .. } | What::Clear | What::Tidy | What::Unserved(_) | What::Restored { .. } => {
                continue;
            }
        };
        heard[session].push(Heard { place: place[mark], point: Point { at: event.at, mark }, renews });
    }
    heard.iter_mut().for_each(|heard| heard.sort_by_key(|heard| heard.place));
    heard
}

/// The outages in the order of the log.
fn ordered(day: &Day, marks: &[usize]) -> Vec<super::truth::Blackout> {
    let mut blackouts = day.blackouts.clone();
    let mut place = vec![0; marks.len()];
    marks.iter().enumerate().for_each(|(at, mark)| place[*mark] = at);
    blackouts.sort_by_key(|blackout| place[blackout.mark]);
    blackouts
}
