//! Seal on grant: before a lease is given to whoever asked for it, every receiver that was named refuses the tokens before it.
//!
//! Promised: nobody gets a guard of a lease before all its receivers are sealed with its stamp. A seal that failed, or of which nobody
//! can say how it ended, is tried again while the lease is believed, for at most as long as one confirmed renewal carries; one that
//! failed for what time does not change is not. A lease that cannot be sealed is given back, so that another may try. A lease that lapsed meanwhile is given out only once a renewal has
//! confirmed it. Whoever gives up the call gives up the lease.
//!
//! Not done here: no receiver is sealed again later. One that forgets its tokens (a failover of Redis, a restored database) is right
//! again from the next grant on.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use leasehold_core::holder::{NoGuard, Reading};
use leasehold_fence::{Error as FenceError, NoAuthority, Receiver, Stale, Stamp};

use crate::aside;
use crate::election::fraction;
use crate::error::Error;
use crate::lease::{Lease, LeaseState};
use crate::termination::RESERVED_FOR_RELEASE;
use crate::time::Time;

/// The first pause after a seal that did not succeed; each is twice as long as the one before. Short: nobody acts meanwhile.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause: a receiver that comes back is noticed soon, one that is down is not besieged.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often the clocks are looked at: the runtime's timers stand still while the machine sleeps, and may be slewed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What happens between a grant and the call that asked for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seals {
    pub(crate) receivers: Vec<Arc<dyn Receiver>>,
    /// The application itself says when it is ready.
    pub(crate) warms_up: bool,
}

/// Seals what was granted, and hands it out. Meanwhile whoever looks is told that the holder is not ready: the gap before it goes on.
pub(crate) async fn give_out(leases: Vec<Lease>, seals: Seals) -> Result<Vec<Lease>, Error> {
    let Seals { receivers, warms_up } = seals;
    if warms_up || !receivers.is_empty() {
        leases.iter().for_each(Lease::warming_up);
    }
    let Some(time) = leases.first().map(|lease| lease.shared.time.clone()).filter(|_| !receivers.is_empty())
    else {
        return Ok(leases);
    };
    let sealing = sealed(leases, receivers, time.clone());
    // Receivers speak to the network, and so does a thread that only waits: with whose runtime?
    let leases = if time.needs_runtime() { aside::run(sealing).await?? } else { sealing.await? };
    if !warms_up {
        leases.iter().for_each(Lease::ready);
    }
    Ok(leases)
}

/// Seals, or gives back.
async fn sealed(
    leases: Vec<Lease>,
    receivers: Vec<Arc<dyn Receiver>>,
    time: Time,
) -> Result<Vec<Lease>, Error> {
    let longest = leases.iter().map(|lease| lease.shared.terms.usable).min().unwrap_or_default();
    let limit = Limit { begun: time.now(), time: &time, length: longest };
    let sealing = receivers.iter().map(|receiver| seal_names(&**receiver, &leases, &limit));
    if let Err(error) = try_join_all(sealing).await {
        // Belief ends with the first poll. An answer is waited for, so that whoever is told of the error may ask again at once.
        let given_back = join_all(leases.iter().map(|lease| lease.give_back(false)));
        tokio::select! {
            biased;
            _ = given_back => {}
            () = time.nap(RESERVED_FOR_RELEASE) => {}
        }
        return Err(error);
    }
    Ok(leases)
}

/// Seals one receiver with the stamps of all leases, one after the other.
async fn seal_names(receiver: &dyn Receiver, leases: &[Lease], limit: &Limit<'_>) -> Result<(), Error> {
    let stamps: Vec<Stamp> = leases
        .iter()
        .map(|lease| lease.shared.stamp())
        .collect::<Result<_, _>>()
        .map_err(|why| Error::Unavailable(format!("the service granted what cannot be fenced: {why}")))?;
    for (lease, stamp) in leases.iter().zip(&stamps) {
        let refused = seal_name(receiver, lease, stamp, limit).await;
        refused.map_err(|source| not_sealed(receiver, stamp, source))?;
    }
    // Last, and of all of them: when the last receiver says yes, every lease is believed.
    for (lease, stamp) in leases.iter().zip(&stamps) {
        let believed = limit.believed(lease).await;
        believed.map_err(|why| not_sealed(receiver, stamp, no_authority(stamp, why.to_string())))?;
    }
    Ok(())
}

