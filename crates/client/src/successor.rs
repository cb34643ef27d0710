//! Who holds a resource now, and waiting until somebody else does.

use std::time::Duration;

use leasehold_core::table::{HolderView, HoldingState, LeaseView};
use leasehold_core::{Label, ResourceName, SessionId, Token, Value};

use crate::driver::SessionRef;
use crate::error::Error;
use crate::time::Time;

/// The first pause between two looks at who holds a resource; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// The longest pause: short beside what anybody notices, long beside a round trip.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Who holds a resource, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// Its session.
    pub session: SessionId,
    /// What it calls itself.
    pub label: Label,
    /// The token of its grant, to tell terms apart. It is not the reader's to write with.
    pub token: Token,
    /// What it shows, its address for example.
    pub value: Vec<u8>,
    /// For how long it has held the resource.
    pub held_for: Duration,
}

impl Leader {
    pub(crate) fn of(view: &HolderView) -> Self {
        Self {
            session: view.session,
            label: view.label.clone(),
            token: view.token,
            value: view.value.as_ref().map(Value::as_bytes).unwrap_or_default().to_vec(),
            held_for: view.held_for.duration(),
        }
    }

    /// The newest holder that nobody has taken the lease away from.
    pub(crate) fn newest(view: &LeaseView) -> Option<Self> {
        let held = view.holders.iter().filter(|holder| holder.state != HoldingState::Revoked);
        held.max_by_key(|holder| holder.token).map(Self::of)
    }
}

/// How a lease was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resigned {
    /// Who holds the resource now; nobody, if the time ran out before anybody did.
    pub successor: Option<Leader>,
}

/// Waits until the resource is held with a token greater than `after`, and says by whom. Nobody, if `within` runs out first.
pub(crate) async fn successor_of(
    session: &SessionRef,
    time: &Time,
    resource: &ResourceName,
    after: Token,
    within: Duration,
) -> Result<Option<Leader>, Error> {
    let begun = time.now();
    let mut pause = FIRST_PAUSE;
    loop {
        let view = session.look_at(resource).await?;
        let newest = view.as_ref().and_then(Leader::newest).filter(|leader| leader.token > after);
        if newest.is_some() {
            return Ok(newest);
        }
        let left = within.saturating_sub(time.now().since(begun).greater());
        if left.is_zero() {
            return Ok(None);
        }
        time.nap(pause.min(left)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
