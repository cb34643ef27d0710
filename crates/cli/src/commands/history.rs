//! `history`: how earlier leases of a resource ended.

use serde::Serialize;

use crate::args::NameArgs;
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::views::PastJson;
use crate::words;

#[derive(Serialize)]
struct History<'a> {
    resource: &'a str,
    history: Vec<PastJson>,
}

pub(super) async fn run(console: &Console, place: &Place, args: &NameArgs) -> Result<Exit, Trouble> {
    let store = place.look().await?;
    let past = store.history(&args.name).await;
    store.close().await;
    let past = past?;
    let mut table = Table::new(&["TOKEN", "HELD", "ENDED", "HOLDER", "HOW"]);
    for lease in &past {
        table.row(vec![
            lease.token.to_string(),
            words::millis(lease.held_for),
            format!("{} ago", words::millis(lease.ended_ago)),
            words::somebody(&lease.label).to_owned(),
            words::ending(&lease.how),
        ]);
    }
    let json = History { resource: args.name.as_str(), history: past.iter().map(PastJson::new).collect() };
    console.table(&table, &json)?;
    Ok(Exit::OK)
}