async fn seal_name(
    receiver: &dyn Receiver,
    lease: &Lease,
    stamp: &Stamp,
    limit: &Limit<'_>,
) -> Result<(), FenceError> {
    let mut pause = FIRST_PAUSE;
    // What the receiver itself said last: it knows better what is wrong than an attempt that was cut. But once nobody can say whether an
    // attempt has sealed it, no later failure makes that certain.
    let (mut said, mut unknown) = (None, false);
    loop {
        limit.believed(lease).await.map_err(|why| no_authority(stamp, why.to_string()))?;
        let trial =
            Limit { length: lease.shared.left().min(limit.left()), begun: limit.time.now(), ..*limit };
        // A nap may last until the time is over: an attempt that is not begun leaves nothing in doubt.
        if !trial.length.is_zero() {
            match attempt(receiver, lease, stamp, &trial).await {
                Some(Ok(())) => return Ok(()),
                Some(Err(FenceError::Stale(stale))) => return Err(verdict(lease, stamp, stale, limit).await),
                // No time mends it, and while it is tried nobody else can have the lease.
                Some(Err(trouble)) if trouble.is_lasting() => return Err(in_doubt(trouble, unknown)),
                Some(Err(trouble)) => {
                    unknown |= matches!(trouble, FenceError::Unknown { .. });
                    said = Some(trouble);
                }
                None => unknown = true,
            }
        }
        let length = pause - fraction().of(pause / 2);
        if limit.left() <= length {
            return Err(said.map_or_else(|| silent(receiver, limit), |said| in_doubt(said, unknown)));
        }
        tokio::select! {
            _ = lease.ended() => {}
            () = limit.time.nap(length) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What the receiver said, which is the end of it only if no attempt before may have done something.
fn in_doubt(said: FenceError, unknown: bool) -> FenceError {
    match said {
        FenceError::Failed { receiver, source, .. } if unknown => FenceError::Unknown { receiver, source },
        said => said,
    }
}

/// A receiver that never answered. Whoever blocks the runtime of its connections is the reason itself, and cannot see it.
fn silent(receiver: &dyn Receiver, limit: &Limit<'_>) -> FenceError {
    let advice = match aside::is_here() {
        true => {
            "; if its connections were made in a runtime that nobody runs during this call, make them in leasehold::blocking::run, \
             or acquire with .await in that runtime"
        }
        false => "",
    };
    FenceError::unknown(receiver.place(), format!("no answer within {:?}{advice}", limit.length))
}

/// One attempt, for as long as the lease is certain when it begins; nothing if it was cut then.
async fn attempt(
    receiver: &dyn Receiver,
    lease: &Lease,
    stamp: &Stamp,
    trial: &Limit<'_>,
) -> Option<Result<(), FenceError>> {
    let mut changes = lease.shared.changes();
    let mut seal = receiver.seal(stamp);
    loop {
        tokio::select! {
            biased;
            answer = &mut seal => return Some(answer),
            _ = changes.changed() => {}
            () = trial.time.nap(trial.left().min(LOOK_EVERY)) => {}
        }
        if trial.left().is_zero() || matches!(lease.state(), LeaseState::Ended { .. }) {
            return None;
        }
    }
}

/// What a stale seal means. If the service still says that the lease is held, tokens fell, and that does not pass. Otherwise somebody else
/// was granted it while this process stood still, whatever its clocks say.
async fn verdict(lease: &Lease, stamp: &Stamp, stale: Stale, limit: &Limit<'_>) -> FenceError {
    let granted = lease.granted();
    let is_current = limit.within(lease.session.is_current(&granted.resource, granted.token)).await;
    if matches!(is_current, Some(Ok(true))) {
        return stale.into();
    }
    let seen = stale.highest.map_or_else(|| "a greater token".to_owned(), |highest| highest.to_string());
    let known = if is_current.is_some_and(|answer| answer.is_ok()) { "is over" } else { "may be over" };
    let why = format!(
        "the receiver refused the seal, because it has seen {seen}; the lease with token {} {known}",
        stamp.token()
    );
    no_authority(stamp, why)
}

fn no_authority(stamp: &Stamp, why: String) -> FenceError {
    NoAuthority { name: stamp.name().to_owned(), why }.into()
}

fn not_sealed(receiver: &dyn Receiver, stamp: &Stamp, source: FenceError) -> Error {
    let (receiver, stamp) = (receiver.place().to_owned(), stamp.clone());
    Error::NotSealed { receiver, stamp: Box::new(stamp), source: Box::new(source) }
}

/// A length of time that runs out.
struct Limit<'a> {
    time: &'a Time,
    begun: Reading,
    length: Duration,
}

impl Limit<'_> {
    fn left(&self) -> Duration {
        self.length.saturating_sub(self.time.now().since(self.begun).greater())
    }

    /// Waits until the lease may be believed: one that was granted late, or has lapsed since, needs a renewal first.
    async fn believed(&self, lease: &Lease) -> Result<(), NoGuard> {
        let mut changes = lease.shared.changes();
        loop {
            let why = match lease.state() {
                LeaseState::Held { .. } | LeaseState::Retrying { .. } => return Ok(()),
                LeaseState::Ended { .. } => return Err(NoGuard::Ended),
                LeaseState::Uncertain { .. } => NoGuard::Uncertain,
                LeaseState::Lapsed { .. } => NoGuard::Lapsed,
            };
            let left = self.left();
            if left.is_zero() {
                return Err(why);
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = self.time.nap(left.min(LOOK_EVERY)) => {}
            }
        }
    }

    /// What comes of a call, if it comes in time.
    async fn within<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = call => Some(done),
            () = self.time.nap(self.left()) => None,
        }
    }
}
