//! Two writers of one object in a store that speaks S3, under a lease, and what becomes of the object when the first is paused while the
//! bytes of a version are on their way.
//!
//! `object-writer show --endpoint URL --bucket NAME` plays it twice, without the fence and with it. The stale write is no promise to write
//! later: its bytes have left the writer, and a slow network (a [gate](gate)) brings them to the store after the next holder has
//! written newer versions.

mod gate;
mod report;
mod show;
mod writer;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Keeps one object up to date, or shows what happens without a fence
#[derive(Debug, Parser)]
#[command(name = "object-writer")]
struct Words {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Play it twice, without the fence and with it, and show which version the object has
    Show(show::Words),
    /// Wait for the lease, write the versions that are missing, and give it back
    Writer(writer::Words),
}

fn main() -> Result<ExitCode> {
    let words = Words::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match words.part {
            Part::Show(words) => show::show(&words).await,
            Part::Writer(words) => writer::work(&words).await.map(|()| ExitCode::SUCCESS),
        }
    })
}
