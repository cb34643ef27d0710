//! States and endings in one word for programs, and the sentences that people read.

use leasehold_core::table::{HoldingState, LeaseView};
use leasehold_core::{Ending, Mode, Unavailable, WaitEnding};

/// How a lease ended.
pub const fn ending(how: &Ending) -> &'static str {
    match how {
        Ending::Released => "released",
        Ending::HandedOver { .. } => "handed-over",
        Ending::Drained => "drained",
        Ending::Expired => "expired",
        Ending::Taken { .. } => "taken",
        Ending::Revoked { .. } => "revoked",
        Ending::SessionClosed => "session-closed",
        Ending::Rebooted => "rebooted",
        Ending::Restored => "restored",
    }
}

/// Every word of [`ending`].
pub const ENDINGS: [&str; 9] = [
    "released",
    "handed-over",
    "drained",
    "expired",
    "taken",
    "revoked",
    "session-closed",
    "rebooted",
    "restored",
];

/// Why a wait ended.
pub const fn wait_ending(why: WaitEnding) -> &'static str {
    match why {
        WaitEnding::TimedOut => "timed-out",
        WaitEnding::OfferEnded => "offer-ended",
        WaitEnding::KindChanged => "kind-changed",
        WaitEnding::Cancelled => "cancelled",
    }
}

/// How a holder stands.
pub const fn holding(state: HoldingState) -> &'static str {
    match state {
        HoldingState::Held => "held",
        HoldingState::Overdue => "overdue",
        HoldingState::Revoked => "revoked",
    }
}

/// How a resource is held.
pub const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Slot { .. } => "slots",
    }
}

/// How the resource is held now: a name without slots takes exclusive and shared leases in turn.
pub fn present_mode(view: &LeaseView) -> Mode {
    if view.holders.iter().any(|holder| holder.shared) { Mode::Shared } else { view.mode }
}

/// Why a resource is not free, for people.
pub(crate) fn not_free(why: &Unavailable) -> String {
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

/// Why a wait ended, for people.
pub(crate) const fn wait_ended(why: WaitEnding) -> &'static str {
    match why {
        WaitEnding::TimedOut => "its time was over",
        WaitEnding::OfferEnded => "the offer that it stood for ended",
        WaitEnding::KindChanged => "an operator changed the kind of the resource",
        WaitEnding::Cancelled => "it was cancelled",
    }
}
