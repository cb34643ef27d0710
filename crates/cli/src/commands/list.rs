//! `list`: what is held or waited for, or the clients that are connected.

mod sessions;

use leasehold::core::protocol::MAX_PAGE;
use leasehold::core::table::{HolderView, LeaseView, ReadinessView};
use leasehold_api::view::Lease;
use leasehold_api::word;

use crate::args::{FenceName, ListArgs};
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

pub(super) async fn run(console: &Console, place: &Place, args: &ListArgs) -> Result<Exit, Trouble> {
    if args.sessions {
        return sessions::run(console, place).await;
    }
    let found = place.ask(async |store| {
        pages(async |last: Option<&LeaseView>| {
            store.leases(&args.prefix, last.map(|view| view.resource.clone()), MAX_PAGE).await
        })
        .await
    });
    let stopped = |view: &LeaseView| view.cool_down.is_some() || view.alarm.is_some();
    let in_use = |view: &LeaseView| !view.holders.is_empty() || view.waiting > 0 || stopped(view);
    let views: Vec<LeaseView> = found.await?.into_iter().filter(|view| args.all || in_use(view)).collect();
    let head = ["NAME", "STATE", "TOKEN", "HELD", "REMAINING", "WAITING", "HOLDER"];
    let table = Table::new(head, views.iter().flat_map(rows));
    let leases: Vec<_> = views.iter().map(Lease::new).collect();
    console.table(&table, &object! { leases })
}

/// Everything that a list has, page by page; a page is asked for with the last that is known, and says whether there are more.
async fn pages<T>(
    ask: impl AsyncFn(Option<&T>) -> Result<(Vec<T>, bool), leasehold::Error>,
) -> Result<Vec<T>, leasehold::Error> {
    let mut all = Vec::new();
    loop {
        let (page, more) = ask(all.last()).await?;
        let empty = page.is_empty();
        all.extend(page);
        if !more || empty {
            return Ok(all);
        }
    }
}

fn rows(view: &LeaseView) -> Vec<[String; 7]> {
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
        let name = view.resource.to_string();
        return vec![[name, state.to_owned(), none(), none(), remaining, waiting, none()]];
    }
    let row = |holder: &HolderView| {
        let warming = if holder.readiness == Some(ReadinessView::WarmingUp) { ", warming up" } else { "" };
        let draining = if holder.draining.is_some() { ", draining" } else { "" };
        let alarm = if view.alarm.is_some() { ", alarm" } else { "" };
        [
            FenceName { resource: view.resource.clone(), slot: holder.slot }.to_string(),
            format!("{}{warming}{draining}{alarm}", word::holding(holder.state)),
            holder.token.to_string(),
            words::millis(holder.held_for),
            words::millis(holder.remaining),
            waiting.clone(),
            words::somebody(&holder.label).to_owned(),
        ]
    };
    view.holders.iter().map(row).collect()
}
