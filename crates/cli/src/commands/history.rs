//! `history`: who holds a resource, who held it, and how each lease ended.

use leasehold::core::Millis;
use leasehold::core::gap::{GapCause, GapView};
use leasehold::core::table::{HolderView, HoldingState, LeaseView, PastView, ReadinessView};
use leasehold::{Error, Label, Store, Token};
use leasehold_api::view;

use crate::args::NameArgs;
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

/// What the store knows of a name.
struct Known {
    /// Whether it knows the name at all.
    name: bool,
    holders: Vec<HolderView>,
    past: Vec<PastView>,
    gaps: Vec<GapView>,
}

pub(super) async fn run(console: &Console, place: &Place, args: &NameArgs) -> Result<Exit, Trouble> {
    let known = place.ask(async |store| look(store, args).await).await?;
    let row = |ago: Millis, held: Millis, token: Token, ready: String, label: &Label, how: String| {
        let (since, label) = (words::moment_ago(ago.duration()), words::somebody(label).to_owned());
        [since, words::millis(ago), words::millis(held), token.to_string(), ready, label, how]
    };
    let present = known.holders.iter().map(|holder| {
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
        row(holder.held_for, holder.held_for, holder.token, ready, &holder.label, how.to_owned())
    });
    let past = known.past.iter().map(|lease| {
        let ready = known.ready_after(lease.token);
        let ready = ready.map_or_else(|| "-".to_owned(), |length| words::three_digits(length.duration()));
        let ago = lease.ended_ago.saturating_add(lease.held_for);
        row(ago, lease.held_for, lease.token, ready, &lease.label, words::ending(&lease.how))
    });
    let head = ["SINCE", "AGO", "HELD", "TOKEN", "READY AFTER", "HOLDER", "HOW"];
    let table = Table::new(head, present.chain(past));
    let holders: Vec<_> = known.holders.iter().map(view::Holder::new).collect();
    let history = known.past.iter().map(|past| {
        let ready_after_ms = known.ready_after(past.token).map(Millis::get);
        object! { #[serde(flatten)] past: view::Past::new(past), ready_after_ms }
    });
    let json = object! { resource: args.name.as_str(), holders, history: history.collect::<Vec<_>>() };
    if !known.name {
        console.result(format!("{}: nothing is known of it", args.name), &json)?;
        return Ok(Exit::FAILURE);
    }
    console.table(&table, &json)
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
