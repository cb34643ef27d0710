//! What the service says: responses, the table's replies, and failures.

use leasehold_core::answer::{HeldLease, Holdings, Opened, Renewed, Reply, Waited};
use leasehold_core::protocol::{Failure, Response, ToClient};
use leasehold_core::{Millis, SessionId};

use super::{Field, needed, record, variants};
use crate::proto as pb;

variants! {
    ToClient => ServerMessage { message: server_message::Message } at "message";
    Response { id, response at "response" } => Response(Response) at "response",
    Watched { watch, changes, more } => Watched(Watched) at "watched";
    to {
        Self::Items { session, items } => pb::server_message::Message::Items(pb::Items {
            session: session.get(),
            items: items.to_field(),
            renew_in_ms: None,
        }),
        // Whoever does not know the field reads a message without items.
        Self::Hint { session, length } => pb::server_message::Message::Items(pb::Items {
            session: session.get(),
            items: Vec::new(),
            renew_in_ms: Some(length.get()),
        }),
    }
    from {
        pb::server_message::Message::Items(pb::Items { session, items, renew_in_ms: Some(length) })
            if items.is_empty() =>
        {
            Self::Hint { session: SessionId::from_u64(session), length: Millis::new(length) }
        }
        // Beside items a wish is not looked at: it may be ignored, they may not.
        pb::server_message::Message::Items(pb::Items { session, items, renew_in_ms: _ }) => {
            Self::Items { session: SessionId::from_u64(session), items: Field::from_field("items", items)? }
        }
    }
}

variants! {
    Response => response::Response;
    Reply(reply) => Reply,
    Read { revision, answer at "read" } => Read(ReadAnswer) at "read",
    Cluster(reply) => Cluster,
    Failed(failure) => Failed,
}

variants! {
    Failure => Failure { failure: failure::Failure } at "failed";
    OutcomeUnknown => OutcomeUnknown,
    Unavailable { why } => Unavailable,
    NotYourSession { session } => NotYourSession,
    RevisionTooOld { after, oldest } => RevisionTooOld(RevisionTooOld) at "failed.revision_too_old",
    RevisionAhead { after, newest } => RevisionAhead(RevisionAhead) at "failed.revision_ahead",
    TooManyWatches { limit } => TooManyWatchesLimit at "failed.too_many_watches_limit",
    TooMuchUnread { limit } => TooMuchUnreadLimit at "failed.too_much_unread_limit",
    BadRequest { why } => BadRequest,
}

variants! {
    Reply => Reply { reply: reply::Reply } at "reply";
    Opened(opened) => Opened,
    Attached { last_command, last_item } => Attached(Attached) at "attached",
    Renewed(renewed) => Renewed,
    StaleRenewal { number, highest } => StaleRenewal(StaleRenewal) at "stale_renewal",
    Applied { number } => Applied,
    Repeated { number } => AppliedBefore,
    Plain { number, answer, renewal } => Plain(PlainAnswer) at "plain",
    PlainRepeated { number, answer, renewal, held } => PlainRepeated(PlainRepeated) at "plain_repeated",
    NumberSettled { call, settled } => NumberSettled(NumberSettled) at "number_settled",
    PlainWaitEnded { number, why } => PlainWaitEnded(PlainWaitEnded) at "plain_wait_ended",
    Closed => Closed,
    Asked { token, holder } => Asked(Asked) at "asked",
    Revoked { held_back } => RevokedHeldBackMs,
    KindChanged => KindChanged,
    AlarmCleared => AlarmCleared,
    Done => Done,
    Refused(refusal) => Refused,
}

record!(Opened => Opened at "opened"; session, ttl_ms as ttl, drift_ppm as drift, existed as repeated);

record!(Renewed => Renewed at "renewed"; number, after, holdings);

record!(Holdings => Holdings at "holdings"; leases, waits);

record!(HeldLease => HeldLease at "held"; grant, release_requested);

record!(Waited => Waited at "waited"; acquire, resources);

needed!(ToClient, Response);
