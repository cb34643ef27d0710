//! `get --token`: whether a token is that of a present lease.

use leasehold::core::protocol::TokenCheck;
use leasehold::{ResourceName, Token};
use leasehold_api::{Number, view};

use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

pub(super) async fn run(
    console: &Console,
    place: &Place,
    name: &ResourceName,
    token: Token,
) -> Result<Exit, Trouble> {
    let mut newest = None;
    let (text, state, ending) = match place.ask(async |store| store.check(name, token).await).await? {
        TokenCheck::Current => (format!("{name}: token {token} is current"), "current", None),
        TokenCheck::Ended(how) => (
            format!("{name}: token {token} is not current: {}", words::ending(&how)),
            "ended",
            Some(view::Ending::new(&how)),
        ),
        TokenCheck::NotKnown => {
            (format!("{name}: token {token} is not current, and nothing is known of it"), "not-known", None)
        }
        TokenCheck::Ahead { newest: number } => {
            newest = Some(Number(number));
            (ahead(name, token, number), "ahead", None)
        }
    };
    // As HTTP says it.
    let (resource, token) = (name.as_str(), Number(token.get()));
    console.result(text, &object! { resource, token, state, ending, newest })?;
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
