//! How leases and waits end, and why a resource is not free.

use leasehold_core::answer::{Ending, Unavailable, WaitEnding};
use leasehold_core::{Millis, SessionId, Token};

use super::{Checked, Wire, label, named_values, nothing, present, reason, to_u32};
use crate::proto as pb;
use pb::ending::Ending as EndingMessage;
use pb::unavailable::Unavailable as UnavailableMessage;

impl Wire for Ending {
    type Message = pb::Ending;

    fn to_wire(&self) -> pb::Ending {
        let ending = match self {
            Self::Released => EndingMessage::Released(nothing()),
            Self::HandedOver { to } => EndingMessage::HandedOverTo(to.get()),
            Self::Drained => EndingMessage::Drained(nothing()),
            Self::Expired => EndingMessage::Expired(nothing()),
            Self::Taken { by } => EndingMessage::TakenBy(by.get()),
            Self::Revoked { by, reason } => {
                EndingMessage::Revoked(pb::RevokedBy { by: by.to_string(), reason: reason.to_string() })
            }
            Self::SessionClosed => EndingMessage::SessionClosed(nothing()),
            Self::Rebooted => EndingMessage::Rebooted(nothing()),
            Self::Restored => EndingMessage::Restored(nothing()),
        };
        pb::Ending { ending: Some(ending) }
    }

    fn from_wire(m: pb::Ending) -> Checked<Self> {
        Ok(match present("ending", m.ending)? {
            EndingMessage::Released(pb::Nothing {}) => Self::Released,
            EndingMessage::HandedOverTo(to) => Self::HandedOver { to: SessionId::from_u64(to) },
            EndingMessage::Drained(pb::Nothing {}) => Self::Drained,
            EndingMessage::Expired(pb::Nothing {}) => Self::Expired,
            EndingMessage::TakenBy(by) => Self::Taken { by: Token::from_u64(by) },
            EndingMessage::Revoked(m) => Self::Revoked {
                by: label("ending.revoked.by", &m.by)?,
                reason: reason("ending.revoked.reason", &m.reason)?,
            },
            EndingMessage::SessionClosed(pb::Nothing {}) => Self::SessionClosed,
            EndingMessage::Rebooted(pb::Nothing {}) => Self::Rebooted,
            EndingMessage::Restored(pb::Nothing {}) => Self::Restored,
        })
    }
}

impl Wire for Unavailable {
    type Message = pb::Unavailable;

    fn to_wire(&self) -> pb::Unavailable {
        let unavailable = match self {
            Self::Held { holder, token, overdue } => UnavailableMessage::Held(pb::HeldBy {
                holder: holder.to_string(),
                token: token.get(),
                overdue: *overdue,
            }),
            Self::Queue { waiting } => UnavailableMessage::QueueWaiting((*waiting).into()),
            Self::RevokePending { token, remaining } => {
                UnavailableMessage::RevokePending(pb::RevokePending {
                    token: token.get(),
                    remaining_ms: remaining.get(),
                })
            }
            Self::CoolDown { remaining } => UnavailableMessage::CoolDownMs(remaining.get()),
            Self::RestoreWait { remaining } => UnavailableMessage::RestoreWaitMs(remaining.get()),
            Self::Alarm { token } => UnavailableMessage::AlarmToken(token.get()),
        };
        pb::Unavailable { unavailable: Some(unavailable) }
    }

    fn from_wire(m: pb::Unavailable) -> Checked<Self> {
        Ok(match present("unavailable", m.unavailable)? {
            UnavailableMessage::Held(m) => Self::Held {
                holder: label("unavailable.held.holder", &m.holder)?,
                token: Token::from_u64(m.token),
                overdue: m.overdue,
            },
            UnavailableMessage::QueueWaiting(waiting) => {
                Self::Queue { waiting: to_u32("unavailable.queue_waiting", waiting)? }
            }
            UnavailableMessage::RevokePending(m) => Self::RevokePending {
                token: Token::from_u64(m.token),
                remaining: Millis::new(m.remaining_ms),
            },
            UnavailableMessage::CoolDownMs(remaining) => Self::CoolDown { remaining: Millis::new(remaining) },
            UnavailableMessage::RestoreWaitMs(remaining) => {
                Self::RestoreWait { remaining: Millis::new(remaining) }
            }
            UnavailableMessage::AlarmToken(token) => Self::Alarm { token: Token::from_u64(token) },
        })
    }
}

named_values!(WaitEnding => WaitEnding, "wait_ended.why", TimedOut, OfferEnded, KindChanged, Cancelled);
