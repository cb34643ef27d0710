//! The measuring itself: renewals and reads at the store, and a thread that sleeps and looks how long it slept.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use leasehold::core::holder::Reading;
use leasehold::core::measure::{ClockRates, Measured, Pauses, RoundTrips};
use leasehold::{ConnectOptions, Error, Figures, Quantiles, Session, SessionEvent, SessionOptions, Store};
use tokio::time::sleep;

use crate::console::Console;
use crate::holding::Keeper;
use crate::place::Place;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

use super::report;

/// Between the answer to a renewal and the next: a hundred small writes a second are nothing to a store that has anything to do.
const RENEW_EVERY: Duration = Duration::from_millis(10);
/// Between two reads.
const READ_EVERY: Duration = Duration::from_millis(20);
/// How long the thread sleeps that looks how long it slept: often enough to meet every pause, seldom enough to cost nothing.
const NAP: Duration = Duration::from_millis(1);
/// How often the clocks are compared.
const COMPARE_EVERY: Duration = Duration::from_secs(1);
/// How often the line on a terminal moves.
const FRAME: Duration = Duration::from_millis(100);
/// A read that took longer may be one during which this process stood still; the thread that finds out has so long to do so.
const SUSPICIOUS: Duration = Duration::from_millis(10);
const BAR: usize = 24;

/// What was measured.
pub(super) struct Taken {
    pub(super) took: Duration,
    pub(super) interrupted: bool,
    pub(super) renewals: Quantiles,
    /// The longest that a renewal waited in vain. It would have been the slowest of all.
    pub(super) unanswered: Duration,
    pub(super) reads: Quantiles,
    pub(super) naps: Quantiles,
    pub(super) pauses: Pauses,
    pub(super) clocks: ClockRates,
}

impl Taken {
    /// How long a renewal waited in vain, if that is longer than all that were answered took.
    pub(super) fn outlasting(&self) -> Option<Duration> {
        Some(self.unanswered).filter(|waited| *waited > self.renewals.longest)
    }

    pub(super) fn measured(&self) -> Measured {
        Measured {
            // Whoever was not answered is not among the quantiles, and waited longer than all that were.
            round_trip: Some(self.renewals.p999.max(self.unanswered)).filter(|trip| !trip.is_zero()),
            pause: Some(self.pauses.longest_ever()),
            rate_ppm: self.clocks.rates().map(|rates| rates.monotonic_ppm.unsigned_abs()),
        }
    }
}

/// Measures for so long, or until a signal.
pub(super) async fn measure(
    console: &Console,
    place: &Place,
    length: Duration,
    signals: &mut Signals,
) -> Result<Taken, Trouble> {
    // Everything of this run is kept.
    let over = length.saturating_mul(2);
    let store = place.connect_with(ConnectOptions::new().figures_over(over)).await?;
    let options = SessionOptions::new().label(format!("{} probe", words::own_label(None)));
    let Keeper { session, store } = Keeper::open(store, &options).await?;
    let begun = leasehold_clock::read();
    let naps = Naps::start(over).map_err(Trouble::system("cannot start a thread"))?;
    let session = RefCell::new(session);
    let reads = RefCell::new(RoundTrips::new(over, begun));
    let ended = tokio::select! {
        () = sleep(length) => Ok(false),
        _ = signals.next() => Ok(true),
        error = renew(&store, &options, &session) => Err(error),
        error = read(&store, &reads, &naps) => Err(error),
        never = show(console, &store, &naps, begun, length) => match never {},
    };
    let now = leasehold_clock::read();
    let figures: Figures = store.figures();
    console.clear_progress();
    let (naps, pauses, clocks) = naps.stop();
    let _ = Keeper { session: session.into_inner(), store }.close().await;
    let interrupted = ended?;
    let reads = Quantiles::of(&reads.into_inner());
    let took = now.since(begun).greater();
    let (renewals, unanswered) = (figures.round_trips, figures.longest_unanswered);
    Ok(Taken { took, interrupted, renewals, unanswered, reads, naps, pauses, clocks })
}

/// Renews again and again. A session that was lost, because this process stood still for longer than its ttl, is opened anew.
async fn renew(store: &Store, options: &SessionOptions, session: &RefCell<Session>) -> Error {
    let mut events = session.borrow().events();
    loop {
        tokio::select! {
            event = events.next() => {
                if matches!(event, None | Some(SessionEvent::SessionEnded { .. })) {
                    match store.session_with(options).await {
                        Ok(opened) => {
                            events = opened.events();
                            drop(session.replace(opened));
                        }
                        Err(error) => return error,
                    }
                }
            }
            () = sleep(RENEW_EVERY) => session.borrow().renew_now(),
        }
    }
}

