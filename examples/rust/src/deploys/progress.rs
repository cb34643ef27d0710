//! How far it is, for whoever waits: a line that changes on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::Plan;
use super::lane::Kind;

/// How often a terminal is written to, and how many of these make a line elsewhere.
const STEP: Duration = Duration::from_millis(200);
const STEPS_PER_LINE: u32 = 75;
/// How wide the bar is.
const WIDTH: usize = 30;

/// What is done, of what was planned.
#[derive(Debug)]
pub struct Progress {
    deploys: (AtomicU32, u32),
    naive: (AtomicU32, u32),
    kills: (AtomicU32, u32),
    over: AtomicBool,
}

impl Progress {
    pub(super) fn new(plan: &Plan) -> Self {
        let of = |total| (AtomicU32::new(0), total);
        Self {
            deploys: of(plan.deploys.lanes * plan.deploys.each),
            naive: of(plan.naive.lanes * plan.naive.each),
            kills: of(plan.kills),
            over: AtomicBool::new(false),
        }
    }

    pub(super) fn deployed(&self, kind: Kind) {
        let (done, _) = match kind {
            Kind::Warm => &self.deploys,
            Kind::Naive => &self.naive,
        };
        done.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn killed(&self) {
        self.kills.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Shows it on standard error until it is over.
    pub(super) fn show(&self) {
        let terminal = std::io::stderr().is_terminal();
        let mut steps = 0;
        while !self.over.load(Ordering::Relaxed) {
            std::thread::sleep(STEP);
            steps += 1;
            // Whoever has closed standard error does not want to know.
            if terminal {
                let _ = write!(std::io::stderr(), "\r\x1b[K{}", self.line());
            } else if steps % STEPS_PER_LINE == 0 {
                let _ = writeln!(std::io::stderr(), "{}", self.line());
            }
        }
        if terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    fn line(&self) -> String {
        let parts = [&self.deploys, &self.naive, &self.kills].map(|(done, total)| (load(done), *total));
        let (done, total) = parts.iter().fold((0, 0), |(done, total), part| (done + part.0, total + part.1));
        let full = WIDTH * done as usize / total.max(1) as usize;
        let [deploys, naive, kills] = parts.map(|(done, total)| format!("{done} of {total}"));
        let bar: String = (0..WIDTH).map(|place| if place < full { '#' } else { '.' }).collect();
        format!("[{bar}] deploys {deploys}, naive {naive}, kills {kills}")
    }
}

fn load(number: &AtomicU32) -> u32 {
    number.load(Ordering::Relaxed)
}
