//! The machine of one session.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::commands::{Commands, MAX_BACKLOG, Origin};
use super::lease::{EndedWhy, Held, LeaseHandle, LeaseState};
use super::link::Link;
use super::message::{Event, Frame, Input, Outcome, Output, SessionEnd, SubmitError, WaitOver};
use super::opening::Opening;
use crate::command::{Attach, Op, Open, Policies, Sequence, SessionCommand, SessionKind};
use crate::holder::{Fraction, NoGuard, Output as HolderOutput, Reading, Scheduler, Strictness};
use crate::id::{CommandNumber, ItemNumber, Nonce, RenewalNumber, SessionId, Token};
use crate::name::Label;
use crate::numbers::Numbers;
use crate::planted::{Bug, planted};

/// What a session is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What the holder calls itself.
    pub label: Label,
    /// The five numbers.
    pub numbers: Numbers,
    /// What happens when it is not renewed.
    pub policies: Policies,
}

#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) session: SessionId,
    pub(super) nonce: Nonce,
    pub(super) scheduler: Scheduler,
}

/// The life of a session.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    Opening(Opening),
    NeedsNonce { asked: bool },
    Live(Box<Live>),
    Ended,
}

/// One session, from its open to its end. See the [module](super) for how to drive it.
#[derive(Debug, Clone)]
pub struct ClientSession {
    pub(super) profile: Profile,
    pub(super) phase: Phase,
    pub(super) closing: bool,
    pub(super) link: Link,
    pub(super) commands: Commands,
    /// The last item processed.
    pub(super) seen: ItemNumber,
    /// The newest item known to exist.
    pub(super) newest: ItemNumber,
    /// Waits that the service has confirmed and that are not over.
    pub(super) waits: BTreeSet<CommandNumber>,
    /// Acquires and accepts whose cancel is not answered yet.
    pub(super) cancelled: BTreeSet<CommandNumber>,
    /// Boxed: a map's smallest node has room for eleven, and most sessions have one.
    pub(super) leases: BTreeMap<Token, Box<Held>>,
    pub(super) events: Vec<Event>,
    pub(super) jitter: Fraction,
}

impl ClientSession {
    /// A session that is to be opened under this nonce. It sends nothing before it is connected.
    pub fn new(profile: Profile, nonce: Nonce) -> Self {
        let link = Link::new(&profile.numbers);
        Self {
            profile,
            phase: Phase::Opening(Opening::new(nonce)),
            closing: false,
            link,
            commands: Commands::default(),
            seen: ItemNumber::NONE,
            newest: ItemNumber::NONE,
            waits: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            leases: BTreeMap::new(),
            events: Vec::new(),
            jitter: Fraction::default(),
        }
    }

    /// Takes in an input. Poll afterwards.
    pub fn handle(&mut self, input: Input, now: Reading) {
        match input {
            Input::Connected => {
                self.link.connected();
                match &mut self.phase {
                    Phase::Opening(opening) => opening.wanted = true,
                    Phase::Live(live) => live.scheduler.connected(now),
                    Phase::NeedsNonce { .. } | Phase::Ended => {}
                }
            }
            Input::Disconnected => {
                self.link.disconnected();
                if let Phase::Live(live) = &mut self.phase {
                    live.scheduler.disconnected(now);
                }
            }
            Input::Received(incoming) => {
                self.link.heard();
                self.receive(incoming, now);
            }
            Input::Nonce(nonce) => {
                if matches!(self.phase, Phase::NeedsNonce { .. }) {
                    self.phase = Phase::Opening(Opening::new(nonce));
                }
            }
            Input::Hint(length) => {
                if let Phase::Live(live) = &mut self.phase {
                    live.scheduler.hint(length, now);
                }
            }
            Input::HeardOnConnection(at) => self.link.heard_of(at),
            Input::RenewNow => {
                if let Phase::Live(live) = &mut self.phase {
                    live.scheduler.renew_now(now);
                }
            }
        }
    }

