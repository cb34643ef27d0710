//! Real processes on a stage: rolling deploys, measured, and an incident that `leasehold gaps` is asked about. See
//! `leasehold_examples::deploys` and `leasehold_examples::gap`. `cargo xtask staged` builds and runs it.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use leasehold_examples::deploys::{self, Programs, hold};
use leasehold_examples::gap::{self, attempt};
use serde_json::Value;

/// Stages real processes, and compares what comes of it with what must hold
#[derive(Debug, Parser)]
struct Words {
    #[command(subcommand)]
    part: Part,
}

/// What is staged, and what this program starts itself as.
#[derive(Debug, Subcommand)]
enum Part {
    /// Deploy replicas again and again, and measure for how long nobody leads
    Deploys(Staged),
    /// Stage an incident, and compare what leasehold gaps says of it with the truth
    Gap(Staged),
    /// Holds, and says when each confirmed renewal was sent
    #[command(hide = true)]
    Hold(hold::Words),
    /// A replica that does nothing right
    #[command(hide = true)]
    Naive(hold::NaiveWords),
    /// The new replica of the incident
    #[command(hide = true)]
    Attempt(attempt::AttemptWords),
}

#[derive(Debug, clap::Args)]
struct Staged {
    /// The leasehold program to serve with and to ask
    #[arg(long, default_value = "leasehold")]
    program: PathBuf,
    /// In a few seconds; deploys with loose bounds on time
    #[arg(long)]
    quick: bool,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    match Words::parse().part {
        Part::Deploys(staged) => {
            let plan = if staged.quick { deploys::Plan::quick } else { deploys::Plan::full };
            let report = deploys::run(&plan(staged.programs()?))?;
            return Ok(staged.tell(&report, &report.json()));
        }
        Part::Gap(staged) => {
            let plan = if staged.quick { gap::Plan::quick } else { gap::Plan::full };
            let report = gap::run(&plan(staged.programs()?))?;
            return Ok(staged.tell(&report, &report.json()));
        }
        Part::Hold(words) => hold::hold(&words).await?,
        Part::Naive(words) => hold::naive(&words).await?,
        Part::Attempt(words) => attempt::attempt(&words).await?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Staged {
    fn programs(&self) -> Result<Programs> {
        let itself = std::env::current_exe().context("where is this program?")?;
        let (leasehold, replica) = (self.program.clone(), itself.with_file_name("replica"));
        Ok(Programs { leasehold, replica, itself })
    }

    fn tell(&self, report: &impl Display, as_json: &Value) -> ExitCode {
        if self.json {
            println!("{as_json:#}");
        } else {
            println!("{report}");
        }
        if as_json["good"] == true { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
