//! What the service says: responses, the table's replies, and failures.

use leasehold_core::answer::{HeldLease, Holdings, Opened, Renewed, Reply, WaitEnding, Waited};
use leasehold_core::protocol::{ClusterReply, Failure, RequestId, Response, ToClient};
use leasehold_core::{
    CommandNumber, Drift, ItemNumber, Millis, Refusal, RenewalNumber, Revision, SessionId, Token,
};

use super::{
    Checked, Wire, from_usize, label, list, name, needed, nothing, optional, present, to_list, to_usize,
};
use crate::error::FieldError;
use crate::proto as pb;
use pb::failure::Failure as FailureMessage;
use pb::reply::Reply as ReplyMessage;
use pb::response::Response as ResponseMessage;
use pb::server_message::Message as ServerMessage;

impl Wire for ToClient {
    type Message = ServerMessage;

    fn to_wire(&self) -> ServerMessage {
        match self {
            Self::Response { id, response } => {
                ServerMessage::Response(pb::Response { id: id.0, response: Some(response.to_wire()) })
            }
            Self::Items { session, items } => ServerMessage::Items(pb::Items {
                session: session.get(),
                items: to_list(items),
                renew_in_ms: None,
            }),
            // Whoever does not know the field reads a message without items.
            Self::Hint { session, length } => ServerMessage::Items(pb::Items {
                session: session.get(),
                items: Vec::new(),
                renew_in_ms: Some(length.get()),
            }),
            Self::Watched { watch, changes, more } => ServerMessage::Watched(pb::Watched {
                watch: watch.0,
                changes: Some(changes.to_wire()),
                more: *more,
            }),
        }
    }

    fn from_wire(message: ServerMessage) -> Checked<Self> {
        Ok(match message {
            ServerMessage::Response(m) => {
                Self::Response { id: RequestId(m.id), response: needed("response", m.response)? }
            }
            ServerMessage::Items(pb::Items { session, items, renew_in_ms: Some(length) })
                if items.is_empty() =>
            {
                Self::Hint { session: SessionId::from_u64(session), length: Millis::new(length) }
            }
            // Beside items a wish is not looked at: it may be ignored, they may not.
            ServerMessage::Items(m) => {
                Self::Items { session: SessionId::from_u64(m.session), items: list(m.items)? }
            }
            ServerMessage::Watched(m) => Self::Watched {
                watch: RequestId(m.watch),
                changes: needed("watched.changes", m.changes)?,
                more: m.more,
            },
        })
    }
}

impl Wire for Response {
    type Message = ResponseMessage;

    fn to_wire(&self) -> ResponseMessage {
        match self {
            Self::Reply(reply) => ResponseMessage::Reply(reply.to_wire()),
            Self::Read { revision, answer } => ResponseMessage::Read(pb::ReadAnswer {
                answer: Some(answer.to_wire()),
                revision: revision.get(),
            }),
            Self::Cluster(reply) => ResponseMessage::Cluster(reply.to_wire()),
            Self::Failed(failure) => ResponseMessage::Failed(failure.to_wire()),
        }
    }

    fn from_wire(message: ResponseMessage) -> Checked<Self> {
        Ok(match message {
            ResponseMessage::Reply(reply) => Self::Reply(Reply::from_wire(reply)?),
            ResponseMessage::Read(m) => {
                Self::Read { revision: Revision::new(m.revision), answer: needed("read", m.answer)? }
            }
            ResponseMessage::Cluster(reply) => Self::Cluster(ClusterReply::from_wire(reply)?),
            ResponseMessage::Failed(failure) => Self::Failed(Failure::from_wire(failure)?),
        })
    }
}

impl Wire for Failure {
    type Message = pb::Failure;

