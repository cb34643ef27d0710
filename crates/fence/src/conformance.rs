//! What every receiver must do, tried on a real one: for the adapters here, and for receivers of your own.
//!
//! Implement [`Subject`] for whatever is protected and [`run`] it. Every adapter passes this on its real server; adapters with their
//! check taken out do not, which is why it is trusted.
//!
//! What it does not try: crashes of the store. The adapters' own tests kill their servers.

mod judge;
mod pace;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::error::{Error, Outcome};
use crate::receiver::Receiver;
use crate::stamp::Stamp;
use judge::{Act, Attempt, judge};
use pace::Pace;

pub use crate::error::Trouble;

/// A receiver under test: fresh ways to write to it, and what was written.
pub trait Subject: Send + Sync + 'static {
    /// A way to write, with a connection of its own where there are connections.
    type Writer: Writer;

    /// What is sealed.
    fn receiver(&self) -> Arc<dyn Receiver>;

    /// One more writer.
    fn writer(&self) -> impl Future<Output = Result<Self::Writer, Trouble>> + Send;

    /// Every write under a fence name that was accepted, in the order in which they took effect.
    fn written(&self, name: &str) -> impl Future<Output = Result<Vec<Written>, Trouble>> + Send;
}

/// A way to write to the receiver.
pub trait Writer: Send + 'static {
    /// Writes a value under the stamp's fence name.
    fn write(&mut self, stamp: &Stamp, value: &str) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A write that took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// With which token.
    pub token: u64,
    /// What was written.
    pub value: String,
}

/// How much is tried.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Under how many fence names writers race.
    pub rounds: u64,
    /// How many holders race in each, every one with a token of its own and two writers.
    pub holders: u64,
    /// How often each writer writes.
    pub writes: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self { rounds: 8, holders: 5, writes: 12 }
    }
}

/// What was tried, and how it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Races: fence names under which writers with different tokens met.
    pub races: u64,
    /// How often a holder had a write accepted behind one with a smaller token that had one too.
    pub handovers: u64,
    /// Writes that were accepted.
    pub accepted: u64,
    /// Writes with a token that was certainly stale when they began: a greater one had been accepted or sealed before.
    pub stale_tried: u64,
    /// Writes and seals that were refused as stale.
    pub refused: u64,
    /// Writes that failed for another reason, such as a conflict; they left no trace.
    pub failed: u64,
    /// Writes of which nobody could say how they ended.
    pub unknown: u64,
}

impl Report {
    fn add(&mut self, other: Self) {
        self.races += other.races;
        self.handovers += other.handovers;
        self.accepted += other.accepted;
        self.stale_tried += other.stale_tried;
        self.refused += other.refused;
        self.failed += other.failed;
        self.unknown += other.unknown;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { races, handovers, accepted, stale_tried, refused, failed, unknown } = self;
        write!(
            f,
            "{races} races with {handovers} handovers, {accepted} writes accepted, {stale_tried} stale writes tried and none accepted, {refused} refused, \
             {failed} failed, {unknown} unknown"
        )
    }
}

/// What a receiver did that it must not do, or trouble that kept it from being tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A rule of the contract is broken.
    #[error("{rule}: {what}")]
    Broken {
        /// Which rule.
        rule: &'static str,
        /// What was seen.
        what: String,
    },
    /// Too few stale writes were tried to say anything: the receiver let too few newer holders in while older ones wrote.
    #[error(
        "only {tried} stale writes were tried in the races, below the {needed} that say something: newer holders were hardly let in; look for \
         what failed ({failed} failed, {unknown} unknown), or raise Load::writes"
    )]
    TooFewTried {
        /// How many were tried in races.
        tried: u64,
        /// How many are needed.
        needed: u64,
        /// How many seals and writes of the races failed.
        failed: u64,
        /// Of how many nobody could say how they ended.
        unknown: u64,
    },
    /// It could not be tried.
    #[error("it could not be tried: {0}")]
    Trouble(Trouble),
}

impl Violation {
    fn broken(rule: &'static str, what: impl Into<String>) -> Self {
        Self::Broken { rule, what: what.into() }
    }
}

/// A token above 2^53: its neighbours are the same double.
const BEYOND_DOUBLES: u64 = (1 << 53) + 1;

/// Tries everything. Fence names begin with `prefix`, which must be new to the receiver.
///
/// # Errors
/// The first rule that is broken, with what was seen. Also when too few stale writes were tried in the races.
pub async fn run<S: Subject>(subject: &S, prefix: &str, load: Load) -> Result<Report, Violation> {
    let mut report = Report::default();
    for (nth, tokens) in [[33, 34], [BEYOND_DOUBLES - 1, BEYOND_DOUBLES]].into_iter().enumerate() {
        report.add(in_order(subject, &format!("{prefix}/order-{nth}"), tokens).await?);
        report.add(before_the_first_write(subject, &format!("{prefix}/seal-{nth}"), tokens).await?);
    }
    let (mut races, mut planned) = (Report::default(), 0);
    for round in 0..load.rounds {
        let pace = Pace::new(round, load);
        planned += pace.stale_writes();
        races.add(race(subject, &format!("{prefix}/race-{round}"), round, load, pace).await?);
    }
    // Some first writes fail, by a conflict for instance. If most do, nothing was shown.
    let Report { stale_tried: tried, failed, unknown, .. } = races;
    let needed = planned / 2;
    if tried < needed {
        return Err(Violation::TooFewTried { tried, needed, failed, unknown });
    }
    report.add(races);
    Ok(report)
}

