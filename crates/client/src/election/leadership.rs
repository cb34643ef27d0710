//! One term: the lease of a leader, and the signal that tells its work to stop.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use leasehold_core::holder::{NoGuard, Reading};
use leasehold_core::{Ending, Token};

use super::{Inner, becomes, told};
use crate::drain::Drain;
use crate::error::Error;
use crate::guard::Guard;
use crate::lease::{EndedWhy, Lease, LeaseState, ReleaseRequest};
use crate::session::Session;
use crate::successor::Resigned;

/// How often the clocks are looked at: the runtime's timers stand still while the machine sleeps, and may be slewed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why a leader is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepDown {
    /// Somebody asks for it.
    Asked(ReleaseRequest),
    /// The candidate is not ready any more.
    Unready,
    /// The election was stopped.
    Stopped,
    /// Renewals stay unanswered, and the deadline is so close that stopping must begin.
    Deadline {
        /// How much is left until the deadline.
        remaining: Duration,
    },
    /// The lease is over.
    Ended(EndedWhy),
}

impl StepDown {
    /// Whether the leader itself was too late, or could not be heard: the reason to rest before the next term.
    fn is_lateness(&self) -> bool {
        match self {
            Self::Deadline { .. } => true,
            Self::Ended(why) => matches!(
                why,
                EndedWhy::SessionEnded | EndedWhy::ByService(Ending::Expired | Ending::Taken { .. })
            ),
            Self::Asked(_) | Self::Unready | Self::Stopped => false,
        }
    }
}

/// The leadership of one term. Clones are the same term; when the last one is dropped, the lease is given back.
#[derive(Debug, Clone)]
pub struct Leadership {
    term: Arc<Term>,
}

#[derive(Debug)]
struct Term {
    // Before the session: it is given back before that is closed.
    lease: Lease,
    session: Mutex<Option<Session>>,
    election: Arc<Inner>,
    begun: Reading,
    /// Why the work is to stop. A signal is never taken back.
    told: OnceLock<StepDown>,
    accounted: OnceLock<()>,
}

impl Leadership {
    pub(super) fn new(lease: Lease, session: Session, election: Arc<Inner>) -> Self {
        let begun = election.store.time().now();
        let session = Mutex::new(Some(session));
        let (told, accounted) = (OnceLock::new(), OnceLock::new());
        Self { term: Arc::new(Term { lease, session, election, begun, told, accounted }) }
    }

    /// The lease of this term.
    pub fn lease(&self) -> &Lease {
        &self.term.lease
    }

    /// As [`Lease::token`].
    ///
    /// # Errors
    /// As there.
    pub fn token(&self) -> Result<Token, NoGuard> {
        self.term.lease.token()
    }

    /// As [`Lease::guard`].
    ///
    /// # Errors
    /// As there.
    pub fn guard(&self, how_long: Duration) -> Result<Guard<'_>, NoGuard> {
        self.term.lease.guard(how_long)
    }

    /// Says that the warm-up of this term is over, as [`Lease::ready`] does: the gap before it ends here. Only of use where the election
    /// [warms up](super::ElectionBuilder::warms_up); saying it again changes nothing.
    pub fn ready(&self) {
        self.term.lease.ready();
    }

    /// Waits until the work is to stop, and says why. Early enough: with [`stop_within`](super::ElectionBuilder::stop_within) left
    /// before the deadline. Once it was said, it stays said.
    pub async fn cancelled(&self) -> StepDown {
        if let Some(why) = self.term.told.get() {
            return why.clone();
        }
        let why = self.term.until_told().await;
        self.term.told.get_or_init(|| why).clone()
    }

    /// Whether the work is to stop. Once it was said, it stays said.
    pub fn is_cancelled(&self) -> bool {
        if self.term.told.get().is_none()
            && let Err(why) = self.term.look()
        {
            self.term.told.get_or_init(|| why);
        }
        self.term.told.get().is_some()
    }

    /// Waits until the lease may not be believed any more, whatever the work was told before: the moment after which nothing may be
    /// done.
    pub async fn over(&self) {
        self.term.until_over().await;
    }

    /// Drains in strict order, as [`Drain::run`] does for a lease: no new work, finish what is in flight, resign, and wait for the successor
    /// with what is left of the budget.
    ///
    /// # Errors
    /// [`Error::Unfinished`] when the budget ran out first: leadership is kept, because work acts under it. Else as
    /// [`resign`](Self::resign).
    pub async fn drain(&self, drain: &Drain, budget: Duration) -> Result<Resigned, Error> {
        let left = drain.finish(&self.term.lease, budget).await?;
        self.clone().resign_within(left).await
    }

    /// Gives the leadership up after the work under it was finished, and waits for the successor as long as the election was
    /// [told to](super::ElectionBuilder::await_successor).
    ///
    /// # Errors
    /// When the answer is not known, or the store cannot be reached. Belief has ended all the same.
    pub async fn resign(self) -> Result<Resigned, Error> {
        let within = self.term.election.await_successor;
        self.resign_within(within).await
    }

    /// As [`resign`](Self::resign), with another length.
    ///
    /// # Errors
    /// As there.
    pub async fn resign_within(self, within: Duration) -> Result<Resigned, Error> {
        self.term.account();
        let resigned = self.term.lease.resign_now(within).await;
        let session = self.term.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session {
            // The lease is given back already; an unanswered close is ended by the ttl.
            let _ = session.close().await;
        }
        resigned
    }

    /// Runs work until it ends, and not longer than the lease is held. Says whether it ended without having been told to.
    pub(super) async fn run(&self, work: impl Future<Output = ()>) -> bool {
        let over = async {
            self.cancelled().await;
            self.term.until_over().await;
        };
        tokio::select! {
            biased;
            // First: work that is always busy would never let it be looked at, and work that ends because it lost must not seem done.
            () = over => false,
            () = work => self.term.told.get().is_none(),
        }
    }
}

