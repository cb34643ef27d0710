//! What watchers see.

use leasehold_core::protocol::{Change, Changes};
use leasehold_core::{Millis, Revision, SessionId, Token, Value};

use super::{
    Checked, Wire, label, list, name, needed, present, reason, register_key, to_list, to_u32, value,
};
use crate::proto as pb;
use pb::change::Change as ChangeMessage;

impl Wire for Changes {
    type Message = pb::Changes;

    fn to_wire(&self) -> pb::Changes {
        pb::Changes { revision: self.revision.get(), changes: to_list(&self.changes) }
    }

    fn from_wire(m: pb::Changes) -> Checked<Self> {
        Ok(Self { revision: Revision::new(m.revision), changes: list(m.changes)? })
    }
}

impl Wire for Change {
    type Message = pb::Change;

    fn to_wire(&self) -> pb::Change {
        let bytes = |value: &Option<Value>| value.as_ref().map(|value| value.as_bytes().to_vec());
        let change = match self {
            Self::Granted { grant, shared, session, label, value } => {
                ChangeMessage::Granted(pb::GrantedChange {
                    grant: Some(grant.to_wire()),
                    shared: *shared,
                    session: session.get(),
                    label: label.to_string(),
                    value: bytes(value),
                })
            }
            Self::ValueSet { resource, token, session, value } => ChangeMessage::ValueSet(pb::ValueChange {
                resource: resource.to_string(),
                token: token.get(),
                session: session.get(),
                value: bytes(value),
            }),
            Self::RegisterWritten { resource, key, token, removed } => {
                ChangeMessage::RegisterWritten(pb::RegisterChange {
                    resource: resource.to_string(),
                    key: key.to_string(),
                    token: token.get(),
                    removed: *removed,
                })
            }
            Self::Ended { resource, token, session, label, how } => ChangeMessage::Ended(pb::EndedChange {
                resource: resource.to_string(),
                token: token.get(),
                session: session.get(),
                label: label.to_string(),
                how: Some(how.to_wire()),
            }),
            Self::AlarmRaised { resource, token, by } => ChangeMessage::AlarmRaised(pb::AlarmRaisedChange {
                resource: resource.to_string(),
                token: token.get(),
                by: by.to_string(),
            }),
            Self::AlarmCleared { resource, token, by, reason } => {
                ChangeMessage::AlarmCleared(pb::AlarmClearedChange {
                    resource: resource.to_string(),
                    token: token.get(),
                    by: by.to_string(),
                    reason: reason.to_string(),
                })
            }
            Self::ReadySet { resource, token, session, ready } => ChangeMessage::ReadySet(pb::ReadyChange {
                resource: resource.to_string(),
                token: token.get(),
                session: session.get(),
                ready: *ready,
            }),
            Self::DrainingShown { resource, token, session, in_flight, within } => {
                ChangeMessage::DrainingShown(pb::DrainingChange {
                    resource: resource.to_string(),
                    token: token.get(),
                    session: session.get(),
                    in_flight: (*in_flight).into(),
                    within_ms: within.get(),
                })
            }
        };
        pb::Change { change: Some(change) }
    }

    fn from_wire(m: pb::Change) -> Checked<Self> {
        let bytes = |bytes: Option<Vec<u8>>| bytes.map(|bytes| value("change.value", bytes)).transpose();
        Ok(match present("change", m.change)? {
            ChangeMessage::Granted(m) => Self::Granted {
                grant: needed("granted.grant", m.grant)?,
                shared: m.shared,
                session: SessionId::from_u64(m.session),
                label: label("granted.label", &m.label)?,
                value: bytes(m.value)?,
            },
            ChangeMessage::ValueSet(m) => Self::ValueSet {
                resource: name("value_set.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                session: SessionId::from_u64(m.session),
                value: bytes(m.value)?,
            },
            ChangeMessage::RegisterWritten(m) => Self::RegisterWritten {
                resource: name("register_written.resource", &m.resource)?,
                key: register_key("register_written.key", &m.key)?,
                token: Token::from_u64(m.token),
                removed: m.removed,
            },
            ChangeMessage::Ended(m) => Self::Ended {
                resource: name("ended.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                session: SessionId::from_u64(m.session),
                label: label("ended.label", &m.label)?,
                how: needed("ended.how", m.how)?,
            },
            ChangeMessage::AlarmRaised(m) => Self::AlarmRaised {
                resource: name("alarm_raised.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                by: label("alarm_raised.by", &m.by)?,
            },
            ChangeMessage::AlarmCleared(m) => Self::AlarmCleared {
                resource: name("alarm_cleared.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                by: label("alarm_cleared.by", &m.by)?,
                reason: reason("alarm_cleared.reason", &m.reason)?,
            },
            ChangeMessage::ReadySet(m) => Self::ReadySet {
                resource: name("ready_set.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                session: SessionId::from_u64(m.session),
                ready: m.ready,
            },
            ChangeMessage::DrainingShown(m) => Self::DrainingShown {
                resource: name("draining_shown.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                session: SessionId::from_u64(m.session),
                in_flight: to_u32("draining_shown.in_flight", m.in_flight)?,
                within: Millis::new(m.within_ms),
            },
        })
    }
}
