//! Puts a known bug back and runs the general campaign until a checker finds it.
//!
//! The seeds are fresh and the plans are those of every campaign: nothing is arranged for the bug. A violation counts only if the
//! same seed without the bug has none. The last line on standard output is for programs: words separated by tabs.

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use leasehold_clock::computed_by_all as computed;
use leasehold_core::planted::{Bug, choose};
use leasehold_sim::check::Depth;
use leasehold_sim::plan::Plan;
use leasehold_sim::run::{Outcome, run};
use leasehold_sim::trace::Trace;

/// The general campaign with a known bug in everything.
#[derive(Debug, Parser)]
struct Args {
    /// The bug, or `none` to see what is found without any. Without it, all of them are listed: name, what it is, what finds it.
    #[arg(long)]
    bug: Option<String>,
    /// For so many minutes of one core at most.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// The first of the fresh seeds; drawn if it is not given.
    #[arg(long)]
    first_seed: Option<u64>,
    /// What this checker finds does not count: while it is known to complain for nothing.
    #[arg(long)]
    distrust: Vec<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let Some(word) = &args.bug else {
        Bug::ALL.iter().for_each(|bug| println!("{}\t{}\t{}", bug.word(), bug.sentence(), bug.found_by()));
        return ExitCode::SUCCESS;
    };
    // A panic is a finding, and its words are kept; they need not be shown a thousand times.
    std::panic::set_hook(Box::new(|_| {}));
    if word == "none" {
        look(&args);
        return ExitCode::SUCCESS;
    }
    let Some(bug) = Bug::ALL.iter().copied().find(|bug| bug.word() == word) else {
        eprintln!("there is no bug {word:?}; without --bug all of them are listed");
        return ExitCode::from(2);
    };
    hunt(&args, bug);
    ExitCode::SUCCESS
}

fn hunt(args: &Args, bug: Bug) {
    let first_seed = args.first_seed.unwrap_or_else(drawn);
    let limit = Duration::from_secs_f64(args.minutes * 60.0);
    std::thread::spawn(move || watch(first_seed));
    let (mut seeds, mut without) = (0_u64, 0_u64);
    while computed() < limit {
        let plan = Plan::of(first_seed.wrapping_add(seeds));
        seeds += 1;
        SEEDS.store(seeds, Ordering::Relaxed);
        let mut outcome = run_with(Some(bug), &plan);
        outcome.violations.retain(|violation| !args.distrust.iter().any(|id| id == checker(violation)));
        if outcome.violations.is_empty() {
            continue;
        }
        if let Some(other) = run_with(None, &plan).violations.first() {
            // The simulator, or the product, has a bug of its own there.
            eprintln!("seed {} violates without the bug too: {other}", plan.seed);
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

/// Seeds begun so far.
static SEEDS: AtomicU64 = AtomicU64::new(0);

/// A run that computes for longer than this has no end: others take a second or two.
const ENDLESS: Duration = Duration::from_secs(40);

/// Ends a hunt whose run does not end: something goes round in circles, in no simulated time. That is found too, unless the same
/// seed has no end without the bug.
fn watch(first_seed: u64) {
    let (mut seeds, mut began) = (0, Duration::ZERO);
    loop {
        std::thread::sleep(Duration::from_millis(500));
        if SEEDS.load(Ordering::Relaxed) != seeds {
            (seeds, began) = (SEEDS.load(Ordering::Relaxed), computed());
        }
        if seeds == 0 || computed().saturating_sub(began) < ENDLESS {
            continue;
        }
        let seed = first_seed.wrapping_add(seeds - 1);
        let took = computed().as_secs_f64();
        // Less than one run: only this seed.
        let args = ["--bug", "none", "--minutes", "0.0001", "--first-seed", &seed.to_string()];
        let again = std::env::current_exe().and_then(|program| Command::new(program).args(args).output());
        let ends = again.is_ok_and(|output| output.stdout.starts_with(b"0 of 1 "));
        let word = if ends { "found" } else { "missed" };
        println!("{word}\tendless\t{seeds}\t{took:.1}\t{seed}\t0\ta run does not end");
        std::process::exit(0);
    }
}

fn run_with(bug: Option<Bug>, plan: &Plan) -> Outcome {
    choose(bug);
    run(plan, Trace::new(false, 0, 0), Depth::Full)
}

/// Runs the campaign without a bug, and says whatever it finds.
fn look(args: &Args) {
    let first_seed = args.first_seed.unwrap_or_else(drawn);
    let limit = Duration::from_secs_f64(args.minutes * 60.0);
    let (mut seeds, mut violating) = (0_u64, 0_u64);
    while computed() < limit {
        let outcome = run_with(None, &Plan::of(first_seed.wrapping_add(seeds)));
        seeds += 1;
        if let Some(violation) = outcome.violations.first() {
            violating += 1;
            println!("seed {}: {}: {violation}", outcome.seed, checkers(&outcome).join(" "));
        }
    }
    println!("{violating} of {seeds} seeds violate something, {:.1} s", computed().as_secs_f64());
}

/// Who found something, in the order of the checkers, each once.
fn checkers(outcome: &Outcome) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in outcome.violations.iter().map(|violation| checker(violation)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Who says this: a checker, the node that stops, or the world's own look at whether everybody was served in the end.
fn checker(violation: &str) -> &str {
    match violation.split([' ', ':']).next() {
        Some("after") => "served",
        Some(word) if word.starts_with('n') => "node",
        Some(word) => word,
        None => "?",
    }
}

fn drawn() -> u64 {
    let mut drawn = [0; 4];
    // Without chance there is still the process's number.
    let _ = getrandom::fill(&mut drawn);
    (u64::from(u32::from_le_bytes(drawn)) << 20) ^ u64::from(std::process::id())
}
