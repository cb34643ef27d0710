//! One run of one plan, from the beginning to the verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::check::{self, Depth};
use crate::plan::Plan;
use crate::trace::Trace;
use crate::world::{Totals, World};

/// What a run came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The hash over everything that happened.
    pub hash: u64,
    /// How much happened.
    pub events: u64,
    /// Nanoseconds of true time.
    pub simulated: u64,
    /// Numbers.
    pub totals: Totals,
    /// What is wrong, in words, with the id of the invariant first.
    pub violations: Vec<String>,
    /// What a restore that was told wrongly excuses.
    pub excused: u64,
    /// Windows of operations that were too wide to be searched for an order.
    pub not_judged: u64,
    /// Situations that were reached.
    pub sometimes: check::sometimes::Sometimes,
}

/// Runs a plan and judges it. A panic is a violation like any other.
pub fn run(plan: &Plan, trace: Trace, depth: Depth) -> Outcome {
    let run = catch_unwind(AssertUnwindSafe(|| run_to_the_end(plan, trace, depth)));
    run.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
        let words = words.unwrap_or_else(|| "without words".to_owned());
        Outcome { seed: plan.seed, violations: vec![format!("panic: {words}")], ..Outcome::default() }
    })
}

fn run_to_the_end(plan: &Plan, trace: Trace, depth: Depth) -> Outcome {
    let mut world = World::new(plan.clone(), trace);
    world.run();
    let report = check::check(world.record(), depth);
    let mut violations = world.violations().to_vec();
    violations.extend(report.violations.iter().map(ToString::to_string));
    Outcome {
        seed: plan.seed,
        hash: world.hash(),
        events: world.events(),
        simulated: world.now(),
        totals: *world.totals(),
        violations,
        excused: report.excused,
        not_judged: report.windows_not_judged,
        sometimes: report.sometimes,
    }
}
