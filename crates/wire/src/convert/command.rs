//! Commands of sessions.

use leasehold_core::{
    Acquire, AttachNumber, CommandNumber, ItemNumber, Millis, Mode, Offer, Op, Request, Sequence,
    SessionCommand, SessionId, Successor, Token,
};

use super::{
    Checked, Wire, label, list, name, needed, nothing, optional_millis, present, register_key, to_list,
    to_u32, value,
};
use crate::proto as pb;
use pb::mode::Mode as ModeMessage;
use pb::session_command::{Op as OpMessage, Sequence as SequenceMessage};
use pb::successor::Successor as SuccessorMessage;

impl Wire for SessionCommand {
    type Message = pb::SessionCommand;

    fn to_wire(&self) -> pb::SessionCommand {
        pb::SessionCommand {
            session: self.session.get(),
            sequence: Some(self.sequence.to_wire()),
            op: Some(self.op.to_wire()),
        }
    }

    fn from_wire(m: pb::SessionCommand) -> Checked<Self> {
        Ok(Self {
            session: SessionId::from_u64(m.session),
            sequence: needed("command.sequence", m.sequence)?,
            op: needed("command.op", m.op)?,
        })
    }
}

impl Wire for Sequence {
    type Message = SequenceMessage;

    fn to_wire(&self) -> SequenceMessage {
        match self {
            Self::Streamed { attach, number, seen } => SequenceMessage::Streamed(pb::Streamed {
                attach: attach.get(),
                number: number.get(),
                seen: seen.get(),
            }),
            Self::Plain => SequenceMessage::Plain(nothing()),
        }
    }

    fn from_wire(message: SequenceMessage) -> Checked<Self> {
        Ok(match message {
            SequenceMessage::Streamed(m) => Self::Streamed {
                attach: AttachNumber::new(m.attach),
                number: CommandNumber::new(m.number),
                seen: ItemNumber::new(m.seen),
            },
            SequenceMessage::Plain(pb::Nothing {}) => Self::Plain,
        })
    }
}

impl Wire for Op {
    type Message = OpMessage;

    fn to_wire(&self) -> OpMessage {
        match self {
            Self::Acquire(acquire) => OpMessage::Acquire(acquire.to_wire()),
            Self::Cancel { acquire } => OpMessage::Cancel(acquire.get()),
            Self::SetValue { resource, token, value } => OpMessage::SetValue(pb::SetValue {
                resource: resource.to_string(),
                token: token.get(),
                value: value.as_bytes().to_vec(),
            }),
            Self::WriteRegister { resource, token, key, value, with_lease } => {
                OpMessage::WriteRegister(pb::WriteRegister {
                    resource: resource.to_string(),
                    token: token.get(),
                    key: key.to_string(),
                    value: value.as_ref().map(|value| value.as_bytes().to_vec()),
                    with_lease: *with_lease,
                })
            }
            Self::Offer(offer) => OpMessage::Offer(offer.to_wire()),
            Self::Accept { resource, token, value } => OpMessage::Accept(pb::Accept {
                resource: resource.to_string(),
                token: token.get(),
                value: value.as_bytes().to_vec(),
            }),
            Self::Release { resource, token, drained } => OpMessage::Release(pb::Release {
                resource: resource.to_string(),
                token: token.get(),
                drained: *drained,
            }),
            Self::Close => OpMessage::Close(nothing()),
            Self::SetReady { resource, token, ready } => OpMessage::SetReady(pb::SetReady {
                resource: resource.to_string(),
                token: token.get(),
                ready: *ready,
            }),
            Self::SetDraining { resource, token, in_flight, within } => {
                OpMessage::SetDraining(pb::SetDraining {
                    resource: resource.to_string(),
                    token: token.get(),
                    in_flight: (*in_flight).into(),
                    within_ms: within.get(),
                })
            }
        }
    }

