//! `gaps`: for how long nobody acted on a name, and why.
//!
//! The store counts; what is here asks it, puts what it says into the time of whoever reads, and draws. With a name every gap of it is told.
//! Without one the names come in the order in which somebody on call wants them: those that nobody acts on right now, then those that
//! were without a holder for longest. Names that were let go of and that nobody asked for are counted, not listed.

mod draw;
mod json;
mod sentence;
mod text;
mod told;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::time::Duration;

use leasehold::Store;
use leasehold::core::gap::{NameGaps, OutageView};
use leasehold::core::protocol::MAX_PAGE;

use crate::args::GapsArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;

use told::Named;

/// What is to be shown.
struct Asked {
    last: Duration,
    min: Duration,
    /// Every gap is told: of one name, or because all are asked for.
    whole: bool,
    one: bool,
}

pub(super) async fn run(console: &Console, place: &Place, args: &GapsArgs) -> Result<Exit, Trouble> {
    let (names, outages) = place.ask(async |store| find(store, args).await).await?;
    let asked = Asked {
        last: args.last,
        min: args.min,
        whole: args.all || args.name.is_some(),
        one: args.name.is_some(),
    };
    let mut names: Vec<Named> = names.into_iter().map(|name| Named::new(name, args.last)).collect();
    names.sort_by_key(|name| {
        let sums = &name.sums;
        (Reverse(name.is_missed()), Reverse(sums.needed()), Reverse(sums.leaderless()), name.resource.clone())
    });
    let known = args.name.is_none() || !names.is_empty();
    let text = match (&args.name, known) {
        (Some(name), false) => format!("{name}: nothing is known of it"),
        _ => text::report(console, &asked, &names, &outages),
    };
    console.result(text, &json::report(&asked, &names, &outages))?;
    Ok(if known { Exit::OK } else { Exit::FAILURE })
}

async fn find(store: &Store, args: &GapsArgs) -> Result<(Vec<NameGaps>, Vec<OutageView>), leasehold::Error> {
    let last = Some(args.last);
    if let Some(name) = &args.name {
        let of = store.gaps(name, last).await?;
        let outages = store.gaps_of_all(name.as_str(), None, last, 1).await?.outages;
        return Ok((of.into_iter().collect(), outages));
    }
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = store.gaps_of_all(&args.prefix, after, last, MAX_PAGE).await?;
        names.extend(page.names);
        after = page.next;
        if after.is_none() {
            return Ok((names, page.outages));
        }
    }
}
