//! The load: every client does one thing at a time, first cycles of acquire and release, then renewals.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::core::holder::Reading;
use leasehold::core::measure::RoundTrips;
use leasehold::{Error, Lease, Quantiles, Session, Token};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::args::BenchArgs;
use crate::console::Console;
use crate::signals::Signals;
use crate::trouble::Trouble;

use super::opening::Client;
use super::progress;

/// What was measured, and why no more.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) cycles: Option<Measured>,
    /// Nothing if it did not come to that.
    pub(super) renewals: Option<Measured>,
    pub(super) end: End,
}

/// One kind of operation.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Up to the last answer, if no more came.
    pub(super) took: Duration,
    pub(super) trips: Quantiles,
}

/// Why it ended.
#[derive(Debug)]
pub(super) enum End {
    /// It was over.
    Complete,
    /// Somebody asked.
    Signal(i32),
    /// The store does not answer any more; with its words, if they say more than that.
    StoreGone(Option<Error>),
    /// A promise was not kept, or not to this client.
    LeaseLost(String),
    /// Anything else.
    Failed(Trouble),
}

impl Taken {
    /// How many operations there were.
    pub(super) fn count(&self) -> u64 {
        self.phases().map(|phase| phase.trips.count).sum()
    }

    /// How long load was put.
    pub(super) fn took(&self) -> Duration {
        self.phases().map(|phase| phase.took).sum()
    }

    /// What was done last.
    pub(super) fn last_phase(&self) -> &'static str {
        if self.renewals.is_some() { Kind::Renewals.name() } else { Kind::Cycles.name() }
    }

    fn phases(&self) -> impl Iterator<Item = &Measured> {
        self.cycles.iter().chain(&self.renewals)
    }
}

impl End {
    fn of(trouble: Trouble) -> Self {
        match trouble {
            // Nobody asks for the fate of one request among thousands.
            Trouble::Store(Error::OutcomeUnknown) => Self::StoreGone(None),
            Trouble::Store(error @ (Error::Unreachable(_) | Error::Unavailable(_))) => {
                Self::StoreGone(Some(error))
            }
            Trouble::Store(error @ Error::SessionEnded(_)) => Self::LeaseLost(error.to_string()),
            Trouble::Lost(why) => Self::LeaseLost(why),
            other => Self::Failed(other),
        }
    }
}

/// What a client does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cycles,
    Renewals,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Renewals => "renewals",
        }
    }
}

/// What all clients of one kind fill.
#[derive(Debug)]
struct Answers {
    trips: RoundTrips,
    last: Reading,
}

type Shared = Arc<Mutex<Answers>>;

pub(super) async fn put(
    console: &Console,
    clients: &[Client],
    args: &BenchArgs,
    signals: &mut Signals,
) -> Taken {
    let half = args.length / 2;
    let nothing_held = clients.iter().map(|_| None).collect();
    let (cycles, ended) = phase(console, Kind::Cycles, clients, nothing_held, half, signals).await;
    if let Some(end) = ended {
        return Taken { cycles: Some(cycles), renewals: None, end };
    }
    // Before the clock starts: very many take as long as a short phase.
    let held = tokio::select! {
        held = hold(clients) => held.map_err(End::of),
        signal = signals.next() => Err(End::Signal(signal.as_raw())),
    };
    let held = match held {
        Ok(held) => held,
        Err(end) => return Taken { cycles: Some(cycles), renewals: None, end },
    };
    let (renewals, ended) = phase(console, Kind::Renewals, clients, held, half, signals).await;
    Taken { cycles: Some(cycles), renewals: Some(renewals), end: ended.unwrap_or(End::Complete) }
}

/// Everybody takes the lease that it will renew.
async fn hold(clients: &[Client]) -> Result<Vec<Option<Lease>>, Trouble> {
    let mut tasks = JoinSet::new();
    for (place, (name, session)) in clients.iter().enumerate() {
        let (name, session) = (name.clone(), Arc::clone(session));
        tasks.spawn(async move { (place, session.acquire(&name).await) });
    }
    let mut held: Vec<Option<Lease>> = clients.iter().map(|_| None).collect();
    while let Some(done) = tasks.join_next().await {
        let (place, lease) = done.map_err(|_| Trouble::Lost("a client ended by itself".to_owned()))?;
        held[place] = Some(lease?);
    }
    Ok(held)
}

