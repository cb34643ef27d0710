//! `list --sessions`: the clients that are connected, with and without leases.

use leasehold::core::protocol::MAX_PAGE;
use leasehold::core::table::SessionView;
use leasehold_api::view;
use serde::Serialize;

use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

#[derive(Serialize)]
struct Sessions {
    sessions: Vec<view::Session>,
}

pub(super) async fn run(console: &Console, place: &Place) -> Result<Exit, Trouble> {
    let found = place.ask(async |store| pages(store).await).await;
    let views = found?;
    let mut table =
        Table::new(&["SESSION", "STATE", "TTL", "REMAINING", "AGE", "RENEWED", "LEASES", "WAITS", "LABEL"]);
    for view in &views {
        table.row(vec![
            view.session.to_string(),
            if view.overdue { "overdue" } else { "alive" }.to_owned(),
            words::millis(view.ttl),
            words::millis(view.remaining),
            words::millis(view.age),
            format!("{} ago", words::millis(view.renewed_ago)),
            view.leases.to_string(),
            view.waits.to_string(),
            words::somebody(&view.label).to_owned(),
        ]);
    }
    console.table(&table, &Sessions { sessions: views.iter().map(view::Session::new).collect() })?;
    Ok(Exit::OK)
}

async fn pages(store: &leasehold::Store) -> Result<Vec<SessionView>, leasehold::Error> {
    let mut all: Vec<SessionView> = Vec::new();
    loop {
        let (page, more) = store.sessions(all.last().map(|view| view.session), MAX_PAGE).await?;
        let empty = page.is_empty();
        all.extend(page);
        if !more || empty {
            return Ok(all);
        }
    }
}
