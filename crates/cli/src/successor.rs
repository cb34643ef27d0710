//! Who comes next: waits, after a lease was given back, until somebody else holds its name.
//!
//! Only a greater token than that of the lease that ended shows a successor. It may come and go between two looks: then the
//! history still names it. A store that does not answer is asked again until the time is over.

use std::time::Duration;

use leasehold::{Error, Label, Lease, ResourceName, Store, Token};
use tokio::time::{sleep, timeout};

use crate::guardian::clock::Point;

/// How often is looked for a successor.
const LOOK_EVERY: Duration = Duration::from_millis(30);

/// More than lies between the end of a lease and the first look.
const A_MOMENT: Duration = Duration::from_secs(1);

/// A lease that was given back.
#[derive(Debug, Clone)]
pub(crate) struct Predecessor {
    pub(crate) resource: ResourceName,
    pub(crate) token: Token,
    /// Its slot, if it had one: whoever takes another slot is no successor.
    pub(crate) slot: Option<u32>,
}

impl From<&Lease> for Predecessor {
    fn from(lease: &Lease) -> Self {
        Self { resource: lease.resource().clone(), token: lease.granted().token, slot: lease.slot() }
    }
}

/// Whoever came after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Successor {
    pub(crate) label: Label,
    pub(crate) token: Token,
    /// Whether it holds the name now, or had it and is gone again.
    pub(crate) holds: bool,
}

/// Waits until each of these has a successor, or the time is over, and tells of each once: of those without one at the end. Each is
/// looked for at least once, if the store answers at all.
pub(crate) async fn wait(
    store: &Store,
    mut without: Vec<Predecessor>,
    until: Point,
    mut tell: impl FnMut(&Predecessor, Option<&Successor>),
) {
    let begun = Point::now();
    loop {
        let mut still = Vec::new();
        for predecessor in without {
            // A look that takes longer than all the time that is left has nothing to say to anybody.
            let left = until.remaining(Point::now()).max(LOOK_EVERY);
            match timeout(left, find(store, &predecessor, begun)).await {
                Ok(Ok(Some(successor))) => tell(&predecessor, Some(&successor)),
                Ok(Ok(None) | Err(_)) | Err(_) => still.push(predecessor),
            }
        }
        without = still;
        let left = until.remaining(Point::now());
        if without.is_empty() || left.is_zero() {
            break;
        }
        sleep(LOOK_EVERY.min(left)).await;
    }
    for predecessor in &without {
        tell(predecessor, None);
    }
}

async fn find(store: &Store, ended: &Predecessor, begun: Point) -> Result<Option<Successor>, Error> {
    let view = store.lease(&ended.resource).await?;
    let holders = view.iter().flat_map(|view| &view.holders);
    let holder = holders
        .filter(|holder| holder.token > ended.token && holder.slot == ended.slot)
        .min_by_key(|holder| holder.token);
    if let Some(holder) = holder {
        return Ok(Some(Successor { label: holder.label.clone(), token: holder.token, holds: true }));
    }
    // The history does not say which slot it was.
    if ended.slot.is_some() {
        return Ok(None);
    }
    let past = store.history(&ended.resource).await?;
    // Somebody who shared it, and was gone before it was given back, is no successor.
    let lately = Point::now().remaining(begun) + A_MOMENT;
    let passed = past
        .into_iter()
        .filter(|past| past.token > ended.token && past.ended_ago.duration() <= lately)
        .max_by_key(|past| past.token);
    Ok(passed.map(|past| Successor { label: past.label, token: past.token, holds: false }))
}