/// Everybody does one kind of thing for so long, unless something ends it before.
async fn phase(
    console: &Console,
    kind: Kind,
    clients: &[Client],
    held: Vec<Option<Lease>>,
    length: Duration,
    signals: &mut Signals,
) -> (Measured, Option<End>) {
    let begun = leasehold_clock::read();
    let trips = RoundTrips::new(length.saturating_mul(4), begun);
    let shared: Shared = Arc::new(Mutex::new(Answers { trips, last: begun }));
    let mut tasks = JoinSet::new();
    for ((name, session), held) in clients.iter().zip(held) {
        let (name, session, shared) = (name.clone(), Arc::clone(session), Arc::clone(&shared));
        tasks.spawn(async move {
            match held {
                None => cycle(&name, &session, &shared, begun, length).await,
                Some(lease) => renew(lease, &session, &shared, begun, length).await,
            }
        });
    }
    let ended = {
        let mut all = pin!(finish(&mut tasks));
        let mut shown = pin!(show(console, kind, &shared, begun, length));
        tokio::select! {
            done = &mut all => done.err().map(End::of),
            signal = signals.next() => Some(End::Signal(signal.as_raw())),
            () = &mut shown => None,
        }
    };
    let now = leasehold_clock::read();
    // Dropped in the middle of an acquire, a client gives back what it would have got.
    tasks.shutdown().await;
    if console.can_animate() {
        console.clear_progress();
    }
    let answers = lock(&shared);
    // The time in which a store that went away was waited for is not one in which anything was measured.
    let until = if matches!(ended, Some(End::StoreGone(_))) { answers.last } else { now };
    (Measured { took: until.since(begun).greater(), trips: Quantiles::of(&answers.trips) }, ended)
}

/// Waits for all; the first that fails ends it.
async fn finish(tasks: &mut JoinSet<Result<(), Trouble>>) -> Result<(), Trouble> {
    while let Some(done) = tasks.join_next().await {
        done.map_err(|_| Trouble::Lost("a client ended by itself".to_owned()))??;
    }
    Ok(())
}

async fn cycle(
    name: &str,
    session: &Session,
    shared: &Shared,
    since: Reading,
    length: Duration,
) -> Result<(), Trouble> {
    let mut last: Option<Token> = None;
    loop {
        let begun = leasehold_clock::read();
        if begun.since(since).greater() >= length {
            return Ok(());
        }
        let lease = session.acquire(name).await?;
        let token = lease.granted().token;
        if last.is_some_and(|last| last >= token) {
            return Err(Trouble::Lost(format!("token {token} of {name} is not greater than the one before")));
        }
        last = Some(token);
        lease.release().await?;
        answered(shared, begun);
    }
}

async fn renew(
    lease: Lease,
    session: &Session,
    shared: &Shared,
    since: Reading,
    length: Duration,
) -> Result<(), Trouble> {
    loop {
        let begun = leasehold_clock::read();
        if begun.since(since).greater() >= length {
            lease.release().await?;
            return Ok(());
        }
        // It gives up after the patience of the store, where the lease itself would be waited for until it lapses.
        session.renew().await?;
        if !lease.state().is_held() {
            let name = &lease.granted().resource;
            return Err(Trouble::Lost(format!("{name} was lost while it was renewed")));
        }
        answered(shared, begun);
    }
}

fn answered(shared: &Shared, begun: Reading) {
    let now = leasehold_clock::read();
    let mut answers = lock(shared);
    answers.trips.add(now.since(begun).greater(), now);
    answers.last = now;
}

/// A line that moves, on a terminal alone.
async fn show(console: &Console, kind: Kind, shared: &Shared, begun: Reading, length: Duration) {
    while console.can_animate() {
        let passed = leasehold_clock::read().since(begun).greater().min(length);
        let so_far = Quantiles::of(&lock(shared).trips);
        let columns = progress::columns();
        console.progress(progress::measuring(kind.name(), passed, length, &so_far, columns));
        sleep(progress::FRAME).await;
    }
    std::future::pending::<()>().await;
}

fn lock(shared: &Shared) -> MutexGuard<'_, Answers> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_does_not_answer_is_gone_and_other_trouble_keeps_its_words() {
        assert!(matches!(End::of(Error::OutcomeUnknown.into()), End::StoreGone(None)));
        let away = Error::Unavailable("no leader".to_owned());
        assert!(matches!(End::of(away.into()), End::StoreGone(Some(_))));
        assert!(matches!(End::of(Trouble::Lost("a".to_owned())), End::LeaseLost(why) if why == "a"));
        assert!(matches!(End::of(Error::Cancelled.into()), End::Failed(_)));
    }

    #[test]
    fn what_was_taken_is_the_sum_of_its_phases() {
        let phase = || Some(Measured { took: Duration::from_secs(2), trips: Quantiles::default() });
        let mut taken = Taken { cycles: phase(), renewals: None, end: End::Signal(2) };
        assert_eq!((taken.took(), taken.last_phase()), (Duration::from_secs(2), "cycles"));
        taken.renewals = phase();
        assert_eq!((taken.took(), taken.last_phase()), (Duration::from_secs(4), "renewals"));
    }
}
