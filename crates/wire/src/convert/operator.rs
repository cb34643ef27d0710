//! What operators do without a session.

use leasehold_core::{Operator, Token};

use super::{Checked, Wire, label, name, needed, optional, optional_token, present, reason};
use crate::proto as pb;
use pb::operator::Operator as Message;

impl Wire for Operator {
    type Message = pb::Operator;

    fn to_wire(&self) -> pb::Operator {
        let operator = match self {
            Self::AskRelease { resource, token, successor, by } => Message::AskRelease(pb::AskRelease {
                resource: resource.to_string(),
                token: token.map(Token::get),
                successor: successor.as_ref().map(Wire::to_wire),
                by: by.to_string(),
            }),
            Self::Revoke { resource, token, by, reason, now } => Message::Revoke(pb::Revoke {
                resource: resource.to_string(),
                token: token.get(),
                by: by.to_string(),
                reason: reason.to_string(),
                now: *now,
            }),
            Self::ChangeKind { resource, mode, by } => Message::ChangeKind(pb::ChangeKind {
                resource: resource.to_string(),
                mode: Some(mode.to_wire()),
                by: by.to_string(),
            }),
            Self::ClearAlarm { resource, token, by, reason } => Message::ClearAlarm(pb::ClearAlarm {
                resource: resource.to_string(),
                token: token.get(),
                by: by.to_string(),
                reason: reason.to_string(),
            }),
        };
        pb::Operator { operator: Some(operator) }
    }

    fn from_wire(m: pb::Operator) -> Checked<Self> {
        Ok(match present("operator", m.operator)? {
            Message::AskRelease(m) => Self::AskRelease {
                resource: name("ask_release.resource", &m.resource)?,
                token: optional_token(m.token),
                successor: optional(m.successor)?,
                by: label("ask_release.by", &m.by)?,
            },
            Message::Revoke(m) => Self::Revoke {
                resource: name("revoke.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                by: label("revoke.by", &m.by)?,
                reason: reason("revoke.reason", &m.reason)?,
                now: m.now,
            },
            Message::ChangeKind(m) => Self::ChangeKind {
                resource: name("change_kind.resource", &m.resource)?,
                mode: needed("change_kind.mode", m.mode)?,
                by: label("change_kind.by", &m.by)?,
            },
            Message::ClearAlarm(m) => Self::ClearAlarm {
                resource: name("clear_alarm.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                by: label("clear_alarm.by", &m.by)?,
                reason: reason("clear_alarm.reason", &m.reason)?,
            },
        })
    }
}
