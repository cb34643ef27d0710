//! Which connections are in the middle of [`Fence::transaction`](super::Fence::transaction), so that a further entry there is not counted as a
//! write of its own.
//!
//! A connection is known by where it lies in memory: while a transaction works on it, it is borrowed, so it does not move and nothing else
//! can lie there. What happens on the connection does not depend on this; only how often it is counted does.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlx::postgres::PgConnection;

static PLACES: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// A connection that is in the middle of a transaction, until this is dropped.
pub(super) struct Inside(usize);

impl Inside {
    pub(super) fn new(connection: &PgConnection) -> Self {
        let place = place(connection);
        places().insert(place);
        Self(place)
    }

    pub(super) fn has(connection: &PgConnection) -> bool {
        places().contains(&place(connection))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        places().remove(&self.0);
    }
}

fn place(connection: &PgConnection) -> usize {
    std::ptr::from_ref(connection).addr()
}

/// No step in here leaves the set half changed, so one that panicked elsewhere does not matter.
fn places() -> MutexGuard<'static, BTreeSet<usize>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}
