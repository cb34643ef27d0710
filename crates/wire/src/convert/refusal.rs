//! Refusals. Each keeps its own variant on the wire: a refusal that a reader does not know must not look like one that it does.

use leasehold_core::answer::{BadRequest, Ending, LimitedThing, Refusal};
use leasehold_core::{AttachNumber, CommandNumber, ItemNumber, Millis, Mode, ResourceName, SessionId, Token};

use super::{Checked, Wire, from_usize, name, named_values, needed, nothing, optional, present, to_usize};
use crate::proto as pb;
use pb::refusal::Refusal as Message;

impl Wire for Refusal {
    type Message = pb::Refusal;

    fn to_wire(&self) -> pb::Refusal {
        let refusal = match self {
            Self::SessionEnded { session } => Message::SessionEnded(session.get()),
            Self::SessionOverdue => Message::SessionOverdue(nothing()),
            Self::OlderAttach { attach, current } => {
                Message::OlderAttach(pb::OlderAttach { attach: attach.get(), current: current.get() })
            }
            Self::CommandGap { number, expected } => {
                Message::CommandGap(pb::CommandGap { number: number.get(), expected: expected.get() })
            }
            Self::SeenAhead { seen, newest } => {
                Message::SeenAhead(pb::SeenAhead { seen: seen.get(), newest: newest.get() })
            }
            Self::TooManyUnseen { limit } => Message::TooManyUnseenLimit(from_usize(*limit)),
            Self::WrongSessionKind => Message::WrongSessionKind(nothing()),
            Self::TtlOutOfRange { ttl, min, max } => Message::TtlOutOfRange(pb::TtlOutOfRange {
                ttl_ms: ttl.get(),
                min_ms: min.get(),
                max_ms: max.get(),
            }),
            Self::BadPolicies => Message::BadPolicies(nothing()),
            Self::BadRequest { what } => Message::BadRequest(what.to_wire()),
            Self::WrongKind { has } => Message::WrongKindHas(has.to_wire()),
            Self::NotFree { resource, why } => {
                Message::NotFree(pb::NotFree { resource: resource.to_string(), why: Some(why.to_wire()) })
            }
            Self::NotHolder { resource, token, ended } => {
                Message::NotHolder(not_the_lease(resource, *token, ended))
            }
            Self::NotCurrent { resource, token, ended } => {
                Message::NotCurrent(not_the_lease(resource, *token, ended))
            }
            Self::NotHeld { resource } => Message::NotHeld(resource.to_string()),
            Self::NoSuchWait { acquire } => Message::NoSuchWait(acquire.get()),
            Self::NoSuchSuccessor => Message::NoSuchSuccessor(nothing()),
            Self::NoOffer { resource } => Message::NoOffer(resource.to_string()),
            Self::LimitReached { what, limit } => {
                Message::LimitReached(pb::LimitReached { what: what.to_wire(), limit: from_usize(*limit) })
            }
            Self::TokensExhausted => Message::TokensExhausted(nothing()),
            Self::NoRoom => Message::NoRoom(nothing()),
            Self::NotYetInUse => Message::NotYetInUse(nothing()),
            Self::TokenAhead { resource, token, newest } => Message::TokenAhead(pb::TokenAhead {
                resource: resource.to_string(),
                token: token.get(),
                newest: *newest,
            }),
            Self::NoSuchAlarm { resource, token, raised } => Message::NoSuchAlarm(pb::NoSuchAlarm {
                resource: resource.to_string(),
                token: token.get(),
                raised: raised.map(Token::get),
            }),
        };
        pb::Refusal { refusal: Some(refusal) }
    }