    /// Takes in a command. Belief in a lease ends here if this gives it back. Poll afterwards.
    ///
    /// # Errors
    /// When the session is over or about to be, or too many commands are unanswered: then the command has no effect.
    pub fn submit(&mut self, op: Op) -> Result<CommandNumber, SubmitError> {
        if matches!(self.phase, Phase::Ended) {
            return Err(SubmitError::SessionEnded);
        }
        if self.closing {
            return Err(SubmitError::Closing);
        }
        let waiting = self.commands.len();
        // A limit never stands in the way of giving something back.
        let gives_back = matches!(op, Op::Release { .. } | Op::Cancel { .. } | Op::Close);
        if waiting >= MAX_BACKLOG && !gives_back {
            return Err(SubmitError::Backlog { waiting, limit: MAX_BACKLOG });
        }
        match &op {
            Op::Release { token, .. } if !planted(Bug::BeliefUntilReleaseAnswered) => {
                self.end_belief(*token, EndedWhy::Released);
            }
            Op::Close => {
                self.closing = true;
                self.end_all_belief(&EndedWhy::Closed);
            }
            Op::Cancel { acquire } => return Ok(self.cancel(*acquire)),
            _ => {}
        }
        Ok(self.commands.submit(op, Origin::Application))
    }

    /// Asks for a renewal that is sent from now on, and gives back its number: it is done when [`ClientSession::renewals`] says that it or a
    /// later one was confirmed. Nothing if the session is not open or is being closed. Poll afterwards.
    pub fn renew(&mut self, now: Reading) -> Option<RenewalNumber> {
        match &mut self.phase {
            Phase::Live(live) if !self.closing => Some(live.scheduler.renew(now)),
            _ => None,
        }
    }

    /// The last renewal that was sent, and the last that was confirmed.
    pub fn renewals(&self) -> (RenewalNumber, RenewalNumber) {
        match &self.phase {
            Phase::Live(live) => (live.scheduler.last_number(), live.scheduler.confirmed_number()),
            _ => (RenewalNumber::NONE, RenewalNumber::NONE),
        }
    }

    /// What round trips take on this connection, measured.
    pub fn round_trips_take(&mut self, length: Duration) {
        if let Phase::Live(live) = &mut self.phase {
            live.scheduler.round_trips_take(length);
        }
    }

    /// What to do now. `jitter` is drawn anew for every call.
    pub fn poll(&mut self, now: Reading, jitter: Fraction) -> Vec<Output> {
        self.jitter = jitter;
        let mut outputs = Vec::new();
        match self.phase {
            Phase::Opening(_) => self.poll_opening(&mut outputs, now),
            Phase::Live(_) => self.poll_live(&mut outputs, now),
            Phase::NeedsNonce { .. } | Phase::Ended => {}
        }
        if let Phase::NeedsNonce { asked: asked @ false } = &mut self.phase {
            *asked = true;
            outputs.push(Output::NeedNonce);
        }
        if outputs.iter().any(|output| matches!(output, Output::Send(_))) {
            self.link.sent(now);
        }
        if !matches!(self.phase, Phase::Ended) && self.link.gives_up(now) {
            outputs.push(Output::Reconnect);
        }
        outputs.extend(core::mem::take(&mut self.events).into_iter().map(Output::Event));
        outputs
    }

    /// How long until [`ClientSession::poll`] has something to do, if no input comes before.
    pub fn next_wake(&self, now: Reading) -> Option<Duration> {
        let at_once = !self.events.is_empty();
        let phase = match &self.phase {
            Phase::Opening(opening) => opening.next_wake(&self.profile.numbers, self.link.is_up(), now),
            Phase::NeedsNonce { asked } => (!asked).then_some(Duration::ZERO),
            Phase::Live(_) if self.link.wants_attach() => Some(Duration::ZERO),
            Phase::Live(_) if self.link.is_attached() && self.commands.has_unsent() => Some(Duration::ZERO),
            Phase::Live(live) => live.scheduler.poll_timeout(now),
            Phase::Ended => return at_once.then_some(Duration::ZERO),
        };
        at_once.then_some(Duration::ZERO).into_iter().chain(phase).chain(self.link.next_wake(now)).min()
    }

    /// The session's id, once it is open and until it ends.
    pub fn session(&self) -> Option<SessionId> {
        match &self.phase {
            Phase::Live(live) => Some(live.session),
            _ => None,
        }
    }

    /// The leases that are not over, for handles in other threads.
    pub fn leases(&self) -> impl Iterator<Item = LeaseHandle> {
        self.leases.keys().filter_map(|token| self.lease(*token))
    }

    /// One lease that is not over.
    pub fn lease(&self, token: Token) -> Option<LeaseHandle> {
        let (Phase::Live(live), Some(held)) = (&self.phase, self.leases.get(&token)) else { return None };
        let confirmed = live.scheduler.confirmed_number();
        let unconfirmed = held.arrived_late.filter(|(_, needs)| confirmed < *needs);
        let unconfirmed_since = unconfirmed.map(|(arrived, _)| arrived);
        Some(LeaseHandle {
            grant: Arc::clone(&held.grant),
            belief: live.scheduler.belief(),
            unconfirmed_since,
        })
    }

