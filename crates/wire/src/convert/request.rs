//! Requests, and what begins and keeps up a session.

use leasehold_core::limits::MAX_NAME_BYTES;
use leasehold_core::protocol::{ClusterCommand, Plain, Query, Request, RequestId, Watch};
use leasehold_core::{
    Attach, AttachNumber, ItemNumber, Millis, Op, Open, Operator, Policies, RenewalNumber, Revision,
    SessionCommand, SessionId, SessionKind,
};

use super::{Checked, Wire, bounded, label, named_values, needed, nonce, nothing, present};
use crate::proto as pb;
use pb::client_message::Request as Message;
use pb::plain_command::Op as PlainOp;
use pb::session_command::Op as SessionOp;

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
            Self::Cluster(command) => Message::Cluster(command.to_wire()),
            Self::Read(query) => Message::Read(query.to_wire()),
            Self::Plain { session, nonce, plain } => Message::Plain(pb::PlainRequest {
                session: session.get(),
                nonce: nonce.0.to_vec(),
                plain: Some(plain.to_wire()),
            }),
            Self::Watch(watch) => Message::Watch(pb::Watch {
                prefix: watch.prefix.clone(),
                after: watch.after.map(Revision::get),
            }),
            Self::StopWatch { watch } => Message::StopWatch(watch.0),
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
            Message::Cluster(command) => Self::Cluster(ClusterCommand::from_wire(command)?),
            Message::Read(query) => Self::Read(Query::from_wire(query)?),
            Message::Plain(m) => Self::Plain {
                session: SessionId::from_u64(m.session),
                nonce: nonce("plain.nonce", &m.nonce)?,
                plain: needed("plain", m.plain)?,
            },
            Message::Watch(m) => Self::Watch(Watch {
                prefix: bounded("watch.prefix", "prefix", m.prefix, MAX_NAME_BYTES)?,
                after: m.after.map(Revision::new),
            }),
            Message::StopWatch(watch) => Self::StopWatch { watch: RequestId(watch) },
        })
    }
}

impl Wire for Plain {
    type Message = pb::plain_request::Plain;

    fn to_wire(&self) -> Self::Message {
        match self {
            Self::Renew => Self::Message::Renew(nothing()),
            Self::Command { op, hold } => {
                Self::Message::Command(pb::PlainCommand { op: Some(plain_op(op.to_wire())), hold: *hold })
            }
        }
    }

    fn from_wire(message: Self::Message) -> Checked<Self> {
        Ok(match message {
            Self::Message::Renew(pb::Nothing {}) => Self::Renew,
            Self::Message::Command(m) => {
                Self::Command { op: Op::from_wire(session_op(present("plain.op", m.op)?))?, hold: m.hold }
            }
        })
    }
}

/// The two messages have the same variants; the generator does not know that.
fn plain_op(op: SessionOp) -> PlainOp {
    match op {
        SessionOp::Acquire(m) => PlainOp::Acquire(m),
        SessionOp::Cancel(m) => PlainOp::Cancel(m),
        SessionOp::SetValue(m) => PlainOp::SetValue(m),
        SessionOp::WriteRegister(m) => PlainOp::WriteRegister(m),
        SessionOp::Offer(m) => PlainOp::Offer(m),
        SessionOp::Accept(m) => PlainOp::Accept(m),
        SessionOp::Release(m) => PlainOp::Release(m),
        SessionOp::Close(m) => PlainOp::Close(m),
        SessionOp::SetDraining(m) => PlainOp::SetDraining(m),
        SessionOp::SetReady(m) => PlainOp::SetReady(m),
    }
}

fn session_op(op: PlainOp) -> SessionOp {
    match op {
        PlainOp::Acquire(m) => SessionOp::Acquire(m),
        PlainOp::Cancel(m) => SessionOp::Cancel(m),
        PlainOp::SetValue(m) => SessionOp::SetValue(m),
        PlainOp::WriteRegister(m) => SessionOp::WriteRegister(m),
        PlainOp::Offer(m) => SessionOp::Offer(m),
        PlainOp::Accept(m) => SessionOp::Accept(m),
        PlainOp::Release(m) => SessionOp::Release(m),
        PlainOp::Close(m) => SessionOp::Close(m),
        PlainOp::SetDraining(m) => SessionOp::SetDraining(m),
        PlainOp::SetReady(m) => SessionOp::SetReady(m),
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
