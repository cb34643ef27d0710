//! Refusals. Each keeps its own variant on the wire: a refusal that a reader does not know must not look like one that it does.

use leasehold_core::answer::{BadRequest, LimitedThing, Refusal};

use super::{named_values, variants};
use crate::proto as pb;

variants! {
    Refusal => Refusal { refusal: refusal::Refusal } at "refusal";
    SessionEnded { session } => SessionEnded,
    SessionOverdue => SessionOverdue,
    OlderAttach { attach, current } => OlderAttach(OlderAttach) at "refusal.older_attach",
    CommandGap { number, expected } => CommandGap(CommandGap) at "refusal.command_gap",
    SeenAhead { seen, newest } => SeenAhead(SeenAhead) at "refusal.seen_ahead",
    TooManyUnseen { limit } => TooManyUnseenLimit at "refusal.too_many_unseen_limit",
    WrongSessionKind => WrongSessionKind,
    TtlOutOfRange { ttl_ms as ttl, min_ms as min, max_ms as max }
        => TtlOutOfRange(TtlOutOfRange) at "refusal.ttl_out_of_range",
    BadPolicies => BadPolicies,
    BadRequest { what } => BadRequest,
    WrongKind { has } => WrongKindHas,
    NotFree { resource, why } => NotFree(NotFree) at "refusal.not_free",
    NotHolder { resource, token, ended } => NotHolder(NotTheLease) at "refusal.not_holder",
    NotCurrent { resource, token, ended } => NotCurrent(NotTheLease) at "refusal.not_current",
    NotHeld { resource } => NotHeld at "refusal.not_held",
    NoSuchWait { acquire } => NoSuchWait,
    NoSuchSuccessor => NoSuchSuccessor,
    NoOffer { resource } => NoOffer at "refusal.no_offer",
    LimitReached { what, limit } => LimitReached(LimitReached) at "refusal.limit_reached",
    TokensExhausted => TokensExhausted,
    NoRoom => NoRoom,
    NotYetInUse => NotYetInUse,
    NumberReused { call } => NumberReused,
    TokenAhead { resource, token, newest } => TokenAhead(TokenAhead) at "refusal.token_ahead",
    NoSuchAlarm { resource, token, raised } => NoSuchAlarm(NoSuchAlarm) at "refusal.no_such_alarm",
}

named_values!(
    BadRequest => BadRequest, "refusal.bad_request",
    NoResource, TooManyResources, NamedTwice, BadSlots, TooLong, NonceTaken
);

named_values!(
    LimitedThing => LimitedThing, "refusal.limit_reached.what",
    LeasesOfSession, WaitsOfSession, Sessions, WaitersOfResource, Resources, RegistersOfResource,
    CallsOfSession
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldError, Wire as _};
    use prost::Message as _;

    #[test]
    fn a_refusal_of_a_newer_service_is_an_error_and_not_another_refusal() {
        // Field 99, a number: a variant that this release does not have.
        let newer = pb::Refusal::decode(&[0x98, 0x06, 0x01][..]).unwrap();
        assert_eq!(Refusal::from_wire(newer), Err(FieldError::Absent { field: "refusal" }));
    }

    #[test]
    fn an_enum_is_neither_unspecified_nor_unknown() {
        let bad =
            |what| Refusal::from_wire(pb::Refusal { refusal: Some(pb::refusal::Refusal::BadRequest(what)) });
        let field = "refusal.bad_request";
        assert_eq!(bad(0), Err(FieldError::Unspecified { field }));
        assert_eq!(bad(1), Ok(Refusal::BadRequest { what: BadRequest::NoResource }));
        assert_eq!(bad(77), Err(FieldError::UnknownValue { field, value: 77 }));
    }
}
