//! Puts a known bug back and runs the general campaign until a checker finds it.
//!
//! The seeds are fresh and the plans are those of every campaign: nothing is arranged for the bug. A violation counts only if the
//! same seed without the bug has none. The last line on standard output is for programs: words separated by tabs.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use leasehold_core::planted::{Bug, choose};
use leasehold_sim::check::Depth;
use leasehold_sim::plan::Plan;
use leasehold_sim::run::{Outcome, run};
use leasehold_sim::trace::Trace;
use rustix::time::{ClockId, clock_gettime};

/// The general campaign with a known bug in everything.
#[derive(Debug, Parser)]
struct Args {
    /// The bug. Without it, all of them are listed: name, tab, what it is.
    #[arg(long)]
    bug: Option<String>,
    /// For so many minutes of one core at most.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// The first of the fresh seeds; drawn if it is not given.
    #[arg(long)]
    first_seed: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let Some(word) = &args.bug else {
        Bug::ALL.iter().for_each(|bug| println!("{}\t{}", bug.word(), bug.sentence()));
        return ExitCode::SUCCESS;
    };
    let Some(bug) = Bug::ALL.iter().copied().find(|bug| bug.word() == word) else {
        eprintln!("there is no bug {word:?}; without --bug all of them are listed");
        return ExitCode::from(2);
    };
    // A panic is a finding, and its words are kept; they need not be shown a thousand times.
    std::panic::set_hook(Box::new(|_| {}));
    hunt(&args, bug);
    ExitCode::SUCCESS
}

fn hunt(args: &Args, bug: Bug) {
    let first_seed = args.first_seed.unwrap_or_else(drawn);
    let limit = Duration::from_secs_f64(args.minutes * 60.0);
    let (mut seeds, mut without) = (0_u64, 0_u64);
    while computed() < limit {
        let plan = Plan::of(first_seed.wrapping_add(seeds));
        seeds += 1;
        let outcome = run_with(Some(bug), &plan);
        if outcome.violations.is_empty() {
            continue;
        }
        if !run_with(None, &plan).violations.is_empty() {
            // The simulator, or the product, has a bug of its own there.
            eprintln!("seed {} violates without the bug too", plan.seed);
            without += 1;
            continue;
        }
        let violation = outcome.violations[0].replace(['\t', '\n'], " ");
        let checkers = checkers(&outcome).join(" ");
        let took = computed().as_secs_f64();
        println!("found\t{checkers}\t{seeds}\t{took:.1}\t{}\t{without}\t{violation}", plan.seed);
        return;
    }
    println!("missed\t\t{seeds}\t{:.1}\t{first_seed}\t{without}\t", computed().as_secs_f64());
}

fn run_with(bug: Option<Bug>, plan: &Plan) -> Outcome {
    choose(bug);
    run(plan, Trace::new(false, 0, 0), Depth::Full)
}

/// Who found something, in the order of the checkers, each once.
fn checkers(outcome: &Outcome) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for violation in &outcome.violations {
        let name = violation.split([' ', ':']).next().unwrap_or("?");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// How long this process has computed: a machine with other things to do gives the same figures.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (whole, nanos) = (u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
    Duration::new(whole, nanos)
}

fn drawn() -> u64 {
    let mut drawn = [0; 4];
    // Without chance there is still the process's number.
    let _ = getrandom::fill(&mut drawn);
    (u64::from(u32::from_le_bytes(drawn)) << 20) ^ u64::from(std::process::id())
}
