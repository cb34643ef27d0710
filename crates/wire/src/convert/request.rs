//! Requests, and what begins and keeps up a session.

use leasehold_core::protocol::{Query, Request};
use leasehold_core::{
    Attach, AttachNumber, ItemNumber, Millis, Open, Operator, Policies, RenewalNumber, SessionCommand,
    SessionId, SessionKind,
};

use super::{Checked, Wire, label, named_values, nonce};
use crate::proto as pb;
use pb::client_message::Request as Message;

impl Wire for Request {
    type Message = Message;

    fn to_wire(&self) -> Message {
        match self {
            Self::Open(open) => Message::Open(open.to_wire()),
            Self::Attach { attach, nonce } => Message::Attach(pb::Attach {
                session: attach.session.get(),
                attach: attach.attach.get(),
                seen: attach.seen.get(),
                nonce: nonce.0.to_vec(),
            }),
            Self::Renew { session, number, seen } => {
                Message::Renew(pb::Renew { session: session.get(), number: number.get(), seen: seen.get() })
            }
            Self::Command(command) => Message::Command(command.to_wire()),
            Self::Operator(operator) => Message::Operator(operator.to_wire()),
            Self::Read(query) => Message::Read(query.to_wire()),
        }
    }

    fn from_wire(message: Message) -> Checked<Self> {
        Ok(match message {
            Message::Open(open) => Self::Open(Open::from_wire(open)?),
            Message::Attach(m) => Self::Attach {
                attach: Attach {
                    session: SessionId::from_u64(m.session),
                    attach: AttachNumber::new(m.attach),
                    seen: ItemNumber::new(m.seen),
                },
                nonce: nonce("attach.nonce", &m.nonce)?,
            },
            Message::Renew(m) => Self::Renew {
                session: SessionId::from_u64(m.session),
                number: RenewalNumber::new(m.number),
                seen: ItemNumber::new(m.seen),
            },
            Message::Command(command) => Self::Command(SessionCommand::from_wire(command)?),
            Message::Operator(operator) => Self::Operator(Operator::from_wire(operator)?),
            Message::Read(query) => Self::Read(Query::from_wire(query)?),
        })
    }
}

impl Wire for Open {
    type Message = pb::Open;

    fn to_wire(&self) -> pb::Open {
        pb::Open {
            nonce: self.nonce.0.to_vec(),
            label: self.label.to_string(),
            ttl_ms: self.ttl.get(),
            policies: Some(self.policies.to_wire()),
            kind: self.kind.to_wire(),
        }
    }

    fn from_wire(m: pb::Open) -> Checked<Self> {
        Ok(Self {
            nonce: nonce("open.nonce", &m.nonce)?,
            label: label("open.label", &m.label)?,
            ttl: Millis::new(m.ttl_ms),
            policies: m.policies.map_or(Ok(Policies::default()), Policies::from_wire)?,
            kind: SessionKind::from_wire(m.kind)?,
        })
    }
}

impl Wire for Policies {
    type Message = pb::Policies;

    fn to_wire(&self) -> pb::Policies {
        pb::Policies { grace_ms: self.grace.get(), hard_ms: self.hard.get(), delay_ms: self.delay.get() }
    }

    fn from_wire(m: pb::Policies) -> Checked<Self> {
        Ok(Self {
            grace: Millis::new(m.grace_ms),
            hard: Millis::new(m.hard_ms),
            delay: Millis::new(m.delay_ms),
        })
    }
}

named_values!(SessionKind => SessionKind, "open.kind", Streamed, Plain);
