//! A machine whose service is played by hand.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::answer::{Answer, Ending, Grant, Item, ItemKind, Opened, Refusal, Renewed};
use crate::client::{ClientSession, Event, Frame, Incoming, Input, Outcome, Output, Profile};
use crate::command::{Acquire, Mode, Op, Policies, Request, Sequence};
use crate::holder::{Fraction, NoGuard, Reading, Strictness};
use crate::id::{AttachNumber, CommandNumber, ItemNumber, Nonce, RenewalNumber, SessionId, Token};
use crate::name::{Label, Reason, ResourceName, Value};
use crate::numbers::{Ask, Numbers};
use crate::time::{Drift, Millis};

pub(super) const SESSION: SessionId = SessionId::from_u64(5);
pub(super) const NONCE: Nonce = Nonce([1; 16]);
pub(super) const TOKEN: Token = Token::from_u64(9);

pub(super) fn at(ms: u64) -> Reading {
    Reading { boot: ms * 1_000_000, raw: ms * 1_000_000 }
}

pub(super) fn name() -> ResourceName {
    ResourceName::new("jobs").unwrap()
}

pub(super) fn acquire(wait: Option<u64>) -> Op {
    let requests = vec![Request { resource: name(), mode: Mode::Exclusive }];
    Op::Acquire(Acquire { requests, value: Value::default(), wait: wait.map(Millis::new) })
}

pub(super) fn release() -> Op {
    Op::Release { resource: name(), token: TOKEN, drained: false }
}

pub(super) fn granted() -> Vec<Grant> {
    vec![Grant { resource: name(), token: TOKEN, fence: TOKEN, slot: None }]
}

pub(super) fn opened(nonce: Nonce) -> Incoming {
    let opened =
        Opened { session: SESSION, ttl: Millis::new(10_000), drift: Drift::DEFAULT, repeated: false };
    Incoming::Opened { nonce, opened }
}

/// A machine and what it has put out.
pub(super) struct Play {
    pub(super) machine: ClientSession,
    pub(super) frames: Vec<Frame>,
    pub(super) events: Vec<Event>,
    pub(super) others: Vec<Output>,
    pub(super) items: u64,
}

impl Play {
    /// ttl 10 s, margin 1 s, renewal every 3333 ms, request timeout 400 ms. Connected at 0.
    pub(super) fn new() -> Self {
        let numbers = Numbers::check(Ask::for_ttl(Millis::new(10_000))).unwrap();
        let profile = Profile { label: Label::new("me").unwrap(), numbers, policies: Policies::default() };
        let machine = ClientSession::new(profile, NONCE);
        let mut play = Self { machine, frames: vec![], events: vec![], others: vec![], items: 0 };
        play.input(Input::Connected, 0);
        play
    }

    /// Open and attached at 0.
    pub(super) fn attached() -> Self {
        let mut play = Self::new();
        play.receive(opened(NONCE), 0);
        play.receive(attached(1, 0, 0), 0);
        play.frames.clear();
        play
    }

    /// Holds the lease since 0, by command 1.
    pub(super) fn holding() -> Self {
        let mut play = Self::attached();
        play.submit(acquire(None), 0);
        play.answer(1, Answer::Granted(granted()), 0);
        play.forget();
        play
    }

    /// Waits for the lease since 0, by command 1.
    pub(super) fn waiting() -> Self {
        let mut play = Self::attached();
        play.submit(acquire(Some(60_000)), 0);
        play.answer(1, Answer::Queued { ahead: 0 }, 0);
        play.forget();
        play
    }

    pub(super) fn forget(&mut self) {
        self.frames.clear();
        self.events.clear();
    }

    pub(super) fn poll(&mut self, now: u64) {
        for output in self.machine.poll(at(now), Fraction::from_bits(0)) {
            match output {
                Output::Send(frame) => self.frames.push(frame),
                Output::Event(Event::Standing(_)) => {}
                Output::Event(event) => self.events.push(event),
                other => self.others.push(other),
            }
        }
    }

