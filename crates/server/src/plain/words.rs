//! States and endings in one word for programs: the same words as on the command line.

use leasehold_core::table::HoldingState;
use leasehold_core::{Ending, WaitEnding};

/// How a lease ended.
pub(crate) const fn ending(how: &Ending) -> &'static str {
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
pub(crate) const ENDINGS: [&str; 9] = [
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
pub(crate) const fn wait_ending(why: WaitEnding) -> &'static str {
    match why {
        WaitEnding::TimedOut => "timed-out",
        WaitEnding::OfferEnded => "offer-ended",
        WaitEnding::KindChanged => "kind-changed",
        WaitEnding::Cancelled => "cancelled",
    }
}

/// How a holder stands.
pub(crate) const fn holding(state: HoldingState) -> &'static str {
    match state {
        HoldingState::Held => "held",
        HoldingState::Overdue => "overdue",
        HoldingState::Revoked => "revoked",
    }
}
