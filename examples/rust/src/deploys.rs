//! Rolling deploys of the [replica](crate::replica) as real processes against a real service: for how long does nobody lead, and is any
//! work lost or done twice? Beside it the same deploy done naively, and holders that are killed.
//!
//! Every process writes down what happens to it with a reading of CLOCK_BOOTTIME, which is common to all of them: nothing is measured
//! through a pipe. Several deploys of different names go on at the same time, on one service.

pub mod hold;
pub mod kills;
pub mod lane;
pub mod process;
pub mod progress;
pub mod report;
pub mod service;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use lane::{Kind, LaneReport};
use progress::Progress;
use report::Report;
use service::Service;

/// Prints a line behind a reading of CLOCK_BOOTTIME in nanoseconds.
pub fn tell(line: &str) {
    println!("{} {line}", now());
}

/// A reading of CLOCK_BOOTTIME in nanoseconds.
pub(crate) fn now() -> u64 {
    leasehold_clock::read().boot
}

/// So many at the same time, so many each.
#[derive(Debug, Clone, Copy)]
pub struct Lanes {
    /// How many names are deployed at the same time.
    pub lanes: u32,
    /// How many deploys each goes through, one after the other.
    pub each: u32,
}

/// What must hold.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// For how long nobody leads in one deploy, at most.
    pub leaderless: Duration,
    /// The median of all planned handovers.
    pub median: Duration,
    /// By how much a waiter may lead later than the drift of clocks explains, after a kill.
    pub late: Duration,
}

/// What is run.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// The leasehold program, to serve with and to ask.
    pub leasehold: PathBuf,
    /// The replica, as it is to be copied.
    pub replica: PathBuf,
    /// This program, for replicas that do it wrong and for holders that are killed.
    pub itself: PathBuf,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is run.
    pub programs: Programs,
    /// Deploys as they should be.
    pub deploys: Lanes,
    /// Deploys done naively.
    pub naive: Lanes,
    /// Holders that are killed, all at the same time.
    pub kills: u32,
    /// How long a replica takes to be ready.
    pub warm_up: Duration,
    /// How long one item of work takes.
    pub item: Duration,
    /// The ttl of naive replicas and of holders that are killed.
    pub ttl: Duration,
    /// What must hold.
    pub bounds: Bounds,
}

/// A deploy replaces so many replicas.
pub const REPLICAS: u32 = 3;

impl Plan {
    /// All of it: a few minutes.
    pub fn full(programs: Programs) -> Self {
        Self {
            programs,
            deploys: Lanes { lanes: 10, each: 5 },
            naive: Lanes { lanes: 5, each: 2 },
            kills: 20,
            warm_up: Duration::from_secs(8),
            item: Duration::from_secs(2),
            ttl: Duration::from_secs(10),
            bounds: Bounds {
                leaderless: Duration::from_millis(200),
                median: Duration::from_millis(10),
                late: Duration::from_millis(100),
            },
        }
    }

    /// Small, for the tests: the bounds on time are loose, those on work are the same.
    pub fn quick(programs: Programs) -> Self {
        Self {
            deploys: Lanes { lanes: 3, each: 1 },
            naive: Lanes { lanes: 1, each: 1 },
            kills: 2,
            warm_up: Duration::from_secs(1),
            item: Duration::from_millis(300),
            ttl: Duration::from_secs(5),
            bounds: Bounds {
                leaderless: Duration::from_secs(10),
                median: Duration::from_secs(2),
                late: Duration::from_secs(10),
            },
            ..Self::full(programs)
        }
    }
}

/// Runs all of it.
///
/// # Errors
/// When the service or a replica does not do what it is asked to at all.
pub fn run(plan: &Plan) -> Result<Report> {
    let mut service = Service::start(&plan.programs.leasehold)?;
    let progress = Progress::new(plan);
    let (deploys, naive, kills) = thread::scope(|scope| {
        let (service, progress) = (&service, &progress);
        let shown = scope.spawn(|| progress.show());
        // First these: what is measured should not have to wait for a hundred processes that start.
        let kill = |number| scope.spawn(move || kills::run(plan, service, number, progress));
        let kills = joined((0..plan.kills).map(kill).collect());
        let lanes = |kind: Kind, lanes: u32| -> Vec<_> {
            let lane = move |number| scope.spawn(move || lane::run(plan, service, kind, number, progress));
            (0..lanes).map(lane).collect()
        };
        let deploys = lanes(Kind::Warm, plan.deploys.lanes);
        let naive = lanes(Kind::Naive, plan.naive.lanes);
        let all = (joined(deploys), joined(naive), kills);
        progress.end();
        let _ = shown.join();
        all
    });
    let (deploys, naive) = (LaneReport::of_all(deploys?), LaneReport::of_all(naive?));
    let report = Report { plan: plan.clone(), deploys, naive, kills: kills? };
    service.stop()?;
    Ok(report)
}

fn joined<T>(threads: Vec<thread::ScopedJoinHandle<'_, Result<T>>>) -> Result<Vec<T>> {
    let joined: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
    joined.into_iter().map(|ended| ended.unwrap_or_else(|_| Err(anyhow!("a thread panicked")))).collect()
}
