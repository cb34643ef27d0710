//! `fence-check`: what receivers know of a fence name, beside what the store has granted.
//!
//! Only looks. A receiver that cannot be asked does not keep the others from being shown.

mod told;

use std::sync::Arc;
use std::time::Duration;

use leasehold::core::table::HoldingState;
use leasehold::fence::{Answer, Error as FenceError, Receiver, Seen};
use leasehold::{ResourceName, Store};
use tokio::time::timeout;

use crate::args::FenceCheckArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::receivers;
use crate::trouble::Trouble;

use told::{Asked, Known, Report};

pub(super) async fn run(
    console: &Console,
    place: &Place,
    args: &FenceCheckArgs,
    patience: Duration,
) -> Result<Exit, Trouble> {
    let mut asked = Vec::new();
    for url in &args.receivers {
        // Nothing is asked before every URL is understood.
        asked.push(receivers::open(url).map_err(Trouble::Misuse)?);
    }
    // All at once: a receiver that does not answer costs the time of one.
    let name: Arc<str> = args.name.as_str().into();
    let ask = |receiver: Arc<dyn Receiver>| {
        (receiver.place().to_owned(), tokio::spawn(ask(receiver, Arc::clone(&name), patience)))
    };
    let asking: Vec<_> = asked.into_iter().map(ask).collect();
    let mut answers = Vec::new();
    for (place, asking) in asking {
        let (seen, warnings) = asking.await.unwrap_or_else(|error| (Err(error.to_string()), Vec::new()));
        answers.push(Asked { place, seen, warnings });
    }
    // Last: whatever a receiver has seen was granted before. The other way round a grant in between would look as if tokens had fallen.
    let known = from_store(place, &args.name).await;
    let report = Report { name: args.name.clone(), known, asked: answers };
    console.framed_table(&report.head(), &report.table(), &report.below(), &report.json())?;
    Ok(if report.is_well() { Exit::OK } else { Exit::FAILURE })
}

/// What a receiver knows of the name, and what is said against its settings.
async fn ask(
    receiver: Arc<dyn Receiver>,
    name: Arc<str>,
    patience: Duration,
) -> (Result<Seen, String>, Vec<String>) {
    let (seen, hazards) =
        tokio::join!(in_time(receiver.look(&name), patience), in_time(receiver.hazards(), patience),);
    let warnings = match (&seen, hazards) {
        // Why it cannot be asked is said once.
        (Err(_), _) => Vec::new(),
        (Ok(_), Ok(hazards)) => hazards.iter().map(ToString::to_string).collect(),
        (Ok(_), Err(why)) => vec![format!("its settings are not known: {why}")],
    };
    (seen, warnings)
}

async fn in_time<T>(answer: Answer<'_, T>, patience: Duration) -> Result<T, String> {
    match timeout(patience, answer).await {
        Ok(Ok(answered)) => Ok(answered),
        // Where it is stands beside it, and that a look has written nothing is no news.
        Ok(Err(FenceError::Failed { source, .. })) => Err(source.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {patience:?}; wait longer with --timeout")),
    }
}

/// What the store has granted: the token of the present holder, and the greatest that it remembers for the name.
async fn from_store(place: &Place, name: &str) -> Result<Known, String> {
    let (resource, slot) = match name.rsplit_once('#') {
        Some((resource, slot)) => (resource, slot.parse::<u32>().ok()),
        None => (name, None),
    };
    let resource = ResourceName::new(resource).map_err(|error| error.to_string())?;
    let store = place.look().await.map_err(|trouble| trouble.to_string())?;
    let known = look(&store, &resource, slot).await.map_err(|error| error.to_string());
    store.close().await;
    known
}

async fn look(store: &Store, resource: &ResourceName, slot: Option<u32>) -> Result<Known, leasehold::Error> {
    let view = store.lease(resource).await?;
    let past = store.history(resource).await?;
    let holders: Vec<_> = view.into_iter().flat_map(|view| view.holders).collect();
    let present = holders
        .iter()
        .filter(|holder| holder.state != HoldingState::Revoked && (slot.is_none() || holder.slot == slot))
        .max_by_key(|holder| holder.fence);
    let greatest = holders.iter().map(|holder| holder.token).chain(past.iter().map(|past| past.token)).max();
    Ok(Known {
        present: present.map(|holder| (holder.fence.get(), holder.label.to_string())),
        greatest: greatest.map(leasehold::Token::get),
    })
}
