//! The load: every client does one thing at a time, first cycles of acquire and release, then renewals.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
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
        if self.renewals.is_some() { RENEWALS } else { CYCLES }
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
const CYCLES: &str = "cycles";
const RENEWALS: &str = "renewals";

/// A time in which all clients do the same.
#[derive(Debug)]
struct Phase {
    begun: Reading,
    length: Duration,
    answers: Mutex<Answers>,
}

/// What all clients fill.
#[derive(Debug)]
struct Answers {
    trips: RoundTrips,
    last: Reading,
}

impl Phase {
    /// When the next operation begins; nothing if the time is over.
    fn next(&self) -> Option<Reading> {
        Some(leasehold_clock::read()).filter(|now| now.since(self.begun).greater() < self.length)
    }

    /// One that began then was answered.
    fn answered(&self, begun: Reading) {
        let now = leasehold_clock::read();
        let mut answers = self.answers();
        answers.trips.add(now.since(begun).greater(), now);
        answers.last = now;
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) async fn put(
    console: &Console,
    clients: &[Client],
    args: &BenchArgs,
    signals: &mut Signals,
) -> Taken {
    let half = args.length / 2;
    let nothing_held = clients.iter().map(|_| None).collect();
    let (cycles, ended) = phase(console, CYCLES, clients, nothing_held, half, signals).await;
    let mut taken = Taken { cycles: Some(cycles), renewals: None, end: End::Complete };
    if let Some(end) = ended {
        return Taken { end, ..taken };
    }
    // Before the clock starts: very many take as long as a short phase.
    let all = try_join_all(clients.iter().map(|(name, session)| session.acquire(name).into_future()));
    let held = tokio::select! {
        held = all => held.map_err(|error| End::of(error.into())),
        signal = signals.next() => Err(End::Signal(signal.as_raw())),
    };
    match held {
        Ok(held) => {
            let held = held.into_iter().map(Some).collect();
            let (renewals, ended) = phase(console, RENEWALS, clients, held, half, signals).await;
            taken.renewals = Some(renewals);
            Taken { end: ended.unwrap_or(End::Complete), ..taken }
        }
        Err(end) => Taken { end, ..taken },
    }
}

/// Everybody does one kind of thing for so long, unless something ends it before.
async fn phase(
    console: &Console,
    what: &str,
    clients: &[Client],
    held: Vec<Option<Lease>>,
    length: Duration,
    signals: &mut Signals,
) -> (Measured, Option<End>) {
    let begun = leasehold_clock::read();
    let trips = RoundTrips::new(length.saturating_mul(4), begun);
    let phase = Arc::new(Phase { begun, length, answers: Mutex::new(Answers { trips, last: begun }) });
    let mut tasks = JoinSet::new();
    for ((name, session), held) in clients.iter().zip(held) {
        let (name, session, phase) = (name.clone(), Arc::clone(session), Arc::clone(&phase));
        tasks.spawn(async move {
            match held {
                None => cycle(&name, &session, &phase).await,
                Some(lease) => renew(lease, &session, &phase).await,
            }
        });
    }
    let ended = {
        let mut all = pin!(finish(&mut tasks));
        let mut shown = pin!(show(console, what, &phase));
        tokio::select! {
            done = &mut all => done.err().map(End::of),
            signal = signals.next() => Some(End::Signal(signal.as_raw())),
            () = &mut shown => None,
        }
    };
    let now = leasehold_clock::read();
    // Dropped in the middle of an acquire, a client gives back what it would have got.
    tasks.shutdown().await;
    console.clear_progress();
    let answers = phase.answers();
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

async fn cycle(name: &str, session: &Session, phase: &Phase) -> Result<(), Trouble> {
    let mut last: Option<Token> = None;
    while let Some(begun) = phase.next() {
        let lease = session.acquire(name).await?;
        let token = lease.granted().token;
        if last.is_some_and(|last| last >= token) {
            return Err(Trouble::Lost(format!("token {token} of {name} is not greater than the one before")));
        }
        last = Some(token);
        lease.release().await?;
        phase.answered(begun);
    }
    Ok(())
}

async fn renew(lease: Lease, session: &Session, phase: &Phase) -> Result<(), Trouble> {
    while let Some(begun) = phase.next() {
        // It gives up after the patience of the store, where the lease itself would be waited for until it lapses.
        session.renew().await?;
        if !lease.state().is_held() {
            let name = &lease.granted().resource;
            return Err(Trouble::Lost(format!("{name} was lost while it was renewed")));
        }
        phase.answered(begun);
    }
    Ok(lease.release().await?)
}

/// A line that moves, on a terminal alone.
async fn show(console: &Console, what: &str, phase: &Phase) {
    while console.can_animate() {
        let passed = leasehold_clock::read().since(phase.begun).greater().min(phase.length);
        let so_far = Quantiles::of(&phase.answers().trips);
        let columns = progress::columns();
        console.progress(progress::measuring(what, passed, phase.length, &so_far, columns));
        sleep(progress::FRAME).await;
    }
    std::future::pending::<()>().await;
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
