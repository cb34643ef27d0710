//! `release --to`: asks the holder to hand the name to a waiter, and waits until that one holds it.

use std::fmt::Write;

use leasehold::core::table::{LeaseView, WaiterView};
use leasehold::{Label, Store, Successor as Wanted, Token};
use serde::Serialize;

use super::{HeldByJson, slot_of, successor_of, until_ended};
use crate::args::{ReleaseArgs, To};
use crate::console::Console;
use crate::exit::Exit;
use crate::guardian::clock::Point;
use crate::place::Place;
use crate::successor::{Predecessor, Successor};
use crate::trouble::Trouble;
use crate::words;

#[derive(Serialize)]
struct HandedOver<'a> {
    resource: &'a str,
    token: String,
    holder: &'a str,
    held_by: Option<HeldByJson>,
}

pub(super) async fn run(
    console: &Console,
    place: &Place,
    args: &ReleaseArgs,
    to: &To,
) -> Result<Exit, Trouble> {
    let outcome = place.ask(async |store| ask_and_wait(store, args, to).await).await;
    let (token, holder, next) = outcome?;
    let holder = words::somebody(&holder);
    let json = HandedOver {
        resource: args.name.as_str(),
        token: token.to_string(),
        holder,
        held_by: next.as_ref().map(HeldByJson::new),
    };
    let mut text = format!("{}: token {token} of {holder} is over", args.name);
    text.push('\n');
    let as_wanted = match &next {
        Some(next) => {
            text.push_str(&words::succeeded(&args.name, next));
            to.label().is_none_or(|to| *to == next.label)
        }
        None => {
            let _ = write!(
                text,
                "{}: and nobody holds it yet: whoever waits is gone, or wants other names with it",
                args.name
            );
            false
        }
    };
    if let (Some(to), Some(_), false) = (to.label(), &next, as_wanted) {
        let _ = write!(text, "; {:?} could not take it when the holder let go", to.as_str());
    }
    console.result(text, &json)?;
    Ok(if as_wanted { Exit::OK } else { Exit::FAILURE })
}

async fn ask_and_wait(
    store: &Store,
    args: &ReleaseArgs,
    to: &To,
) -> Result<(Token, Label, Option<Successor>), Trouble> {
    let begun = Point::now();
    let view = store.lease(&args.name).await?;
    check_waiters(args, to, view.as_ref())?;
    let wanted = to.label().cloned().map_or(Wanted::FirstWaiter, Wanted::Labelled);
    let by = words::own_label(None);
    let (token, holder) = store.ask_release(&args.name, args.token, Some(wanted), by).await?;
    let slot = slot_of(store, &args.name, token).await?;
    if let Err(trouble) = until_ended(store, &args.name, token, &holder, args.wait()).await {
        return Err(not_ready(store, args, to, token, &holder).await.unwrap_or(trouble));
    }
    let left = begun.plus(args.wait()).remaining(Point::now());
    let ended = Predecessor { resource: args.name.clone(), token, slot };
    let next = successor_of(store, ended, left).await;
    Ok((token, holder, next))
}

/// The holder was not asked, because the one that was named has not said that it is ready.
async fn not_ready(
    store: &Store,
    args: &ReleaseArgs,
    to: &To,
    token: Token,
    holder: &Label,
) -> Option<Trouble> {
    let to = to.label()?;
    let view = store.lease(&args.name).await.ok()??;
    let offer = view.holders.into_iter().find(|holder| holder.token == token)?.offer?;
    (offer.label == *to && !offer.ready).then(|| {
        Trouble::NotReady(format!(
            "{:?} has not said that it is ready to take {}, so {} was not asked to let go; it cannot say so while it waits for several names or by \
             plain HTTP. Should it do so within a minute, {} is handed over after all",
            to.as_str(),
            args.name,
            words::somebody(holder),
            args.name
        ))
    })
}

/// A handover to nobody is refused before anybody is disturbed.
fn check_waiters(args: &ReleaseArgs, to: &To, view: Option<&LeaseView>) -> Result<(), Trouble> {
    // Who holds nothing is told so by the question itself.
    let Some(view) = view.filter(|view| !view.holders.is_empty()) else { return Ok(()) };
    let name = &args.name;
    if view.waiting == 0 {
        return Err(Trouble::NoSuccessor(format!(
            "nobody waits for {name}: start the successor first, or let the holder go with: leasehold release {name}"
        )));
    }
    if view.holders.len() > 1 && view.holders.iter().any(|holder| holder.shared) {
        return Err(Trouble::NoSuccessor(format!(
            "{name} is shared by {} holders, and goes to whoever waits when all of them have let go; ask them with: leasehold release {name} --token TOKEN",
            view.holding
        )));
    }
    let Some(to) = to.label() else { return Ok(()) };
    if view.holders.iter().any(|holder| holder.label == *to) {
        return Err(Trouble::NoSuccessor(format!("{:?} holds {name} already", to.as_str())));
    }
    let is_there = view.queue.iter().any(|waiter| waiter.label == *to);
    // Of a long queue only the beginning is shown.
    if is_there || view.queue.len() < view.waiting {
        return Ok(());
    }
    let waiters: Vec<&str> =
        view.queue.iter().map(|WaiterView { label, .. }| words::somebody(label)).collect();
    let waiters = waiters.join(", ");
    Err(Trouble::NoSuccessor(format!("{:?} does not wait for {name}; those who do: {waiters}", to.as_str())))
}
