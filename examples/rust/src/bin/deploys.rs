//! Rolling deploys of real processes, measured: see `leasehold_examples::deploys`. `cargo xtask deploys` builds and runs it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use leasehold_examples::deploys::{Plan, hold, run};

/// Deploys replicas again and again, and measures for how long nobody leads
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Words {
    /// The leasehold program to serve with
    #[arg(long, default_value = "leasehold")]
    program: PathBuf,
    /// A few short deploys, with loose bounds on time
    #[arg(long)]
    quick: bool,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What this program starts itself as.
#[derive(Debug, Subcommand)]
enum Part {
    /// Holds, and says when each confirmed renewal was sent
    #[command(hide = true)]
    Hold(hold::Words),
    /// A replica that does nothing right
    #[command(hide = true)]
    Naive(hold::NaiveWords),
}

fn main() -> Result<ExitCode> {
    let words = Words::parse();
    if let Some(part) = words.part {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match part {
                Part::Hold(words) => hold::hold(&words).await,
                Part::Naive(words) => hold::naive(&words).await,
            }
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let itself = std::env::current_exe().context("where is this program?")?;
    let replica = itself.with_file_name("replica");
    let plan = if words.quick { Plan::quick } else { Plan::full };
    let report = run(&plan(words.program, replica, itself))?;
    if words.json {
        println!("{:#}", report.json());
    } else {
        println!("{report}");
    }
    Ok(if report.complaints().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
