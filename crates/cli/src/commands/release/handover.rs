//! `release --to`: asks the holder to hand the name to a waiter, and waits until that one holds it.

use leasehold::core::table::LeaseView;
use leasehold::{Label, ResourceName, Store, Successor as Wanted, Token};
use tokio::time::sleep;

use super::{LOOK_EVERY, held_by, slot_of, successor_of, until_ended};
use crate::args::ReleaseArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::guardian::clock::Point;
use crate::place::Place;
use crate::successor::{Predecessor, Successor};
use crate::trouble::Trouble;
use crate::words;

pub(super) async fn run(
    console: &Console,
    place: &Place,
    args: &ReleaseArgs,
    wanted: &Wanted,
) -> Result<Exit, Trouble> {
    let to = label(wanted);
    let (token, holder, next) = place.ask(async |store| ask_and_wait(store, args, wanted).await).await?;
    let (name, holder, held_by) = (&args.name, words::somebody(&holder), next.as_ref().map(held_by));
    let json = object! { resource: name.as_str(), token: token.to_string(), holder, held_by };
    let (as_wanted, then) = match &next {
        Some(next) => {
            let (another, then) = (to.filter(|to| **to != next.label), words::succeeded(name, next));
            let missed =
                another.map(|to| format!("; {:?} could not take it when the holder let go", to.as_str()));
            (another.is_none(), then + &missed.unwrap_or_default())
        }
        None => {
            let gone = "whoever waits is gone, or wants other names with it";
            (false, format!("{name}: and nobody holds it yet: {gone}"))
        }
    };
    console.result(format!("{name}: token {token} of {holder} is over\n{then}"), &json)?;
    Ok(if as_wanted { Exit::OK } else { Exit::FAILURE })
}

/// The label of the waiter that was named.
fn label(wanted: &Wanted) -> Option<&Label> {
    match wanted {
        Wanted::Labelled(label) => Some(label),
        Wanted::FirstWaiter | Wanted::Session(_) => None,
    }
}

async fn ask_and_wait(
    store: &Store,
    args: &ReleaseArgs,
    wanted: &Wanted,
) -> Result<(Token, Label, Option<Successor>), Trouble> {
    let to = label(wanted);
    let begun = Point::now();
    let view = store.lease(&args.name).await?;
    check_waiters(args, to, view.as_ref())?;
    let (wanted, by) = (Some(wanted.clone()), words::own_label(None));
    let (token, holder) = store.ask_release(&args.name, args.token, wanted, by).await?;
    let slot = slot_of(store, &args.name, token).await?;
    let ended = until_ended(store, &args.name, token, &holder, args.wait());
    match to {
        None => drop(ended.await?),
        Some(to) => {
            let mut seen = Seen::default();
            let waited = tokio::select! {
                ended = ended => ended.map(drop),
                trouble = until_gone(store, args, to, token, &holder, &mut seen) => Err(trouble?),
            };
            if let Err(trouble) = waited {
                return Err(match trouble {
                    Trouble::NoAnswer { .. } if !seen.accepted => not_ready(&args.name, to, &holder, &seen),
                    trouble => trouble,
                });
            }
        }
    }
    let left = begun.plus(args.wait()).remaining(Point::now());
    let ended = Predecessor { resource: args.name.clone(), token, slot };
    let next = successor_of(store, ended, left).await;
    Ok((token, holder, next))
}

/// What was seen of an offer.
#[derive(Default)]
struct Seen {
    /// It was taken up, at any time: then the holder was asked.
    accepted: bool,
    /// It stands.
    stands: bool,
}

/// Waits until the successor is gone without a word, and tells it: then the holder is never asked. Notes what it sees on the way.
async fn until_gone(
    store: &Store,
    args: &ReleaseArgs,
    to: &Label,
    token: Token,
    holder: &Label,
    seen: &mut Seen,
) -> Result<Trouble, Trouble> {
    loop {
        let view = store.lease(&args.name).await?;
        let place = view.iter().flat_map(|view| &view.holders).find(|place| place.token == token);
        let offer = place.and_then(|place| place.offer.as_ref()).filter(|offer| offer.label == *to);
        seen.stands = offer.is_some();
        seen.accepted |= offer.is_some_and(|offer| offer.ready);
        if let (Some(view), Some(_), None, false) = (&view, place, offer, seen.accepted) {
            let waits = view.queue.iter().any(|waiter| waiter.label == *to);
            // Of a long queue only the beginning is shown.
            if !waits && view.queue.len() == view.waiting {
                return Ok(gone(&args.name, to, holder));
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The holder was not asked, because the one that was named does not answer.
fn not_ready(name: &ResourceName, to: &Label, holder: &Label, seen: &Seen) -> Trouble {
    let (to, holder) = (to.as_str(), words::somebody(holder));
    let then = match seen.stands {
        true => format!("Should it do so within a minute, {name} is handed over after all"),
        false => "Repeat this when it answers".to_owned(),
    };
    Trouble::NotReady(format!(
        "{to:?} has not said that it is ready to take {name}, so {holder} was not asked to let go; it cannot say so while it waits for several \
         names or by plain HTTP. {then}"
    ))
}

/// The holder was not asked, and never will be: the one that was named is gone.
fn gone(name: &ResourceName, to: &Label, holder: &Label) -> Trouble {
    let (to, holder) = (to.as_str(), words::somebody(holder));
    Trouble::NotReady(format!(
        "{to:?} is gone and never said that it was ready to take {name}, so {holder} was not asked to let go and holds it as before; start the \
         successor again and repeat this, or let the holder go to the queue with: leasehold release {name}"
    ))
}

/// A handover to nobody is refused before anybody is disturbed.
fn check_waiters(args: &ReleaseArgs, to: Option<&Label>, view: Option<&LeaseView>) -> Result<(), Trouble> {
    // Who holds nothing is told so by the question itself.
    let Some(view) = view.filter(|view| !view.holders.is_empty()) else { return Ok(()) };
    let name = &args.name;
    let nobody = |why: String| Err(Trouble::NoSuccessor(why));
    if view.waiting == 0 {
        return nobody(format!(
            "nobody waits for {name}: start the successor first, or let the holder go with: leasehold release {name}"
        ));
    }
    if view.holders.len() > 1 && view.holders.iter().any(|holder| holder.shared) {
        return nobody(format!(
            "{name} is shared by {} holders, and goes to whoever waits when all of them have let go; ask them with: leasehold release {name} --token TOKEN",
            view.holding
        ));
    }
    let Some(to) = to else { return Ok(()) };
    if view.holders.iter().any(|holder| holder.label == *to) {
        return nobody(format!("{:?} holds {name} already", to.as_str()));
    }
    let is_there = view.queue.iter().any(|waiter| waiter.label == *to);
    // Of a long queue only the beginning is shown.
    if is_there || view.queue.len() < view.waiting {
        return Ok(());
    }
    let waiters: Vec<&str> = view.queue.iter().map(|waiter| words::somebody(&waiter.label)).collect();
    let waiters = waiters.join(", ");
    nobody(format!("{:?} does not wait for {name}; those who do: {waiters}", to.as_str()))
}
