//! A lease as the application holds it, and guards: leave to act for a stated time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::client::{EndedWhy as CoreEnded, LeaseHandle, LeaseState as CoreState};
use leasehold_core::holder::{NoGuard, Reading, Strictness};
use leasehold_core::{Ending, Grant, Label, Op, ResourceName, Successor, Token, Value};
use tokio::sync::watch;

use crate::driver::{SessionRef, ToDriver};
use crate::error::Error;
use crate::time::Time;

/// Where a lease stands, as of the call that asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// Confirmed for so much longer.
    Held {
        /// Until the deadline.
        remaining: Duration,
    },
    /// Still confirmed, but the last renewal was not answered in time.
    Retrying {
        /// Since that was noticed.
        since: Duration,
        /// Until the deadline.
        remaining: Duration,
    },
    /// The machine's clocks disagree: nothing is known until a renewal sent afterwards is confirmed.
    Uncertain {
        /// Since that was noticed.
        since: Duration,
    },
    /// The deadline has passed. A confirmed renewal may bring the lease back, with the same token.
    Lapsed {
        /// Since when.
        since: Duration,
    },
    /// Over for good.
    Ended {
        /// Why.
        why: EndedWhy,
        /// How long ago the lease was confirmed for the last time; nothing if it never was. What was done after that moment may
        /// have to be undone.
        confirmed_until: Option<Duration>,
    },
}

impl LeaseState {
    /// Whether the holder may believe in the lease now.
    pub const fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Retrying { .. })
    }
}

/// Why a lease is over for good.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedWhy {
    /// The application gave it back.
    Released,
    /// The application closed the session.
    Closed,
    /// The service ended it.
    ByService(Ending),
    /// The session is over.
    SessionEnded,
    /// This process is a copy of the one that holds it.
    Forked,
}

/// Somebody asks the holder to drain and release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// Who asks.
    pub by: Label,
    /// To whom, if a handover is wanted.
    pub successor: Option<Successor>,
}

#[derive(Debug)]
enum Published {
    Active(LeaseHandle),
    Ended { why: EndedWhy, confirmed_until: Option<Reading> },
}

/// What the driver and the handles of one lease share.
#[derive(Debug)]
pub(crate) struct Shared {
    grant: Grant,
    pid: u32,
    time: Time,
    strictness: Strictness,
    published: Mutex<Published>,
    changes: watch::Sender<u64>,
    request: watch::Sender<Option<ReleaseRequest>>,
}

impl Shared {
    pub(crate) fn new(handle: LeaseHandle, time: Time, strictness: Strictness) -> Self {
        Self {
            grant: handle.grant().clone(),
            pid: std::process::id(),
            time,
            strictness,
            published: Mutex::new(Published::Active(handle)),
            changes: watch::Sender::new(0),
            request: watch::Sender::new(None),
        }
    }

    pub(crate) fn publish(&self, handle: LeaseHandle) {
        let mut published = self.lock();
        if matches!(*published, Published::Active(_)) {
            *published = Published::Active(handle);
            drop(published);
            self.changes.send_modify(|version| *version += 1);
        }
    }

    pub(crate) fn end(&self, why: EndedWhy, confirmed_until: Option<Reading>) {
        let mut published = self.lock();
        if matches!(*published, Published::Active(_)) {
            *published = Published::Ended { why, confirmed_until };
            drop(published);
            self.changes.send_modify(|version| *version += 1);
        }
    }

    pub(crate) fn ask_release(&self, request: ReleaseRequest) {
        self.request.send_replace(Some(request));
    }

