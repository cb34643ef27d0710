//! Guards: leave to act for a stated time.

use std::time::Duration;

use leasehold_core::holder::{NoGuard, Reading};
use leasehold_core::{Millis, Token};
use leasehold_fence::{Authority, NoAuthority, Stamp};

use crate::lease::Lease;

/// Leave to act until a stated moment, carrying the token. It does not renew the lease: act, then drop it. A lease that
/// is given back meanwhile, by another handle of a leadership for example, ends it.
///
/// It is an [`Authority`] for fenced writes: hand it to the adapter of the receiver, which asks it for every write.
#[derive(Debug)]
pub struct Guard<'lease> {
    lease: &'lease Lease,
    until: Reading,
}

impl<'lease> Guard<'lease> {
    pub(crate) const fn new(lease: &'lease Lease, until: Reading) -> Self {
        Self { lease, until }
    }

    pub(crate) const fn lease(&self) -> &'lease Lease {
        self.lease
    }

    /// The fencing token to send with the write: what receivers compare.
    ///
    /// # Errors
    /// When the time that was asked for is over, or the lease may not be believed any more: a program that was paused learns it here.
    pub fn token(&self) -> Result<Token, NoGuard> {
        self.live()?;
        Ok(self.lease.shared.grant.fence)
    }

    /// The name under which receivers keep the highest token.
    pub fn fence_name(&self) -> String {
        self.lease.shared.fence_name()
    }

    /// How much of the stated time is left; nothing when it is over, or the lease may not be believed any more.
    pub fn remaining(&self) -> Option<Duration> {
        self.live().ok()
    }

    /// Waits for as long as clocks may be apart, and looks again. What was done under this guard may be shown to others afterwards,
    /// who judge times by clocks with the same bound: by then the moment of the effect is past on all of them.
    ///
    /// # Errors
    /// When the bound does not fit into what is left of the stated time, or the lease was lost meanwhile.
    pub async fn wait_out(&self) -> Result<(), NoGuard> {
        let bound = self.lease.shared.terms.clock_bound;
        let left = self.live()?;
        if bound > left {
            let (needed, left) = (Millis::from_duration(bound), Millis::from_duration(left));
            return Err(NoGuard::TooLong { needed, left });
        }
        let begun = self.lease.shared.time.now();
        loop {
            // The clock that moved less: both must have passed the bound.
            let waited = self.lease.shared.time.now().since(begun).smaller();
            let missing = bound.saturating_sub(waited);
            if missing.is_zero() {
                break;
            }
            self.lease.shared.time.nap(missing).await;
        }
        self.live().map(|_| ())
    }

    /// What is left of the stated time.
    fn live(&self) -> Result<Duration, NoGuard> {
        self.lease.shared.guard(Duration::ZERO)?;
        let now = self.lease.shared.time.now();
        let boot = self.until.boot.saturating_sub(now.boot);
        let raw = self.until.raw.saturating_sub(now.raw);
        Some(Duration::from_nanos(boot.min(raw))).filter(|left| !left.is_zero()).ok_or(NoGuard::Over)
    }
}

/// A guard is what fenced writes are made with: it looks at its clock for every one of them, and vouches only while its own time
/// runs and its lease may be believed. The stamp is that of the lease under which the guard was given, never of a later one.
///
/// Guards alone are authorities. A lease or a leadership would vouch for as long as it is renewed, and what was begun under it could
/// go on for any length of time without ever having stated one.
impl Authority for Guard<'_> {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        let refused = |why: String| NoAuthority { name: self.lease.shared.fence_name(), why };
        self.live().map_err(|why| refused(why.to_string()))?;
        // Only a service of another make grants tokens that cannot be compared everywhere.
        self.lease.shared.stamp().map_err(|why| refused(why.to_string()))
    }
}
