//! `release`: asks the holder to finish and let go, and waits for it.

use std::time::Duration;

use leasehold::core::protocol::TokenCheck;
use leasehold::{Ending, Error, Label, Store, Token};
use serde::Serialize;
use tokio::time::{sleep, timeout};

use crate::args::ReleaseArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::views::EndingJson;
use crate::words;

/// How often is looked whether the holder has let go.
const LOOK_EVERY: Duration = Duration::from_millis(30);

#[derive(Serialize)]
struct Released<'a> {
    resource: &'a str,
    token: String,
    holder: &'a str,
    #[serde(flatten)]
    ending: Option<EndingJson>,
}

pub(super) async fn run(console: &Console, place: &Place, args: &ReleaseArgs) -> Result<Exit, Trouble> {
    let store = place.look().await?;
    let outcome = ask_and_wait(&store, args).await;
    store.close().await;
    let (token, holder, ended) = outcome?;
    let holder = words::somebody(&holder);
    let how =
        ended.as_ref().map_or_else(|| "it is free, and nobody knows how it ended".to_owned(), words::ending);
    let json = Released {
        resource: args.name.as_str(),
        token: token.to_string(),
        holder,
        ending: ended.as_ref().map(EndingJson::new),
    };
    console.result(format!("{}: token {token} of {holder}: {how}", args.name), &json)?;
    Ok(Exit::OK)
}

async fn ask_and_wait(store: &Store, args: &ReleaseArgs) -> Result<(Token, Label, Option<Ending>), Trouble> {
    let by = words::own_label(None);
    let (token, holder) = store.ask_release(&args.name, args.token, None, by).await?;
    let gone = async {
        loop {
            match store.check(&args.name, token).await? {
                TokenCheck::Current => sleep(LOOK_EVERY).await,
                TokenCheck::Ended(how) => return Ok::<_, Error>(Some(how)),
                // Ahead: the store was set back meanwhile, and knows nothing of it any more.
                TokenCheck::NotKnown | TokenCheck::Ahead { .. } => return Ok(None),
            }
        }
    };
    match timeout(args.wait, gone).await {
        Ok(ended) => Ok((token, holder, ended?)),
        Err(_) => Err(Trouble::NoAnswer {
            resource: args.name.clone(),
            token,
            holder: words::somebody(&holder).to_owned(),
        }),
    }
}
