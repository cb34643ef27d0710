//! `release`: asks the holder to finish and let go, and waits for it.

mod handover;

use std::time::Duration;

use leasehold::core::protocol::TokenCheck;
use leasehold::{Ending, Error, Label, ResourceName, Store, Token};
use leasehold_api::view;
use serde::Serialize;
use tokio::time::{sleep, timeout};

use crate::args::ReleaseArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::guardian::clock::Point;
use crate::place::Place;
use crate::successor::{self, Predecessor, Successor};
use crate::trouble::Trouble;
use crate::words;

/// How often is looked whether the holder has let go.
const LOOK_EVERY: Duration = Duration::from_millis(30);

#[derive(Serialize)]
struct Released<'a> {
    resource: &'a str,
    token: String,
    holder: &'a str,
    #[serde(flatten)]
    ending: Option<view::Ending>,
    /// Who holds it now: only where it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<Option<HeldByJson>>,
}

/// Nobody was asked, because another or nobody holds the name.
#[derive(Serialize)]
struct NotTheirs<'a> {
    resource: &'a str,
    holder: &'a str,
    asked: bool,
}

/// Who came after a lease.
#[derive(Debug, Clone, Serialize)]
struct HeldByJson {
    holder: String,
    token: String,
    /// Whether it holds the name still.
    holds: bool,
}

impl HeldByJson {
    fn new(successor: &Successor) -> Self {
        Self {
            holder: words::somebody(&successor.label).to_owned(),
            token: successor.token.to_string(),
            holds: successor.holds,
        }
    }
}

pub(super) async fn run(console: &Console, place: &Place, args: &ReleaseArgs) -> Result<Exit, Trouble> {
    if let Some(to) = &args.to {
        return handover::run(console, place, args, to).await;
    }
    let store = place.look().await?;
    let by = words::own_label(None);
    let wanted = match &args.holder {
        Some(label) => match held_by(&store, args, label).await {
            Ok(Some(token)) => Some(token),
            other => {
                store.close().await;
                other?;
                return not_theirs(console, args, label);
            }
        },
        None => args.token,
    };
    let asked = async {
        let (token, holder) = store.ask_release(&args.name, wanted, None, by).await?;
        let slot = slot_of(&store, &args.name, token).await?;
        let ended = until_ended(&store, &args.name, token, &holder, args.wait()).await?;
        let next = match args.await_successor {
            Some(length) => {
                let ended = Predecessor { resource: args.name.clone(), token, slot };
                Some(successor_of(&store, ended, length).await)
            }
            None => None,
        };
        Ok((token, holder, ended, next))
    };
    let outcome: Result<_, Trouble> = asked.await;
    store.close().await;
    let (token, holder, ended, next) = outcome?;
    let holder = words::somebody(&holder);
    let how =
        ended.as_ref().map_or_else(|| "it is free, and nobody knows how it ended".to_owned(), words::ending);
    let json = Released {
        resource: args.name.as_str(),
        token: token.to_string(),
        holder,
        ending: ended.as_ref().map(view::Ending::new),
        held_by: next.as_ref().map(|next| next.as_ref().map(HeldByJson::new)),
    };
    let mut text = format!("{}: token {token} of {holder}: {how}", args.name);
    if let (Some(next), Some(length)) = (&next, args.await_successor) {
        text.push('\n');
        text.push_str(&match next {
            Some(next) => words::succeeded(&args.name, next),
            None => format!("{}: nobody held it within {}", args.name, humantime::format_duration(length)),
        });
    }
    console.result(text, &json)?;
    Ok(if matches!(next, Some(None)) { Exit::FAILURE } else { Exit::OK })
}

/// The token of the lease that a holder of that name has.
async fn held_by(store: &Store, args: &ReleaseArgs, label: &Label) -> Result<Option<Token>, Trouble> {
    let view = store.lease(&args.name).await?;
    let holder = view.into_iter().flat_map(|view| view.holders).find(|holder| holder.label == *label);
    Ok(holder.map(|holder| holder.token))
}

/// There is nothing to do for a replica that does not hold the name.
fn not_theirs(console: &Console, args: &ReleaseArgs, label: &Label) -> Result<Exit, Trouble> {
    let text = format!("{}: not held by {:?}, so nothing was asked", args.name, label.as_str());
    let json = NotTheirs { resource: args.name.as_str(), holder: label.as_str(), asked: false };
    console.result(text, &json)?;
    Ok(Exit::OK)
}

/// Waits until somebody else holds the name.
async fn successor_of(store: &Store, ended: Predecessor, length: Duration) -> Option<Successor> {
    let mut found = None;
    successor::wait(store, vec![ended], Point::now().plus(length), |_, next| found = next.cloned()).await;
    found
}

/// The slot of a lease, if the name has slots.
async fn slot_of(store: &Store, name: &ResourceName, token: Token) -> Result<Option<u32>, Trouble> {
    let view = store.lease(name).await?;
    let holder = view.into_iter().flat_map(|view| view.holders).find(|holder| holder.token == token);
    Ok(holder.and_then(|holder| holder.slot))
}

/// Waits until a lease has ended, and says how, if anybody knows.
async fn until_ended(
    store: &Store,
    name: &ResourceName,
    token: Token,
    holder: &Label,
    length: Duration,
) -> Result<Option<Ending>, Trouble> {
    let gone = async {
        loop {
            match store.check(name, token).await? {
                TokenCheck::Current => sleep(LOOK_EVERY).await,
                TokenCheck::Ended(how) => return Ok::<_, Error>(Some(how)),
                // Ahead: the store was set back meanwhile, and knows nothing of it any more.
                TokenCheck::NotKnown | TokenCheck::Ahead { .. } => return Ok(None),
            }
        }
    };
    match timeout(length, gone).await {
        Ok(ended) => Ok(ended?),
        Err(_) => Err(Trouble::NoAnswer {
            resource: name.clone(),
            token,
            holder: words::somebody(holder).to_owned(),
        }),
    }
}
