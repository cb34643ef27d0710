//! Runs simulated worlds: one seed, or as many as fit into some minutes.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use leasehold_clock::computed;
use leasehold_sim::campaign::{Campaign, Summary};
use leasehold_sim::check::{Depth, check};
use leasehold_sim::plan::{Fault, Plan};
use leasehold_sim::run::{Outcome, run};
use leasehold_sim::shrink::shrink;
use leasehold_sim::trace::{MILLI, SECOND, Trace, seconds};
use leasehold_sim::world::World;

/// Simulated worlds of Leasehold: nodes, clients and receivers under faults, decided by a seed and checked.
#[derive(Debug, Parser)]
struct Args {
    /// Run one seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Print what happens.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Print only from this second of true time on.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Print only up to this second of true time.
    #[arg(long, default_value_t = 1_000_000)]
    to: u64,
    /// Switch a fault off.
    #[arg(long)]
    without: Vec<String>,
    /// So many clients.
    #[arg(long)]
    clients: Option<usize>,
    /// Faults happen for so many milliseconds.
    #[arg(long)]
    fault_ms: Option<u64>,
    /// Do not look for a smaller failure.
    #[arg(long)]
    no_shrink: bool,
    /// Run fresh seeds for so many minutes.
    #[arg(long, conflicts_with = "seed", value_parser = minutes, allow_hyphen_values = true)]
    minutes: Option<f64>,
    /// On so many threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), allow_hyphen_values = true)]
    threads: u16,
    /// The first of the fresh seeds; drawn if it is not given.
    #[arg(long)]
    first_seed: Option<u64>,
    /// Leave out the slow checkers.
    #[arg(long)]
    quick: bool,
    /// Measure the speed with three nodes, twenty clients and no faults.
    #[arg(long)]
    speed: bool,
    /// Results as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
}

/// More than a week is a slip of the hand.
const MOST_MINUTES: f64 = 10_080.0;

fn minutes(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|minutes| *minutes > 0.0 && *minutes <= MOST_MINUTES);
    number.ok_or_else(|| format!("{text:?} is no number of minutes above 0 and up to {MOST_MINUTES}"))
}

fn main() -> ExitCode {
    let args = Args::parse();
    let depth = if args.quick { Depth::Quick } else { Depth::Full };
    match (args.seed, args.minutes) {
        _ if args.speed => measure(),
        (Some(seed), _) => one(&args, seed, depth),
        (None, minutes) => many(&args, minutes.unwrap_or(1.0), depth),
    }
}

fn plan(args: &Args, seed: u64) -> Result<Plan, String> {
    let mut plan = Plan::of(seed);
    for word in &args.without {
        let known = Fault::ALL.iter().find(|fault| fault.word() == word);
        let fault = known.ok_or_else(|| {
            let words: Vec<&str> = Fault::ALL.iter().map(|fault| fault.word()).collect();
            format!("there is no fault {word:?}; there are {}", words.join(", "))
        })?;
        plan.faults = plan.faults.without(*fault);
    }
    plan.clients = args.clients.unwrap_or(plan.clients);
    plan.fault_length = args.fault_ms.map_or(plan.fault_length, |length| length * MILLI);
    Ok(plan)
}