    /// The deadline of all leases; nothing if there is none.
    pub fn deadline(&self) -> Option<Reading> {
        match &self.phase {
            Phase::Live(live) if !self.leases.is_empty() => Some(live.scheduler.belief().until()),
            _ => None,
        }
    }

    /// Where a lease stands; nothing if it is over or was never held here.
    pub fn state(&self, token: Token, now: Reading) -> Option<LeaseState> {
        self.lease(token).map(|lease| lease.state(now))
    }

    /// Leave to act for `how_long` under a lease.
    ///
    /// # Errors
    /// When that long does not fit before the deadline, or the lease may not be believed now.
    pub fn guard(
        &self,
        token: Token,
        how_long: Duration,
        strictness: Strictness,
        now: Reading,
    ) -> Result<(), NoGuard> {
        self.lease(token).ok_or(NoGuard::Ended)?.guard(how_long, strictness, now)
    }

    fn poll_opening(&mut self, outputs: &mut Vec<Output>, now: Reading) {
        let Phase::Opening(opening) = &mut self.phase else { return };
        if opening.is_worn_out(&self.profile.numbers, now) {
            self.phase = Phase::NeedsNonce { asked: false };
            return;
        }
        if self.link.is_up() && opening.is_due(&self.profile.numbers, now) {
            opening.sent(now);
            outputs.push(Output::Send(Frame::Open(Open {
                nonce: opening.nonce,
                label: self.profile.label.clone(),
                ttl: self.profile.numbers.ttl(),
                policies: self.profile.policies,
                kind: SessionKind::Streamed,
            })));
        }
    }

    fn poll_live(&mut self, outputs: &mut Vec<Output>, now: Reading) {
        let missing = self.is_something_missing();
        self.link.missing(missing, now);
        let attach = self.link.attach_due(self.seen, now);
        let Phase::Live(live) = &mut self.phase else { return };
        let (session, nonce, seen) = (live.session, live.nonce, self.seen);
        if let Some(attach) = attach {
            let attach = Attach { session, attach, seen };
            outputs.push(Output::Send(Frame::Attach { attach, nonce }));
        }
        for output in live.scheduler.poll(now, self.jitter) {
            match output {
                // A session that is being closed is not kept alive: if the close is lost, the ttl ends it.
                HolderOutput::SendRenewal(_) if self.closing => {}
                HolderOutput::SendRenewal(number) => {
                    outputs.push(Output::Send(Frame::Renew { session, number, seen }));
                }
                HolderOutput::TryAnotherNode => outputs.push(Output::Reconnect),
                HolderOutput::Standing(standing) => self.events.push(Event::Standing(standing)),
            }
        }
        if self.link.is_attached() {
            let attach = self.link.attach();
            while let Some((number, op)) = self.commands.next_to_send() {
                let sequence = Sequence::Streamed { attach, number, seen };
                outputs.push(Output::Send(Frame::Command(SessionCommand { session, sequence, op })));
            }
        }
        let missing = self.is_something_missing();
        self.link.missing(missing, now);
    }

    /// Whether the service owes something: then the streams must move, or the connection is attached again.
    fn is_something_missing(&self) -> bool {
        let Phase::Live(live) = &self.phase else { return false };
        !self.link.is_attached()
            || self.seen < self.newest
            || self.commands.awaits_answers()
            || live.scheduler.keeps_an_answer()
    }

    /// The end, for good: nothing is believed, and what was not answered is unknown.
    pub(super) fn end(&mut self, why: SessionEnd) {
        self.end_all_belief(&EndedWhy::SessionEnded);
        for (command, pending, was_sent) in self.commands.drain() {
            let outcome = match (&pending.op, &why) {
                // The session is over, which is all that a close asks for.
                (Op::Close, SessionEnd::Closed | SessionEnd::ByService(_)) => Outcome::Closed,
                _ if was_sent => Outcome::Unknown,
                _ => Outcome::NotSent,
            };
            if pending.origin == Origin::Application {
                self.events.push(Event::Resolved { command, outcome });
            }
        }
        for command in core::mem::take(&mut self.waits) {
            self.events.push(Event::WaitOver { command, how: WaitOver::SessionEnded });
        }
        self.cancelled.clear();
        self.phase = Phase::Ended;
        self.events.push(Event::SessionEnded { why });
    }
}
