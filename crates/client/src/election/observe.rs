//! Following who leads.

use std::time::Duration;

use leasehold_core::{ResourceName, Token};

use crate::error::Error;
use crate::store::Store;
use crate::successor::Leader;
use crate::watch::Watch;

/// How often is looked where changes cannot be watched: stores in memory, in tests.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Who leads, and who leads next.
#[derive(Debug)]
pub struct Observer {
    store: Store,
    resource: ResourceName,
    watch: Option<Watch>,
    /// What was told last: nothing yet, or the token and value of who led, if anybody did.
    told: Option<Option<(Token, Vec<u8>)>>,
}

impl Observer {
    pub(super) fn new(store: Store, resource: ResourceName) -> Self {
        Self { store, resource, watch: None, told: None }
    }

    /// Who leads, as soon as that is another than was told last; nobody, if nobody does. The first call answers at once. A leader that
    /// shows another value is told again. Terms that were over before they could be looked at are left out.
    ///
    /// # Errors
    /// When the store cannot be reached within its patience. The next call tries again.
    pub async fn next(&mut self) -> Result<Option<Leader>, Error> {
        loop {
            if self.watch.is_none() && self.store.has_watches() {
                // Before the look: nothing is missed between the two.
                self.watch = Some(self.store.watch(self.resource.as_str()).start().await?);
            }
            let view = self.store.lease(&self.resource).await?;
            let leader = view.as_ref().and_then(Leader::newest);
            let seen = leader.as_ref().map(|leader| (leader.token, leader.value.clone()));
            if self.told.as_ref() != Some(&seen) {
                self.told = Some(seen);
                return Ok(leader);
            }
            match &mut self.watch {
                Some(watch) => {
                    if let Err(error) = watch.next().await {
                        self.watch = None;
                        // Changes that were missed are no loss: the next look sees what became of them.
                        if !matches!(error, Error::RevisionTooOld { .. } | Error::RevisionAhead { .. }) {
                            return Err(error);
                        }
                    }
                }
                None => self.store.time().nap(LOOK_EVERY).await,
            }
        }
    }
}
