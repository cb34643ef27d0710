//! A controller with a warm standby: start it twice, then end the one that leads. See `leasehold_examples::controller`.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use leasehold::Termination;
use leasehold_examples::controller::{candidate, control, narrate};
use tokio::sync::watch;
use tokio::time::sleep;

/// Controls something while it leads; stands by, warm, while another does
#[derive(Debug, Parser)]
struct Words {
    /// Where the leases live
    #[arg(long, env = "LEASEHOLD_STORE")]
    store: String,
    /// What is led
    #[arg(long, default_value = "controllers/payments")]
    name: String,
    /// What the others are shown while this one leads
    #[arg(long, default_value = "10.0.0.7:8080")]
    address: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let words = Words::parse();
    let termination = Termination::listen(Duration::from_secs(30), Duration::from_secs(5))?;
    let store = leasehold::Store::connect(&words.store).await?;
    let (ready, readiness) = watch::channel(false);
    let election = candidate(&store, &words.name, &words.address, readiness)?;
    let mut observer = election.observe();
    let narrator = async {
        loop {
            let error = narrate(&mut observer, |line| println!("{line}")).await;
            println!("cannot see who leads: {error}");
            sleep(Duration::from_secs(1)).await;
        }
    };
    let warm_up = async {
        // Here caches are filled and connections made, on every replica and before it campaigns.
        sleep(Duration::from_secs(1)).await;
        ready.send_replace(true);
        println!("ready");
        termination.requested().await;
        election.stop();
        std::future::pending::<()>().await;
    };
    let controlling = control(&election, async |leadership| {
        if let Ok(token) = leadership.token() {
            println!("a pass, written with token {token}");
        }
        sleep(Duration::from_secs(5)).await;
    });
    tokio::select! {
        ended = controlling => {
            if let Some(next) = ended? {
                println!("{} leads next", next.label);
            }
        }
        () = narrator => {}
        () = warm_up => {}
    }
    store.close().await;
    Ok(())
}
