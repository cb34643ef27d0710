//! The driver: keeps the connection of a store and runs the machines of its sessions, in turns that are taken by whoever brings it
//! something, and at their time by a thread of the library.
//!
//! The machines decide; the driver carries frames, reads the clocks, draws nonces and jitter, and publishes what the machines
//! believe so that a guard can be given without asking it.

mod chance;
mod counted;
mod due;
mod feed;
mod guest;
pub(crate) mod link;
mod message;
pub(crate) mod meter;
mod reading;
mod requests;
mod session_ref;
mod sessions;
mod threads;
mod visitor;
pub(crate) mod wheel;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::client::Input;
use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Failure, Request, RequestId, Response, ToClient};
use leasehold_core::{Millis, Op, SessionId};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{Error, Unreachable};
use crate::store::{ConnectOptions, Report};
use crate::time::Time;

use chance::{Jitter, random};
use counted::CountedMap;
use due::Due;
pub(crate) use feed::Feed;
use guest::Guest;
pub(crate) use link::Wire;
use link::{Address, Home, Known, Leaderless, Reception};
pub(crate) use message::{Accept, ToDriver};
use meter::Meter;
use requests::Requests;
pub(crate) use session_ref::SessionRef;
use sessions::{Asked, Slot};
use threads::Thread;
pub(crate) use visitor::Visitor;
pub(crate) use wheel::{DriverHandle, WeakDriverHandle};

/// Names a session of one driver, from before it has an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// Told once: the first connection, or why there is none.
pub(crate) type Connected = oneshot::Receiver<Result<(), Error>>;

/// The longest nap of a driver: the clocks are looked at again, in case the machine slept.
const LONGEST_NAP: Duration = Duration::from_millis(500);

/// A first answer that takes longer is reported: a person at a terminal is to know what is tried.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// Messages that are taken in with the reading that the sessions are polled with too.
const FEW_MESSAGES: usize = 16;

#[derive(Debug)]
pub(crate) struct Driver {
    /// Weak: a driver whose handles are all gone has nothing to do.
    to_driver: WeakDriverHandle,
    /// Not weak, as long as there is a session: one that was dropped is still to be closed.
    until_closed: Option<DriverHandle>,
    time: Time,
    /// The process that the driver runs in: a copy of it has no driver.
    pid: u32,
    store: String,
    patience: Duration,
    reconnect: mpsc::UnboundedSender<()>,
    connection: Option<Wire>,
    /// Which connection that is, or was last.
    connection_number: u64,
    /// Told once: the first connection, or why there is none.
    connected: Option<Reply<()>>,
    disconnected_since: Option<Reading>,
    /// The first sending since the service last said something of use, on however many connections.
    unheard_since: Option<Reading>,
    last_trouble: Option<Unreachable>,
    /// Where the last connection is or was, if to a node that knows of no leader, and nothing was found out since.
    leaderless: Option<Leaderless>,
    /// Told once, if nothing of use was ever heard for a while.
    report: Option<Report>,
    slots: CountedMap<Key, Slot>,
    /// The same by their ids: a driver may have very many, and every message names one.
    sessions: CountedMap<SessionId, Key>,
    /// What the responses to sessions on this connection answer.
    asked: CountedMap<RequestId, (Key, Asked)>,
    /// When something of use was last heard on this connection, by any session.
    heard: Option<Reading>,
    /// What round trips take on this connection: rises with every slow one, and falls with those that are not.
    round_trips: Duration,
    due: Due,
    jitter: Jitter,
    meter: Meter,
    /// Sessions that are being closed, and since when, in that order.
    closing_sessions: VecDeque<(Reading, Key)>,
    /// The reading that the clocks were last compared with.
    compared: Reading,
    next_key: u64,
    requests: Requests,
    outgoing: Vec<(RequestId, Request)>,
    /// Whether the last thing on the connection was a single message from the service.
    alone: bool,
    closing: Option<oneshot::Sender<()>>,
    sent_something: bool,
    /// Who waits until there is nothing left to do.
    #[cfg(feature = "testing")]
    barrier: Option<oneshot::Sender<bool>>,
}

/// What is to be done after a turn.
enum Turned {
    /// Something is to be done at this point, or when something arrives.
    GoesOn(Reading),
    /// Everything was done: this one is to be told, once nothing of the driver is left.
    Over(oneshot::Sender<()>),
}

