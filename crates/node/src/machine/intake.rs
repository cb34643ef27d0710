//! Taking in: requests are checked for what does not need the log, and wait for the next batch.

use leasehold_core::protocol::{Failure, Request, RequestId, Response, ToClient};
use leasehold_core::{Command, Refusal, Reply, SessionId};

use super::{Input, Node, Output};
use crate::batch::{MAX_QUEUED, Origin};
use crate::reads::Read;
use crate::routes::ConnectionId;

impl Node {
    pub(super) fn take_in(&mut self, out: &mut Vec<Output>, input: Input) {
        match input {
            Input::Request { connection, id, request } => {
                if self.is_serving() {
                    self.take_request(out, connection, id, request);
                } else if self.early.len() < MAX_QUEUED {
                    // Before the first entry of this leadership is applied, nothing can be judged.
                    self.early.push((connection, id, request));
                } else {
                    respond(out, connection, id, unavailable("the service is starting"));
                }
            }
            Input::Disconnected(connection) => self.routes.disconnect(connection),
            Input::Written { number } => self.written(out, number),
            Input::SnapshotSaved { index, term } => {
                self.raft.mut_store().compact(index, term);
                self.since_snapshot.saving = false;
            }
        }
    }

    /// Takes in what arrived before this node could judge it.
    pub(super) fn take_early(&mut self, out: &mut Vec<Output>) {
        if self.is_serving() {
            for (connection, id, request) in std::mem::take(&mut self.early) {
                self.take_request(out, connection, id, request);
            }
        }
    }

    fn take_request(
        &mut self,
        out: &mut Vec<Output>,
        connection: ConnectionId,
        id: RequestId,
        request: Request,
    ) {
        if let Err(response) = self.place_request(connection, id, request) {
            respond(out, connection, id, response);
        }
    }

    /// Puts a request where it belongs, or answers it at once.
    fn place_request(
        &mut self,
        connection: ConnectionId,
        id: RequestId,
        request: Request,
    ) -> Result<(), Response> {
        let command = match request {
            Request::Read(query) => {
                if self.reads.is_full() {
                    return Err(unavailable("too many reads are under way"));
                }
                self.reads.push(Read { connection, id, query });
                return Ok(());
            }
            Request::Open(open) => Command::Open(open),
            Request::Attach { attach, nonce } => {
                self.known(attach.session)?;
                if self.table.nonce(attach.session) != Some(nonce) {
                    return Err(Response::Failed(Failure::NotYourSession { session: attach.session }));
                }
                self.routes.prove(connection, attach.session);
                Command::Attach(attach)
            }
            Request::Renew { session, number, seen } => {
                self.own(connection, session)?;
                Command::Renew { session, number, seen }
            }
            Request::Command(command) => {
                self.own(connection, command.session)?;
                Command::Session(command)
            }
            Request::Operator(operator) => Command::Operator(operator),
        };
        if self.queue.is_full_for(&command) {
            return Err(unavailable("too many commands wait for the disk"));
        }
        self.queue.push(Origin::Client { connection, id }, command);
        Ok(())
    }

    /// Refuses what names a session that is over: that never changes again.
    fn known(&self, session: SessionId) -> Result<(), Response> {
        if self.table.nonce(session).is_some() {
            return Ok(());
        }
        if session.get() <= self.table.newest() {
            return Err(Response::Reply(Reply::Refused(Refusal::SessionEnded { session })));
        }
        Err(Response::Failed(Failure::NotYourSession { session }))
    }

    fn own(&self, connection: ConnectionId, session: SessionId) -> Result<(), Response> {
        self.known(session)?;
        if self.routes.is_proven(connection, session) {
            return Ok(());
        }
        Err(Response::Failed(Failure::NotYourSession { session }))
    }
}

pub(super) fn unavailable(why: &str) -> Response {
    Response::Failed(Failure::Unavailable { why: why.into() })
}

pub(super) fn respond(out: &mut Vec<Output>, connection: ConnectionId, id: RequestId, response: Response) {
    out.push(Output::Send { connection, message: ToClient::Response { id, response } });
}
