//! What sessions and acquires can be asked for.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::client::Profile;
use leasehold_core::holder::Strictness;
use leasehold_core::numbers::{Ask, DEFAULT_TTL, Numbers, Schedule};
use leasehold_core::{Drift, Label, Millis, Policies};
use leasehold_fence::Receiver;

use crate::error::Error;

/// How a session is opened. The defaults are right for most.
#[derive(Debug, Clone)]
#[must_use]
pub struct SessionOptions {
    label: Option<String>,
    ask: Ask,
    grace: Millis,
    hard: Option<Millis>,
    delay: Millis,
    strictness: Strictness,
    receivers: Vec<Arc<dyn Receiver>>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            label: None,
            ask: Ask { max_ttl: leasehold_core::limits::LONGEST_MAX_TTL, ..Ask::for_ttl(DEFAULT_TTL) },
            grace: Millis::ZERO,
            hard: None,
            delay: Millis::ZERO,
            strictness: Strictness::default(),
            receivers: Vec::new(),
        }
    }
}

impl SessionOptions {
    /// The defaults: a ttl of 10 s, renewed every third of it.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the session's leases outlive its last renewal.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ask.ttl = Millis::from_duration(ttl);
        self
    }

    /// What the holder calls itself, for people: by default program, host and pid.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// How often the session is renewed; a third of the ttl by default.
    pub fn renew_every(mut self, interval: Duration) -> Self {
        self.ask.renew_every = Some(Millis::from_duration(interval));
        self
    }

    /// When the session is renewed, and when again if that stays unanswered; evenly by default.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.ask.schedule = schedule;
        self
    }

    /// How long before the end of the ttl the holder stops believing.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.ask.margin = Some(Millis::from_duration(margin));
        self
    }

    /// How far the clocks of holder and service may come apart within one ttl, where that is known better than by drift times ttl.
    /// [`Guard::wait_out`](crate::Guard::wait_out) waits as long.
    pub fn clock_bound(mut self, bound: Duration) -> Self {
        self.ask.clock_bound = Some(Millis::from_duration(bound));
        self
    }

    /// The longest ordinary round trip to the service.
    pub fn round_trip(mut self, bound: Duration) -> Self {
        self.ask.round_trip = Some(Millis::from_duration(bound));
        self
    }

    /// How long a write of the holder may be on its way to an unfenced receiver.
    pub fn in_flight(mut self, bound: Duration) -> Self {
        self.ask.in_flight = Some(Millis::from_duration(bound));
        self
    }

    /// How long work under the session's leases needs to stop at most: the service's wishes for later renewals leave so much before the
    /// deadline. An [election](crate::Election) sets it.
    pub fn stop_within(mut self, bound: Duration) -> Self {
        self.ask.stop_within = Some(Millis::from_duration(bound));
        self
    }

    /// How long this process may stand still and still keep its leases; not judged by default.
    pub fn pause(mut self, bound: Duration) -> Self {
        self.ask.pause = Some(Millis::from_duration(bound));
        self
    }

    /// The rate error of this machine's clocks.
    pub fn drift(mut self, drift: Drift) -> Self {
        self.ask.drift = drift;
        self
    }

    /// For this long after the session is overdue its leases go to nobody, and a renewal restores them.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Millis::from_duration(grace);
        self
    }

    /// Until this long after the session is overdue it may come back while nobody waits; at least the grace.
    pub fn hard(mut self, hard: Duration) -> Self {
        self.hard = Some(Millis::from_duration(hard));
        self
    }

    /// Seals this receiver with the token of every lease of the session, after the grant and before the lease is given out: nobody can act
    /// under it before the receiver refuses all older tokens. Say it once for each receiver; a lease can have [more](crate::AcquireRequest::seal_at).
    ///
    /// A seal that fails, or of which nobody can say how it ended, is tried again while the lease is believed, for at most as long as one
    /// confirmed renewal carries (ttl less margin). Then the lease is given back, and the call that asked for it ends with
    /// [`Error::NotSealed`]. So does one whose token is *stale* there, at once: tokens fell.
    ///
    /// Where every receiver is sealed a [`delay`](Self::delay) is not needed.
    ///
    /// ```
    /// # use leasehold::fence::{Answer, Seen, Stamp};
    /// # #[derive(Debug)]
    /// # struct Orders;
    /// # impl leasehold::fence::Receiver for Orders {
    /// #     fn place(&self) -> &str { "orders" }
    /// #     fn seal<'a>(&'a self, _: &'a Stamp) -> Answer<'a, ()> { Box::pin(async { Ok(()) }) }
    /// #     fn look<'a>(&'a self, _: &'a str) -> Answer<'a, Seen> { Box::pin(async { Ok(Seen::default()) }) }
    /// # }
    /// # let orders = Orders;
    /// use std::sync::Arc;
    ///
    /// let orders = Arc::new(orders); // an adapter of leasehold-fence
    /// let options = leasehold::SessionOptions::new().seal_at(orders.clone());
    /// ```
    pub fn seal_at(mut self, receiver: Arc<dyn Receiver>) -> Self {
        self.receivers.push(receiver);
        self
    }

    /// After an involuntary end its resources go to nobody for this long. For receivers without a fence: with one that is
    /// [sealed](Self::seal_at) it is not needed.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Millis::from_duration(delay);
        self
    }

    /// No guard while a renewal is unanswered.
    pub fn strict(mut self) -> Self {
        self.strictness = Strictness::OnlyWhileAnswered;
        self
    }

    /// The numbers that these options come to.
    ///
    /// # Errors
    /// When they do not fit together: the message shows both sides of the inequality.
    pub fn numbers(&self) -> Result<Numbers, Error> {
        Ok(Numbers::check(self.ask)?)
    }

    pub(crate) fn strictness(&self) -> Strictness {
        self.strictness
    }

    pub(crate) fn receivers(&self) -> &[Arc<dyn Receiver>] {
        &self.receivers
    }

    pub(crate) fn profile(&self) -> Result<Profile, Error> {
        let policies =
            Policies { grace: self.grace, hard: self.hard.unwrap_or(self.grace), delay: self.delay };
        policies.check()?;
        let label = match &self.label {
            Some(label) => Label::new(label)?,
            None => default_label(),
        };
        Ok(Profile { label, numbers: self.numbers()?, policies })
    }
}

/// Program, host and pid: enough to find the process.
fn default_label() -> Label {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = std::path::Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let text = format!("{}@{host}:{}", program.as_deref().unwrap_or("process"), std::process::id());
    let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    // 200 characters may be more than 256 bytes in some scripts; a pid alone never is.
    Label::new(&text)
        .or_else(|_| Label::new(&std::process::id().to_string()))
        .expect("a number is a good label")
}
