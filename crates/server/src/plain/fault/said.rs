//! Parts of sentences for people.

use leasehold_core::{Unavailable, WaitEnding};

pub(super) fn not_free(why: &Unavailable) -> String {
    match why {
        Unavailable::Held { holder, token, overdue } => {
            let holder = if holder.as_str().is_empty() { "somebody" } else { holder.as_str() };
            let late = if *overdue { ", which is overdue but may come back" } else { "" };
            format!("held by {holder} with token {token}{late}")
        }
        Unavailable::Queue { waiting } => format!("{waiting} were first"),
        Unavailable::RevokePending { token, remaining } => {
            format!("token {token} was revoked, and its holder may not know for another {remaining}")
        }
        Unavailable::CoolDown { remaining } => {
            format!("after an involuntary end it goes to nobody for another {remaining}")
        }
        Unavailable::RestoreWait { remaining } => {
            format!("the store was restored and grants nothing for another {remaining}")
        }
        Unavailable::Alarm { token } => format!(
            "an alarm is raised, because token {token} was shown, which was never granted here: an operator must look"
        ),
    }
}

pub(super) const fn wait_ending(why: WaitEnding) -> &'static str {
    match why {
        WaitEnding::TimedOut => "its time was over",
        WaitEnding::OfferEnded => "the offer that it stood for ended",
        WaitEnding::KindChanged => "an operator changed the kind of the resource",
        WaitEnding::Cancelled => "it was cancelled",
    }
}
