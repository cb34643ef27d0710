//! Answers to questions about the table.

use leasehold_core::protocol::{ClusterView, GapsView, ReadAnswer, Status, TokenCheck};
use leasehold_core::{Ending, Millis, Token, Value};

use super::{Checked, Wire, list, nothing, optional, present, to_list, to_u32, value};
use crate::proto as pb;
use pb::read_answer::Answer as AnswerMessage;
use pb::token_check::Check as CheckMessage;

impl Wire for ReadAnswer {
    type Message = AnswerMessage;

    fn to_wire(&self) -> AnswerMessage {
        match self {
            Self::Lease(lease) => {
                AnswerMessage::Lease(pb::LeaseAnswer { lease: lease.as_deref().map(Wire::to_wire) })
            }
            Self::Leases { leases, more } => {
                AnswerMessage::Leases(pb::LeasesAnswer { leases: to_list(leases), more: *more })
            }
            Self::Sessions { sessions, more } => {
                AnswerMessage::Sessions(pb::SessionsAnswer { sessions: to_list(sessions), more: *more })
            }
            Self::History(past) => AnswerMessage::History(pb::HistoryAnswer { past: to_list(past) }),
            Self::Check(check) => AnswerMessage::Check(check.to_wire()),
            Self::Register(register) => {
                AnswerMessage::Register(pb::RegisterAnswer { register: register.as_ref().map(Wire::to_wire) })
            }
            Self::Status(status) => AnswerMessage::Status(status.to_wire()),
            Self::Cluster(view) => AnswerMessage::Cluster(view.to_wire()),
            Self::Gaps(gaps) => AnswerMessage::Gaps(gaps.to_wire()),
            Self::Alarms(alarms) => AnswerMessage::Alarms(pb::AlarmsAnswer { alarms: to_list(alarms) }),
        }
    }

    fn from_wire(message: AnswerMessage) -> Checked<Self> {
        Ok(match message {
            AnswerMessage::Lease(m) => Self::Lease(optional(m.lease)?.map(Box::new)),
            AnswerMessage::Leases(m) => Self::Leases { leases: list(m.leases)?, more: m.more },
            AnswerMessage::Sessions(m) => Self::Sessions { sessions: list(m.sessions)?, more: m.more },
            AnswerMessage::History(m) => Self::History(list(m.past)?),
            AnswerMessage::Check(check) => Self::Check(TokenCheck::from_wire(check)?),
            AnswerMessage::Register(m) => Self::Register(optional(m.register)?),
            AnswerMessage::Status(status) => Self::Status(Status::from_wire(status)?),
            AnswerMessage::Cluster(view) => Self::Cluster(ClusterView::from_wire(view)?),
            AnswerMessage::Gaps(m) => Self::Gaps(GapsView::from_wire(m)?),
            AnswerMessage::Alarms(m) => Self::Alarms(list(m.alarms)?),
        })
    }
}

impl Wire for TokenCheck {
    type Message = pb::TokenCheck;

    fn to_wire(&self) -> pb::TokenCheck {
        let check = match self {
            Self::Current => CheckMessage::Current(nothing()),
            Self::Ended(ending) => CheckMessage::Ended(ending.to_wire()),
            Self::NotKnown => CheckMessage::NotKnown(nothing()),
            Self::Ahead { newest } => CheckMessage::AheadOfNewest(*newest),
        };
        pb::TokenCheck { check: Some(check) }
    }

    fn from_wire(m: pb::TokenCheck) -> Checked<Self> {
        Ok(match present("check", m.check)? {
            CheckMessage::Current(pb::Nothing {}) => Self::Current,
            CheckMessage::Ended(ending) => Self::Ended(Ending::from_wire(ending)?),
            CheckMessage::NotKnown(pb::Nothing {}) => Self::NotKnown,
            CheckMessage::AheadOfNewest(newest) => Self::Ahead { newest },
        })
    }
}

impl Wire for (Value, Token) {
    type Message = pb::Register;

    fn to_wire(&self) -> pb::Register {
        pb::Register { value: self.0.as_bytes().to_vec(), token: self.1.get() }
    }

    fn from_wire(m: pb::Register) -> Checked<Self> {
        Ok((value("register.value", m.value)?, Token::from_u64(m.token)))
    }
}

impl Wire for Status {
    type Message = pb::Status;

    fn to_wire(&self) -> pb::Status {
        pb::Status {
            version: self.version.clone(),
            pid: self.pid.into(),
            sessions: self.sessions,
            resources: self.resources,
            applied: self.applied,
            log_time_ms: self.log_time.get(),
            cut_ms: self.cut.get(),
        }
    }

    fn from_wire(m: pb::Status) -> Checked<Self> {
        Ok(Self {
            version: m.version,
            pid: to_u32("status.pid", m.pid)?,
            sessions: m.sessions,
            resources: m.resources,
            applied: m.applied,
            log_time: Millis::new(m.log_time_ms),
            cut: Millis::new(m.cut_ms),
        })
    }
}
