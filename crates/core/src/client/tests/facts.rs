//! Facts about the session machine, one by one. The service is played by hand.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::answer::{Answer, Ending, Grant, Item, ItemKind, Opened, Refusal, Renewed};
use crate::client::{
    ClientSession, EndedWhy, Event, Frame, Incoming, Input, LeaseState, Outcome, Output, Profile, SessionEnd,
    SubmitError, WaitOver,
};
use crate::command::{Acquire, Mode, Op, Policies, Request, Sequence};
use crate::holder::{Fraction, NoGuard, Reading, Strictness};
use crate::id::{AttachNumber, CommandNumber, ItemNumber, Nonce, RenewalNumber, SessionId, Token};
use crate::name::{Label, Reason, ResourceName, Value};
use crate::numbers::{Ask, Numbers};
use crate::time::{Drift, Millis};

const SESSION: SessionId = SessionId::from_u64(5);
const NONCE: Nonce = Nonce([1; 16]);
const TOKEN: Token = Token::from_u64(9);

fn at(ms: u64) -> Reading {
    Reading { boot: ms * 1_000_000, raw: ms * 1_000_000 }
}

fn name() -> ResourceName {
    ResourceName::new("jobs").unwrap()
}

fn acquire(wait: Option<u64>) -> Op {
    let requests = vec![Request { resource: name(), mode: Mode::Exclusive }];
    Op::Acquire(Acquire { requests, value: Value::default(), wait: wait.map(Millis::new) })
}

fn release() -> Op {
    Op::Release { resource: name(), token: TOKEN, drained: false }
}

fn granted() -> Vec<Grant> {
    vec![Grant { resource: name(), token: TOKEN, fence: TOKEN, slot: None }]
}

fn opened(nonce: Nonce) -> Incoming {
    let opened = Opened { session: SESSION, ttl: Millis::new(10_000), drift: Drift::DEFAULT, repeated: false };
    Incoming::Opened { nonce, opened }
}

/// A machine and what it has put out.
struct Play {
    machine: ClientSession,
    frames: Vec<Frame>,
    events: Vec<Event>,
    others: Vec<Output>,
    items: u64,
}

impl Play {
    /// ttl 10 s, margin 1 s, renewal every 3333 ms, request timeout 400 ms. Connected at 0.
    fn new() -> Self {
        let numbers = Numbers::check(Ask::for_ttl(Millis::new(10_000))).unwrap();
        let profile = Profile { label: Label::new("me").unwrap(), numbers, policies: Policies::default() };
        let machine = ClientSession::new(profile, NONCE);
        let mut play = Self { machine, frames: vec![], events: vec![], others: vec![], items: 0 };
        play.input(Input::Connected, 0);
        play
    }

    /// Open and attached at 0.
    fn attached() -> Self {
        let mut play = Self::new();
        play.receive(opened(NONCE), 0);
        play.receive(attached(1, 0, 0), 0);
        play.frames.clear();
        play
    }

    /// Holds the lease since 0, by command 1.
    fn holding() -> Self {
        let mut play = Self::attached();
        play.submit(acquire(None), 0);
        play.answer(1, Answer::Granted(granted()), 0);
        play.forget();
        play
    }

    /// Waits for the lease since 0, by command 1.
    fn waiting() -> Self {
        let mut play = Self::attached();
        play.submit(acquire(Some(60_000)), 0);
        play.answer(1, Answer::Queued { ahead: 0 }, 0);
        play.forget();
        play
    }

    fn forget(&mut self) {
        self.frames.clear();
        self.events.clear();
    }

    fn poll(&mut self, now: u64) {
        for output in self.machine.poll(at(now), Fraction::from_bits(0)) {
            match output {
                Output::Send(frame) => self.frames.push(frame),
                Output::Event(Event::Standing(_)) => {}
                Output::Event(event) => self.events.push(event),
                other => self.others.push(other),
            }
        }
    }

    fn input(&mut self, input: Input, now: u64) {
        self.machine.handle(input, at(now));
        self.poll(now);
    }

    fn receive(&mut self, incoming: Incoming, now: u64) {
        self.input(Input::Received(incoming), now);
    }

    fn refuse(&mut self, refusal: Refusal, now: u64) {
        self.receive(Incoming::Refused { session: SESSION, refusal }, now);
    }

    fn submit(&mut self, op: Op, now: u64) -> CommandNumber {
        let number = self.machine.submit(op).unwrap();
        self.poll(now);
        number
    }

