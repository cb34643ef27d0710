//! `history`: who holds a resource, who held it, and how each lease ended.

use leasehold::core::Millis;
use leasehold::core::gap::{GapCause, GapView};
use leasehold::core::table::{HolderView, HoldingState, LeaseView, PastView, ReadinessView};
use leasehold::{Error, Store, Token};
use leasehold_api::view;
use serde::Serialize;

use crate::args::NameArgs;
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

#[derive(Serialize)]
struct History<'a> {
    resource: &'a str,
    holders: Vec<view::Holder>,
    history: Vec<Past>,
}

/// A lease of the past, and how long after its grant its holder was ready.
#[derive(Serialize)]
struct Past {
    #[serde(flatten)]
    past: view::Past,
    ready_after_ms: Option<u64>,
}

/// What the store knows of a name.
struct Known {
    /// Whether it knows the name at all.
    name: bool,
    holders: Vec<HolderView>,
    past: Vec<PastView>,
    gaps: Vec<GapView>,
}

pub(super) async fn run(console: &Console, place: &Place, args: &NameArgs) -> Result<Exit, Trouble> {
    let known = place.ask(async |store| look(store, args).await).await;
    let known = known?;
    let mut table = Table::new(&["SINCE", "AGO", "HELD", "TOKEN", "READY AFTER", "HOLDER", "HOW"]);
    let mut row = |ago: Millis, held: Millis, token: Token, ready: String, label, how: String| {
        table.row(vec![
            words::moment_ago(ago.duration()),
            words::millis(ago),
            words::millis(held),
            token.to_string(),
            ready,
            words::somebody(label).to_owned(),
            how,
        ]);
    };
    for holder in &known.holders {
        let ready = match holder.readiness {
            None => "-".to_owned(),
            Some(ReadinessView::WarmingUp) => "not yet".to_owned(),
            Some(ReadinessView::ReadyAfter(length)) => words::three_digits(length.duration()),
        };
        let how = match holder.state {
            HoldingState::Held => "held now",
            HoldingState::Overdue => "held now, overdue",
            HoldingState::Revoked => "revoked, and may not know yet",
        };
        row(holder.held_for, holder.held_for, holder.token, ready, &holder.label, how.to_owned());
    }
    for lease in &known.past {
        let ready = known.ready_after(lease.token);
        let ready = ready.map_or_else(|| "-".to_owned(), |length| words::three_digits(length.duration()));
        let ago = lease.ended_ago.saturating_add(lease.held_for);
        row(ago, lease.held_for, lease.token, ready, &lease.label, words::ending(&lease.how));
    }
    let past = |past: &PastView| Past {
        past: view::Past::new(past),
        ready_after_ms: known.ready_after(past.token).map(Millis::get),
    };
    let json = History {
        resource: args.name.as_str(),
        holders: known.holders.iter().map(view::Holder::new).collect(),
        history: known.past.iter().map(past).collect(),
    };
    if !known.name {
        console.result(format!("{}: nothing is known of it", args.name), &json)?;
        return Ok(Exit::FAILURE);
    }
    console.table(&table, &json)?;
    Ok(Exit::OK)
}

async fn look(store: &Store, args: &NameArgs) -> Result<Known, Error> {
    // The past comes after the present: a lease that ends between the two looks is then seen twice, and once is shown.
    let lease: Option<LeaseView> = store.lease(&args.name).await?;
    // A service of an earlier release does not know of gaps, and its history is worth showing all the same.
    let gaps = match store.gaps(&args.name, None).await {
        Err(Error::Unavailable(_)) => None,
        other => other?,
    };
    let past = store.history(&args.name).await?;
    let name = lease.is_some() || !past.is_empty();
    let mut holders = lease.map(|lease| lease.holders).unwrap_or_default();
    holders.retain(|holder| past.iter().all(|past| past.token != holder.token));
    // The newest first, as in the past.
    holders.sort_by_key(|holder| (holder.held_for, std::cmp::Reverse(holder.token)));
    Ok(Known { name, holders, past, gaps: gaps.map(|of| of.gaps).unwrap_or_default() })
}

impl Known {
    /// How long after its grant a lease of the past was ready, if its holder said so and that is still known: the gap before it ended then.
    fn ready_after(&self, token: Token) -> Option<Millis> {
        let mut gaps = self.gaps.iter().filter(|gap| gap.ended_ago.is_some());
        let gap = gaps.find(|gap| gap.after.as_ref().is_some_and(|after| after.token == token))?;
        let last = gap.parts.last().filter(|part| part.cause == GapCause::WarmUp);
        last.map(|part| part.length)
    }
}
