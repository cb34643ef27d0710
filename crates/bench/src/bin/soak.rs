//! Mixed load on a served node for a long time: memory and descriptors must stay flat. See `leasehold_bench::soak`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use leasehold_bench::soak::{Plan, run};

/// Runs mixed load against a service of its own, notes memory and descriptors every second, and draws them.
#[derive(Debug, Parser)]
struct Words {
    /// The leasehold program to serve with.
    #[arg(long)]
    program: PathBuf,
    /// For how many minutes.
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// For how many milliseconds each lease is held at least: the shorter, the more load.
    #[arg(long, default_value_t = 60)]
    pace_ms: u64,
    /// Where samples and plot go, without an ending.
    #[arg(long, default_value = "soak")]
    out: PathBuf,
}

fn main() -> anyhow::Result<ExitCode> {
    let words = Words::parse();
    let plan = Plan {
        program: words.program,
        length: Duration::from_secs_f64(words.minutes * 60.0),
        pace: Duration::from_millis(words.pace_ms),
        out: words.out,
    };
    Ok(if run(&plan)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
