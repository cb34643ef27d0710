//! Questions about the table.

use leasehold_core::limits::MAX_NAME_BYTES;
use leasehold_core::protocol::{GapsOf, Query};
use leasehold_core::{Millis, SessionId, Token};

use super::{Checked, Wire, bounded, from_usize, name, nothing, present, register_key, to_usize};
use crate::proto as pb;
use pb::gaps_query::Of as OfMessage;
use pb::query::Query as Message;

impl Wire for Query {
    type Message = pb::Query;

    fn to_wire(&self) -> pb::Query {
        let query = match self {
            Self::Lease(resource) => Message::Lease(resource.to_string()),
            Self::Leases { prefix, after, limit } => Message::Leases(pb::LeasesQuery {
                prefix: prefix.clone(),
                after: after.as_ref().map(ToString::to_string),
                limit: from_usize(*limit),
            }),
            Self::Sessions { after, limit } => Message::Sessions(pb::SessionsQuery {
                after: after.map(SessionId::get),
                limit: from_usize(*limit),
            }),
            Self::History(resource) => Message::History(resource.to_string()),
            Self::Check { resource, token } => {
                Message::Check(pb::CheckQuery { resource: resource.to_string(), token: token.get() })
            }
            Self::Register { resource, key } => {
                Message::Register(pb::RegisterQuery { resource: resource.to_string(), key: key.to_string() })
            }
            Self::Status => Message::Status(nothing()),
            Self::Cluster => Message::Cluster(nothing()),
            Self::Alarms => Message::Alarms(nothing()),
            Self::Gaps { of, last } => {
                let of = match of {
                    GapsOf::Name(resource) => OfMessage::Resource(resource.to_string()),
                    GapsOf::Page { prefix, after, limit } => OfMessage::Page(pb::LeasesQuery {
                        prefix: prefix.clone(),
                        after: after.as_ref().map(ToString::to_string),
                        limit: from_usize(*limit),
                    }),
                };
                Message::Gaps(pb::GapsQuery { of: Some(of), last_ms: last.map(Millis::get) })
            }
        };
        pb::Query { query: Some(query) }
    }

    fn from_wire(m: pb::Query) -> Checked<Self> {
        Ok(match present("read", m.query)? {
            Message::Lease(resource) => Self::Lease(name("read.lease", &resource)?),
            Message::Leases(m) => Self::Leases {
                prefix: bounded("leases.prefix", "prefix", m.prefix, MAX_NAME_BYTES)?,
                after: m.after.map(|after| name("leases.after", &after)).transpose()?,
                limit: to_usize("leases.limit", m.limit)?,
            },
            Message::Sessions(m) => Self::Sessions {
                after: m.after.map(SessionId::from_u64),
                limit: to_usize("sessions.limit", m.limit)?,
            },
            Message::History(resource) => Self::History(name("read.history", &resource)?),
            Message::Check(m) => Self::Check {
                resource: name("check.resource", &m.resource)?,
                token: Token::from_u64(m.token),
            },
            Message::Register(m) => Self::Register {
                resource: name("register.resource", &m.resource)?,
                key: register_key("register.key", &m.key)?,
            },
            Message::Status(pb::Nothing {}) => Self::Status,
            Message::Cluster(pb::Nothing {}) => Self::Cluster,
            Message::Alarms(pb::Nothing {}) => Self::Alarms,
            Message::Gaps(m) => {
                let of = match present("gaps.of", m.of)? {
                    OfMessage::Resource(resource) => GapsOf::Name(name("gaps.resource", &resource)?),
                    OfMessage::Page(m) => GapsOf::Page {
                        prefix: bounded("gaps.prefix", "prefix", m.prefix, MAX_NAME_BYTES)?,
                        after: m.after.map(|after| name("gaps.after", &after)).transpose()?,
                        limit: to_usize("gaps.limit", m.limit)?,
                    },
                };
                Self::Gaps { of, last: m.last_ms.map(Millis::new) }
            }
        })
    }
}
