//! Measures what carries the session stream: blocking sockets, our own frames, gRPC.
//!
//! `cargo run --release -p leasehold-bench --bin session_stream` takes a few minutes and prints two tables;
//! `--json` prints every run instead.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use leasehold_bench::session_stream::{Plan, client_process, run, server_process};

/// What does the carrier of the session stream cost, before any lease logic is on it?
#[derive(Parser)]
struct Args {
    /// Times each cell is measured.
    #[arg(long, default_value_t = 3)]
    repeats: u32,
    /// Round trips of each ping-pong.
    #[arg(long, default_value_t = 20_000)]
    round_trips: u32,
    /// Length of each run at a fixed rate, in milliseconds.
    #[arg(long, default_value_t = 2_000)]
    paced_ms: u32,
    /// Measure only what the table describes with this text, such as `400 sessions`.
    #[arg(long, default_value = "")]
    only: String,
    /// Every run as JSON on stdout.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    half: Option<Half>,
}

/// One side of one cell; the program starts itself with these.
#[derive(Subcommand)]
enum Half {
    /// Serve one cell until killed.
    #[command(hide = true)]
    Server {
        /// The cell, as JSON.
        cell: String,
        /// Where a unix socket may be made.
        dir: PathBuf,
    },
    /// Measure one cell.
    #[command(hide = true)]
    Client {
        /// The cell, as JSON.
        cell: String,
        /// Where its server listens.
        address: String,
    },
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    match args.half {
        Some(Half::Server { cell, dir }) => server_process(&serde_json::from_str(&cell)?, &dir),
        Some(Half::Client { cell, address }) => client_process(&serde_json::from_str(&cell)?, &address),
        None => {
            let Args { repeats, round_trips, paced_ms, only, .. } = args;
            let report = run(&Plan { repeats, round_trips, paced_ms, only }, |cell| eprintln!("{cell:?}"))?;
            if args.json {
                println!("{}", serde_json::to_string_pretty(&report)?);
            } else {
                print!("{report}");
            }
            Ok(())
        }
    }
}