    fn lock(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_forked(&self) -> bool {
        std::process::id() != self.pid
    }

    fn state(&self) -> LeaseState {
        if self.is_forked() {
            return LeaseState::Ended { why: EndedWhy::Forked, confirmed_until: None };
        }
        // The clocks are read after the lock is taken: what is published is never newer than the reading.
        let published = self.lock();
        let now = self.time.now();
        match &*published {
            Published::Ended { why, confirmed_until } => LeaseState::Ended {
                why: why.clone(),
                confirmed_until: confirmed_until.map(|until| now.since(until).smaller()),
            },
            Published::Active(handle) => relative(handle.state(now), now),
        }
    }

    fn guard(&self, how_long: Duration) -> Result<Reading, NoGuard> {
        if self.is_forked() {
            return Err(NoGuard::Ended);
        }
        let published = self.lock();
        match &*published {
            Published::Ended { .. } => Err(NoGuard::Ended),
            Published::Active(handle) => {
                let now = self.time.now();
                handle.guard(how_long, self.strictness, now)?;
                Ok(now.plus(how_long))
            }
        }
    }

    /// The deadline, unless the lease is over or this is a copy of the process that holds it.
    fn until(&self) -> Option<Reading> {
        // Before the lock: in a copy of the process nobody may be left to unlock it.
        if self.is_forked() {
            return None;
        }
        match &*self.lock() {
            Published::Active(handle) => Some(handle.until()),
            Published::Ended { .. } => None,
        }
    }
}

fn relative(state: CoreState, now: Reading) -> LeaseState {
    let left = |until: Reading| {
        let boot = until.boot.saturating_sub(now.boot);
        Duration::from_nanos(boot.min(until.raw.saturating_sub(now.raw)))
    };
    match state {
        CoreState::Held { until } => LeaseState::Held { remaining: left(until) },
        CoreState::Retrying { since, until } => {
            LeaseState::Retrying { since: now.since(since).greater(), remaining: left(until) }
        }
        CoreState::Uncertain { since } => LeaseState::Uncertain { since: now.since(since).greater() },
        CoreState::Lapsed { since } => LeaseState::Lapsed { since: now.since(since).greater() },
        CoreState::Ended { why, confirmed_until } => LeaseState::Ended {
            why: why.into(),
            confirmed_until: confirmed_until.map(|until| now.since(until).smaller()),
        },
    }
}

impl From<CoreEnded> for EndedWhy {
    fn from(why: CoreEnded) -> Self {
        match why {
            CoreEnded::Released => Self::Released,
            CoreEnded::Closed => Self::Closed,
            CoreEnded::ByService(ending) => Self::ByService(ending),
            CoreEnded::SessionEnded => Self::SessionEnded,
        }
    }
}

/// A lease. Dropping it gives it back without waiting for an answer.
#[derive(Debug)]
pub struct Lease {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: SessionRef,
    released: bool,
}

impl Lease {
    pub(crate) fn new(shared: Arc<Shared>, session: SessionRef) -> Self {
        Self { shared, session, released: false }
    }

    /// The resource.
    pub fn resource(&self) -> &ResourceName {
        &self.shared.grant.resource
    }

    /// The fencing token of this grant. Send it with every write; for a shared lease send [`fence`](Self::fence).
    pub fn token(&self) -> Token {
        self.shared.grant.token
    }

    /// The token that receivers compare: a shared lease's is that of its group.
    pub fn fence(&self) -> Token {
        self.shared.grant.fence
    }

    /// The slot, if the name has slots.
    pub fn slot(&self) -> Option<u32> {
        self.shared.grant.slot
    }

    /// The name under which receivers keep the highest token: `NAME`, or `NAME#SLOT`.
    pub fn fence_name(&self) -> String {
        match self.slot() {
            Some(slot) => format!("{}#{slot}", self.resource()),
            None => self.resource().to_string(),
        }
    }

    /// Where the lease stands now. This looks at the clocks: a holder that was paused learns it here.
    pub fn state(&self) -> LeaseState {
        self.shared.state()
    }

    /// Leave to act for `how_long`, if that ends before the deadline.
    ///
    /// # Errors
    /// When too little time is left, or the lease may not be believed now.
    pub fn guard(&self, how_long: Duration) -> Result<Guard<'_>, NoGuard> {
        let until = self.shared.guard(how_long)?;
        Ok(Guard { shared: &self.shared, until })
    }

    /// The deadline as readings of this machine's clocks, for a process that is to be stopped by then. It moves with every
    /// confirmed renewal.
    pub fn deadline(&self) -> Option<Reading> {
        self.shared.until()
    }

    /// Waits until the lease stands differently: renewed, retrying, lapsed, ended.
    pub async fn changed(&self) -> LeaseState {
        let mut changes = self.shared.changes.subscribe();
        if !matches!(self.state(), LeaseState::Ended { .. }) {
            let _ = changes.changed().await;
        }
        self.state()
    }

