//! `fence check`: what receivers know of a fence name, beside what the store has granted.
//!
//! Only looks. A receiver that cannot be asked does not keep the others from being shown.

mod told;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;
use leasehold::core::Mode;
use leasehold::core::table::HoldingState;
use leasehold::fence::{Answer, Cause, Error as FenceError, Receiver, Seen};
use leasehold_fence::migration;
use tokio::time::timeout;

use crate::args::{Database, FenceCheckArgs, FenceName};
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::receivers;
use crate::trouble::Trouble;

use told::{Asked, Known, Report};

pub(super) async fn run(console: &Console, place: &Place, args: &FenceCheckArgs) -> Result<Exit, Trouble> {
    let patience = place.timeout;
    // Nothing is asked before every URL is understood.
    let asked = receivers::open_all(&args.receivers, args.variable).map_err(|trouble| match trouble {
        // Nothing was to be sealed.
        Trouble::NoReceiver(why) => Trouble::Misuse(why),
        trouble => trouble,
    })?;
    let fence_name = &args.name;
    // All at once: a receiver that does not answer costs the time of one.
    let name: Arc<str> = fence_name.to_string().into();
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
    let known = from_store(place, fence_name).await?;
    let directory = place.directory().map(ToOwned::to_owned);
    let report = Report { name: fence_name.clone(), directory, known, asked: answers };
    console.framed_table(&report.head(), &report.table(), &report.below(), &report.json())?;
    Ok(if report.is_well() { Exit::OK } else { Exit::FAILURE })
}

/// Prints what makes the tables of a fence, as the library would run it.
pub(super) fn print_migration(database: Database) -> Result<Exit, Trouble> {
    let statements = match database {
        Database::Postgres => migration::POSTGRES.to_owned(),
        Database::Mysql => migration::MYSQL.map(|statement| format!("{statement};\n")).concat(),
        Database::Sqlite => migration::SQLITE.map(|statement| format!("{statement};\n")).concat(),
    };
    std::io::stdout().write_all(statements.as_bytes()).map_err(Trouble::Output)?;
    Ok(Exit::OK)
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
        Ok(Err(FenceError::Failed { source, cause: Cause::Away, .. })) => {
            Err(format!("{source}; see that it runs, and can be reached from here"))
        }
        Ok(Err(FenceError::Failed { source, .. })) => Err(source.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {patience:?}; wait longer with --timeout")),
    }
}

/// What the store has granted: the token of the present holder, and the greatest that it remembers for the name. A name that is not one
/// to fence under is misuse, which only the store can tell; that it cannot be asked is no reason not to show receivers.
async fn from_store(place: &Place, name: &FenceName) -> Result<Result<Known, String>, Trouble> {
    let store = match place.look().await {
        Ok(store) => store,
        Err(trouble) => return Ok(Err(trouble.to_string())),
    };
    let looked = look(&store, name).await;
    store.close().await;
    match looked {
        Ok((mode, known)) => match mode.and_then(|mode| misfit(name, mode)) {
            Some(why) => Err(Trouble::Misuse(why)),
            None => Ok(Ok(known)),
        },
        Err(error) => Ok(Err(error.to_string())),
    }
}

async fn look(store: &Store, name: &FenceName) -> Result<(Option<Mode>, Known), leasehold::Error> {
    let view = store.lease(&name.resource).await?;
    let past = store.history(&name.resource).await?;
    let mode = view.as_ref().map(|view| view.mode);
    let holders: Vec<_> = view.into_iter().flat_map(|view| view.holders).collect();
    let present = holders
        .iter()
        .filter(|holder| holder.state != HoldingState::Revoked && holder.slot == name.slot)
        .max_by_key(|holder| holder.fence);
    let greatest = holders.iter().map(|holder| holder.token).chain(past.iter().map(|past| past.token)).max();
    let known = Known {
        present: present.map(|holder| (holder.fence.get(), holder.label.to_string())),
        greatest: greatest.map(leasehold::Token::get),
    };
    Ok((mode, known))
}

/// Why nobody fences under this name: each slot has a fence of its own, and what has no slots has one.
fn misfit(name: &FenceName, mode: Mode) -> Option<String> {
    let FenceName { resource, slot } = name;
    match (mode, *slot) {
        (Mode::Slot { of }, None) => {
            let ask = match of {
                1 => format!("{resource}#0"),
                2 => format!("{resource}#0 or {resource}#1"),
                of => format!("one of {resource}#0 to {resource}#{}", of - 1),
            };
            Some(format!("{resource} has {of} slots; ask for {ask}"))
        }
        (Mode::Slot { of }, Some(slot)) if slot >= of => {
            let last = of - 1;
            Some(format!(
                "{resource} has no slot {slot}: it has {of}, from {resource}#0 to {resource}#{last}"
            ))
        }
        (Mode::Exclusive | Mode::Shared, Some(slot)) => {
            Some(format!("{resource} has no slot {slot}, because it has no slots; ask for {resource}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use leasehold::ResourceName;

    use super::*;

    #[test]
    fn a_name_with_slots_is_asked_for_by_slot_and_no_other_is() {
        let misfit =
            |slot, mode| misfit(&FenceName { resource: ResourceName::new("pool").unwrap(), slot }, mode);
        let two = Mode::Slot { of: 2 };
        assert_eq!(misfit(None, two).unwrap(), "pool has 2 slots; ask for pool#0 or pool#1");
        assert_eq!(misfit(Some(7), two).unwrap(), "pool has no slot 7: it has 2, from pool#0 to pool#1");
        assert_eq!(
            [misfit(Some(1), two), misfit(None, Mode::Exclusive), misfit(None, Mode::Shared)],
            [None, None, None]
        );
        let said = misfit(Some(0), Mode::Exclusive).unwrap();
        assert_eq!(said, "pool has no slot 0, because it has no slots; ask for pool");
        let many = misfit(None, Mode::Slot { of: 12 }).unwrap();
        assert_eq!(many, "pool has 12 slots; ask for one of pool#0 to pool#11");
    }
}