/// A driver that has just been started.
pub(crate) struct Started {
    pub(crate) to_driver: DriverHandle,
    pub(crate) connected: Connected,
    pub(crate) visitor: Visitor,
    pub(crate) meter: Meter,
}

/// Starts a driver for a store.
pub(crate) fn connect(url: &str, options: ConnectOptions) -> Result<Started, Error> {
    let address = Address::parse(url)?;
    let known = Known::default();
    let home = Home::new(address.clone(), &options, known.clone());
    let (reply, connected) = oneshot::channel();
    let (reconnect, reconnects) = mpsc::unbounded_channel();
    let thread = match &address {
        Address::Service(_) => Thread::shared(),
        // This process may have to serve it.
        #[cfg(feature = "embedded")]
        Address::Directory(_) => Thread::own(),
    };
    let thread = thread.map_err(Error::System)?;
    let measured_over = options.figures_over;
    let guest = options.read_in.clone().map(|runtime| (Guest::new(), runtime));
    let guest_of_wheel = guest.as_ref().map(|(guest, _)| Arc::clone(guest));
    let (running, runs) = watch::channel(());
    let visitor = Visitor::new(thread.runtime().clone(), runs, address, options, known);
    let meter = Meter::new(&Time::Machine, measured_over);
    let (to_driver, wheel) = wheel::wheel(Time::Machine, meter.clone(), guest_of_wheel, |handle| {
        let patience = visitor.patience();
        let report = visitor.report();
        let driver = Driver::new(handle, Time::Machine, meter.clone(), url, patience, reconnect, Some(reply));
        Driver { report, ..driver }
    });
    let link_handle = to_driver.downgrade();
    let reception = guest.map(|(guest, runtime)| Reception::begin(&runtime, guest, link_handle.clone()));
    thread.runtime().clone().spawn(async move {
        let link = tokio::spawn(link::run(home, link_handle, reconnects, reception));
        let closing = wheel.attend().await;
        // The link ends with its connection and stops serving; only then is the store closed.
        let _ = link.await;
        drop(running);
        if let Some(closing) = closing {
            let _ = closing.send(());
        }
        drop(thread);
    });
    Ok(Started { to_driver, connected, visitor, meter })
}

impl Driver {
    pub(crate) fn new(
        to_driver: WeakDriverHandle,
        time: Time,
        meter: Meter,
        store: &str,
        patience: Duration,
        reconnect: mpsc::UnboundedSender<()>,
        connected: Option<Reply<()>>,
    ) -> Self {
        let now = time.now();
        Self {
            to_driver,
            until_closed: None,
            time,
            pid: std::process::id(),
            store: store.to_owned(),
            patience,
            reconnect,
            connection: None,
            connection_number: 0,
            connected,
            disconnected_since: Some(now),
            unheard_since: None,
            last_trouble: None,
            leaderless: None,
            report: None,
            slots: CountedMap::default(),
            sessions: CountedMap::default(),
            asked: CountedMap::default(),
            heard: None,
            round_trips: Duration::ZERO,
            due: Due::default(),
            jitter: Jitter::seeded(),
            meter,
            closing_sessions: VecDeque::new(),
            compared: now,
            next_key: 1,
            requests: Requests::default(),
            outgoing: Vec::new(),
            alone: true,
            closing: None,
            sent_something: false,
            #[cfg(feature = "testing")]
            barrier: None,
        }
    }

    /// Takes in what has arrived, at a reading from after that, and lets everybody say what they have to say.
    fn turn(&mut self, messages: Vec<ToDriver>, now: Reading) -> Turned {
        let many = messages.len() > FEW_MESSAGES;
        for message in messages {
            self.take_in(message, now);
        }
        let now = if many { self.time.now() } else { now };
        let nap = self.poll(now);
        // Last of a turn: whoever moves the clock by hand waits for this, and nothing is done behind its back.
        #[cfg(feature = "testing")]
        if let Some(barrier) = self.barrier.take() {
            let _ = barrier.send(std::mem::take(&mut self.sent_something));
        }
        match self.closing.take() {
            Some(closing) if self.slots.is_empty() => Turned::Over(closing),
            closing => {
                self.closing = closing;
                Turned::GoesOn(now.plus(nap))
            }
        }
    }