    /// Waits until the lease is over for good.
    pub async fn ended(&self) -> LeaseState {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let state = self.state();
            if matches!(state, LeaseState::Ended { .. }) || changes.changed().await.is_err() {
                return state;
            }
        }
    }

    /// Waits until somebody asks for the lease to be drained and released.
    pub async fn release_requested(&self) -> ReleaseRequest {
        let mut requests = self.shared.request.subscribe();
        let request = requests.wait_for(Option::is_some).await.ok().and_then(|request| request.clone());
        match request {
            Some(request) => request,
            // The sender lives as long as this lease.
            None => std::future::pending().await,
        }
    }

    /// Shows another value with the lease.
    ///
    /// # Errors
    /// When the lease is not held any more, or the store is unreachable.
    pub async fn set_value(&self, value: &[u8]) -> Result<(), Error> {
        let value = Value::new(value.to_vec())?;
        let (resource, token) = (self.resource().clone(), self.token());
        self.session.submit(Op::SetValue { resource, token, value }).await.map(|_| ())
    }

    /// Gives the lease back. Belief ends with this call, whatever comes back.
    ///
    /// # Errors
    /// When the answer is not known; the lease then ends with its session at the latest.
    pub async fn release(mut self) -> Result<(), Error> {
        self.give_back(false).await
    }

    /// Gives the lease back after the work under it was finished: the history says so.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub async fn release_drained(mut self) -> Result<(), Error> {
        self.give_back(true).await
    }

    async fn give_back(&mut self, drained: bool) -> Result<(), Error> {
        self.released = true;
        let op = self.release_op(drained);
        self.session.submit(op).await.map(|_| ())
    }

    fn release_op(&self, drained: bool) -> Op {
        // Before anything is sent: whoever still has a guard's token may not get another.
        self.shared.end(EndedWhy::Released, self.shared.until());
        Op::Release { resource: self.resource().clone(), token: self.token(), drained }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.released && !self.shared.is_forked() {
            let op = self.release_op(false);
            self.session.send(|key| ToDriver::Submit { key, op, reply: None });
        }
    }
}

/// Leave to act until a stated moment, carrying the token. It does not renew the lease: act, then drop it. The lease cannot be
/// given back while a guard of it lives.
#[derive(Debug)]
pub struct Guard<'lease> {
    shared: &'lease Shared,
    until: Reading,
}

impl Guard<'_> {
    /// The fencing token to send with the write: what receivers compare.
    pub fn token(&self) -> Token {
        let Grant { fence, .. } = &self.shared.grant;
        *fence
    }

    /// The name under which receivers keep the highest token.
    pub fn fence_name(&self) -> String {
        match self.shared.grant.slot {
            Some(slot) => format!("{}#{slot}", self.shared.grant.resource),
            None => self.shared.grant.resource.to_string(),
        }
    }

    /// How much of the stated time is left; nothing when it is over, or the lease has ended.
    pub fn remaining(&self) -> Option<Duration> {
        self.shared.until()?;
        let now = self.shared.time.now();
        let boot = self.until.boot.checked_sub(now.boot)?;
        let raw = self.until.raw.checked_sub(now.raw)?;
        Some(Duration::from_nanos(boot.min(raw))).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use std::future::IntoFuture;

    /// What a fork leaves in the child: the same values, and another pid. A fork itself cannot be made here: it needs unsafe code.
    fn seen_by_a_child(lease: &Lease) -> Lease {
        let Published::Active(handle) = &*lease.shared.lock() else { panic!("the lease is held") };
        let shared = Shared::new(handle.clone(), lease.shared.time.clone(), lease.shared.strictness);
        let shared = Shared { pid: lease.shared.pid + 1, ..shared };
        Lease::new(Arc::new(shared), lease.session.seen_by_a_child())
    }

    #[test]
    fn a_child_of_a_fork_holds_nothing_and_gives_nothing_back() {
        let world = World::new();
        let store = world.store();
        let session = world.run(store.session()).unwrap();
        let lease = world.run(session.acquire("job").into_future()).unwrap();

        let copy = seen_by_a_child(&lease);
        assert_eq!(copy.state(), LeaseState::Ended { why: EndedWhy::Forked, confirmed_until: None });
        assert_eq!(copy.guard(Duration::from_millis(1)).unwrap_err(), NoGuard::Ended);
        assert_eq!(copy.deadline(), None);
        // Nobody would ever answer: its driver is a thread of the parent.
        let refused = world.run(copy.set_value(b"child")).unwrap_err();
        assert!(matches!(refused, Error::SessionEnded(_)), "{refused}");
        assert!(matches!(world.run(copy.release()).unwrap_err(), Error::SessionEnded(_)));
        drop(seen_by_a_child(&lease));

        world.advance(Duration::from_secs(20));
        assert!(lease.guard(Duration::from_secs(1)).is_ok(), "the parent's lease is as it was");
        let view = world.run(store.lease(lease.resource())).unwrap().unwrap();
        assert_eq!(view.holders[0].token, lease.token());
    }
}