    /// The next item of the stream.
    fn item(&mut self, kind: ItemKind, now: u64) {
        self.items += 1;
        self.receive(item(self.items, kind), now);
    }

    fn answer(&mut self, command: u64, answer: Answer, now: u64) {
        self.item(ItemKind::Answer { command: CommandNumber::new(command), answer }, now);
    }

    fn commands(&self) -> Vec<(u64, Op)> {
        let command = |frame: &Frame| match frame {
            Frame::Command(command) => match command.sequence {
                Sequence::Streamed { number, .. } => Some((number.get(), command.op.clone())),
                Sequence::Plain => panic!("a streamed session sends numbers"),
            },
            _ => None,
        };
        self.frames.iter().filter_map(command).collect()
    }

    fn attaches(&self) -> Vec<(u64, u64)> {
        let attach = |frame: &Frame| match frame {
            Frame::Attach { attach, .. } => Some((attach.attach.get(), attach.seen.get())),
            _ => None,
        };
        self.frames.iter().filter_map(attach).collect()
    }

    fn renewals(&self) -> Vec<u64> {
        let number = |frame: &Frame| if let Frame::Renew { number, .. } = frame { Some(number.get()) } else { None };
        self.frames.iter().filter_map(number).collect()
    }

    fn opens(&self) -> usize {
        self.frames.iter().filter(|frame| matches!(frame, Frame::Open(_))).count()
    }

    fn resolved(&self) -> Vec<(u64, Outcome)> {
        let resolved = |event: &Event| match event {
            Event::Resolved { command, outcome } => Some((command.get(), outcome.clone())),
            _ => None,
        };
        self.events.iter().filter_map(resolved).collect()
    }

    fn guard(&self, now: u64) -> Result<(), NoGuard> {
        self.machine.guard(TOKEN, Duration::from_millis(10), Strictness::default(), at(now))
    }
}

fn item(number: u64, kind: ItemKind) -> Incoming {
    Incoming::Item { session: SESSION, item: Item { number: ItemNumber::new(number), kind } }
}

fn attached(attach: u64, last_command: u64, last_item: u64) -> Incoming {
    Incoming::Attached {
        session: SESSION,
        attach: AttachNumber::new(attach),
        last_command: CommandNumber::new(last_command),
        last_item: ItemNumber::new(last_item),
    }
}

fn renewed(number: u64, after: u64) -> Incoming {
    let (number, after) = (RenewalNumber::new(number), ItemNumber::new(after));
    Incoming::Renewed { session: SESSION, renewed: Renewed { number, after, leases: None } }
}

fn revoked() -> ItemKind {
    let how = Ending::Revoked { by: Label::new("op").unwrap(), reason: Reason::new("").unwrap() };
    ItemKind::LeaseEnded { resource: name(), token: TOKEN, how }
}

fn wait_granted() -> ItemKind {
    ItemKind::WaitGranted { command: CommandNumber::new(1), grants: granted() }
}

#[test]
fn an_open_is_repeated_and_counts_from_its_first_sending() {
    let mut play = Play::new();
    assert_eq!(play.opens(), 1);
    play.poll(399);
    assert_eq!(play.opens(), 1);
    play.poll(400);
    assert_eq!(play.opens(), 2);
    play.receive(opened(NONCE), 500);
    play.receive(attached(1, 0, 0), 500);
    play.submit(acquire(None), 500);
    play.answer(1, Answer::Granted(granted()), 500);
    assert_eq!(play.machine.state(TOKEN, at(500)), Some(LeaseState::Held { until: at(9_000) }));
}

#[test]
fn a_nonce_is_given_up_when_its_session_would_have_lapsed() {
    let mut play = Play::new();
    play.poll(8_999);
    assert!(play.others.iter().all(|output| *output == Output::Reconnect));
    play.others.clear();
    play.poll(9_000);
    assert_eq!(play.others, [Output::NeedNonce]);
    play.frames.clear();
    play.input(Input::Nonce(Nonce([2; 16])), 9_001);
    assert_eq!(play.opens(), 1);
    // The answer to the old nonce is late: that session is older than the new nonce.
    play.receive(opened(NONCE), 9_002);
    assert_eq!(play.machine.session(), None);
    play.receive(opened(Nonce([2; 16])), 9_003);
    assert_eq!(play.machine.session(), Some(SESSION));
}

