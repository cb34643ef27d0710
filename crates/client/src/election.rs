//! Election: one of many candidates leads, the others are warm and wait.
//!
//! A candidate has a session of its own, waits in the queue of one name while it is ready, and leads once it is granted. Its work is
//! told to stop early enough before the deadline, and leadership that was lost never ends the process.
//!
//! What this does not do: it does not stop work that ignores the signal and is not asynchronous. A token that is sent with every
//! write is what such work cannot get around.

mod leadership;
mod observe;
mod rest;

use std::future::{Future, IntoFuture};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold_core::client::SessionEnd;
use leasehold_core::limits::MAX_WAIT;
use leasehold_core::numbers::Numbers;
use leasehold_core::{Refusal, ResourceName, Value};
use leasehold_fence::{Outcome, Receiver};
use tokio::sync::watch;

use crate::error::{Error, Unreachable};
use crate::lease::{Lease, LeaseState};
use crate::options::SessionOptions;
use crate::session::Session;
use crate::store::Store;
use crate::successor::Leader;

pub use leadership::{Leadership, StepDown};
pub use observe::Observer;
use rest::Rest;
pub(crate) use rest::fraction;

/// The first pause after trouble with the store; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// How long a lease that was just granted is looked at again if nothing is heard: its first renewal may have to be confirmed.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// An election that is being put together: [`Store::election`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ElectionBuilder {
    store: Store,
    name: String,
    options: SessionOptions,
    value: Vec<u8>,
    stop_within: Option<Duration>,
    await_successor: Duration,
    ready: Option<watch::Receiver<bool>>,
    warms_up: bool,
    receivers: Vec<Arc<dyn Receiver>>,
}

impl Store {
    /// A candidate for the leadership of `name`. Put it together, then [`build`](ElectionBuilder::build) it.
    pub fn election(&self, name: &str) -> ElectionBuilder {
        ElectionBuilder {
            store: self.clone(),
            name: name.to_owned(),
            options: SessionOptions::default(),
            value: Vec::new(),
            stop_within: None,
            await_successor: Duration::ZERO,
            ready: None,
            warms_up: false,
            receivers: Vec::new(),
        }
    }
}

impl ElectionBuilder {
    /// How the candidate's sessions are opened: ttl, label, policies.
    pub fn session(mut self, options: SessionOptions) -> Self {
        self.options = options;
        self
    }

    /// What the leader shows to whoever observes: its address, for example.
    pub fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.value = value.as_ref().to_vec();
        self
    }

    /// How long the work needs to stop at most. It is told so long before the deadline. By default half of what one lost request leaves.
    pub fn stop_within(mut self, bound: Duration) -> Self {
        self.stop_within = Some(bound);
        self
    }

    /// How long a leader that resigns waits until its successor leads.
    pub fn await_successor(mut self, length: Duration) -> Self {
        self.await_successor = length;
        self
    }

    /// Campaigns only while this says true: warm up on every replica, then say it. A candidate that becomes unready gives up its
    /// place, and a leader that does steps down. Without this a candidate is always ready.
    pub fn when_ready(mut self, ready: watch::Receiver<bool>) -> Self {
        self.ready = Some(ready);
        self
    }

    /// Every term begins with a warm-up: whoever looks is told so at the grant, and the gap before the term goes on until
    /// [`Leadership::ready`]. For what can only be done by the one that leads; what every replica can do beforehand belongs before
    /// [`when_ready`](Self::when_ready), and costs no gap.
    pub fn warms_up(mut self) -> Self {
        self.warms_up = true;
        self
    }

    /// Seals this receiver at the beginning of every term, as [`SessionOptions::seal_at`] does for a session: nobody leads before it refuses
    /// older tokens. Say it once for each. The gap before a term goes on until all are sealed.
    ///
    /// A candidate that cannot seal lets go, so that another may lead, and campaigns again. One whose token is stale there is told so:
    /// that does not pass by itself.
    pub fn seal_at(mut self, receiver: Arc<dyn Receiver>) -> Self {
        self.receivers.push(receiver);
        self
    }

    /// The candidate. It does nothing before it [campaigns](Election::campaign) or [leads](Election::lead).
    ///
    /// # Errors
    /// When the name, the value or the numbers cannot be, or when the work needs longer to stop than the numbers allow.
    pub fn build(self) -> Result<Election, Error> {
        let resource = ResourceName::new(&self.name)?;
        Value::new(self.value.clone())?;
        let stop_within = match self.stop_within {
            Some(bound) => bound,
            None => default_stop_within(&self.options.numbers()?),
        };
        let options = self.options.stop_within(stop_within);
        let options = self.receivers.into_iter().fold(options, SessionOptions::seal_at);
        let numbers = options.numbers()?;
        let ready = self.ready.unwrap_or_else(always_ready);
        Ok(Election {
            inner: Arc::new(Inner {
                store: self.store,
                resource,
                options,
                numbers,
                value: self.value,
                stop_within,
                await_successor: self.await_successor,
                ready,
                warms_up: self.warms_up,
                stopped: watch::Sender::new(false),
                rest: Mutex::new(Rest::default()),
                trouble: Mutex::new(None),
            }),
        })
    }
}

