//! Items of sessions: answers, events and the leases in them.

use leasehold_core::answer::{Answer, Grant, Item, ItemKind, Refusal, WaitEnding};
use leasehold_core::{CommandNumber, ItemNumber, Millis, SessionId, Token};

use super::{Checked, Wire, label, list, name, needed, nothing, optional, present, to_list, to_u32};
use crate::proto as pb;
use pb::answer::Answer as AnswerMessage;
use pb::item::Kind as KindMessage;

impl Wire for Item {
    type Message = pb::Item;

    fn to_wire(&self) -> pb::Item {
        pb::Item { number: self.number.get(), kind: Some(self.kind.to_wire()) }
    }

    fn from_wire(m: pb::Item) -> Checked<Self> {
        Ok(Self { number: ItemNumber::new(m.number), kind: needed("item.kind", m.kind)? })
    }
}

impl Wire for ItemKind {
    type Message = KindMessage;

    fn to_wire(&self) -> KindMessage {
        match self {
            Self::Answer { command, answer } => KindMessage::Answer(pb::CommandAnswer {
                command: command.get(),
                answer: Some(answer.to_wire()),
            }),
            Self::WaitGranted { command, grants } => {
                KindMessage::WaitGranted(pb::WaitGranted { command: command.get(), grants: to_list(grants) })
            }
            Self::WaitEnded { command, why } => {
                KindMessage::WaitEnded(pb::WaitEnded { command: command.get(), why: why.to_wire() })
            }
            Self::LeaseEnded { resource, token, how } => KindMessage::LeaseEnded(pb::LeaseEnded {
                resource: resource.to_string(),
                token: token.get(),
                how: Some(how.to_wire()),
            }),
            Self::ReleaseRequested { resource, token, successor, by } => {
                KindMessage::ReleaseRequested(pb::ReleaseRequested {
                    resource: resource.to_string(),
                    token: token.get(),
                    successor: successor.as_ref().map(Wire::to_wire),
                    by: by.to_string(),
                })
            }
            Self::Offered { resource, token, from, length } => KindMessage::Offered(pb::Offered {
                resource: resource.to_string(),
                token: token.get(),
                from: from.to_string(),
                length_ms: length.get(),
            }),
            Self::OfferEnded { resource, token } => {
                KindMessage::OfferEnded(pb::OfferEnded { resource: resource.to_string(), token: token.get() })
            }
            Self::OfferAccepted { resource, token, by, label } => {
                KindMessage::OfferAccepted(pb::OfferAccepted {
                    resource: resource.to_string(),
                    token: token.get(),
                    by: by.get(),
                    label: label.to_string(),
                })
            }
        }
    }

    fn from_wire(message: KindMessage) -> Checked<Self> {
        Ok(match message {
            KindMessage::Answer(m) => Self::Answer {
                command: CommandNumber::new(m.command),
                answer: needed("item.answer", m.answer)?,
            },
            KindMessage::WaitGranted(m) => {
                Self::WaitGranted { command: CommandNumber::new(m.command), grants: list(m.grants)? }
            }
            KindMessage::WaitEnded(m) => {
                Self::WaitEnded { command: CommandNumber::new(m.command), why: WaitEnding::from_wire(m.why)? }
            }
            KindMessage::LeaseEnded(m) => Self::LeaseEnded {
                resource: name("lease_ended.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                how: needed("lease_ended.how", m.how)?,
            },
            KindMessage::ReleaseRequested(m) => Self::ReleaseRequested {
                resource: name("release_requested.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                successor: optional(m.successor)?,
                by: label("release_requested.by", &m.by)?,
            },
            KindMessage::Offered(m) => Self::Offered {
                resource: name("offered.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                from: label("offered.from", &m.from)?,
                length: Millis::new(m.length_ms),
            },
            KindMessage::OfferEnded(m) => Self::OfferEnded {
                resource: name("offer_ended.resource", &m.resource)?,
                token: Token::from_u64(m.token),
            },
            KindMessage::OfferAccepted(m) => Self::OfferAccepted {
                resource: name("offer_accepted.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                by: SessionId::from_u64(m.by),
                label: label("offer_accepted.label", &m.label)?,
            },
        })
    }
}

impl Wire for Answer {
    type Message = pb::Answer;

    fn to_wire(&self) -> pb::Answer {
        let answer = match self {
            Self::Granted(grants) => AnswerMessage::Granted(pb::Grants { grants: to_list(grants) }),
            Self::Queued { ahead } => AnswerMessage::QueuedAhead((*ahead).into()),
            Self::Cancelled => AnswerMessage::Cancelled(nothing()),
            Self::AlreadyGranted(grants) => {
                AnswerMessage::AlreadyGranted(pb::Grants { grants: to_list(grants) })
            }
            Self::ValueSet => AnswerMessage::ValueSet(nothing()),
            Self::RegisterWritten => AnswerMessage::RegisterWritten(nothing()),
            Self::Offered { to } => AnswerMessage::OfferedTo(to.get()),
            Self::Accepted { wait } => AnswerMessage::AcceptedFor(wait.get()),
            Self::Released => AnswerMessage::Released(nothing()),
            Self::Refused(refusal) => AnswerMessage::Refused(refusal.to_wire()),
            Self::DrainingShown => AnswerMessage::DrainingShown(nothing()),
            Self::ReadySet => AnswerMessage::ReadySet(nothing()),
        };
        pb::Answer { answer: Some(answer) }
    }

    fn from_wire(m: pb::Answer) -> Checked<Self> {
        Ok(match present("answer", m.answer)? {
            AnswerMessage::Granted(m) => Self::Granted(list(m.grants)?),
            AnswerMessage::QueuedAhead(ahead) => {
                Self::Queued { ahead: to_u32("answer.queued_ahead", ahead)? }
            }
            AnswerMessage::Cancelled(pb::Nothing {}) => Self::Cancelled,
            AnswerMessage::AlreadyGranted(m) => Self::AlreadyGranted(list(m.grants)?),
            AnswerMessage::ValueSet(pb::Nothing {}) => Self::ValueSet,
            AnswerMessage::RegisterWritten(pb::Nothing {}) => Self::RegisterWritten,
            AnswerMessage::OfferedTo(to) => Self::Offered { to: SessionId::from_u64(to) },
            AnswerMessage::AcceptedFor(wait) => Self::Accepted { wait: CommandNumber::new(wait) },
            AnswerMessage::Released(pb::Nothing {}) => Self::Released,
            AnswerMessage::Refused(refusal) => Self::Refused(Refusal::from_wire(refusal)?),
            AnswerMessage::DrainingShown(pb::Nothing {}) => Self::DrainingShown,
            AnswerMessage::ReadySet(pb::Nothing {}) => Self::ReadySet,
        })
    }
}

impl Wire for Grant {
    type Message = pb::Grant;

    fn to_wire(&self) -> pb::Grant {
        pb::Grant {
            resource: self.resource.to_string(),
            token: self.token.get(),
            fence: self.fence.get(),
            slot: self.slot.map(u64::from),
        }
    }

    fn from_wire(m: pb::Grant) -> Checked<Self> {
        Ok(Self {
            resource: name("grant.resource", &m.resource)?,
            token: Token::from_u64(m.token),
            fence: Token::from_u64(m.fence),
            slot: m.slot.map(|slot| to_u32("grant.slot", slot)).transpose()?,
        })
    }
}
