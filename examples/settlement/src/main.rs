//! A batch job that pays each invoice once, on a real PostgreSQL, and what becomes of it when the worker that holds the lease is paused
//! while the bytes of a payment are on their way.
//!
//! `settlement show --postgres URL` plays it twice, without the fence and with it. The stale write is no promise to write later: its
//! bytes have left the worker, and a slow network (a [gate](gate)) brings them to the database after the next holder has paid everything.

mod gate;
mod ledger;
mod show;
mod worker;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Pays each invoice once, or shows what happens without a fence
#[derive(Debug, Parser)]
#[command(name = "settlement")]
struct Words {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Play it twice, without the fence and with it, and show what was paid
    Show(show::Words),
    /// Wait for the lease, pay what is unpaid, and give it back
    Worker(worker::Words),
}

fn main() -> Result<ExitCode> {
    let words = Words::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match words.part {
            Part::Show(words) => show::show(&words).await,
            Part::Worker(words) => worker::work(&words).await.map(|()| ExitCode::SUCCESS),
        }
    })
}
