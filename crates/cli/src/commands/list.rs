//! `list`: what is held or waited for, or the clients that are connected.

mod sessions;

use leasehold::core::protocol::MAX_PAGE;
use leasehold::core::table::{HolderView, LeaseView, ReadinessView};
use leasehold_api::view::Lease;
use leasehold_api::word;
use serde::Serialize;

use crate::args::ListArgs;
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

#[derive(Serialize)]
struct Leases {
    leases: Vec<Lease>,
}

pub(super) async fn run(console: &Console, place: &Place, args: &ListArgs) -> Result<Exit, Trouble> {
    if args.sessions {
        return sessions::run(console, place).await;
    }
    let found = place.ask(async |store| pages(store, &args.prefix).await).await;
    let stopped = |view: &LeaseView| view.cool_down.is_some() || view.alarm.is_some();
    let in_use = |view: &LeaseView| !view.holders.is_empty() || view.waiting > 0 || stopped(view);
    let views: Vec<LeaseView> = found?.into_iter().filter(|view| args.all || in_use(view)).collect();
    let mut table = Table::new(&["NAME", "STATE", "TOKEN", "HELD", "REMAINING", "WAITING", "HOLDER"]);
    for view in &views {
        add_rows(&mut table, view);
    }
    console.table(&table, &Leases { leases: views.iter().map(Lease::new).collect() })?;
    Ok(Exit::OK)
}

async fn pages(store: &leasehold::Store, prefix: &str) -> Result<Vec<LeaseView>, leasehold::Error> {
    let mut all: Vec<LeaseView> = Vec::new();
    loop {
        let after = all.last().map(|view| view.resource.clone());
        let (page, more) = store.leases(prefix, after, MAX_PAGE).await?;
        let empty = page.is_empty();
        all.extend(page);
        if !more || empty {
            return Ok(all);
        }
    }
}

fn add_rows(table: &mut Table, view: &LeaseView) {
    let waiting = view.waiting.to_string();
    let none = || "-".to_owned();
    if view.holders.is_empty() {
        let state = match (&view.alarm, view.restore_wait, view.cool_down) {
            (Some(_), _, _) => "alarm",
            (None, Some(_), _) => "restored",
            (None, None, Some(_)) => "cooling",
            (None, None, None) => "free",
        };
        let remaining = view.restore_wait.max(view.cool_down).map_or_else(none, words::millis);
        table.row(vec![
            view.resource.to_string(),
            state.to_owned(),
            none(),
            none(),
            remaining,
            waiting,
            none(),
        ]);
        return;
    }
    for holder in &view.holders {
        table.row(vec![
            fence_name(view, holder),
            format!(
                "{}{}{}{}",
                word::holding(holder.state),
                if holder.readiness == Some(ReadinessView::WarmingUp) { ", warming up" } else { "" },
                if holder.draining.is_some() { ", draining" } else { "" },
                if view.alarm.is_some() { ", alarm" } else { "" }
            ),
            holder.token.to_string(),
            words::millis(holder.held_for),
            words::millis(holder.remaining),
            waiting.clone(),
            words::somebody(&holder.label).to_owned(),
        ]);
    }
}

fn fence_name(view: &LeaseView, holder: &HolderView) -> String {
    match holder.slot {
        Some(slot) => format!("{}#{slot}", view.resource),
        None => view.resource.to_string(),
    }
}
