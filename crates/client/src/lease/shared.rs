//! What the driver and the handles of one lease share.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use leasehold_core::client::LeaseHandle;
use leasehold_core::holder::{NoGuard, Reading, Strictness};
use leasehold_core::{Grant, Label, Successor};
use leasehold_fence::{BadStamp, Stamp};
use tokio::sync::watch;

use super::state::{EndedWhy, LeaseState, relative};
use crate::time::Time;

/// Somebody asks the holder to drain and release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// Who asks.
    pub by: Label,
    /// To whom, if a handover is wanted.
    pub successor: Option<Successor>,
}

/// What all leases of a session have in common, for as long as it lives.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// What the holder calls itself.
    pub(crate) label: Label,
    pub(crate) strictness: Strictness,
    pub(crate) clock_bound: Duration,
    /// ttl - margin: how long one confirmed sending carries.
    pub(crate) usable: Duration,
}

#[derive(Debug)]
pub(super) enum Published {
    Active(LeaseHandle),
    Ended { why: EndedWhy, confirmed_until: Option<Reading> },
}

/// What the driver and the handles of one lease share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) grant: Arc<Grant>,
    pub(super) pid: u32,
    pub(crate) time: Time,
    pub(crate) terms: Arc<Terms>,
    pub(crate) handed_over: bool,
    pub(super) published: Mutex<Published>,
    /// Made when somebody waits for the first time: most leases are given back before anybody has.
    changes: OnceLock<watch::Sender<u64>>,
    /// Made when somebody waits or asks for the first time.
    request: OnceLock<watch::Sender<Option<ReleaseRequest>>>,
}

impl Shared {
    /// `pid` is the process of the driver.
    pub(crate) fn new(
        handle: LeaseHandle,
        pid: u32,
        time: Time,
        terms: Arc<Terms>,
        handed_over: bool,
    ) -> Self {
        Self {
            grant: Arc::clone(handle.grant()),
            pid,
            time,
            terms,
            handed_over,
            published: Mutex::new(Published::Active(handle)),
            changes: OnceLock::new(),
            request: OnceLock::new(),
        }
    }

    /// The name under which receivers keep the highest token: `NAME`, or `NAME#SLOT`.
    pub(crate) fn fence_name(&self) -> String {
        match self.grant.slot {
            Some(slot) => format!("{}#{slot}", self.grant.resource),
            None => self.grant.resource.to_string(),
        }
    }

    /// What writes under this lease carry. It says nothing about whether it is held: that is the business of whoever asks.
    pub(crate) fn stamp(&self) -> Result<Stamp, BadStamp> {
        Stamp::new(self.fence_name(), self.grant.fence.get())?.held_by(self.terms.label.as_str())
    }

    /// Says whenever something else is published from now on. Whoever looks at the state after this call misses nothing: what is published
    /// later is published under the same lock, and finds this.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.get_or_init(|| watch::Sender::new(0)).subscribe()
    }

    fn tell_changed(&self) {
        if let Some(changes) = self.changes.get() {
            changes.send_modify(|version| *version += 1);
        }
    }

    /// What somebody asked for, and what somebody will.
    pub(crate) fn requests(&self) -> watch::Receiver<Option<ReleaseRequest>> {
        self.request.get_or_init(|| watch::Sender::new(None)).subscribe()
    }

    /// What somebody asked for last.
    pub(crate) fn requested(&self) -> Option<ReleaseRequest> {
        self.request.get().and_then(|request| request.borrow().clone())
    }

    pub(crate) fn publish(&self, handle: LeaseHandle) {
        let mut published = self.lock();
        if matches!(*published, Published::Active(_)) {
            *published = Published::Active(handle);
            drop(published);
            self.tell_changed();
        }
    }

    pub(crate) fn end(&self, why: EndedWhy, confirmed_until: Option<Reading>) {
        let mut published = self.lock();
        if matches!(*published, Published::Active(_)) {
            *published = Published::Ended { why, confirmed_until };
            drop(published);
            self.tell_changed();
        }
    }

    pub(crate) fn ask_release(&self, request: ReleaseRequest) {
        self.request.get_or_init(|| watch::Sender::new(None)).send_replace(Some(request));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.pid
    }

    pub(crate) fn state(&self) -> LeaseState {
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

    pub(crate) fn guard(&self, how_long: Duration) -> Result<Reading, NoGuard> {
        if self.is_forked() {
            return Err(NoGuard::Ended);
        }
        let published = self.lock();
        match &*published {
            Published::Ended { .. } => Err(NoGuard::Ended),
            Published::Active(handle) => {
                let now = self.time.now();
                handle.guard(how_long, self.terms.strictness, now)?;
                Ok(now.plus(how_long))
            }
        }
    }

    /// How long until the deadline; nothing if the lease is over.
    pub(crate) fn left(&self) -> Duration {
        let Some(until) = self.until() else { return Duration::ZERO };
        let now = self.time.now();
        Duration::from_nanos(until.boot.saturating_sub(now.boot).min(until.raw.saturating_sub(now.raw)))
    }

    /// The deadline, unless the lease is over or this is a copy of the process that holds it.
    pub(crate) fn until(&self) -> Option<Reading> {
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