    fn take_in(&mut self, message: ToDriver, now: Reading) {
        match message {
            ToDriver::Open { profile, strictness, reply } => self.open(*profile, strictness, reply),
            ToDriver::Acquire { key, ticket, acquire, reply } => self.acquire(key, ticket, acquire, reply),
            ToDriver::Accept { key, ticket, accept, reply } => self.accept(key, ticket, accept, reply),
            ToDriver::GiveUp { key, ticket } => self.give_up(key, ticket),
            ToDriver::Submit { key, op, reply } => self.submit(key, op, reply, now),
            ToDriver::RenewNow { key } => {
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.machine.handle(Input::RenewNow, now);
                    self.due.touch(key);
                }
            }
            ToDriver::Renew { key, reply } => self.renew(key, reply, now),
            ToDriver::Request { request, reply } => self.requests.add(*request, reply, now),
            ToDriver::Connected { number, wire, leaderless } => {
                self.leaderless = leaderless;
                self.connection_number = number;
                self.connect(wire);
            }
            ToDriver::Received { number, .. } if number != self.connection_number => {}
            ToDriver::Received { messages, .. } => {
                self.alone = messages.len() <= 1;
                for mut message in messages {
                    self.hear(&mut message, now);
                    self.receive(message, now);
                }
            }
            ToDriver::Disconnected { why } => self.disconnect(why),
            ToDriver::Close { reply } => self.close(reply),
            #[cfg(feature = "testing")]
            ToDriver::Barrier { reply } => {
                self.barrier = Some(reply);
            }
        }
    }

    /// Whether whoever asks next seems to be the only one: nothing was sent since a single message came in.
    fn is_alone(&self) -> bool {
        self.alone
    }

    /// Lets everything that has something to say say it, and tells how long there is nothing to do.
    fn poll(&mut self, now: Reading) -> Duration {
        self.poll_sessions(now);
        self.poll_requests(now);
        self.abandon_closing(now);
        self.flush(now);
        self.meter.look(&self.time, now);
        match &self.until_closed {
            Some(_) if self.slots.is_empty() => self.until_closed = None,
            None if !self.slots.is_empty() => self.until_closed = self.to_driver.upgrade(),
            _ => {}
        }
        let patience =
            self.disconnected_since.map(|since| self.patience.saturating_sub(now.since(since).greater()));
        let unheard =
            self.unheard_since.map(|since| self.patience.saturating_sub(now.since(since).greater()));
        let patience = patience.into_iter().chain(unheard);
        let wakes = self.due.left(now).into_iter();
        let wakes = wakes.chain(self.requests.overdue_in(now, self.answer_time()));
        wakes.chain(patience.filter(|left| !left.is_zero())).min().unwrap_or(LONGEST_NAP).min(LONGEST_NAP)
    }

    fn flush(&mut self, now: Reading) {
        if self.outgoing.is_empty() {
            return;
        }
        let outgoing = std::mem::take(&mut self.outgoing);
        if let Some(connection) = &self.connection {
            self.sent_something = true;
            self.alone = false;
            self.unheard_since.get_or_insert(now);
            // A connection that has just ended says so by itself.
            connection.send(&outgoing);
        }
    }

    fn connect(&mut self, wire: Wire) {
        self.connection = Some(wire);
        self.heard = None;
        self.round_trips = Duration::ZERO;
        self.disconnected_since = None;
        self.outgoing.clear();
        if let Some(connected) = self.connected.take() {
            let _ = connected.send(Ok(()));
        }
        self.requests.connected();
        self.tell_sessions_connected();
    }

    fn disconnect(&mut self, why: Option<Unreachable>) {
        if why.is_some() {
            self.last_trouble = why;
        }
        if self.connection.take().is_some() {
            self.disconnected_since = Some(self.time.now());
            self.outgoing.clear();
            self.requests.disconnected();
            self.tell_sessions_disconnected();
        } else {
            // An attempt was in vain: not even that node answers.
            self.leaderless = None;
        }
        // A directory that cannot be used at all will not become usable by waiting.
        if let (Some(trouble @ Unreachable::Directory(_)), Some(_)) = (&self.last_trouble, &self.connected) {
            let trouble = trouble.clone();
            self.tell_connected_error(trouble);
        }
    }

    /// Notes whether the service is of use: a node that has lost the others says hello, and no more than that it cannot.
    fn hear(&mut self, message: &mut ToClient, now: Reading) {
        match message {
            ToClient::Response { response: Response::Failed(Failure::Unavailable { why }), .. } => {
                // The node's machine does not know whom it waits for; its hello does.
                if let Some(Leaderless { missing: Some(missing), .. }) = &self.leaderless {
                    why.push_str(&format!(", and {missing} did not answer yet"));
                }
                let (store, waited) = (self.store.clone(), self.patience);
                let last = Some(why.clone());
                self.last_trouble = Some(Unreachable::NoConnection { store, waited, last });
            }
            ToClient::Response { response: Response::Failed(Failure::OutcomeUnknown), .. } => {}
            _ => {
                self.heard = Some(now);
                self.leaderless = None;
                self.unheard_since = None;
                self.last_trouble = None;
                self.report = None;
            }
        }
    }

    /// Says once what is wrong, if the first answer takes long.
    fn report_silence(&mut self, now: Reading) {
        // Connections may come and go meanwhile: the longer of the two counts.
        let since = self.disconnected_since.into_iter().chain(self.unheard_since);
        let silent = since.map(|since| now.since(since).greater()).max();
        // With the patience the wait is over too, and its error says the same.
        if let Some(silent) = silent.filter(|silent| (REPORT_AFTER..self.patience).contains(silent))
            && let Some(report) = self.report.take()
        {
            report.tell(&self.trouble_after(Millis::from_duration(silent).duration()));
        }
    }

    fn tell_connected_error(&mut self, trouble: Unreachable) {
        if let Some(connected) = self.connected.take() {
            let _ = connected.send(Err(trouble.into()));
        }
    }

    /// Gives up on what has waited too long for a connection.
    fn poll_requests(&mut self, now: Reading) {
        self.report_silence(now);
        let out_of_patience =
            self.disconnected_since.is_some_and(|since| now.since(since).greater() >= self.patience);
        if out_of_patience {
            let trouble = self.trouble();
            self.tell_connected_error(trouble.clone());
            self.requests.fail_unsent(&trouble);
            self.fail_openings(&trouble);
            self.fail_commands(&trouble);
        }
        let unheard = self.unheard_since.filter(|since| now.since(*since).greater() >= self.patience);
        if let (Some(_), Some(_)) = (&self.connection, unheard) {
            // Whoever asks from now on has patience of their own.
            self.unheard_since = None;
            let trouble = self.trouble();
            self.fail_openings(&trouble);
            self.fail_commands(&trouble);
        }
        if self.connection.is_some() {
            self.requests.send(&mut self.outgoing, now);
            if self.requests.are_overdue(now, self.answer_time()) {
                let _ = self.reconnect.send(());
            }
        } else {
            let trouble = self.trouble();
            self.requests.fail_older(now, self.patience, &trouble);
        }
    }

    /// How long an answer is waited for before the connection is given up: a part of the patience, so that the rest is enough
    /// to find out who is silent.
    fn answer_time(&self) -> Duration {
        self.patience / 3
    }

    fn trouble(&self) -> Unreachable {
        self.trouble_after(self.patience)
    }

    fn trouble_after(&self, waited: Duration) -> Unreachable {
        match &self.last_trouble {
            Some(
                trouble @ (Unreachable::Directory(_)
                | Unreachable::ServerSilent { .. }
                | Unreachable::OtherLife { .. }
                | Unreachable::Protocol(_)),
            ) => trouble.clone(),
            other => {
                if let Some(Leaderless { place, missing }) = self.leaderless.clone() {
                    return Unreachable::NoLeader { place, waited, missing };
                }
                let last = other.as_ref().and_then(|trouble| match trouble {
                    Unreachable::NoConnection { last, .. } => last.clone(),
                    other => Some(other.to_string()),
                });
                Unreachable::NoConnection { store: self.store.clone(), waited, last }
            }
        }
    }

    fn close(&mut self, reply: oneshot::Sender<()>) {
        self.closing = Some(reply);
        let now = self.time.now();
        let keys: Vec<Key> = self.slots.keys().copied().collect();
        for key in keys {
            self.submit(key, Op::Close, None, now);
        }
    }
}
