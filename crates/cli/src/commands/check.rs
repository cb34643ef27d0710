//! `check`: whether a token is that of a present lease.

use leasehold::core::protocol::TokenCheck;
use serde::Serialize;

use crate::args::CheckArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::views::EndingJson;
use crate::words;

#[derive(Serialize)]
struct Check<'a> {
    resource: &'a str,
    token: String,
    status: &'static str,
    #[serde(flatten)]
    ending: Option<EndingJson>,
}

pub(super) async fn run(console: &Console, place: &Place, args: &CheckArgs) -> Result<Exit, Trouble> {
    let store = place.look().await?;
    let answer = store.check(&args.name, args.token).await;
    store.close().await;
    let (name, token) = (&args.name, args.token);
    let (text, status, ending) = match answer? {
        TokenCheck::Current => (format!("{name}: token {token} is current"), "current", None),
        TokenCheck::Ended(how) => (
            format!("{name}: token {token} is not current: {}", words::ending(&how)),
            "ended",
            Some(EndingJson::new(&how)),
        ),
        TokenCheck::NotKnown => {
            (format!("{name}: token {token} is not current, and nothing is known of it"), "not-known", None)
        }
    };
    console.result(text, &Check { resource: name.as_str(), token: token.to_string(), status, ending })?;
    Ok(if status == "current" { Exit::OK } else { Exit::FAILURE })
}
