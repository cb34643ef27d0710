//! What is said when a lease was lost: how, and up to when it was confirmed, so that later work can be checked.

use leasehold::{Error, Lease, LeaseState, Unreachable};

use crate::args::AcquireArgs;
use crate::guardian::clock::Point;
use crate::trouble::Trouble;
use crate::words;

/// The lease stands as `state` says, and it was needed.
pub(crate) fn lost(lease: &Lease, state: &LeaseState) -> Trouble {
    let (how, confirmed) = match state {
        LeaseState::Ended { why, confirmed_until } => {
            (words::ended_why(why), words::confirmed_until(*confirmed_until))
        }
        LeaseState::Lapsed { since } => {
            ("it was not renewed in time".to_owned(), words::confirmed_until(Some(*since)))
        }
        _ => ("it could not be confirmed in time".to_owned(), words::confirmed_until(None)),
    };
    let (name, token) = (lease.fence_name(), lease.granted().token);
    Trouble::Lost(format!(
        "lost {name} with token {token}: {how}; {confirmed}: check what was done after that"
    ))
}

/// The deadline came near, and the guardian ends the command before it. That it has done so is certain only while the deadline is ahead.
pub(crate) fn ran_out(lease: &Lease) -> Trouble {
    let (name, token) = (lease.fence_name(), lease.granted().token);
    let said = match (lease.deadline().map(Point::from), Point::now()) {
        (Some(deadline), now) if !deadline.remaining(now).is_zero() => {
            let confirmed = words::confirmed_for(deadline.remaining(now));
            format!("{confirmed}, and the command was ended before that")
        }
        // Whoever was stopped says this long after: the deadline lies behind by as much as the clock that moved least says. The
        // guardian may have been stopped as well, and the command have run on.
        (Some(deadline), now) => {
            let confirmed = words::confirmed_until(Some(now.remaining(deadline)));
            format!("{confirmed}: check what was done after that")
        }
        (None, _) => format!("{}: check what was done after that", words::confirmed_until(None)),
    };
    Trouble::Lost(format!("lost {name} with token {token}: it could not be renewed; {said}"))
}

/// A lease that could not be given back. When it is free is the store's to say: its time stands still while it is down.
pub(crate) fn not_released(name: &str, args: &AcquireArgs, error: &Error) -> String {
    let cause = match error {
        // How long it was waited for an answer before this says nothing about the lease.
        Error::Unreachable(Unreachable::NoConnection { store, last, .. }) => {
            let last = last.as_ref().map(|last| format!(": {last}")).unwrap_or_default();
            format!("no connection to {store}{last}")
        }
        Error::Unreachable(Unreachable::NoLeader { place, .. }) => {
            format!("{place} answers, but no leader is known there")
        }
        Error::OutcomeUnknown => "no answer came".to_owned(),
        other => other.to_string(),
    };
    let kept = args.ttl + args.grace.unwrap_or_default() + args.delay.unwrap_or_default();
    format!(
        "could not tell the store that {name} is free: {cause}; the store frees it by itself after {} without a renewal, not \
         counting the time that it is down",
        words::length(kept)
    )
}
