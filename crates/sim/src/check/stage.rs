//! Made-up histories for the tests of checkers: three nodes and a few clients, everything as it should be, until a test says
//! otherwise.

use leasehold_core::{
    Acquire, Answer, Applied, Attach, AttachNumber, Command, CommandNumber, Config, Ending, Entry, ItemKind,
    ItemNumber, Label, LeaseTable, LogTime, Millis, Mode, Nonce, Op, Open, Policies, RenewalNumber, Reply,
    Request, ResourceName, Sequence, SessionCommand, SessionId, SessionKind, Token, Value,
};

use super::excuse::Excuses;
use super::story::Story;
use super::{Run, Violation};
use crate::record::{
    Asked, Bounds, ClientId, Event, LogId, NodeId, Place, Record, RequestKey, ResourceId, Told, TrueTime,
    VoterSet, hash,
};
pub(crate) use crate::trace::MILLI;

pub(crate) const TTL: u64 = 1_000;
pub(crate) const USABLE: u64 = 900;
pub(crate) const NODES: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

/// A run in the making. True time and log time are the same here.
pub(crate) struct Stage {
    pub(crate) record: Record,
    pub(crate) table: LeaseTable,
    pub(crate) log: LogId,
    pub(crate) now: TrueTime,
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) leader: NodeId,
    commands: std::collections::BTreeMap<SessionId, u64>,
    renewals: std::collections::BTreeMap<SessionId, u64>,
}