fn default_stop_within(numbers: &Numbers) -> Duration {
    let behind = numbers.second_attempt().duration() + numbers.round_trip().duration();
    numbers.usable().duration().saturating_sub(behind) / 2
}

fn always_ready() -> watch::Receiver<bool> {
    // The value stays when its sender is gone.
    watch::channel(true).1
}

/// A candidate for the leadership of one name. Clones are the same candidate.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leasehold::Error> {
/// # let directory = tempfile::tempdir().expect("a directory");
/// # let url = format!("dir:{}", directory.path().display());
/// let store = leasehold::Store::connect(&url).await?;
/// let election = store.election("controllers/payments").value("10.0.0.7:8080").build()?;
///
/// election
///     .lead(|leadership| async move {
///         // One term. Every write carries the token; stop when told to.
///         println!("leading with token {}", leadership.token().expect("the term has just begun"));
///         # return;
///         leadership.cancelled().await;
///     })
///     .await?;
/// # store.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Election {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    resource: ResourceName,
    options: SessionOptions,
    numbers: Numbers,
    value: Vec<u8>,
    stop_within: Duration,
    await_successor: Duration,
    ready: watch::Receiver<bool>,
    warms_up: bool,
    stopped: watch::Sender<bool>,
    rest: Mutex<Rest>,
    trouble: Mutex<Option<Arc<Error>>>,
}

/// How one wait in the queue came to its end.
enum Waited {
    Granted(Lease),
    Unready,
    Stopped,
    Trouble(Error),
}

impl Election {
    /// What is led.
    pub fn resource(&self) -> &ResourceName {
        &self.inner.resource
    }

    /// How long before the deadline the work is told to stop.
    pub fn stop_within(&self) -> Duration {
        self.inner.stop_within
    }

    /// Waits until this candidate leads. Outages of the store are waited out; giving up the call gives up the place.
    ///
    /// # Errors
    /// When the service refuses for good, when tokens fell below what a receiver [has seen](Error::NotSealed), when the store is closed, or
    /// [`Error::Cancelled`] when the election was
    /// [stopped](Self::stop).
    pub async fn campaign(&self) -> Result<Leadership, Error> {
        let mut session = None;
        let mut pause = FIRST_PAUSE;
        loop {
            self.until_ready().await?;
            self.rest().await?;
            let mut candidate = match session.take() {
                Some(candidate) => candidate,
                None => match self.inner.store.session_with(&self.inner.options).await {
                    Ok(opened) => opened,
                    Err(error) => {
                        self.wait_out(error, &mut pause).await?;
                        continue;
                    }
                },
            };
            match self.wait_in_queue(&mut candidate).await {
                Waited::Granted(lease) => {
                    let wanted = tokio::select! {
                        biased;
                        () = told(&self.inner.stopped) => return Err(Error::Cancelled),
                        () = becomes(&self.inner.ready, false) => false,
                        held = self.is_held(&lease) => held,
                    };
                    if wanted {
                        self.note(None);
                        return Ok(Leadership::new(lease, candidate, Arc::clone(&self.inner)));
                    }
                    // Lost again before anybody could act, or not wanted any more: given back by being dropped.
                    drop(lease);
                    pause = FIRST_PAUSE;
                }
                Waited::Unready => session = Some(candidate),
                Waited::Stopped => return Err(Error::Cancelled),
                Waited::Trouble(error) => self.wait_out(error, &mut pause).await?,
            }
        }
    }

    /// Leads again and again: campaigns, runs `work` for one term, resigns, and campaigns anew. It is over when the work ends without
    /// having been told to, and when the election is [stopped](Self::stop). Says who leads after the last term, as far as that was
    /// [waited for](ElectionBuilder::await_successor); nothing, if it never led or nobody can say.
    ///
    /// Work that has not ended by the deadline is dropped there, at its next `await`. What it has spawned is its own to stop.
    ///
    /// # Errors
    /// As [`campaign`](Self::campaign), except that being stopped is no error.
    pub async fn lead<W, F>(&self, mut work: W) -> Result<Option<Leader>, Error>
    where
        W: FnMut(Leadership) -> F,
        F: Future<Output = ()>,
    {
        let mut successor = None;
        loop {
            let leadership = match self.campaign().await {
                Err(Error::Cancelled) if self.is_stopped() => return Ok(successor),
                campaigned => campaigned?,
            };
            let ended_by_itself = leadership.run(work(leadership.clone())).await;
            // Whether or not this is answered, belief has ended; the ttl does the rest.
            successor = leadership.resign().await.ok().and_then(|resigned| resigned.successor);
            if ended_by_itself || self.is_stopped() {
                return Ok(successor);
            }
        }
    }

    /// Ends the candidacy: a wait is given up, a leader is told to stop. It cannot be taken back.
    pub fn stop(&self) {
        self.inner.stopped.send_replace(true);
    }

    /// Whether the election was stopped.
    pub fn is_stopped(&self) -> bool {
        *self.inner.stopped.borrow()
    }