#[test]
fn a_service_that_trusts_clocks_too_far_is_refused() {
    let mut play = Play::new();
    let drift = Drift::from_ppm(999).unwrap();
    let opened = Opened { session: SESSION, ttl: Millis::new(10_000), drift, repeated: false };
    play.receive(Incoming::Opened { nonce: NONCE, opened }, 10);
    let why = SessionEnd::DriftTooSmall { service: drift, own: Drift::DEFAULT };
    assert_eq!(play.events, [Event::SessionEnded { why }]);
}

#[test]
fn commands_wait_until_the_connection_is_attached() {
    let mut play = Play::new();
    play.submit(acquire(None), 0);
    play.receive(opened(NONCE), 10);
    assert_eq!(play.attaches(), [(1, 0)]);
    assert!(play.commands().is_empty());
    play.receive(attached(1, 0, 0), 20);
    assert_eq!(play.commands(), [(1, acquire(None))]);
}

#[test]
fn after_a_new_attachment_only_what_was_not_applied_is_sent_again_under_its_number() {
    let mut play = Play::attached();
    for _ in 0..3 {
        play.submit(acquire(None), 10);
    }
    play.input(Input::Disconnected, 20);
    play.input(Input::Connected, 30);
    assert_eq!(play.attaches(), [(2, 0)]);
    play.frames.clear();
    play.receive(attached(2, 2, 0), 40);
    assert_eq!(play.commands(), [(3, acquire(None))]);
}

#[test]
fn the_answer_to_an_older_attach_is_dropped() {
    let mut play = Play::attached();
    play.submit(acquire(None), 10);
    play.input(Input::Connected, 20);
    play.frames.clear();
    play.receive(attached(1, 0, 0), 30);
    assert!(play.commands().is_empty());
}

#[test]
fn an_item_that_comes_twice_is_processed_once() {
    let mut play = Play::attached();
    play.submit(acquire(None), 0);
    play.answer(1, Answer::Granted(granted()), 10);
    play.receive(item(1, ItemKind::Answer { command: CommandNumber::new(1), answer: Answer::Cancelled }), 11);
    assert_eq!(play.resolved(), [(1, Outcome::Answered(Answer::Granted(granted())))]);
}

#[test]
fn a_gap_is_not_processed_and_attaches_again() {
    let mut play = Play::waiting();
    play.receive(item(3, wait_granted()), 50);
    assert!(play.events.is_empty());
    assert_eq!(play.attaches(), [(2, 1)]);
}

#[test]
fn a_gap_in_the_commands_attaches_again() {
    let mut play = Play::attached();
    let (number, expected) = (CommandNumber::new(1), CommandNumber::new(2));
    play.submit(acquire(None), 10);
    play.refuse(Refusal::CommandGap { number, expected }, 20);
    assert_eq!(play.attaches(), [(2, 0)]);
}

#[test]
fn an_attachment_that_was_overtaken_takes_a_higher_number() {
    let mut play = Play::attached();
    let (attach, current) = (AttachNumber::new(1), AttachNumber::new(7));
    play.refuse(Refusal::OlderAttach { attach, current }, 20);
    assert_eq!(play.attaches(), [(8, 0)]);
}

#[test]
fn refused_frames_of_an_own_older_attachment_change_nothing() {
    let mut play = Play::attached();
    play.input(Input::Connected, 10);
    play.receive(attached(2, 0, 0), 20);
    play.frames.clear();
    let (attach, current) = (AttachNumber::new(1), AttachNumber::new(2));
    play.refuse(Refusal::OlderAttach { attach, current }, 30);
    assert!(play.frames.is_empty());
}

#[test]
fn an_unanswered_command_attaches_again_with_growing_pauses() {
    let mut play = Play::attached();
    play.submit(acquire(None), 1_000);
    let mut times = vec![];
    for now in 1_000..3_300 {
        play.frames.clear();
        play.poll(now);
        if !play.attaches().is_empty() {
            times.push(now);
        }
    }
    assert_eq!(times, [1_400, 2_200]);
}

#[test]
fn every_frame_says_what_was_seen() {
    let mut play = Play::holding();
    play.submit(release(), 10);
    play.poll(3_333);
    play.input(Input::Connected, 3_400);
    let seen = |frame: &Frame| match frame {
        Frame::Attach { attach, .. } => attach.seen.get(),
        Frame::Renew { seen, .. } => seen.get(),
        Frame::Command(command) => match command.sequence {
            Sequence::Streamed { seen, .. } => seen.get(),
            Sequence::Plain => 0,
        },
        Frame::Open(_) => 0,
    };
    assert!(play.frames.len() >= 3);
    assert!(play.frames.iter().all(|frame| seen(frame) == 1), "{:?}", play.frames);
}

