//! What the requests of sessions were, so that their responses can be understood.

use leasehold_core::client::Incoming;
use leasehold_core::protocol::{Failure, Response};
use leasehold_core::{AttachNumber, Nonce, Refusal, Reply as TableReply, SessionId};

use crate::driver::meter::Sent;

/// What a request of a session was.
#[derive(Debug, Clone, Copy)]
pub(in crate::driver) enum Asked {
    Open(Nonce),
    Attach(SessionId, AttachNumber),
    Renew(SessionId, Sent),
}

impl Asked {
    pub(super) fn answer(self, response: &Response) -> Option<Incoming> {
        let reply = match response {
            Response::Reply(reply) => reply.clone(),
            // The service does not know the session, or not as ours: it was set back, and the session is lost to us.
            Response::Failed(Failure::NotYourSession { session }) if matches!(self, Self::Attach(..)) => {
                TableReply::Refused(Refusal::SessionEnded { session: *session })
            }
            // Not taken in: the machine asks again by itself.
            Response::Failed(_) | Response::Read { .. } | Response::Cluster(_) => return None,
        };
        match (self, reply) {
            (Self::Open(nonce), TableReply::Opened(opened)) => Some(Incoming::Opened { nonce, opened }),
            (Self::Open(nonce), TableReply::Refused(refusal)) => {
                Some(Incoming::OpenRefused { nonce, refusal })
            }
            (Self::Attach(session, attach), TableReply::Attached { last_command, last_item }) => {
                Some(Incoming::Attached { session, attach, last_command, last_item })
            }
            (Self::Renew(session, _), TableReply::Renewed(renewed)) => {
                Some(Incoming::Renewed { session, renewed })
            }
            (Self::Renew(session, _), TableReply::StaleRenewal { number, highest }) => {
                Some(Incoming::StaleRenewal { session, number, highest })
            }
            (Self::Attach(session, _) | Self::Renew(session, _), TableReply::Refused(refusal)) => {
                Some(Incoming::Refused { session, refusal })
            }
            _ => None,
        }
    }
}

/// What the response to a command says; all commands of a session share an id.
pub(super) fn command_response(session: SessionId, response: &Response) -> Option<Incoming> {
    match response {
        Response::Reply(TableReply::Closed) => Some(Incoming::Closed { session }),
        Response::Reply(TableReply::Refused(refusal)) => {
            Some(Incoming::Refused { session, refusal: refusal.clone() })
        }
        _ => None,
    }
}
