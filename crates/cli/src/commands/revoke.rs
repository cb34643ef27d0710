//! `revoke`: ends a lease without its holder.

use std::time::Duration;

use leasehold::core::table::{HolderView, HoldingState, LeaseView};
use leasehold::{Refusal, Store, Token};

use super::asking;
use crate::args::RevokeArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

pub(super) async fn run(console: &Console, place: &Place, args: &RevokeArgs) -> Result<Exit, Trouble> {
    let (token, holder, held_back) = place.ask(async |store| revoke(store, args).await).await?;
    let json = object! {
        resource: args.name.as_str(),
        token: token.to_string(),
        holder: &holder,
        now: args.now,
        held_back_ms: words::whole_millis(held_back),
    };
    let after = match (args.now, held_back.is_zero()) {
        (true, _) => "it may be granted now: only tokens protect against the old holder".to_owned(),
        (false, true) => "it may be granted now".to_owned(),
        (false, false) => {
            format!("it goes to nobody until the holder has stopped, at most {}", words::length(held_back))
        }
    };
    console.result(format!("{}: token {token} of {holder} is revoked; {after}", args.name), &json)
}

async fn revoke(store: &Store, args: &RevokeArgs) -> Result<(Token, String, Duration), Trouble> {
    let view = store.lease(&args.name).await?;
    let holder = choose(args, view.as_ref())?;
    let who = words::somebody(&holder.label).to_owned();
    if !args.yes {
        confirm(args, holder)?;
    }
    let (by, reason) = (words::own_label(None), args.reason.clone());
    let held_back = store.revoke(&args.name, holder.token, by, reason, args.now).await?;
    Ok((holder.token, who, held_back))
}

/// The lease that is meant: the one named, or the only one there is.
fn choose<'a>(args: &RevokeArgs, view: Option<&'a LeaseView>) -> Result<&'a HolderView, Trouble> {
    let holders = view.map_or(&[][..], |view| &view.holders);
    // One that was revoked before can only be cut short.
    let held: Vec<&HolderView> =
        holders.iter().filter(|holder| args.now || holder.state != HoldingState::Revoked).collect();
    let refused = |refusal| Trouble::Store(leasehold::Error::Refused(refusal));
    let resource = args.name.clone();
    match (args.token, held.as_slice()) {
        (Some(token), held) => held
            .iter()
            .copied()
            .find(|holder| holder.token == token)
            .ok_or_else(|| refused(Refusal::NotCurrent { resource, token, ended: None })),
        (None, []) => Err(refused(Refusal::NotHeld { resource })),
        (None, [holder]) => Ok(holder),
        (None, several) => {
            let tokens: Vec<String> = several.iter().map(|holder| holder.token.to_string()).collect();
            Err(Trouble::Misuse(format!(
                "{resource} has {} holders; name one with --token: {}",
                several.len(),
                tokens.join(", ")
            )))
        }
    }
}

fn confirm(args: &RevokeArgs, holder: &HolderView) -> Result<(), Trouble> {
    let (who, name, token) = (words::somebody(&holder.label), &args.name, holder.token);
    let known = format!("{name} is held by {who} with token {token} for {}", words::millis(holder.held_for));
    let warning = if args.now { "; with --now only tokens protect against it" } else { "" };
    let without = format!("revoke it with --token {token} --yes");
    asking::confirm(&known, &format!("{warning}. Revoke it?"), &without)
}
