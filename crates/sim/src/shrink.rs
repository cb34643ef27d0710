//! From a failure to the smallest one that is still the same.

use crate::check::Depth;
use crate::plan::Plan;
use crate::run::{Outcome, run};
use crate::trace::{MILLI, SECOND, Trace};

/// Runs that a search for something smaller may cost.
const MAX_RUNS: usize = 80;

/// A plan that fails as the first one did, and how.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The plan.
    pub plan: Plan,
    /// What comes of it.
    pub outcome: Outcome,
    /// How many runs the search took.
    pub runs: usize,
}

/// Looks for fewer faults, a shorter time and fewer clients with which the same invariant is violated.
pub fn shrink(plan: &Plan, outcome: Outcome, depth: Depth) -> Shrunk {
    let wanted = kind(&outcome);
    let mut best = Shrunk { plan: plan.clone(), outcome, runs: 0 };
    loop {
        let before = best.plan.clone();
        for candidate in candidates(&before) {
            if best.runs >= MAX_RUNS {
                return best;
            }
            best.runs += 1;
            let outcome = run(&candidate, Trace::new(false, 0, 0), depth);
            if kind(&outcome) == wanted {
                (best.plan, best.outcome) = (candidate, outcome);
                break;
            }
        }
        if best.plan == before {
            return best;
        }
    }
}

/// The first word of the first violation: the id of an invariant, or that of a panic.
fn kind(outcome: &Outcome) -> Option<String> {
    let first = outcome.violations.first()?;
    Some(first.split([' ', ':']).next().unwrap_or_default().to_owned())
}

/// Smaller plans, the smallest first.
fn candidates(plan: &Plan) -> Vec<Plan> {
    let mut smaller = Vec::new();
    if plan.fault_length > 10 * SECOND {
        for part in [4, 2] {
            let fault_length = (plan.fault_length / part / MILLI * MILLI).max(5 * SECOND);
            smaller.push(Plan { fault_length, ..plan.clone() });
        }
    }
    for fault in plan.faults.iter() {
        smaller.push(Plan { faults: plan.faults.without(fault), ..plan.clone() });
    }
    if plan.clients > 2 {
        smaller.push(Plan { clients: plan.clients / 2, ..plan.clone() });
        smaller.push(Plan { clients: plan.clients - 1, ..plan.clone() });
    }
    if plan.fault_length > 10 * SECOND {
        smaller.push(Plan { fault_length: plan.fault_length / 10 / MILLI * MILLI * 9, ..plan.clone() });
    }
    smaller
}
