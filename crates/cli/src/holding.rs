//! The leases of one command and all that keeps them: had together, kept by one session, given back together.

use std::time::Duration;

use futures_util::future::{join_all, select_all};
use leasehold::core::holder::Reading;
use leasehold::{Error, Lease, LeaseState, ReleaseRequest, Session, SessionOptions, Store};
use tokio::time::timeout;

use crate::guardian::clock::Point;

/// A store that was asked to end something answers within this, or the ttl ends it.
pub(crate) const FAREWELL: Duration = Duration::from_secs(3);

/// Leases and all that keeps them.
#[derive(Debug)]
pub(crate) struct Holding {
    /// At least one, in the order in which they were asked for.
    pub(crate) leases: Vec<Lease>,
    pub(crate) keeper: Keeper,
}

/// The session and the store of the leases.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) session: Session,
    pub(crate) store: Store,
}

impl Keeper {
    /// Opens a session. The store is closed if there is none.
    pub(crate) async fn open(store: Store, options: &SessionOptions) -> Result<Self, Error> {
        match store.session_with(options).await {
            Ok(session) => Ok(Self { session, store }),
            Err(error) => {
                let _ = timeout(FAREWELL, store.close()).await;
                Err(error)
            }
        }
    }

    /// Closes what is open without giving back leases: they end with the session. What cannot be told to the store ends with the ttl.
    pub(crate) async fn close(self) -> Result<(), Error> {
        let Self { session, store } = self;
        let closed = timeout(FAREWELL, session.close()).await.unwrap_or(Err(Error::OutcomeUnknown));
        let _ = timeout(FAREWELL, store.close()).await;
        closed
    }
}

impl Holding {
    /// The first that was asked for.
    pub(crate) fn first(&self) -> &Lease {
        self.leases.first().expect("a holding has at least one lease")
    }

    /// The names to fence under, for people.
    pub(crate) fn fence_names(&self) -> String {
        let names: Vec<String> = self.leases.iter().map(Lease::fence_name).collect();
        names.join(", ")
    }

    /// Until when all are confirmed: the deadline that comes first. Nothing if one is over for good.
    pub(crate) fn deadline(&self) -> Option<Reading> {
        let now = Point::now();
        let deadlines: Option<Vec<Reading>> = self.leases.iter().map(Lease::deadline).collect();
        deadlines?.into_iter().min_by_key(|deadline| Point::from(*deadline).remaining(now))
    }

    /// One that is over for good, and how.
    pub(crate) fn ended(&self) -> Option<(&Lease, LeaseState)> {
        let states = self.leases.iter().map(|lease| (lease, lease.state()));
        states.into_iter().find(|(_, state)| matches!(state, LeaseState::Ended { .. }))
    }

    /// Whether all may be believed in now.
    pub(crate) fn is_held(&self) -> bool {
        self.leases.iter().all(|lease| lease.state().is_held())
    }

    /// Waits until one stands differently.
    pub(crate) async fn changed(&self) {
        select_all(self.leases.iter().map(|lease| Box::pin(lease.changed()))).await;
    }

    /// Waits until somebody asks for one of them.
    pub(crate) async fn release_requested(&self) -> (&Lease, ReleaseRequest) {
        let each = self.leases.iter();
        select_all(each.map(|lease| Box::pin(async move { (lease, lease.release_requested().await) })))
            .await
            .0
    }

    /// Gives the leases back and closes what is open.
    pub(crate) async fn give_back(self, drained: bool) -> Result<(), Error> {
        let Self { leases, keeper } = self;
        let released = release_all(leases, drained, FAREWELL).await;
        keeper.close().await.and(released)
    }

    /// Gives the leases back and closes the session, and leaves the store open to look who comes next.
    pub(crate) async fn give_back_and_look(
        self,
        within: Duration,
        drained: bool,
    ) -> (Result<(), Error>, Store) {
        let Self { leases, keeper: Keeper { session, store } } = self;
        let within = within.min(FAREWELL);
        let released = release_all(leases, drained, within).await;
        let closed = timeout(within, session.close()).await.unwrap_or(Err(Error::OutcomeUnknown));
        (closed.and(released), store)
    }
}

/// All at once: one after the other would take as many round trips.
async fn release_all(leases: Vec<Lease>, drained: bool, within: Duration) -> Result<(), Error> {
    let release = |lease: Lease| async move {
        if drained { lease.release_drained().await } else { lease.release().await }
    };
    let all = timeout(within, join_all(leases.into_iter().map(release))).await;
    all.map_or(Err(Error::OutcomeUnknown), |released| released.into_iter().collect())
}