fn one(args: &Args, seed: u64, depth: Depth) -> ExitCode {
    let plan = match plan(args, seed) {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let words: Vec<&str> = plan.faults.iter().map(Fault::word).collect();
    eprintln!(
        "seed {seed}: {} nodes, {} clients, {:.0} s of faults{}: {}",
        plan.nodes,
        plan.clients,
        seconds(plan.fault_length),
        if plan.tight { ", tight" } else { "" },
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    );
    let outcome = run(&plan, Trace::new(args.trace, args.from * SECOND, args.to * SECOND), depth);
    if args.json {
        println!("{}", json(&outcome));
    } else {
        println!(
            "hash {:016x}, {} events, {:.3} simulated s",
            outcome.hash,
            outcome.events,
            seconds(outcome.simulated)
        );
        let totals: Vec<String> =
            outcome.totals.all().iter().map(|(name, number)| format!("{name} {number}")).collect();
        println!("{}", totals.join(", "));
    }
    if outcome.violations.is_empty() {
        return ExitCode::SUCCESS;
    }
    report(&plan, &outcome, depth, !args.no_shrink && !args.trace);
    ExitCode::FAILURE
}

/// Says what is wrong, and how to see it again.
fn report(plan: &Plan, outcome: &Outcome, depth: Depth, shrinks: bool) {
    eprintln!("seed {} violates:", outcome.seed);
    for violation in outcome.violations.iter().take(10) {
        eprintln!("  {violation}");
    }
    if shrinks {
        let small = shrink(plan, outcome.clone(), depth);
        eprintln!("shortest found after {} runs: {}", small.runs, small.plan.arguments());
        for violation in small.outcome.violations.iter().take(3) {
            eprintln!("  {violation}");
        }
        eprintln!(
            "replay: cargo run --release -p leasehold-sim --bin simulate -- {} --trace",
            small.plan.arguments()
        );
    }
}

fn many(args: &Args, minutes: f64, depth: Depth) -> ExitCode {
    let first_seed = args.first_seed.unwrap_or_else(|| {
        let mut drawn = [0; 4];
        // Without chance there is still the process's number.
        let _ = getrandom::fill(&mut drawn);
        (u64::from(u32::from_le_bytes(drawn)) << 20) ^ u64::from(std::process::id())
    });
    eprintln!("seeds from {first_seed} on, {minutes} minutes, {} threads", args.threads);
    let length = Duration::from_secs_f64(minutes * 60.0);
    let campaign = Campaign { length, threads: usize::from(args.threads), first_seed, depth, enough: 3 };
    let summary = campaign.run(leasehold_clock::read, |summary| eprintln!("{}", summary.line()));
    show(args, first_seed, &summary);
    for outcome in &summary.failures {
        report(&Plan::of(outcome.seed), outcome, depth, !args.no_shrink);
    }
    let missing = summary.sometimes.missing();
    for situation in &missing {
        eprintln!("never reached: {situation:?}: {}", situation.sentence());
    }
    // A short campaign cannot reach everything.
    let is_long = minutes >= 10.0;
    if summary.failures.is_empty() && (missing.is_empty() || !is_long) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn show(args: &Args, first_seed: u64, summary: &Summary) {
    if args.json {
        let totals: Vec<String> =
            summary.totals.all().iter().map(|(name, number)| format!("\"{name}\":{number}")).collect();
        let seeds: Vec<String> = summary.failures.iter().map(|outcome| outcome.seed.to_string()).collect();
        println!(
            "{{\"first_seed\":{first_seed},\"seeds\":{},\"simulated_s\":{:.0},\"real_s\":{:.1},\"events\":{},{},\"violating\":[{}]}}",
            summary.seeds,
            summary.simulated_seconds(),
            summary.took.as_secs_f64(),
            summary.events,
            totals.join(","),
            seeds.join(",")
        );
        return;
    }
    println!("{}", summary.line());
    println!(
        "{:.0} simulated s in {:.1} s, {} events ({:.0} per second)",
        summary.simulated_seconds(),
        summary.took.as_secs_f64(),
        summary.events,
        rate(summary.events, summary.took)
    );
    for (name, number) in summary.totals.all() {
        println!("  {name:<16} {number}");
    }
    println!("  {:<16} {}", "excused", summary.excused);
    println!("  {:<16} {}", "not_judged", summary.not_judged);
    for (situation, count) in summary.sometimes.all() {
        println!("  sometimes {situation:<24} {count}", situation = format!("{situation:?}"));
    }
}

fn rate(events: u64, took: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let events = events as f64;
    events / took.as_secs_f64().max(0.001)
}

fn json(outcome: &Outcome) -> String {
    let totals: Vec<String> =
        outcome.totals.all().iter().map(|(name, number)| format!("\"{name}\":{number}")).collect();
    let violations: Vec<String> = outcome.violations.iter().map(|words| format!("{words:?}")).collect();
    format!(
        "{{\"seed\":{},\"hash\":\"{:016x}\",\"events\":{},\"simulated_s\":{:.3},{},\"violations\":[{}]}}",
        outcome.seed,
        outcome.hash,
        outcome.events,
        seconds(outcome.simulated),
        totals.join(","),
        violations.join(",")
    )
}

/// Speed on one core: the world alone, and with its checkers. Counted by the time that this thread computed, so that a machine with
/// other things to do gives the same figures.
fn measure() -> ExitCode {
    let plan = Plan::for_speed(1);
    for (what, depth) in [("quick checkers", Depth::Quick), ("all checkers", Depth::Full)] {
        let began = computed();
        let mut world = World::new(plan.clone(), Trace::new(false, 0, 0));
        world.run();
        let ran = computed();
        let report = check(world.record(), depth);
        let (running, whole) = (ran - began, computed() - began);
        println!(
            "{:.0} simulated s: {:.0} x real time, {:.0} events per second; with {what} {:.0} x; {} violations",
            seconds(world.now()),
            seconds(world.now()) / running.as_secs_f64(),
            rate(world.events(), running),
            seconds(world.now()) / whole.as_secs_f64(),
            report.violations.len()
        );
    }
    ExitCode::SUCCESS
}