    /// What kept this candidate from leading, if it has not led since: the store was away, or a receiver
    /// [could not be sealed](Error::NotSealed). A candidate waits such trouble out; this is for health checks and logs.
    pub fn trouble(&self) -> Option<Arc<Error>> {
        self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, trouble: Option<Arc<Error>>) {
        *self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Follows who leads.
    pub fn observe(&self) -> Observer {
        Observer::new(self.inner.store.clone(), self.inner.resource.clone())
    }

    async fn until_ready(&self) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = told(&self.inner.stopped) => Err(Error::Cancelled),
            () = becomes(&self.inner.ready, true) => Ok(()),
        }
    }

    /// Rests after terms that were lost by lateness, unless nobody else is there to lead.
    async fn rest(&self) -> Result<(), Error> {
        let time = self.inner.store.time();
        let ttl = self.inner.numbers.ttl().duration();
        let look_every = ttl / 4;
        loop {
            let left = {
                let mut rest = self.inner.rest.lock().unwrap_or_else(PoisonError::into_inner);
                if !rest.is_owed() {
                    return Ok(());
                }
                rest.left(ttl, fraction(), time.now())
            };
            if left.is_zero() || self.is_deserted().await {
                self.inner.rest.lock().unwrap_or_else(PoisonError::into_inner).taken();
                return Ok(());
            }
            tokio::select! {
                biased;
                () = told(&self.inner.stopped) => return Err(Error::Cancelled),
                () = time.nap(left.min(look_every)) => {}
            }
        }
    }

    /// Whether nobody holds the name and nobody waits for it. Unknown is no.
    async fn is_deserted(&self) -> bool {
        match self.inner.store.lease(&self.inner.resource).await {
            Ok(None) => true,
            Ok(Some(view)) => view.holding == 0 && view.waiting == 0,
            Err(_) => false,
        }
    }

    async fn wait_in_queue(&self, session: &mut Session) -> Waited {
        let acquire = session.acquire(self.inner.resource.as_str());
        let acquire = acquire.value(self.inner.value.clone()).wait(MAX_WAIT.duration());
        let acquire = if self.inner.warms_up { acquire.warms_up() } else { acquire }.into_future();
        tokio::select! {
            biased;
            () = told(&self.inner.stopped) => Waited::Stopped,
            () = becomes(&self.inner.ready, false) => Waited::Unready,
            result = acquire => match result {
                Ok(lease) => Waited::Granted(lease),
                Err(error) => Waited::Trouble(error),
            },
        }
    }

    /// Waits until a lease that was just granted may be believed: a grant that came late needs a renewal first.
    async fn is_held(&self, lease: &Lease) -> bool {
        let mut changes = lease.shared.changes();
        loop {
            match lease.state() {
                state if state.is_held() => return true,
                LeaseState::Ended { .. } => return false,
                _ => {}
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = self.inner.store.time().nap(LOOK_AGAIN) => {}
            }
        }
    }

    /// Waits out trouble that may pass; gives back what will not.
    async fn wait_out(&self, error: Error, pause: &mut Duration) -> Result<(), Error> {
        if !passes(&error) || self.inner.store.is_closed() {
            return Err(error);
        }
        self.note(Some(Arc::new(error)));
        let longest = self.inner.numbers.renew_every().duration();
        let length = *pause - fraction().of(*pause / 2);
        *pause = (*pause * 2).min(longest);
        tokio::select! {
            biased;
            () = told(&self.inner.stopped) => Err(Error::Cancelled),
            () = self.inner.store.time().nap(length) => Ok(()),
        }
    }
}

/// Whether trouble may be over by itself: the store is away, or what was sent is not known. A refusal that would be repeated is not.
fn passes(error: &Error) -> bool {
    match error {
        Error::Unreachable(why) => !matches!(
            why,
            Unreachable::Protocol(_) | Unreachable::OtherLife { .. } | Unreachable::Directory(_)
        ),
        Error::SessionEnded(why) => {
            matches!(why, SessionEnd::Closed | SessionEnd::ByService(_) | SessionEnd::SetBack)
        }
        Error::Refused(refusal) => matches!(
            refusal,
            Refusal::SessionEnded { .. }
                | Refusal::SessionOverdue
                | Refusal::NoRoom
                | Refusal::TooManyUnseen { .. }
        ),
        // A receiver that is away may come back, and a lease that was lost in between may be had again. Tokens that fell stay so.
        Error::NotSealed { source, .. } => source.outcome() != Outcome::Stale,
        Error::Unavailable(_)
        | Error::OutcomeUnknown
        | Error::WaitEnded(_)
        | Error::Cancelled
        | Error::NotFree { .. } => true,
        _ => false,
    }
}

/// Waits until the flag is set.
async fn told(flag: &watch::Sender<bool>) {
    becomes(&flag.subscribe(), true).await;
}

/// Waits until the flag has this value; for ever, if nobody can change it any more.
async fn becomes(flag: &watch::Receiver<bool>, value: bool) {
    let mut flag = flag.clone();
    if flag.wait_for(|now| *now == value).await.is_err() {
        std::future::pending::<()>().await;
    }
}
