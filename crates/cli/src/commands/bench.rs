//! `bench`: puts load on a store and says how fast it answers.
//!
//! Every client has a session of its own and names that nobody else uses; all of it is gone at the end, also after a signal. A store in which others
//! hold leases is left alone unless that is asked for by name: load slows them down.

mod load;
mod report;

use leasehold::Store;
use serde::Serialize;
use tokio::time::timeout;

use crate::args::BenchArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::holding::FAREWELL;
use crate::place::Place;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

use report::Report;

/// As many names are looked at to find one that is held; a store with more is not empty either.
const LOOKED_AT: usize = 1_000;

/// Said where no line can move.
#[derive(Serialize)]
struct Begun<'a> {
    event: &'static str,
    store: &'a str,
    message: &'a str,
}

pub(super) async fn run(console: &Console, place: &Place, args: &BenchArgs) -> Result<Exit, Trouble> {
    let mut signals = Signals::listen()?;
    let store = place.connect().await?;
    if !args.beside_others {
        refuse_if_used(place, &store).await?;
    }
    let clients = words::count(usize::from(args.clients), "client");
    if !console.can_animate() {
        let message = format!("{clients} for {}", words::length(args.length));
        console.note(&message, &Begun { event: "measuring", store: place.url(), message: &message });
    }
    let mut stores = vec![store];
    for _ in 1..args.connections.min(args.clients) {
        stores.push(place.connect().await?);
    }
    let taken = load::put(console, &stores, args, &mut signals).await;
    for store in stores {
        // What cannot be told to the store ends with the ttl.
        let _ = timeout(FAREWELL, store.close()).await;
    }
    Report::new(place.url(), &taken?, &clients).say(console)?;
    Ok(Exit::OK)
}

/// Load on a store slows down everybody who uses it: nobody does that without knowing.
async fn refuse_if_used(place: &Place, store: &Store) -> Result<(), Trouble> {
    let (leases, _) = store.leases("", None, LOOKED_AT).await?;
    let held = || leases.iter().filter(|lease| !lease.holders.is_empty());
    let Some((first, holder)) = held().find_map(|lease| Some((lease, lease.holders.first()?))) else {
        return Ok(());
    };
    let count = words::count(held().count(), "lease");
    Err(Trouble::Misuse(format!(
        "{count} held in {}, among them {} by {}: load would slow them down; say --beside-others to put it all the same",
        place.url(),
        first.resource,
        holder.label
    )))
}
