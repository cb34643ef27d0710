//! One session for many leases, beside a session for each. See `leasehold_bench::coalescing`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use leasehold_bench::coalescing::client::{Shape, live};
use leasehold_bench::coalescing::{Plan, run};

/// Measures what many leases cost while nothing happens: in one session, and with a session for each.
#[derive(Debug, Parser)]
struct Words {
    /// The leasehold program to serve with.
    #[arg(long, required_unless_present = "client_of")]
    program: Option<PathBuf>,
    /// How many leases.
    #[arg(long, default_value_t = 10_000)]
    leases: usize,
    /// The ttl in seconds.
    #[arg(long, default_value_t = 10)]
    ttl_s: u64,
    /// For how many seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Only this shape.
    #[arg(long, value_enum)]
    shape: Option<Shape>,
    /// Print figures for programs.
    #[arg(long)]
    json: bool,
    /// Be the client of the service at this address.
    #[arg(long, hide = true, requires = "shape")]
    client_of: Option<String>,
}

fn main() -> Result<()> {
    let words = Words::parse();
    let ttl = Duration::from_secs(words.ttl_s);
    if let (Some(address), Some(shape)) = (&words.client_of, words.shape) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(live(address, shape, words.leases, ttl));
    }
    let report = run(&Plan {
        program: words.program.context("which program to serve with?")?,
        client: std::env::current_exe().context("this program has no path")?,
        leases: words.leases,
        ttl,
        idle: Duration::from_secs(words.seconds),
        shapes: words.shape.map_or_else(|| Shape::value_variants().to_vec(), |shape| vec![shape]),
    })?;
    if words.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}
