//! How leases and waits end, and why a resource is not free.

use leasehold_core::answer::{Ending, Unavailable, WaitEnding};

use super::{named_values, needed, variants};
use crate::proto as pb;

variants! {
    Ending => Ending { ending: ending::Ending } at "ending";
    Released => Released,
    HandedOver { to } => HandedOverTo,
    Drained => Drained,
    Expired => Expired,
    Taken { by } => TakenBy,
    Revoked { by, reason } => Revoked(RevokedBy) at "ending.revoked",
    SessionClosed => SessionClosed,
    Rebooted => Rebooted,
    Restored => Restored,
}

variants! {
    Unavailable => Unavailable { unavailable: unavailable::Unavailable } at "unavailable";
    Held { holder, token, overdue } => Held(HeldBy) at "unavailable.held",
    Queue { waiting } => QueueWaiting at "unavailable.queue_waiting",
    RevokePending { token, remaining_ms as remaining } => RevokePending(RevokePending) at "unavailable.revoke_pending",
    CoolDown { remaining } => CoolDownMs,
    RestoreWait { remaining } => RestoreWaitMs,
    Alarm { token } => AlarmToken,
}

named_values!(WaitEnding => WaitEnding, "wait_ended.why", TimedOut, OfferEnded, KindChanged, Cancelled);

needed!(Ending, Unavailable);