    fn from_wire(message: OpMessage) -> Checked<Self> {
        Ok(match message {
            OpMessage::Acquire(acquire) => Self::Acquire(Acquire::from_wire(acquire)?),
            OpMessage::Cancel(acquire) => Self::Cancel { acquire: CommandNumber::new(acquire) },
            OpMessage::SetValue(m) => Self::SetValue {
                resource: name("set_value.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                value: value("set_value.value", m.value)?,
            },
            OpMessage::WriteRegister(m) => Self::WriteRegister {
                resource: name("write_register.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                key: register_key("write_register.key", &m.key)?,
                value: m.value.map(|bytes| value("write_register.value", bytes)).transpose()?,
                with_lease: m.with_lease,
            },
            OpMessage::Offer(offer) => Self::Offer(Offer::from_wire(offer)?),
            OpMessage::Accept(m) => Self::Accept {
                resource: name("accept.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                value: value("accept.value", m.value)?,
            },
            OpMessage::Release(m) => Self::Release {
                resource: name("release.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                drained: m.drained,
            },
            OpMessage::Close(pb::Nothing {}) => Self::Close,
            OpMessage::SetReady(m) => Self::SetReady {
                resource: name("set_ready.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                ready: m.ready,
            },
            OpMessage::SetDraining(m) => Self::SetDraining {
                resource: name("set_draining.resource", &m.resource)?,
                token: Token::from_u64(m.token),
                in_flight: to_u32("set_draining.in_flight", m.in_flight)?,
                within: Millis::new(m.within_ms),
            },
        })
    }
}

impl Wire for Acquire {
    type Message = pb::Acquire;

    fn to_wire(&self) -> pb::Acquire {
        pb::Acquire {
            requests: to_list(&self.requests),
            value: self.value.as_bytes().to_vec(),
            wait_ms: self.wait.map(Millis::get),
        }
    }

    fn from_wire(m: pb::Acquire) -> Checked<Self> {
        Ok(Self {
            requests: list(m.requests)?,
            value: value("acquire.value", m.value)?,
            wait: optional_millis(m.wait_ms),
        })
    }
}

impl Wire for Request {
    type Message = pb::ResourceRequest;

    fn to_wire(&self) -> pb::ResourceRequest {
        pb::ResourceRequest { resource: self.resource.to_string(), mode: Some(self.mode.to_wire()) }
    }

    fn from_wire(m: pb::ResourceRequest) -> Checked<Self> {
        Ok(Self {
            resource: name("acquire.requests.resource", &m.resource)?,
            mode: needed("acquire.requests.mode", m.mode)?,
        })
    }
}

impl Wire for Mode {
    type Message = pb::Mode;

    fn to_wire(&self) -> pb::Mode {
        let mode = match self {
            Self::Exclusive => ModeMessage::Exclusive(nothing()),
            Self::Shared => ModeMessage::Shared(nothing()),
            Self::Slot { of } => ModeMessage::SlotOf((*of).into()),
        };
        pb::Mode { mode: Some(mode) }
    }

    fn from_wire(m: pb::Mode) -> Checked<Self> {
        Ok(match present("mode", m.mode)? {
            ModeMessage::Exclusive(pb::Nothing {}) => Self::Exclusive,
            ModeMessage::Shared(pb::Nothing {}) => Self::Shared,
            ModeMessage::SlotOf(of) => Self::Slot { of: to_u32("mode.slot_of", of)? },
        })
    }
}

impl Wire for Offer {
    type Message = pb::Offer;

    fn to_wire(&self) -> pb::Offer {
        pb::Offer {
            resource: self.resource.to_string(),
            token: self.token.get(),
            to: Some(self.to.to_wire()),
            length_ms: self.length.get(),
        }
    }

    fn from_wire(m: pb::Offer) -> Checked<Self> {
        Ok(Self {
            resource: name("offer.resource", &m.resource)?,
            token: Token::from_u64(m.token),
            to: needed("offer.to", m.to)?,
            length: Millis::new(m.length_ms),
        })
    }
}

impl Wire for Successor {
    type Message = pb::Successor;

    fn to_wire(&self) -> pb::Successor {
        let successor = match self {
            Self::FirstWaiter => SuccessorMessage::FirstWaiter(nothing()),
            Self::Labelled(label) => SuccessorMessage::Label(label.to_string()),
            Self::Session(session) => SuccessorMessage::Session(session.get()),
        };
        pb::Successor { successor: Some(successor) }
    }

    fn from_wire(m: pb::Successor) -> Checked<Self> {
        Ok(match present("successor", m.successor)? {
            SuccessorMessage::FirstWaiter(pb::Nothing {}) => Self::FirstWaiter,
            SuccessorMessage::Label(text) => Self::Labelled(label("successor.label", &text)?),
            SuccessorMessage::Session(session) => Self::Session(SessionId::from_u64(session)),
        })
    }
}
