//! A job of cron that runs on one machine at a time: `cron_job --store leasehold://db-1:7420`. See `leasehold_examples::cron`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use leasehold_examples::cron::{Ran, run_once};
use leasehold_examples::ledger::Ledger;

/// Writes the pages of a report, unless another instance does
#[derive(Debug, Parser)]
struct Words {
    /// Where the leases live
    #[arg(long, env = "LEASEHOLD_STORE")]
    store: String,
    /// What must not be done twice at once
    #[arg(long, default_value = "reports/nightly")]
    name: String,
    /// The report
    #[arg(long, default_value = "report.ledger")]
    report: PathBuf,
    /// How many pages it has
    #[arg(long, default_value_t = 10)]
    pages: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let words = Words::parse();
    let report = Ledger::new(&words.report);
    let store = leasehold::Store::connect(&words.store).await?;
    let ran = run_once(&store, &words.name, words.pages, async |_page, guard| {
        let item = report.begin(guard.token()?)?;
        report.finish(item, guard.token()?)
    })
    .await?;
    store.close().await;
    match ran {
        Ran::Done { pages } => println!("wrote {pages} pages"),
        Ran::Elsewhere { why } => println!("nothing to do here: {why}"),
    }
    Ok(())
}