    fn from_wire(m: pb::Refusal) -> Checked<Self> {
        Ok(match present("refusal", m.refusal)? {
            Message::SessionEnded(session) => Self::SessionEnded { session: SessionId::from_u64(session) },
            Message::SessionOverdue(pb::Nothing {}) => Self::SessionOverdue,
            Message::OlderAttach(m) => Self::OlderAttach {
                attach: AttachNumber::new(m.attach),
                current: AttachNumber::new(m.current),
            },
            Message::CommandGap(m) => Self::CommandGap {
                number: CommandNumber::new(m.number),
                expected: CommandNumber::new(m.expected),
            },
            Message::SeenAhead(m) => {
                Self::SeenAhead { seen: ItemNumber::new(m.seen), newest: ItemNumber::new(m.newest) }
            }
            Message::TooManyUnseenLimit(limit) => {
                Self::TooManyUnseen { limit: to_usize("refusal.too_many_unseen_limit", limit)? }
            }
            Message::WrongSessionKind(pb::Nothing {}) => Self::WrongSessionKind,
            Message::TtlOutOfRange(m) => Self::TtlOutOfRange {
                ttl: Millis::new(m.ttl_ms),
                min: Millis::new(m.min_ms),
                max: Millis::new(m.max_ms),
            },
            Message::BadPolicies(pb::Nothing {}) => Self::BadPolicies,
            Message::BadRequest(what) => Self::BadRequest { what: BadRequest::from_wire(what)? },
            Message::WrongKindHas(mode) => Self::WrongKind { has: Mode::from_wire(mode)? },
            Message::NotFree(m) => Self::NotFree {
                resource: name("refusal.not_free.resource", &m.resource)?,
                why: needed("refusal.not_free.why", m.why)?,
            },
            Message::NotHolder(m) => {
                let (resource, token, ended) = the_lease("refusal.not_holder.resource", m)?;
                Self::NotHolder { resource, token, ended }
            }
            Message::NotCurrent(m) => {
                let (resource, token, ended) = the_lease("refusal.not_current.resource", m)?;
                Self::NotCurrent { resource, token, ended }
            }
            Message::NotHeld(resource) => Self::NotHeld { resource: name("refusal.not_held", &resource)? },
            Message::NoSuchWait(acquire) => Self::NoSuchWait { acquire: CommandNumber::new(acquire) },
            Message::NoSuchSuccessor(pb::Nothing {}) => Self::NoSuchSuccessor,
            Message::NoOffer(resource) => Self::NoOffer { resource: name("refusal.no_offer", &resource)? },
            Message::LimitReached(m) => Self::LimitReached {
                what: LimitedThing::from_wire(m.what)?,
                limit: to_usize("refusal.limit_reached.limit", m.limit)?,
            },
            Message::TokensExhausted(pb::Nothing {}) => Self::TokensExhausted,
            Message::NoRoom(pb::Nothing {}) => Self::NoRoom,
            Message::NotYetInUse(pb::Nothing {}) => Self::NotYetInUse,
            Message::TokenAhead(m) => Self::TokenAhead {
                resource: name("refusal.token_ahead.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                newest: m.newest,
            },
            Message::NoSuchAlarm(m) => Self::NoSuchAlarm {
                resource: name("refusal.no_such_alarm.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                raised: m.raised.map(Token::from_u64),
            },
        })
    }
}

fn not_the_lease(resource: &ResourceName, token: Token, ended: &Option<Ending>) -> pb::NotTheLease {
    pb::NotTheLease {
        resource: resource.to_string(),
        token: token.get(),
        ended: ended.as_ref().map(Wire::to_wire),
    }
}

fn the_lease(field: &'static str, m: pb::NotTheLease) -> Checked<(ResourceName, Token, Option<Ending>)> {
    Ok((name(field, &m.resource)?, Token::from_u64(m.token), optional(m.ended)?))
}

named_values!(
    BadRequest => BadRequest, "refusal.bad_request",
    NoResource, TooManyResources, NamedTwice, BadSlots, TooLong, NonceTaken
);

named_values!(
    LimitedThing => LimitedThing, "refusal.limit_reached.what",
    LeasesOfSession, WaitsOfSession, Sessions, WaitersOfResource, Resources, RegistersOfResource
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldError;
    use prost::Message as _;

    #[test]
    fn a_refusal_of_a_newer_service_is_an_error_and_not_another_refusal() {
        // Field 99, a number: a variant that this release does not have.
        let newer = pb::Refusal::decode(&[0x98, 0x06, 0x01][..]).unwrap();
        assert_eq!(Refusal::from_wire(newer), Err(FieldError::Absent { field: "refusal" }));
    }

    #[test]
    fn an_enum_is_neither_unspecified_nor_unknown() {
        let bad = |what| Refusal::from_wire(pb::Refusal { refusal: Some(Message::BadRequest(what)) });
        let field = "refusal.bad_request";
        assert_eq!(bad(0), Err(FieldError::Unspecified { field }));
        assert_eq!(bad(1), Ok(Refusal::BadRequest { what: BadRequest::NoResource }));
        assert_eq!(bad(77), Err(FieldError::UnknownValue { field, value: 77 }));
    }
}
