//! `hold`: a lease without a command, for scripts and for people.

use std::future::pending;
use std::io::Read;

use leasehold::{Lease, LeaseState};
use rustix::fs::{FileType, fstat};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::acquire::{self, Holding};
use crate::args::AcquireArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

/// One line: what has happened to the lease.
#[derive(Serialize)]
struct Line<'a> {
    event: &'a str,
    resource: &'a str,
    token: String,
    fence_token: String,
    slot: Option<u32>,
    session: String,
    remaining_ms: Option<u64>,
    by: Option<&'a str>,
}

pub(super) async fn run(console: &Console, place: &Place, args: &AcquireArgs) -> Result<Exit, Trouble> {
    let mut signals = Signals::listen()?;
    let holding = acquire::acquire(console, place, args, words::own_label(None), &mut signals).await?;
    let teller = Teller { console, holding: &holding };
    teller.tell("granted", None);
    let drained = match watch(&teller, &mut signals).await {
        Ok(drained) => drained,
        Err(trouble) => {
            teller.tell("ended", None);
            let _ = holding.close().await;
            return Err(trouble);
        }
    };
    let text = teller.line("released");
    holding.give_back(drained).await?;
    text.say(console);
    Ok(Exit::OK)
}