#[test]
fn belief_ends_when_the_release_is_submitted() {
    let mut play = Play::holding();
    assert_eq!(play.guard(10), Ok(()));
    play.machine.submit(release()).unwrap();
    assert_eq!(play.guard(10), Err(NoGuard::Ended));
    play.poll(10);
    let why = EndedWhy::Released;
    let ended = Event::LeaseEnded { resource: name(), token: TOKEN, why, confirmed_until: Some(at(9_000)) };
    assert_eq!(play.events, [ended]);
}

#[test]
fn a_revoke_ends_belief_and_is_acknowledged_by_a_release() {
    let mut play = Play::holding();
    play.item(revoked(), 100);
    assert_eq!(play.guard(100), Err(NoGuard::Ended));
    assert_eq!(play.commands(), [(2, release())]);
    play.forget();
    play.answer(2, Answer::Released, 120);
    assert!(play.events.is_empty(), "the machine's own commands are not the application's");
}

#[test]
fn a_revoke_that_crosses_a_release_is_acknowledged_by_that_release() {
    let mut play = Play::holding();
    play.submit(release(), 90);
    play.item(revoked(), 100);
    assert_eq!(play.commands(), [(2, release())]);
}

#[test]
fn a_cancel_that_crosses_the_grant_gives_the_lease_back() {
    let mut play = Play::waiting();
    let cancel = Op::Cancel { acquire: CommandNumber::new(1) };
    play.submit(cancel.clone(), 50);
    play.item(wait_granted(), 60);
    assert_eq!(play.guard(60), Err(NoGuard::Ended));
    assert_eq!(play.commands(), [(2, cancel), (3, release())]);
    play.answer(2, Answer::AlreadyGranted(granted()), 70);
    play.answer(3, Answer::Released, 80);
    let command = CommandNumber::new(1);
    let over = Event::WaitOver { command, how: WaitOver::Cancelled };
    let outcome = Outcome::Answered(Answer::AlreadyGranted(granted()));
    assert_eq!(play.events, [over, Event::Resolved { command: CommandNumber::new(2), outcome }]);
}

#[test]
fn a_cancel_behind_the_grant_gives_the_lease_back() {
    let mut play = Play::waiting();
    play.item(wait_granted(), 50);
    assert_eq!(play.guard(50), Ok(()));
    let cancel = Op::Cancel { acquire: CommandNumber::new(1) };
    play.submit(cancel.clone(), 60);
    assert_eq!(play.guard(60), Err(NoGuard::Ended));
    assert_eq!(play.commands(), [(2, cancel), (3, release())]);
}

#[test]
fn an_acquire_granted_after_its_cancel_is_cancelled() {
    let mut play = Play::attached();
    play.submit(acquire(Some(1_000)), 0);
    play.submit(Op::Cancel { acquire: CommandNumber::new(1) }, 1);
    play.answer(1, Answer::Granted(granted()), 10);
    assert_eq!(play.resolved(), [(1, Outcome::Cancelled)]);
    assert_eq!(play.guard(10), Err(NoGuard::Ended));
    assert_eq!(play.commands().last(), Some(&(3, release())));
}

#[test]
fn a_cancelled_wait_is_over_once() {
    let mut play = Play::waiting();
    play.submit(Op::Cancel { acquire: CommandNumber::new(1) }, 50);
    play.answer(2, Answer::Cancelled, 60);
    let over = play.events.iter().filter(|event| matches!(event, Event::WaitOver { .. })).count();
    assert_eq!(over, 1);
}

#[test]
fn a_grant_after_the_deadline_is_not_held_until_a_later_renewal_is_confirmed() {
    let mut play = Play::waiting();
    play.poll(3_333);
    play.item(wait_granted(), 9_000);
    assert!(matches!(play.machine.state(TOKEN, at(9_000)), Some(LeaseState::Lapsed { .. })));
    assert_eq!(play.renewals(), [1, 2]);
    play.receive(renewed(1, 2), 9_050);
    assert_eq!(play.guard(9_050), Err(NoGuard::Lapsed), "sent before the grant came");
    play.receive(renewed(2, 2), 9_060);
    assert_eq!(play.guard(9_060), Ok(()));
}

