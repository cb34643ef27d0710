//! `list --sessions`: the clients that are connected, with and without leases.

use leasehold::core::protocol::MAX_PAGE;
use leasehold::core::table::SessionView;
use leasehold_api::view;

use super::pages;
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

pub(super) async fn run(console: &Console, place: &Place) -> Result<Exit, Trouble> {
    let found = place.ask(async |store| {
        pages(async |last: Option<&SessionView>| {
            store.sessions(last.map(|view| view.session), MAX_PAGE).await
        })
        .await
    });
    let views = found.await?;
    let row = |view: &SessionView| {
        [
            view.session.to_string(),
            if view.overdue { "overdue" } else { "alive" }.to_owned(),
            words::millis(view.ttl),
            words::millis(view.remaining),
            words::millis(view.age),
            format!("{} ago", words::millis(view.renewed_ago)),
            view.leases.to_string(),
            view.waits.to_string(),
            words::somebody(&view.label).to_owned(),
        ]
    };
    let head = ["SESSION", "STATE", "TTL", "REMAINING", "AGE", "RENEWED", "LEASES", "WAITS", "LABEL"];
    let table = Table::new(head, views.iter().map(row));
    let sessions: Vec<_> = views.iter().map(view::Session::new).collect();
    console.table(&table, &object! { sessions })
}