    fn to_wire(&self) -> pb::Failure {
        let failure = match self {
            Self::OutcomeUnknown => FailureMessage::OutcomeUnknown(nothing()),
            Self::Unavailable { why } => FailureMessage::Unavailable(why.clone()),
            Self::NotYourSession { session } => FailureMessage::NotYourSession(session.get()),
            Self::RevisionTooOld { after, oldest } => FailureMessage::RevisionTooOld(pb::RevisionTooOld {
                after: after.get(),
                oldest: oldest.get(),
            }),
            Self::RevisionAhead { after, newest } => {
                FailureMessage::RevisionAhead(pb::RevisionAhead { after: after.get(), newest: newest.get() })
            }
            Self::TooManyWatches { limit } => FailureMessage::TooManyWatchesLimit(from_usize(*limit)),
            Self::BadRequest { why } => FailureMessage::BadRequest(why.clone()),
        };
        pb::Failure { failure: Some(failure) }
    }

    fn from_wire(m: pb::Failure) -> Checked<Self> {
        Ok(match present("failed", m.failure)? {
            FailureMessage::OutcomeUnknown(pb::Nothing {}) => Self::OutcomeUnknown,
            FailureMessage::Unavailable(why) => Self::Unavailable { why },
            FailureMessage::NotYourSession(session) => {
                Self::NotYourSession { session: SessionId::from_u64(session) }
            }
            FailureMessage::RevisionTooOld(m) => {
                Self::RevisionTooOld { after: Revision::new(m.after), oldest: Revision::new(m.oldest) }
            }
            FailureMessage::RevisionAhead(m) => {
                Self::RevisionAhead { after: Revision::new(m.after), newest: Revision::new(m.newest) }
            }
            FailureMessage::TooManyWatchesLimit(limit) => {
                Self::TooManyWatches { limit: to_usize("failed.too_many_watches_limit", limit)? }
            }
            FailureMessage::BadRequest(why) => Self::BadRequest { why },
        })
    }
}

impl Wire for Reply {
    type Message = pb::Reply;

    fn to_wire(&self) -> pb::Reply {
        let reply = match self {
            Self::Opened(opened) => ReplyMessage::Opened(opened.to_wire()),
            Self::Attached { last_command, last_item } => ReplyMessage::Attached(pb::Attached {
                last_command: last_command.get(),
                last_item: last_item.get(),
            }),
            Self::Renewed(renewed) => ReplyMessage::Renewed(renewed.to_wire()),
            Self::StaleRenewal { number, highest } => {
                ReplyMessage::StaleRenewal(pb::StaleRenewal { number: number.get(), highest: highest.get() })
            }
            Self::Applied { number } => ReplyMessage::Applied(number.get()),
            Self::Repeated { number } => ReplyMessage::AppliedBefore(number.get()),
            Self::Plain { number, answer, renewal } => ReplyMessage::Plain(pb::PlainAnswer {
                number: number.get(),
                answer: Some(answer.to_wire()),
                renewal: renewal.get(),
            }),
            Self::PlainWaitEnded { number, why } => {
                ReplyMessage::PlainWaitEnded(pb::PlainWaitEnded { number: number.get(), why: why.to_wire() })
            }
            Self::Closed => ReplyMessage::Closed(nothing()),
            Self::Asked { token, holder } => {
                ReplyMessage::Asked(pb::Asked { token: token.get(), holder: holder.to_string() })
            }
            Self::Revoked { held_back } => ReplyMessage::RevokedHeldBackMs(held_back.get()),
            Self::KindChanged => ReplyMessage::KindChanged(nothing()),
            Self::AlarmCleared => ReplyMessage::AlarmCleared(nothing()),
            Self::Done => ReplyMessage::Done(nothing()),
            Self::Refused(refusal) => ReplyMessage::Refused(refusal.to_wire()),
        };
        pb::Reply { reply: Some(reply) }
    }

