//! Readers that do not read, measured. See `leasehold_bench::unread`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use leasehold_bench::unread::{Way, run};

/// Asks a service of its own for pages that are not read, and measures its memory and the renewals of other clients.
#[derive(Debug, Parser)]
struct Words {
    /// The leasehold program to serve with.
    #[arg(long)]
    program: PathBuf,
    /// By which door they come.
    #[arg(long, value_enum, default_value_t = Way::Http)]
    way: Way,
    /// How many connections do not read.
    #[arg(long, default_value_t = 4_000)]
    connections: usize,
    /// For how many seconds, without them and with them.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

fn main() -> anyhow::Result<()> {
    let words = Words::parse();
    run(&words.program, words.way, words.connections, Duration::from_secs(words.seconds))
}
