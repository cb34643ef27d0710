//! The load: every client does one thing at a time, first cycles of acquire and release, then renewals.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use leasehold::core::holder::Reading;
use leasehold::core::measure::RoundTrips;
use leasehold::{Lease, Quantiles, Session, SessionOptions, Store, Token};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::args::BenchArgs;
use crate::console::Console;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

use super::report;

/// Names begin with this, so that whoever looks knows whose they are.
const PREFIX: &str = "leasehold-bench";
/// How often the line on a terminal moves.
const FRAME: Duration = Duration::from_millis(100);
const BAR: usize = 24;

/// What was measured.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) cycles: Measured,
    pub(super) renewals: Measured,
    pub(super) interrupted: bool,
}

/// One kind of operation.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) took: Duration,
    pub(super) trips: Quantiles,
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
type Trips = Arc<Mutex<RoundTrips>>;

pub(super) async fn put(
    console: &Console,
    stores: &[Store],
    args: &BenchArgs,
    signals: &mut Signals,
) -> Result<Taken, Trouble> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).expect("the system gives random bytes");
    let prefix = format!("{PREFIX}/{:016x}", u64::from_le_bytes(random));
    let options = SessionOptions::new().label(format!("{} bench", words::own_label(None)));
    let mut sessions = Vec::new();
    for number in 0..usize::from(args.clients) {
        let session = stores[number % stores.len()].session_with(&options).await?;
        sessions.push((format!("{prefix}/{number}"), Arc::new(session)));
    }
    let mut taken = Taken { cycles: Measured::default(), renewals: Measured::default(), interrupted: false };
    for kind in [Kind::Cycles, Kind::Renewals] {
        let (measured, interrupted) = phase(console, kind, &sessions, args.length / 2, signals).await?;
        match kind {
            Kind::Cycles => taken.cycles = measured,
            Kind::Renewals => taken.renewals = measured,
        }
        taken.interrupted = interrupted;
        if interrupted {
            break;
        }
    }
    for (_, session) in sessions.drain(..) {
        if let Ok(session) = Arc::try_unwrap(session) {
            // What cannot be told to the store ends with the ttl.
            let _ = session.close().await;
        }
    }
    Ok(taken)
}

/// Everybody does one kind of thing for so long, or until a signal.
async fn phase(
    console: &Console,
    kind: Kind,
    sessions: &[(String, Arc<Session>)],
    length: Duration,
    signals: &mut Signals,
) -> Result<(Measured, bool), Trouble> {
    let begun = leasehold_clock::read();
    let trips: Trips = Arc::new(Mutex::new(RoundTrips::new(length.saturating_mul(4), begun)));
    let mut tasks = JoinSet::new();
    for (name, session) in sessions {
        let (name, session, trips) = (name.clone(), Arc::clone(session), Arc::clone(&trips));
        tasks.spawn(async move {
            match kind {
                Kind::Cycles => cycle(&name, &session, &trips, begun, length).await,
                Kind::Renewals => renew(&name, &session, &trips, begun, length).await,
            }
        });
    }
    let interrupted = {
        let mut all = pin!(finish(&mut tasks));
        let mut shown = pin!(show(console, kind, &trips, begun, length));
        tokio::select! {
            done = &mut all => done.map(|()| false)?,
            _ = signals.next() => true,
            () = &mut shown => false,
        }
    };
    let took = leasehold_clock::read().since(begun).greater();
    // Dropped in the middle of an acquire, a client gives back what it would have got.
    tasks.shutdown().await;
    if console.can_animate() {
        console.clear_progress();
    }
    let trips = Quantiles::of(&lock(&trips));
    Ok((Measured { took, trips }, interrupted))
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
    trips: &Trips,
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
        let now = leasehold_clock::read();
        lock(trips).add(now.since(begun).greater(), now);
    }
}

async fn renew(
    name: &str,
    session: &Session,
    trips: &Trips,
    since: Reading,
    length: Duration,
) -> Result<(), Trouble> {
    let lease = session.acquire(name).await?;
    loop {
        let begun = leasehold_clock::read();
        if begun.since(since).greater() >= length {
            lease.release().await?;
            return Ok(());
        }
        confirmed(session, &lease).await;
        if !lease.state().is_held() {
            return Err(Trouble::Lost(format!("{name} was lost while it was renewed")));
        }
        let now = leasehold_clock::read();
        lock(trips).add(now.since(begun).greater(), now);
    }
}

/// Renews and waits for the answer, which moves the deadline of the lease, or for its end. Other things change about a lease too, such as an
/// answer that is late, so the deadline is what is looked at, and always after the next change would be noticed.
async fn confirmed(session: &Session, lease: &Lease) {
    let before = lease.deadline();
    let mut asked = false;
    loop {
        let mut changed = pin!(lease.changed());
        let noticed = poll_fn(|context| Poll::Ready(changed.as_mut().poll(context))).await;
        if noticed.is_ready() || lease.deadline() != before {
            return;
        }
        if !asked {
            session.renew_now();
            asked = true;
        }
        changed.await;
    }
}

/// A line that moves, on a terminal alone.
async fn show(console: &Console, kind: Kind, trips: &Trips, begun: Reading, length: Duration) {
    while console.can_animate() {
        let passed = leasehold_clock::read().since(begun).greater().min(length);
        let so_far = Quantiles::of(&lock(trips));
        console.progress(line(kind.name(), passed, length, &so_far));
        sleep(FRAME).await;
    }
    std::future::pending::<()>().await;
}

fn line(what: &str, passed: Duration, length: Duration, so_far: &Quantiles) -> String {
    let full = passed.as_millis().saturating_mul(BAR as u128) / length.as_millis().max(1);
    let full = usize::try_from(full).unwrap_or(BAR).min(BAR);
    let (done, left) = ("█".repeat(full), "░".repeat(BAR - full));
    let rate = report::per_second(so_far.count, passed);
    format!(
        "{what} {done}{left} {rate}/s, p50 {}, p99 {}",
        report::fine(so_far.p50),
        report::fine(so_far.p99)
    )
}

fn lock(trips: &Trips) -> MutexGuard<'_, RoundTrips> {
    trips.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fills_up() {
        let second = Duration::from_secs(1);
        let drawn = |passed| line("cycles", second * passed, second * 10, &Quantiles::default());
        assert!(drawn(0).starts_with("cycles ░") && drawn(10).contains("█ 0/s"), "{}", drawn(10));
        assert_eq!(drawn(5).matches('█').count(), BAR / 2);
    }
}