    pub(super) fn input(&mut self, input: Input, now: u64) {
        self.machine.handle(input, at(now));
        self.poll(now);
    }

    pub(super) fn receive(&mut self, incoming: Incoming, now: u64) {
        self.input(Input::Received(incoming), now);
    }

    pub(super) fn refuse(&mut self, refusal: Refusal, now: u64) {
        self.receive(Incoming::Refused { session: SESSION, refusal }, now);
    }

    pub(super) fn submit(&mut self, op: Op, now: u64) -> CommandNumber {
        let number = self.machine.submit(op).unwrap();
        self.poll(now);
        number
    }

    /// The next item of the stream.
    pub(super) fn item(&mut self, kind: ItemKind, now: u64) {
        self.items += 1;
        self.receive(item(self.items, kind), now);
    }

    pub(super) fn answer(&mut self, command: u64, answer: Answer, now: u64) {
        self.item(ItemKind::Answer { command: CommandNumber::new(command), answer }, now);
    }

    pub(super) fn commands(&self) -> Vec<(u64, Op)> {
        let command = |frame: &Frame| match frame {
            Frame::Command(command) => match command.sequence {
                Sequence::Streamed { number, .. } => Some((number.get(), command.op.clone())),
                Sequence::Plain | Sequence::Numbered(_) => panic!("a streamed session sends numbers"),
            },
            _ => None,
        };
        self.frames.iter().filter_map(command).collect()
    }

    pub(super) fn attaches(&self) -> Vec<(u64, u64)> {
        let attach = |frame: &Frame| match frame {
            Frame::Attach { attach, .. } => Some((attach.attach.get(), attach.seen.get())),
            _ => None,
        };
        self.frames.iter().filter_map(attach).collect()
    }

    pub(super) fn renewals(&self) -> Vec<u64> {
        let number =
            |frame: &Frame| if let Frame::Renew { number, .. } = frame { Some(number.get()) } else { None };
        self.frames.iter().filter_map(number).collect()
    }

    pub(super) fn opens(&self) -> usize {
        self.frames.iter().filter(|frame| matches!(frame, Frame::Open(_))).count()
    }

    pub(super) fn resolved(&self) -> Vec<(u64, Outcome)> {
        let resolved = |event: &Event| match event {
            Event::Resolved { command, outcome } => Some((command.get(), outcome.clone())),
            _ => None,
        };
        self.events.iter().filter_map(resolved).collect()
    }

    pub(super) fn guard(&self, now: u64) -> Result<(), NoGuard> {
        self.machine.guard(TOKEN, Duration::from_millis(10), Strictness::default(), at(now))
    }
}

pub(super) fn item(number: u64, kind: ItemKind) -> Incoming {
    Incoming::Item { session: SESSION, item: Item { number: ItemNumber::new(number), kind } }
}

pub(super) fn attached(attach: u64, last_command: u64, last_item: u64) -> Incoming {
    Incoming::Attached {
        session: SESSION,
        attach: AttachNumber::new(attach),
        last_command: CommandNumber::new(last_command),
        last_item: ItemNumber::new(last_item),
    }
}

pub(super) fn renewed(number: u64, after: u64) -> Incoming {
    let (number, after) = (RenewalNumber::new(number), ItemNumber::new(after));
    Incoming::Renewed { session: SESSION, renewed: Renewed { number, after, holdings: None } }
}

pub(super) fn revoked() -> ItemKind {
    let how = Ending::Revoked { by: Label::new("op").unwrap(), reason: Reason::new("").unwrap() };
    ItemKind::LeaseEnded { resource: name(), token: TOKEN, how }
}

pub(super) fn wait_granted() -> ItemKind {
    ItemKind::WaitGranted { command: CommandNumber::new(1), grants: granted() }
}