impl Term {
    async fn until_told(&self) -> StepDown {
        let mut changes = self.lease.shared.changes();
        loop {
            let nap = match self.look() {
                Ok(nap) => nap,
                Err(why) => return why,
            };
            tokio::select! {
                biased;
                () = told(&self.election.stopped) => return StepDown::Stopped,
                () = becomes(&self.election.ready, false) => return StepDown::Unready,
                request = self.lease.release_requested() => return StepDown::Asked(request),
                _ = changes.changed() => {}
                () = self.election.store.time().nap(nap.min(LOOK_EVERY)) => {}
            }
        }
    }

    /// How long the work may go on if nothing happens; or why it is to stop.
    fn look(&self) -> Result<Duration, StepDown> {
        match self.lease.state() {
            LeaseState::Ended { why, .. } => return Err(StepDown::Ended(why)),
            LeaseState::Lapsed { .. } => return Err(StepDown::Deadline { remaining: Duration::ZERO }),
            LeaseState::Held { .. } | LeaseState::Retrying { .. } | LeaseState::Uncertain { .. } => {}
        }
        if *self.election.stopped.borrow() {
            return Err(StepDown::Stopped);
        }
        if !*self.election.ready.borrow() {
            return Err(StepDown::Unready);
        }
        if let Some(request) = self.lease.shared.requested() {
            return Err(StepDown::Asked(request));
        }
        let remaining = self.lease.shared.left();
        let nap = remaining.checked_sub(self.election.stop_within).filter(|nap| !nap.is_zero());
        nap.ok_or(StepDown::Deadline { remaining })
    }

    /// Waits until the lease may not be believed any more.
    async fn until_over(&self) {
        let mut changes = self.lease.shared.changes();
        loop {
            if matches!(self.lease.state(), LeaseState::Ended { .. } | LeaseState::Lapsed { .. }) {
                return;
            }
            let left = self.lease.shared.left();
            tokio::select! {
                _ = changes.changed() => {}
                () = self.election.store.time().nap(left.min(LOOK_EVERY)) => {}
            }
        }
    }

    /// Remembers, once, how this term ended: before the lease is given back, which would look like a good end.
    fn account(&self) {
        if self.accounted.set(()).is_err() {
            return;
        }
        let was_late = match (self.told.get(), self.lease.state()) {
            (Some(why), _) => why.is_lateness(),
            (None, LeaseState::Ended { why, .. }) => StepDown::Ended(why).is_lateness(),
            (None, LeaseState::Lapsed { .. }) => true,
            (None, _) => false,
        };
        let lasted = self.election.store.time().now().since(self.begun).smaller();
        let ttl = self.election.numbers.ttl().duration();
        self.election.rest.lock().unwrap_or_else(PoisonError::into_inner).after_term(lasted, was_late, ttl);
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.account();
    }
}