#[test]
fn a_renewal_answered_behind_a_lost_item_counts_only_after_it() {
    let mut play = Play::holding();
    play.poll(3_333);
    play.forget();
    play.receive(renewed(1, 2), 3_400);
    assert_eq!(play.machine.lease(TOKEN).unwrap().until(), at(9_000));
    play.poll(3_800);
    assert_eq!(play.attaches(), [(2, 1)], "the lost item is asked for");
    play.receive(attached(2, 1, 2), 3_810);
    play.item(revoked(), 3_820);
    assert_eq!(play.guard(3_820), Err(NoGuard::Ended));
}

#[test]
fn an_ended_session_leaves_unknown_what_was_sent_and_nothing_refused() {
    let mut play = Play::holding();
    play.submit(acquire(None), 10);
    play.input(Input::Disconnected, 20);
    play.submit(acquire(None), 30);
    play.input(Input::Connected, 40);
    play.forget();
    play.refuse(Refusal::SessionEnded { session: SESSION }, 50);
    assert_eq!(play.resolved(), [(2, Outcome::Unknown), (3, Outcome::NotSent)]);
    let why = EndedWhy::SessionEnded;
    let lost = Event::LeaseEnded { resource: name(), token: TOKEN, why, confirmed_until: Some(at(9_000)) };
    assert_eq!(play.events.first(), Some(&lost));
    assert_eq!(play.events.last(), Some(&Event::SessionEnded { why: SessionEnd::ByService(SESSION) }));
    assert_eq!(play.machine.submit(acquire(None)), Err(SubmitError::SessionEnded));
    assert_eq!(play.machine.next_wake(at(60)), None);
}

#[test]
fn a_wait_ends_with_its_session() {
    let mut play = Play::waiting();
    play.refuse(Refusal::SessionEnded { session: SESSION }, 50);
    let over = Event::WaitOver { command: CommandNumber::new(1), how: WaitOver::SessionEnded };
    assert!(play.events.contains(&over));
}

#[test]
fn a_close_ends_belief_and_renewals_and_takes_no_grant() {
    let mut play = Play::waiting();
    play.submit(Op::Close, 10);
    assert_eq!(play.machine.submit(acquire(None)), Err(SubmitError::Closing));
    play.item(wait_granted(), 20);
    assert_eq!(play.guard(20), Err(NoGuard::Ended));
    play.poll(3_333);
    assert!(play.renewals().is_empty());
    play.receive(Incoming::Closed { session: SESSION }, 3_400);
    assert_eq!(play.resolved(), [(2, Outcome::Closed)]);
    assert_eq!(play.events.last(), Some(&Event::SessionEnded { why: SessionEnd::Closed }));
}

#[test]
fn messages_of_another_session_are_dropped() {
    let mut play = Play::holding();
    play.poll(3_333);
    let other = SessionId::from_u64(6);
    let renewed = Renewed { number: RenewalNumber::new(1), after: ItemNumber::NONE, leases: None };
    play.receive(Incoming::Renewed { session: other, renewed }, 3_400);
    assert_eq!(play.machine.lease(TOKEN).unwrap().until(), at(9_000));
    play.receive(Incoming::Refused { session: other, refusal: Refusal::SessionEnded { session: other } }, 3_410);
    assert_eq!(play.machine.session(), Some(SESSION));
}

#[test]
fn a_service_that_was_set_back_ends_the_session() {
    for (last_command, last_item) in [(1, 0), (0, 1), (2, 1)] {
        let mut play = Play::holding();
        play.input(Input::Connected, 10);
        play.receive(attached(2, last_command, last_item), 20);
        assert_eq!(play.events.last(), Some(&Event::SessionEnded { why: SessionEnd::SetBack }));
    }
}

#[test]
fn a_silent_connection_is_given_up_once() {
    let mut play = Play::attached();
    for now in 0..6_000 {
        play.poll(now);
    }
    assert_eq!(play.others, [Output::Reconnect]);
    play.others.clear();
    play.input(Input::Connected, 6_000);
    play.receive(attached(2, 0, 0), 6_001);
    for now in 6_001..7_000 {
        play.poll(now);
        play.receive(attached(1, 0, 0), now);
    }
    assert!(play.others.is_empty(), "whatever is heard breaks the silence");
}

#[test]
fn the_machine_sleeps_until_it_has_something_to_do() {
    let mut play = Play::holding();
    assert_eq!(play.machine.next_wake(at(1_000)), Some(Duration::from_millis(2_333)));
    play.machine.submit(release()).unwrap();
    assert_eq!(play.machine.next_wake(at(1_000)), Some(Duration::ZERO));
    play.poll(1_000);
    assert_eq!(play.machine.next_wake(at(1_000)), Some(Duration::from_millis(400)));
}
