//! `release`: asks the holder to finish and let go, and waits for it.

mod handover;

use std::time::Duration;

use leasehold::core::protocol::TokenCheck;
use leasehold::core::table::HolderView;
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

/// Who came after a lease, and whether it holds the name still.
fn held_by(next: &Successor) -> impl Serialize {
    let (holder, token) = (words::somebody(&next.label), next.token.to_string());
    object! { holder: holder.to_owned(), token, holds: next.holds }
}

pub(super) async fn run(console: &Console, place: &Place, args: &ReleaseArgs) -> Result<Exit, Trouble> {
    if let Some(to) = &args.to {
        return handover::run(console, place, args, to).await;
    }
    let name = &args.name;
    let Some((token, holder, ended, next)) = place.ask(async |store| ask(store, args).await).await? else {
        // There is nothing to do for a replica that does not hold the name.
        let label = args.holder.as_ref().map_or("", Label::as_str);
        let text = format!("{name}: not held by {label:?}, so nothing was asked");
        return console.result(text, &object! { resource: name.as_str(), holder: label, asked: false });
    };
    let holder = words::somebody(&holder);
    let how =
        ended.as_ref().map_or_else(|| "it is free, and nobody knows how it ended".to_owned(), words::ending);
    let mut text = format!("{name}: token {token} of {holder}: {how}");
    let json = object! {
        resource: name.as_str(),
        token: token.to_string(),
        holder,
        #[serde(flatten)]
        ending: ended.as_ref().map(view::Ending::new),
        // Only where it was waited for.
        #[serde(flatten)]
        next: next.as_ref().map(|next| object! { held_by: next.as_ref().map(held_by) }),
    };
    if let (Some(next), Some(length)) = (&next, args.await_successor) {
        text.push('\n');
        text.push_str(&match next {
            Some(next) => words::succeeded(name, next),
            None => format!("{name}: nobody held it within {}", humantime::format_duration(length)),
        });
    }
    console.result(text, &json)?;
    Ok(if matches!(next, Some(None)) { Exit::FAILURE } else { Exit::OK })
}

/// A lease that was asked for: its token, who held it, how it ended, and if that was waited for, who came next.
type Asked = (Token, Label, Option<Ending>, Option<Option<Successor>>);

/// Asks the holder, and waits. Nobody is asked where one is named that does not hold it.
async fn ask(store: &Store, args: &ReleaseArgs) -> Result<Option<Asked>, Trouble> {
    let wanted = match &args.holder {
        Some(label) => match holder_of(store, &args.name, |holder| holder.label == *label).await? {
            Some(holder) => Some(holder.token),
            None => return Ok(None),
        },
        None => args.token,
    };
    let (token, holder) = store.ask_release(&args.name, wanted, None, words::own_label(None)).await?;
    let slot = slot_of(store, &args.name, token).await?;
    let ended = until_ended(store, &args.name, token, &holder, args.wait()).await?;
    let next = match args.await_successor {
        Some(length) => {
            let ended = Predecessor { resource: args.name.clone(), token, slot };
            Some(successor_of(store, ended, length).await)
        }
        None => None,
    };
    Ok(Some((token, holder, ended, next)))
}

/// Waits until somebody else holds the name.
async fn successor_of(store: &Store, ended: Predecessor, length: Duration) -> Option<Successor> {
    let mut found = None;
    successor::wait(store, vec![ended], Point::now().plus(length), |_, next| found = next.cloned()).await;
    found
}

/// The slot of a lease, if the name has slots.
async fn slot_of(store: &Store, name: &ResourceName, token: Token) -> Result<Option<u32>, Error> {
    Ok(holder_of(store, name, |holder| holder.token == token).await?.and_then(|holder| holder.slot))
}

/// The first holder of a name that is meant.
async fn holder_of(
    store: &Store,
    name: &ResourceName,
    is_meant: impl Fn(&HolderView) -> bool,
) -> Result<Option<HolderView>, Error> {
    let view = store.lease(name).await?;
    Ok(view.into_iter().flat_map(|view| view.holders).find(is_meant))
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
