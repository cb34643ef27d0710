//! A staged incident and what `leasehold gaps` says of it: see `leasehold_examples::gap`. `cargo xtask gap` builds and runs it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use leasehold_examples::deploys::hold;
use leasehold_examples::gap::{Plan, attempt, run};

/// Stages an incident, and compares what leasehold gaps says of it with the truth
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Words {
    /// The leasehold program to serve with and to ask
    #[arg(long, default_value = "leasehold")]
    program: PathBuf,
    /// The same in a few seconds
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
    /// The old replica
    #[command(hide = true)]
    Hold(hold::Words),
    /// The new replica
    #[command(hide = true)]
    Attempt(attempt::Words),
}

fn main() -> Result<ExitCode> {
    let words = Words::parse();
    if let Some(part) = words.part {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match part {
                Part::Hold(words) => hold::hold(&words).await,
                Part::Attempt(words) => attempt::attempt(&words).await,
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