/// Old, new, old again, one after the other.
async fn in_order<S: Subject>(subject: &S, name: &str, [old, new]: [u64; 2]) -> Result<Report, Violation> {
    let tried = Tried::default();
    let mut writer = subject.writer().await.map_err(Violation::Trouble)?;
    for (nth, token) in [old, old, new, old, new, old].into_iter().enumerate() {
        tried.write(&mut writer, &stamp(name, token), &format!("{nth}")).await;
    }
    let receiver = subject.receiver();
    for token in [new, old, new] {
        tried.seal(&*receiver, &stamp(name, token)).await;
    }
    let seen = receiver.look(name).await.map_err(|error| Violation::Trouble(error.into()))?;
    match seen.highest {
        Some(mark) if mark.token == new => {}
        other => {
            return Err(Violation::broken("look", format!("{name} has {new}, and {other:?} is shown")));
        }
    }
    tried.judged(subject, name, true).await
}

/// The new holder seals and writes nothing; the old one comes late.
async fn before_the_first_write<S: Subject>(
    subject: &S,
    name: &str,
    [old, new]: [u64; 2],
) -> Result<Report, Violation> {
    let tried = Tried::default();
    let receiver = subject.receiver();
    let mut writer = subject.writer().await.map_err(Violation::Trouble)?;
    tried.seal(&*receiver, &stamp(name, old)).await;
    tried.seal(&*receiver, &stamp(name, new)).await;
    tried.write(&mut writer, &stamp(name, old), "late").await;
    tried.seal(&*receiver, &stamp(name, old)).await;
    tried.write(&mut writer, &stamp(name, new), "first").await;
    tried.judged(subject, name, true).await
}

/// Holders with tokens of their own, two writers each, by a [pace](Pace). In every other round each holder seals first.
async fn race<S: Subject>(
    subject: &S,
    name: &str,
    round: u64,
    load: Load,
    pace: Pace,
) -> Result<Report, Violation> {
    let (tried, pace) = (Arc::new(Tried::default()), Arc::new(pace));
    let writers = load.holders * 2;
    let start = Arc::new(Barrier::new(usize::try_from(writers).expect("a test has few writers")));
    let mut tasks = JoinSet::new();
    for nth in 0..writers {
        let mut writer = subject.writer().await.map_err(Violation::Trouble)?;
        let (tried, start, receiver) = (Arc::clone(&tried), Arc::clone(&start), subject.receiver());
        let (stamp, pace) = (stamp(name, BEYOND_DOUBLES + nth / 2), Arc::clone(&pace));
        let holder = usize::try_from(nth / 2).expect("a test has few holders");
        tasks.spawn(async move {
            start.wait().await;
            pace.begin(holder).await;
            if round % 2 == 1 {
                tried.seal(&*receiver, &stamp).await;
            }
            for count in 0..load.writes {
                pace.before_write(holder, count).await;
                tried.write(&mut writer, &stamp, &format!("{nth}-{count}")).await;
                pace.answered(holder);
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| Violation::Trouble(error.into()))?;
    }
    let tried = Arc::into_inner(tried).expect("every task has ended");
    let mut report = tried.judged(subject, name, false).await?;
    report.races = 1;
    Ok(report)
}

fn stamp(name: &str, token: u64) -> Stamp {
    let holder = format!("holder-{token}");
    let stamp = Stamp::new(name, token).and_then(|stamp| stamp.held_by(holder));
    stamp.expect("names and tokens of the suite are good")
}

/// Everything that was tried under one fence name, with moments that tell what was over before what began.
#[derive(Debug, Default)]
struct Tried {
    moment: AtomicU64,
    attempts: std::sync::Mutex<Vec<Attempt>>,
}

impl Tried {
    async fn write(&self, writer: &mut impl Writer, stamp: &Stamp, value: &str) {
        let began = self.now();
        let result = writer.write(stamp, value).await;
        self.note(Act::Write(value.to_owned()), stamp, began, &result);
    }

    async fn seal(&self, receiver: &dyn Receiver, stamp: &Stamp) {
        let began = self.now();
        let result = receiver.seal(stamp).await;
        self.note(Act::Seal, stamp, began, &result);
    }

    fn note(&self, act: Act, stamp: &Stamp, began: u64, result: &Result<(), Error>) {
        let highest = match result {
            Err(Error::Stale(stale)) => stale.highest,
            _ => None,
        };
        let words = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let (token, ended, outcome) = (stamp.token(), self.now(), Outcome::of(result));
        let attempt = Attempt { act, token, began, ended, outcome, highest, words };
        self.attempts.lock().expect("nobody panics with it").push(attempt);
    }

    fn now(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    async fn judged<S: Subject>(self, subject: &S, name: &str, alone: bool) -> Result<Report, Violation> {
        let written = subject.written(name).await.map_err(Violation::Trouble)?;
        let attempts = self.attempts.into_inner().expect("nobody panicked with it");
        judge(name, &attempts, &written, alone)
    }
}
