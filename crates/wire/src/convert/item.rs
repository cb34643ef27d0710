//! Items of sessions: answers, events and the leases in them.

use leasehold_core::answer::{Answer, Grant, Item, ItemKind};

use super::{needed, record, variants};
use crate::proto as pb;

record!(Item => Item at "item"; number, kind);

variants! {
    ItemKind => item::Kind;
    Answer { command, answer } => Answer(CommandAnswer) at "item",
    WaitGranted { command, grants } => WaitGranted(WaitGranted) at "wait_granted",
    WaitEnded { command, why } => WaitEnded(WaitEnded) at "wait_ended",
    LeaseEnded { resource, token, how } => LeaseEnded(LeaseEnded) at "lease_ended",
    ReleaseRequested { resource, token, successor, by } => ReleaseRequested(ReleaseRequested) at "release_requested",
    Offered { resource, token, from, length_ms as length } => Offered(Offered) at "offered",
    OfferEnded { resource, token } => OfferEnded(OfferEnded) at "offer_ended",
    OfferAccepted { resource, token, by, label } => OfferAccepted(OfferAccepted) at "offer_accepted",
}

variants! {
    Answer => Answer { answer: answer::Answer } at "answer";
    Granted(grants) => Granted(Grants),
    Queued { ahead } => QueuedAhead at "answer.queued_ahead",
    Cancelled => Cancelled,
    AlreadyGranted(grants) => AlreadyGranted(Grants),
    ValueSet => ValueSet,
    RegisterWritten => RegisterWritten,
    Offered { to } => OfferedTo,
    Accepted { wait } => AcceptedFor,
    Released => Released,
    Refused(refusal) => Refused,
    DrainingShown => DrainingShown,
    ReadySet => ReadySet,
}

record!(Grant => Grant at "grant"; resource, token, fence, slot);

needed!(ItemKind, Answer, Grant);
