//! Many seeds, on several threads, for some time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::holder::Reading;

use crate::changes::Changes;
use crate::check::Depth;
use crate::check::sometimes::Sometimes;
use crate::run::{Outcome, run};
use crate::trace::{Trace, seconds};
use crate::world::Totals;

/// When a campaign is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After so much time, and the worlds that are under way then.
    Time(Duration),
    /// After so many seeds.
    Seeds(u64),
}

/// How long, how wide, and with which seeds.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// For how long, or how many.
    pub length: Length,
    /// On how many threads.
    pub threads: usize,
    /// The first seed; the others follow it.
    pub first_seed: u64,
    /// How much is checked.
    pub depth: Depth,
    /// Violating seeds after which it ends early.
    pub enough: usize,
    /// What is otherwise than the seeds decide.
    pub changes: Changes,
}

/// What a campaign came to.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Runs.
    pub seeds: u64,
    /// Nanoseconds of true time.
    pub simulated: u128,
    /// How much happened.
    pub events: u64,
    /// Numbers.
    pub totals: Totals,
    /// Situations that were reached.
    pub sometimes: Sometimes,
    /// Violations that restores told wrongly excuse.
    pub excused: u64,
    /// Windows of operations that were too wide to be searched for an order.
    pub not_judged: u64,
    /// Runs that violated something.
    pub failures: Vec<Outcome>,
    /// How long it took.
    pub took: Duration,
}

impl Campaign {
    /// Runs seeds until it is over. `now` reads the clocks, `tell` is told how it stands about every ten seconds.
    pub fn run(&self, now: fn() -> Reading, tell: impl Fn(&Summary) + Sync) -> Summary {
        let began = now();
        let begun = AtomicU64::new(0);
        let ends = AtomicBool::new(false);
        let summary = Mutex::new(Summary::default());
        let told = Mutex::new(began);
        let passed = || now().since(began).greater();
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    loop {
                        let number = begun.fetch_add(1, Ordering::Relaxed);
                        let goes_on = match self.length {
                            Length::Time(length) => passed() < length,
                            Length::Seeds(seeds) => number < seeds,
                        };
                        if !goes_on || ends.load(Ordering::Relaxed) {
                            break;
                        }
                        let plan = self.changes.plan(self.first_seed.wrapping_add(number));
                        let outcome = run(&plan, Trace::new(false, 0, 0), self.depth);
                        let mut whole = lock(&summary);
                        whole.add(outcome);
                        whole.took = passed();
                        if whole.failures.len() >= self.enough {
                            ends.store(true, Ordering::Relaxed);
                        }
                        let mut told = lock(&told);
                        if now().since(*told).greater() >= Duration::from_secs(10) {
                            *told = now();
                            tell(&whole);
                        }
                    }
                });
            }
        });
        let mut summary = summary.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        summary.took = passed();
        summary
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Summary {
    fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.simulated += u128::from(outcome.simulated);
        self.events += outcome.events;
        self.totals.add(&outcome.totals);
        self.sometimes.merge(&outcome.sometimes);
        self.excused += outcome.excused;
        self.not_judged += outcome.not_judged;
        if !outcome.violations.is_empty() {
            self.failures.push(outcome);
        }
    }

    /// One line for whoever waits.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{}, {:.2} simulated days, {:.0} x real time, {} violating",
            counted(self.seeds, "seed"),
            self.simulated_seconds() / 86_400.0,
            self.speed(),
            self.failures.len()
        );
        for failure in &self.failures {
            line.push_str(&format!(" {}", failure.seed));
        }
        line
    }

    /// Simulated seconds.
    pub fn simulated_seconds(&self) -> f64 {
        seconds(u64::try_from(self.simulated / 1_000).unwrap_or(u64::MAX)) * 1_000.0
    }

    /// Simulated seconds for each real one, all threads together.
    pub fn speed(&self) -> f64 {
        self.simulated_seconds() / self.took.as_secs_f64().max(0.001)
    }
}

/// A number of things in words: `1 seed`, `2 seeds`.
pub fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
