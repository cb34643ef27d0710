//! Leasehold and its peers side by side. See `leasehold_bench::contest`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use leasehold_bench::contest::machine::Machine;
use leasehold_bench::contest::plan::Plan;
use leasehold_bench::contest::report::About;
use leasehold_bench::contest::results::{Kept, Outcome, read};
use leasehold_bench::contest::{Contest, peers, report, run, table};
use leasehold_bench::peers::{Peer, Tools};
use leasehold_bench::workloads::load;

/// Any application may have it; what the load spends on memory is not what is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Leasehold and its peers side by side.
#[derive(Debug, Parser)]
struct Words {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Start systems, put load on them, keep the results
    Run(Box<RunArgs>),
    /// Write the report of results that were kept, and measure nothing
    Report(ReportArgs),
    /// Be the load of one measurement
    #[command(hide = true)]
    Load {
        /// What to do, as JSON.
        spec: String,
    },
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The leasehold program to serve with
    #[arg(long)]
    program: PathBuf,
    /// Where the peers were installed
    #[arg(long, default_value = "target/tools/peers")]
    tools: PathBuf,
    /// Beside ourselves
    #[arg(long, value_enum, value_delimiter = ',')]
    peers: Vec<Peer>,
    /// Only these workloads, by their letters
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<char>,
    /// Only with so many nodes
    #[arg(long, value_delimiter = ',')]
    nodes: Vec<usize>,
    /// Small and short, to test the harness itself
    #[arg(long)]
    quick: bool,
    /// Begin anew
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    about: AboutArgs,
    /// Write the report, its plots and the raw results into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Every result as JSON on stdout instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ReportArgs {
    #[command(flatten)]
    about: AboutArgs,
    /// Where the report, its plots and the raw results go
    #[arg(value_name = "DIR")]
    report: PathBuf,
}

/// What a report says, measured now or before.
#[derive(Debug, clap::Args)]
struct AboutArgs {
    /// Where results are kept; to write a report again, also the benchmarks.json of another
    #[arg(long, default_value = "target/bench/results.jsonl")]
    results: PathBuf,
    /// Where data goes, or went; on a disk [default: the system's temporary directory]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Times each is measured
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// A system that could not be had, and why
    #[arg(long, value_name = "NAME=WHY", value_parser = named)]
    not_at_hand: Vec<(String, String)>,
}

impl AboutArgs {
    fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(std::env::temp_dir)
    }
}

fn named(text: &str) -> Result<(String, String), String> {
    let (name, why) = text.split_once('=').ok_or("give a name, then = and the reason")?;
    Ok((name.to_owned(), why.to_owned()))
}

fn main() -> ExitCode {
    let done = match Words::parse().task {
        Task::Load { spec } => {
            serde_json::from_str(&spec).map_err(Into::into).and_then(|spec| load(&spec)).map(|()| true)
        }
        Task::Run(args) => measure(&args),
        Task::Report(args) => write_again(&args).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Says whether everything was measured.
fn measure(args: &RunArgs) -> Result<bool> {
    if args.fresh && args.about.results.exists() {
        std::fs::remove_file(&args.about.results)?;
    }
    let mut kept = Kept::open(&args.about.results)?;
    let plan = Plan {
        peers: peers(&args.peers),
        letters: args.workloads.iter().map(char::to_ascii_uppercase).collect(),
        nodes: args.nodes.clone(),
        repeats: args.about.repeats,
        quick: args.quick,
    };
    let tools = Tools {
        program: std::path::absolute(&args.program)?,
        installed: std::path::absolute(&args.tools)?,
        data: args.about.data(),
    };
    let load = std::env::current_exe().context("this program has no path")?;
    let machine = Machine::look(&tools.data)?;
    let contest = Contest { plan, tools, load };
    run(&contest, &mut kept)?;
    if let Some(place) = &args.report {
        let about = About { machine: &machine, plan: &contest.plan, not_at_hand: &args.about.not_at_hand };
        report::write(place, &about, &kept.lines)?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&kept.lines)?);
    } else {
        print!("{}", table(&kept.lines));
    }
    let failed = kept.lines.iter().any(|line| matches!(line.outcome, Outcome::Failed(_)));
    Ok(!failed)
}

/// The machine is looked at now: it has to be the one of the results.
fn write_again(args: &ReportArgs) -> Result<()> {
    let lines = read(&args.about.results)?;
    let machine = Machine::look(&args.about.data())?;
    let plan = Plan { repeats: args.about.repeats, ..Plan::default() };
    let about = About { machine: &machine, plan: &plan, not_at_hand: &args.about.not_at_hand };
    report::write(&args.report, &about, &lines)
}
