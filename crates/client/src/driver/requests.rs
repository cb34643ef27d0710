//! Requests without a session: reads and an operator's commands.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Failure, Request, RequestId, Response};

use super::Reply;
use crate::error::{Error, Unreachable};

#[derive(Debug)]
struct Pending {
    request: Request,
    reply: Reply<Response>,
    /// When it was asked for, through however many connections.
    since: Reading,
    /// When it was sent on the present connection.
    sent: Reading,
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    unsent: VecDeque<Pending>,
    /// In the order of sending.
    sent: BTreeMap<RequestId, Pending>,
    next: u64,
    /// Whether the present connection was found to be silent: said once for each.
    given_up: bool,
}

impl Requests {
    pub(super) fn add(&mut self, request: Request, reply: Reply<Response>, since: Reading) {
        self.unsent.push_back(Pending { request, reply, since, sent: since });
    }

    pub(super) fn next_id(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    pub(super) fn send(&mut self, outgoing: &mut Vec<(RequestId, Request)>, now: Reading) {
        while let Some(mut pending) = self.unsent.pop_front() {
            // Nobody waits for the answer any more.
            if pending.reply.is_closed() {
                continue;
            }
            let id = self.next_id();
            outgoing.push((id, pending.request.clone()));
            pending.sent = now;
            self.sent.insert(id, pending);
        }
    }

    /// Takes the response to one of these requests; gives it back if it is not.
    pub(super) fn receive(&mut self, id: RequestId, response: Response) -> Option<Response> {
        let Some(pending) = self.sent.remove(&id) else { return Some(response) };
        let _ = pending.reply.send(Ok(response));
        None
    }

    pub(super) fn connected(&mut self) {
        debug_assert!(self.sent.is_empty(), "a new connection begins with nothing under way");
        self.given_up = false;
    }

    /// Whether an answer is missing for so long that the connection is to be given up; said once per connection.
    pub(super) fn are_overdue(&mut self, now: Reading, limit: Duration) -> bool {
        let gives_up = self.overdue_in(now, limit) == Some(Duration::ZERO);
        self.given_up |= gives_up;
        gives_up
    }

    /// How long until [`are_overdue`](Self::are_overdue) says so, if no answer comes before.
    pub(super) fn overdue_in(&self, now: Reading, limit: Duration) -> Option<Duration> {
        let (_, oldest) = self.sent.first_key_value().filter(|_| !self.given_up)?;
        Some(limit.saturating_sub(now.since(oldest.sent).greater()))
    }

    /// Reads are asked again; whether a command took effect is not known.
    pub(super) fn disconnected(&mut self) {
        for pending in std::mem::take(&mut self.sent).into_values() {
            match pending.request {
                Request::Read(_) => self.unsent.push_back(pending),
                _ => {
                    let _ = pending.reply.send(Ok(Response::Failed(Failure::OutcomeUnknown)));
                }
            }
        }
    }

    pub(super) fn fail_unsent(&mut self, trouble: &Unreachable) {
        for pending in self.unsent.drain(..) {
            let _ = pending.reply.send(Err(Error::Unreachable(trouble.clone())));
        }
    }

    /// Gives up on what has waited so long, on this connection and on those before.
    pub(super) fn fail_older(&mut self, now: Reading, limit: Duration, trouble: &Unreachable) {
        let (old, young): (VecDeque<Pending>, VecDeque<Pending>) =
            self.unsent.drain(..).partition(|pending| now.since(pending.since).greater() >= limit);
        self.unsent = young;
        for pending in old {
            let _ = pending.reply.send(Err(Error::Unreachable(trouble.clone())));
        }
    }
}
