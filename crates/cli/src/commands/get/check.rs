//! `get --token`: whether a token is that of a present lease.

use leasehold::core::protocol::TokenCheck;
use leasehold::{ResourceName, Token};
use leasehold_api::{Number, view};
use serde::Serialize;

use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

/// As HTTP says it.
#[derive(Serialize)]
struct Check<'a> {
    resource: &'a str,
    token: Number,
    state: &'static str,
    ending: Option<view::Ending>,
    newest: Option<Number>,
}

pub(super) async fn run(
    console: &Console,
    place: &Place,
    name: &ResourceName,
    token: Token,
) -> Result<Exit, Trouble> {
    let answer = place.ask(async |store| store.check(name, token).await).await;
    let mut newest_granted = None;
    let (text, state, ending) = match answer? {
        TokenCheck::Current => (format!("{name}: token {token} is current"), "current", None),
        TokenCheck::Ended(how) => (
            format!("{name}: token {token} is not current: {}", words::ending(&how)),
            "ended",
            Some(view::Ending::new(&how)),
        ),
        TokenCheck::NotKnown => {
            (format!("{name}: token {token} is not current, and nothing is known of it"), "not-known", None)
        }
        TokenCheck::Ahead { newest } => {
            newest_granted = Some(newest.into());
            (ahead(name, token, newest), "ahead", None)
        }
    };
    let (resource, token) = (name.as_str(), token.get().into());
    console.result(text, &Check { resource, token, state, ending, newest: newest_granted })?;
    Ok(if state == "current" { Exit::OK } else { Exit::FAILURE })
}

/// What follows from a token that was never granted.
fn ahead(name: &ResourceName, token: Token, newest: u64) -> String {
    format!(
        "{name}: token {token} is not current: it was never granted here, where the newest number is {newest}\n\
         the state may have been set back: find out where the token comes from; if a receiver has seen it, restore again with \
         --above {token}"
    )
}
