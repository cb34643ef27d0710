//! What watchers see of the table: changes of leases, of what they show, and of registers.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::answer::{Ending, Event, Grant};
use crate::id::{Revision, SessionId, Token};
use crate::name::{Label, Reason, RegisterKey, ResourceName, Value};
use crate::time::Millis;

/// Longest value that is part of a change. Changes are kept in memory for whoever watches; a longer value is read on its own.
pub const MAX_WATCHED_VALUE_BYTES: usize = 4 * 1024;

/// Changes of one entry of the log, whole. Without any it only says how far the log has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The entry.
    pub revision: Revision,
    /// What happened to the resources that are watched, in order.
    pub changes: Vec<Change>,
}

/// Something that happened to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A lease was granted.
    Granted {
        /// The lease.
        grant: Grant,
        /// Whether it is shared.
        shared: bool,
        /// To which session.
        session: SessionId,
        /// What its holder calls itself.
        label: Label,
        /// What it shows; nothing if that is longer than [`MAX_WATCHED_VALUE_BYTES`].
        value: Option<Value>,
    },
    /// A holder shows another value.
    ValueSet {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Of which session.
        session: SessionId,
        /// What is shown now; nothing if that is longer than [`MAX_WATCHED_VALUE_BYTES`].
        value: Option<Value>,
    },
    /// A register was written or removed by its writer. One that goes with its lease is not told of again.
    RegisterWritten {
        /// Which resource.
        resource: ResourceName,
        /// Which register.
        key: RegisterKey,
        /// With which token.
        token: Token,
        /// Whether it was removed.
        removed: bool,
    },
    /// A lease ended.
    Ended {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Of which session.
        session: SessionId,
        /// What its holder called itself.
        label: Label,
        /// How.
        how: Ending,
    },
    /// A token was shown that was never granted: the resource is granted to nobody.
    AlarmRaised {
        /// Which resource.
        resource: ResourceName,
        /// Which token.
        token: Token,
        /// What the one who showed it calls itself.
        by: Label,
    },
    /// An operator has answered an alarm: the resource is granted again.
    AlarmCleared {
        /// Which resource.
        resource: ResourceName,
        /// Which token was shown.
        token: Token,
        /// Who answered.
        by: Label,
        /// What was found.
        reason: Reason,
    },
    /// A holder shows that it drains.
    DrainingShown {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Of which session.
        session: SessionId,
        /// How many pieces of work are under way.
        in_flight: u32,
        /// How long they may still take at most.
        within: Millis,
    },
    /// A holder says that it is warming up, or ready.
    ReadySet {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Of which session.
        session: SessionId,
        /// Whether it is ready.
        ready: bool,
    },
}

impl Change {
    /// What watchers see of an event; nothing if it is about sessions and waits alone.
    pub fn of(event: &Event) -> Option<Self> {
        let short =
            |value: &Value| (value.as_bytes().len() <= MAX_WATCHED_VALUE_BYTES).then(|| value.clone());
        Some(match event {
            Event::Granted { grant, shared, session, label, value, .. } => Self::Granted {
                grant: grant.clone(),
                shared: *shared,
                session: *session,
                label: label.clone(),
                value: short(value),
            },
            Event::ValueSet { resource, token, session, value } => Self::ValueSet {
                resource: resource.clone(),
                token: *token,
                session: *session,
                value: short(value),
            },
            Event::RegisterWritten { resource, key, token, removed } => Self::RegisterWritten {
                resource: resource.clone(),
                key: key.clone(),
                token: *token,
                removed: *removed,
            },
            Event::Ended { resource, token, session, label, how, .. } => Self::Ended {
                resource: resource.clone(),
                token: *token,
                session: *session,
                label: label.clone(),
                how: how.clone(),
            },
            Event::AlarmRaised { resource, token, by } => {
                Self::AlarmRaised { resource: resource.clone(), token: *token, by: by.clone() }
            }
            Event::AlarmCleared { resource, token, by, reason } => Self::AlarmCleared {
                resource: resource.clone(),
                token: *token,
                by: by.clone(),
                reason: reason.clone(),
            },
            Event::ReadySet { resource, token, session, ready } => {
                Self::ReadySet { resource: resource.clone(), token: *token, session: *session, ready: *ready }
            }
            Event::DrainingShown { resource, token, session, in_flight, within } => Self::DrainingShown {
                resource: resource.clone(),
                token: *token,
                session: *session,
                in_flight: *in_flight,
                within: *within,
            },
            Event::SessionOpened { .. }
            | Event::SessionEnded { .. }
            | Event::WaitGranted { .. }
            | Event::WaitEnded { .. } => return None,
        })
    }

    /// The resource that changed.
    pub const fn resource(&self) -> &ResourceName {
        match self {
            Self::Granted { grant, .. } => &grant.resource,
            Self::ValueSet { resource, .. }
            | Self::RegisterWritten { resource, .. }
            | Self::Ended { resource, .. }
            | Self::AlarmRaised { resource, .. }
            | Self::AlarmCleared { resource, .. }
            | Self::DrainingShown { resource, .. }
            | Self::ReadySet { resource, .. } => resource,
        }
    }

    /// Roughly its bytes in memory and on the wire.
    pub fn weight(&self) -> usize {
        const PLAIN: usize = 64;
        let rest = match self {
            Self::Granted { label, value, .. } => {
                label.as_str().len() + value.as_ref().map_or(0, |value| value.as_bytes().len())
            }
            Self::ValueSet { value, .. } => value.as_ref().map_or(0, |value| value.as_bytes().len()),
            Self::RegisterWritten { key, .. } => key.as_str().len(),
            Self::DrainingShown { .. } | Self::ReadySet { .. } => 0,
            Self::AlarmRaised { by, .. } => by.as_str().len(),
            Self::AlarmCleared { by, reason, .. } => by.as_str().len() + reason.as_str().len(),
            Self::Ended { label, how, .. } => {
                let reason = match how {
                    Ending::Revoked { by, reason } => by.as_str().len() + reason.as_str().len(),
                    _ => 0,
                };
                label.as_str().len() + reason
            }
        };
        PLAIN + self.resource().as_str().len() + rest
    }
}