/// Reads again and again, beside the renewals.
async fn read(store: &Store, reads: &RefCell<RoundTrips>, naps: &Naps) -> Error {
    loop {
        let (stood, asked) = (naps.stood_still(), leasehold_clock::read());
        if let Err(error) = store.revision().await {
            return error;
        }
        let now = leasehold_clock::read();
        let took = now.since(asked).greater();
        if took > SUSPICIOUS {
            sleep(SUSPICIOUS).await;
        }
        let own = naps.stood_still().saturating_sub(stood);
        if took <= SUSPICIOUS || own <= took / 2 {
            reads.borrow_mut().add(took, now);
        }
        sleep(READ_EVERY).await;
    }
}

/// A line that moves, on a terminal alone.
async fn show(console: &Console, store: &Store, naps: &Naps, begun: Reading, length: Duration) -> Infallible {
    while console.can_animate() {
        let passed = leasehold_clock::read().since(begun).greater().min(length);
        console.progress(line(passed, length, &store.figures(), naps.longest()));
        sleep(FRAME).await;
    }
    std::future::pending().await
}

fn line(passed: Duration, length: Duration, figures: &Figures, pause: Duration) -> String {
    let bar = words::bar(passed, length, BAR);
    let [passed, length] =
        [passed, length].map(|length| words::length(Duration::from_secs(length.as_secs())));
    let renewals = words::count(figures.round_trips.count, "renewal");
    let (p99, pause) = (report::fine(figures.round_trips.p99), report::fine(pause));
    format!("measuring {bar} {passed} of {length}, {renewals}, p99 {p99}, longest pause {pause}")
}

/// What the sleeping thread has found.
struct Found {
    naps: RoundTrips,
    pauses: Pauses,
    clocks: ClockRates,
}

/// A thread that sleeps and looks how long it slept. It ends when this is dropped.
struct Naps {
    found: Arc<Mutex<Found>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Naps {
    fn start(kept: Duration) -> std::io::Result<Self> {
        let clocks = leasehold_clock::measure();
        let now = clocks.reading;
        let found = Found {
            naps: RoundTrips::new(kept, now),
            pauses: Pauses::new(kept, now),
            clocks: ClockRates::new(clocks),
        };
        let (found, over) = (Arc::new(Mutex::new(found)), Arc::new(AtomicBool::new(false)));
        let (to_fill, is_over) = (Arc::clone(&found), Arc::clone(&over));
        let thread = std::thread::Builder::new().name("naps".into()).spawn(move || {
            let (mut compared, mut asleep) = (now, leasehold_clock::read());
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(NAP);
                // From one look to the next: a stop between two sleeps is met too.
                let awake = leasehold_clock::read();
                let took = awake.since(asleep).greater();
                asleep = awake;
                let mut found = lock(&to_fill);
                let pause = found.pauses.slept(NAP, took, awake);
                found.naps.add(pause, awake);
                if awake.since(compared).greater() >= COMPARE_EVERY {
                    compared = awake;
                    found.clocks.look(leasehold_clock::measure());
                }
            }
        })?;
        Ok(Self { found, over, thread: Some(thread) })
    }

    fn stood_still(&self) -> Duration {
        lock(&self.found).pauses.total()
    }

    fn longest(&self) -> Duration {
        lock(&self.found).pauses.longest_ever()
    }

    fn stop(mut self) -> (Quantiles, Pauses, ClockRates) {
        self.end();
        let mut found = lock(&self.found);
        found.clocks.look(leasehold_clock::measure());
        (Quantiles::of(&found.naps), found.pauses.clone(), found.clocks)
    }

    fn end(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Naps {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(found: &Mutex<Found>) -> MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fills_up() {
        let second = Duration::from_secs(1);
        let figures = Figures::default();
        let drawn = |passed| line(second * passed, second * 10, &figures, Duration::from_millis(3));
        assert!(drawn(0).starts_with("measuring ░") && drawn(10).contains("█ 10s of 10s, 0 renewals"));
        assert_eq!(drawn(5).matches('█').count(), BAR / 2);
        assert!(drawn(10).ends_with("longest pause 3.00 ms"), "{}", drawn(10));
    }
}
