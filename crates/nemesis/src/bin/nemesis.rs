//! Runs scenarios and says what came of them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use leasehold_nemesis::check::{self, Rules};
use leasehold_nemesis::history;
use leasehold_nemesis::scenario::{self, ALL};
use leasehold_nemesis::stage::Options;

/// Breaks clusters of real processes on purpose, and checks what their clients saw.
#[derive(Debug, Parser)]
#[command(after_help = list())]
struct Cli {
    /// A scenario, all, quick, or check
    scenario: String,
    /// Decides faults and requests; drawn if it is not given
    #[arg(long)]
    seed: Option<u64>,
    /// Fewer faults and shorter lengths
    #[arg(long)]
    quick: bool,
    /// How many nodes a cluster has, where the scenario does not decide it
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// The program to serve with; the one beside this by default
    #[arg(long)]
    program: Option<PathBuf>,
    /// Where histories and logs go
    #[arg(long, default_value = "target/nemesis")]
    out: PathBuf,
    /// For check: the history to check again
    #[arg(long)]
    history: Option<PathBuf>,
}

fn list() -> String {
    let lines = ALL.iter().map(|scenario| format!("  {:14}{}", scenario.name, scenario.about));
    format!("Scenarios:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nemesis: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    if cli.scenario == "check" {
        return again(cli);
    }
    let beside = std::env::current_exe().context("this program does not know where it is")?;
    let program = cli.program.clone().unwrap_or_else(|| beside.with_file_name("leasehold"));
    let drawn = || u64::from(std::process::id()) ^ (leasehold_clock::read().boot >> 10);
    let seed = cli.seed.unwrap_or_else(drawn) & 0xffff_ffff;
    let quick = cli.quick || cli.scenario == "quick";
    let options = Options { program, out: cli.out.clone(), seed, quick, nodes: cli.nodes };
    let mut failed = Vec::new();
    for scenario in scenario::named(&cli.scenario)? {
        match scenario.run(&options) {
            Ok(report) => {
                println!("{report}");
                if !report.is_good() {
                    failed.push(scenario.name);
                }
            }
            Err(error) => {
                println!(
                    "{}  seed {seed}\n  could not be run to its end: {error:#}\n  FAILED",
                    scenario.name
                );
                failed.push(scenario.name);
            }
        }
    }
    if !failed.is_empty() {
        println!("failed: {}; again with --seed {seed}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

/// Checks a history that was made before.
fn again(cli: &Cli) -> Result<bool> {
    let path = cli.history.as_deref().context("check needs --history FILE")?;
    let lines = history::read(path)?;
    // A history does not say what its clocks did, nor what its ttl was: only what holds for all is checked.
    let rules =
        Rules { ttl: std::time::Duration::from_millis(500), honoured: true, exclusion: true, healing: None };
    let verdicts = check::all(&lines, rules);
    for verdict in &verdicts {
        println!("{} ({} compared): {} violations", verdict.name, verdict.compared, verdict.violations.len());
        for violation in &verdict.violations {
            println!("  {violation}");
        }
    }
    Ok(verdicts.iter().all(check::Verdict::is_good))
}