pub(crate) fn name(nth: u32) -> ResourceName {
    ResourceName::new(&format!("r{nth}")).expect("a short name")
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut record = Record::new(Config::default(), Bounds::default());
        for nth in 0..3 {
            record.resource(&name(nth));
        }
        let mut stage = Self {
            record,
            table: LeaseTable::new(Config::default()),
            log: LogId(0),
            now: TrueTime::ZERO,
            index: 1,
            term: 1,
            leader: NODES[0],
            commands: std::collections::BTreeMap::new(),
            renewals: std::collections::BTreeMap::new(),
        };
        for node in NODES {
            stage.push(Event::Started { node });
            let voters = VoterSet { voters: NODES.to_vec(), outgoing: Vec::new() };
            stage.record.voters(TrueTime::ZERO, (LogId(0), node), 1, voters);
        }
        stage.push(Event::Leads { node: NODES[0], term: 1 });
        stage
    }

    /// Time goes on to this many milliseconds.
    pub(crate) fn at(&mut self, millis: u64) -> &mut Self {
        self.now = TrueTime(millis * MILLI);
        self
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.record.push(self.now, event);
    }

    /// An entry is written, committed and applied everywhere.
    pub(crate) fn commit(&mut self, commands: Vec<Command>) -> Applied {
        let at = LogTime::new(self.now.0 / MILLI);
        self.commit_at(at, commands)
    }

    pub(crate) fn commit_at(&mut self, at: LogTime, commands: Vec<Command>) -> Applied {
        self.index += 1;
        let entry = Entry { at, commands };
        let (index, term, bytes, log) = (self.index, self.term, hash(&entry.encode()), self.log);
        let (node, free) = (self.leader, TrueTime::ZERO);
        self.push(Event::Stamped { log, node, index, term, free, idle: 0 });
        for node in &NODES[..2] {
            self.push(Event::Durable { log, node: *node, first: index, last: index, term });
        }
        for node in NODES {
            self.record.applied(self.now, (log, node), (index, term, bytes), || Some(entry.clone()));
        }
        let applied = self.table.apply(&entry);
        for (session, item) in &applied.items {
            self.record.received(self.now, *session, item.clone());
        }
        applied
    }

    pub(crate) fn open(&mut self, client: u32) -> SessionId {
        self.open_with(client, Policies::default())
    }

    pub(crate) fn open_with(&mut self, client: u32, policies: Policies) -> SessionId {
        let mut nonce = [0; 16];
        nonce[..4].copy_from_slice(&client.to_be_bytes());
        nonce[4..12].copy_from_slice(&self.now.0.to_be_bytes());
        let label = Label::new(&format!("c{client}")).expect("a short label");
        let (ttl, kind) = (Millis::new(TTL), SessionKind::Streamed);
        let open = Open { nonce: Nonce(nonce), label, ttl, policies, kind };
        let key = RequestKey::Open(nonce);
        self.push(Event::RequestSent { key });
        let applied = self.commit(vec![Command::Open(open)]);
        let Reply::Opened(opened) = &applied.replies[0] else { panic!("{applied:?}") };
        let session = opened.session;
        self.record.replied(self.now, key, applied.replies[0].clone());
        let (client, first_sent) = (ClientId(client), self.now);
        self.push(Event::SessionOpened { client, session, ttl_ms: TTL, usable_ms: USABLE, first_sent });
        let attach = Attach { session, attach: AttachNumber::new(1), seen: ItemNumber::NONE };
        self.push(Event::RequestSent { key: RequestKey::Attach(session, 1) });
        let applied = self.commit(vec![Command::Attach(attach)]);
        self.record.replied(self.now, RequestKey::Attach(session, 1), applied.replies[0].clone());
        session
    }

    pub(crate) fn renewal(&mut self, session: SessionId) -> (u64, Command) {
        let number = self.renewals.entry(session).or_insert(0);
        *number += 1;
        let number = *number;
        self.push(Event::RenewalSent { session, number });
        self.push(Event::RequestSent { key: RequestKey::Renew(session, number) });
        let seen = ItemNumber::NONE;
        (number, Command::Renew { session, number: RenewalNumber::new(number), seen })
    }

    /// A renewal, sent and answered at once; what is believed moves on.
    pub(crate) fn renew(&mut self, session: SessionId, held: &[Token]) {
        let (number, command) = self.renewal(session);
        let applied = self.commit(vec![command]);
        self.record.replied(self.now, RequestKey::Renew(session, number), applied.replies[0].clone());
        for token in held {
            self.believe(session, *token, Some(self.now.plus(USABLE * MILLI)));
        }
    }

    pub(crate) fn believe(&mut self, session: SessionId, token: Token, until: Option<TrueTime>) {
        let place = Place { resource: ResourceId(0), slot: None };
        self.record.belief(self.now, session, place, token, until);
    }

    /// A command as it stands in the log.
    pub(crate) fn command(&mut self, session: SessionId, op: Op) -> (u64, Command) {
        let number = self.commands.entry(session).or_insert(0);
        *number += 1;
        let number = *number;
        self.push(Event::RequestSent { key: RequestKey::Command(session, 1, number) });
        (number, streamed(session, number, op))
    }

    pub(crate) fn asked(&mut self, session: SessionId, command: u64, what: Asked) {
        self.push(Event::Asked { session, command, what });
    }

    pub(crate) fn told(&mut self, session: SessionId, command: u64, what: Told) {
        self.push(Event::Told { session, command, what });
    }

    /// Asks for the first resource and waits for it; gives the token if it was free.
    pub(crate) fn acquire(&mut self, session: SessionId) -> Result<Token, u64> {
        let (number, command) = self.command(session, Op::Acquire(acquire_of(0)));
        let resource = ResourceId(0);
        self.asked(session, number, Asked::Exclusive { resource, wait: Some(60_000) });
        let applied = self.commit(vec![command]);
        let ItemKind::Answer { answer, .. } = &applied.items[0].1.kind else { panic!("{applied:?}") };
        match answer {
            Answer::Granted(grants) => {
                let token = grants[0].token;
                self.told(session, number, Told::Granted { resource, token });
                let until = self.now.plus(USABLE * MILLI);
                self.believe(session, token, Some(until));
                Ok(token)
            }
            _ => {
                self.told(session, number, Told::Queued);
                Err(number)
            }
        }
    }

    /// Gives a lease of the first resource back; the next waiter, if any, gets it at once.
    pub(crate) fn release(&mut self, session: SessionId, token: Token) -> Option<Token> {
        self.believe(session, token, None);
        self.push(Event::LetGo { session, token });
        let (number, command) = self.command(session, release_of(token));
        self.asked(session, number, Asked::Release { resource: ResourceId(0), token });
        let applied = self.commit(vec![command]);
        self.told(session, number, Told::Released);
        self.hand_out(&applied)
    }

    /// Tells a waiter of the grant that an entry gave it.
    pub(crate) fn hand_out(&mut self, applied: &Applied) -> Option<Token> {
        let granted = applied.items.iter().find_map(|(session, item)| match &item.kind {
            ItemKind::WaitGranted { command, grants } => Some((*session, command.get(), grants[0].token)),
            _ => None,
        });
        let (session, command, token) = granted?;
        self.told(session, command, Told::Granted { resource: ResourceId(0), token });
        // Waiters renew right before in these tests.
        let until = self.now.plus(USABLE * MILLI);
        self.believe(session, token, Some(until));
        Some(token)
    }

    pub(crate) fn check(&self, checker: fn(Run<'_>) -> Vec<Violation>) -> Vec<Violation> {
        self.tampered(|_| {}, checker)
    }

    /// The same with a story that is not what the table would tell.
    pub(crate) fn tampered(
        &self,
        tamper: impl FnOnce(&mut Story<'_>),
        checker: fn(Run<'_>) -> Vec<Violation>,
    ) -> Vec<Violation> {
        let mut story = Story::of(&self.record);
        assert_eq!(story.broken, []);
        tamper(&mut story);
        let excuses = Excuses::of(&self.record);
        checker(Run { record: &self.record, story: &story, excuses: &excuses })
    }
}

pub(crate) fn streamed(session: SessionId, number: u64, op: Op) -> Command {
    let (attach, number) = (AttachNumber::new(1), CommandNumber::new(number));
    let sequence = Sequence::Streamed { attach, number, seen: ItemNumber::NONE };
    Command::Session(SessionCommand { session, sequence, op })
}

pub(crate) fn acquire_of(nth: u32) -> Acquire {
    let requests = vec![Request { resource: name(nth), mode: Mode::Exclusive }];
    Acquire { requests, value: Value::default(), wait: Some(Millis::new(60_000)) }
}

pub(crate) fn release_of(token: Token) -> Op {
    Op::Release { resource: name(0), token, drained: false }
}

/// Everything bad is caught, and by this sentence.
pub(crate) fn caught(found: &[Violation], part: &str) {
    assert!(found.iter().any(|violation| violation.what.contains(part)), "no {part:?} in {found:?}");
}

/// The event that ends a lease, as the table would tell it.
pub(crate) fn ended(session: SessionId, token: Token, how: Ending) -> leasehold_core::Event {
    let (resource, label) = (name(0), Label::new("c").expect("a short label"));
    leasehold_core::Event::Ended { resource, token, session, label, when: LogTime::ZERO, how }
}