    fn from_wire(m: pb::Reply) -> Checked<Self> {
        Ok(match present("reply", m.reply)? {
            ReplyMessage::Opened(opened) => Self::Opened(Opened::from_wire(opened)?),
            ReplyMessage::Attached(m) => Self::Attached {
                last_command: CommandNumber::new(m.last_command),
                last_item: ItemNumber::new(m.last_item),
            },
            ReplyMessage::Renewed(renewed) => Self::Renewed(Renewed::from_wire(renewed)?),
            ReplyMessage::StaleRenewal(m) => Self::StaleRenewal {
                number: RenewalNumber::new(m.number),
                highest: RenewalNumber::new(m.highest),
            },
            ReplyMessage::Applied(number) => Self::Applied { number: CommandNumber::new(number) },
            ReplyMessage::AppliedBefore(number) => Self::Repeated { number: CommandNumber::new(number) },
            ReplyMessage::Plain(m) => Self::Plain {
                number: CommandNumber::new(m.number),
                answer: needed("plain.answer", m.answer)?,
                renewal: RenewalNumber::new(m.renewal),
            },
            ReplyMessage::PlainWaitEnded(m) => Self::PlainWaitEnded {
                number: CommandNumber::new(m.number),
                why: WaitEnding::from_wire(m.why)?,
            },
            ReplyMessage::Closed(pb::Nothing {}) => Self::Closed,
            ReplyMessage::Asked(m) => {
                Self::Asked { token: Token::from_u64(m.token), holder: label("asked.holder", &m.holder)? }
            }
            ReplyMessage::RevokedHeldBackMs(held_back) => Self::Revoked { held_back: Millis::new(held_back) },
            ReplyMessage::KindChanged(pb::Nothing {}) => Self::KindChanged,
            ReplyMessage::AlarmCleared(pb::Nothing {}) => Self::AlarmCleared,
            ReplyMessage::Done(pb::Nothing {}) => Self::Done,
            ReplyMessage::Refused(refusal) => Self::Refused(Refusal::from_wire(refusal)?),
        })
    }
}

impl Wire for Opened {
    type Message = pb::Opened;

    fn to_wire(&self) -> pb::Opened {
        pb::Opened {
            session: self.session.get(),
            ttl_ms: self.ttl.get(),
            drift_ppm: self.drift.ppm().into(),
            existed: self.repeated,
        }
    }

    fn from_wire(m: pb::Opened) -> Checked<Self> {
        let drift = u32::try_from(m.drift_ppm).ok().and_then(Drift::from_ppm);
        let too_great = FieldError::TooGreat {
            field: "opened.drift_ppm",
            value: m.drift_ppm,
            limit: Drift::MAX.ppm().into(),
        };
        Ok(Self {
            session: SessionId::from_u64(m.session),
            ttl: Millis::new(m.ttl_ms),
            drift: drift.ok_or(too_great)?,
            repeated: m.existed,
        })
    }
}

impl Wire for Renewed {
    type Message = pb::Renewed;

    fn to_wire(&self) -> pb::Renewed {
        pb::Renewed {
            number: self.number.get(),
            after: self.after.get(),
            holdings: self.holdings.as_ref().map(Wire::to_wire),
        }
    }

    fn from_wire(m: pb::Renewed) -> Checked<Self> {
        Ok(Self {
            number: RenewalNumber::new(m.number),
            after: ItemNumber::new(m.after),
            holdings: optional(m.holdings)?,
        })
    }
}

impl Wire for Holdings {
    type Message = pb::Holdings;

    fn to_wire(&self) -> pb::Holdings {
        pb::Holdings { leases: to_list(&self.leases), waits: to_list(&self.waits) }
    }

    fn from_wire(m: pb::Holdings) -> Checked<Self> {
        Ok(Self { leases: list(m.leases)?, waits: list(m.waits)? })
    }
}

impl Wire for HeldLease {
    type Message = pb::HeldLease;

    fn to_wire(&self) -> pb::HeldLease {
        pb::HeldLease { grant: Some(self.grant.to_wire()), release_requested: self.release_requested }
    }

    fn from_wire(m: pb::HeldLease) -> Checked<Self> {
        Ok(Self { grant: needed("held.grant", m.grant)?, release_requested: m.release_requested })
    }
}

impl Wire for Waited {
    type Message = pb::Waited;

    fn to_wire(&self) -> pb::Waited {
        pb::Waited {
            acquire: self.acquire.get(),
            resources: self.resources.iter().map(ToString::to_string).collect(),
        }
    }

    fn from_wire(m: pb::Waited) -> Checked<Self> {
        let resources = m.resources.iter().map(|resource| name("waited.resources", resource));
        Ok(Self { acquire: CommandNumber::new(m.acquire), resources: resources.collect::<Checked<_>>()? })
    }
}
