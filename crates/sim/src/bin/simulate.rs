//! Runs simulated worlds: one seed, or as many as fit into some minutes.

#[path = "simulate/tell.rs"]
mod tell;
#[path = "simulate/verdict.rs"]
mod verdict;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};
use leasehold_args::simulate::{Args, LONG_MINUTES};
use leasehold_clock::computed;
use leasehold_sim::campaign::{Campaign, Length, counted};
use leasehold_sim::changes::Changes;
use leasehold_sim::check::{Depth, check};
use leasehold_sim::plan::{Fault, Faults, Plan};
use leasehold_sim::run::{Outcome, run};
use leasehold_sim::shrink::shrink;
use leasehold_sim::trace::{MILLI, Trace, seconds};
use leasehold_sim::world::World;
use serde_json::json;

use verdict::Verdict;

fn main() -> ExitCode {
    end_with_the_reader();
    let args = Args::parse();
    if let Err(why) = args.check() {
        Args::command().error(clap::error::ErrorKind::ArgumentConflict, why).exit();
    }
    let depth = if args.quick { Depth::Quick } else { Depth::Full };
    match args.seed {
        _ if args.speed => measure(&args),
        Some(seed) => one(&args, seed, depth),
        None => many(&args, depth),
    }
}

/// Whoever reads a trace may have seen enough: then nothing is wrong, and nobody is left to tell.
fn end_with_the_reader() {
    /// What a shell says of a program that the end of its reader has stopped.
    const READER_GONE: i32 = 141;
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let words = panic.payload().downcast_ref::<String>();
        if words.is_some_and(|words| words.starts_with("failed printing to stdout: Broken pipe")) {
            std::process::exit(READER_GONE);
        }
        usual(panic);
    }));
}

fn changes(args: &Args) -> Changes {
    let is_named = |fault: &&Fault| args.without.iter().any(|word| word == fault.word());
    let without = Fault::ALL.iter().filter(is_named).fold(Faults::NONE, |faults, fault| faults.with(*fault));
    let fault_length = args.fault_ms.map(|length| length * MILLI);
    Changes { without, clients: args.clients, fault_length }
}

fn one(args: &Args, seed: u64, depth: Depth) -> ExitCode {
    let plan = changes(args).plan(seed);
    let words: Vec<&str> = plan.faults.iter().map(Fault::word).collect();
    eprintln!(
        "seed {seed}: {}, {}, {:.0} s of faults{}: {}",
        counted(plan.nodes as u64, "node"),
        counted(plan.clients as u64, "client"),
        seconds(plan.fault_length),
        if plan.tight { ", tight" } else { "" },
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    );
    let trace = Trace::new(args.trace, args.from.unwrap_or(0), args.to.unwrap_or(u64::MAX));
    let outcome = run(&plan, trace, depth);
    let verdict = Verdict::of_one(&outcome);
    if args.json {
        println!("{}", tell::one_as_json(&outcome, &verdict));
    } else {
        tell::one(&outcome, args.situations);
    }
    if !outcome.violations.is_empty() {
        report(&plan, &outcome, depth, !args.no_shrink && !args.trace);
    }
    verdict.end(args.json)
}

/// Says what is wrong, and how to see it again.
fn report(plan: &Plan, outcome: &Outcome, depth: Depth, shrinks: bool) {
    eprintln!("seed {} violates:", outcome.seed);
    for violation in outcome.violations.iter().take(10) {
        eprintln!("  {violation}");
    }
    if shrinks {
        let small = shrink(plan, outcome.clone(), depth);
        let runs = counted(small.runs as u64, "run");
        eprintln!("shortest found after {runs}: {}", small.plan.arguments());
        for violation in small.outcome.violations.iter().take(3) {
            eprintln!("  {violation}");
        }
        eprintln!("replay: cargo xtask simulate {} --trace", small.plan.arguments());
    }
}

fn many(args: &Args, depth: Depth) -> ExitCode {
    let first_seed = args.first_seed.unwrap_or_else(|| {
        let mut drawn = [0; 4];
        // Without chance there is still the process's number.
        let _ = getrandom::fill(&mut drawn);
        (u64::from(u32::from_le_bytes(drawn)) << 20) ^ u64::from(std::process::id())
    });
    let threads = counted(args.threads as u64, "thread");
    let minutes = args.minutes.unwrap_or(1.0);
    let (length, for_long) = match args.seeds {
        Some(seeds) => (Length::Seeds(seeds), format!("{seeds} of them")),
        None => (Length::Time(Duration::from_secs_f64(minutes * 60.0)), format!("{minutes} min")),
    };
    eprintln!("seeds from {first_seed} on, {for_long} on {threads}");
    let changes = changes(args);
    let campaign = Campaign { length, threads: args.threads, first_seed, depth, enough: 3, changes };
    let summary = campaign.run(leasehold_clock::read, |summary| eprintln!("{}", summary.line()));
    let is_long = minutes >= LONG_MINUTES;
    let verdict = Verdict::of_many(&summary, is_long && changes.is_none());
    if args.json {
        println!("{}", tell::many_as_json(first_seed, &summary, &verdict));
    } else {
        tell::many(&summary, args.situations || is_long);
    }
    for outcome in &summary.failures {
        report(&changes.plan(outcome.seed), outcome, depth, !args.no_shrink);
    }
    verdict.end(args.json)
}

/// Speed on one core: the world alone, and with its checkers. Counted by the time that this thread computed, so that a machine with
/// other things to do gives the same figures.
fn measure(args: &Args) -> ExitCode {
    let plan = Plan::for_speed(1);
    let mut measured = Vec::new();
    for (what, depth) in [("quick", Depth::Quick), ("all", Depth::Full)] {
        let began = computed();
        let mut world = World::new(plan.clone(), Trace::new(false, 0, 0));
        world.run();
        let ran = computed();
        let report = check(world.record(), depth);
        let (running, whole) = (ran - began, computed() - began);
        let simulated = seconds(world.now());
        let (alone, judged) = (simulated / running.as_secs_f64(), simulated / whole.as_secs_f64());
        let rate = tell::rate(world.events(), running);
        let violations = report.violations.len() as u64;
        if args.json {
            measured.push(json!({
                "checkers": what,
                "simulated_s": simulated.round() as u64,
                "times_real_time": alone.round() as u64,
                "events_per_s": rate.round() as u64,
                "times_real_time_with_checkers": judged.round() as u64,
                "violations": violations,
            }));
        } else {
            println!(
                "{simulated:.0} simulated s: {alone:.0} x real time, {rate:.0} events per second; with {what} checkers {judged:.0} x; {}",
                counted(violations, "violation")
            );
        }
    }
    if args.json {
        println!("{}", json!({ "speed": measured }));
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_command_line_are_those_of_the_faults() {
        let words: Vec<&str> = Fault::ALL.iter().map(|fault| fault.word()).collect();
        assert_eq!(words, leasehold_args::simulate::FAULTS);
    }

    #[test]
    fn faults_clients_and_length_are_changed() {
        let args = Args::parse_from(["simulate", "--without", "kill", "--without", "cut", "--fault-ms", "7"]);
        let without = Faults::NONE.with(Fault::Kill).with(Fault::Cut);
        assert_eq!(changes(&args), Changes { without, clients: None, fault_length: Some(7 * MILLI) });
    }
}
