//! Requests of clients, and what they are told.

use leasehold_core::protocol::{Failure, Request, RequestId, Response, ToClient};
use leasehold_core::{Item, Reply};
use leasehold_node::{CALLS, ConnectionId, Input};

use super::World;

impl World {
    pub(crate) fn connection(&mut self) -> ConnectionId {
        self.connections += 1;
        ConnectionId(self.connections)
    }

    /// A request arrives; the next turn of the process takes it in.
    pub(crate) fn ask(&mut self, process: usize, connection: ConnectionId, request: Request) -> RequestId {
        self.requests += 1;
        let id = RequestId(self.requests);
        if let Some(tag) = crate::actor::tag_of(&request) {
            self.checks.asked(id, tag);
        }
        self.processes[process].inbox.push(Input::Request { connection, id, request });
        id
    }

    /// The response to a request, if it was sent; looked at once.
    pub(crate) fn response(&mut self, id: RequestId) -> Option<Response> {
        let found = self.sent.iter().position(
            |(.., message)| matches!(message, ToClient::Response { id: theirs, .. } if *theirs == id),
        )?;
        match self.sent.remove(found).2 {
            ToClient::Response { response, .. } => Some(response),
            ToClient::Items { .. } | ToClient::Hint { .. } | ToClient::Watched { .. } => None,
        }
    }

    /// Runs until a request is answered.
    #[track_caller]
    pub(crate) fn wait(&mut self, id: RequestId) -> Response {
        self.run_until(8_000, |world| world.checks.is_answered(id));
        self.response(id).expect("it was answered")
    }

    #[track_caller]
    pub(crate) fn call(&mut self, process: usize, request: Request) -> Response {
        let id = self.ask(process, CALLS, request);
        self.wait(id)
    }

    #[track_caller]
    pub(crate) fn reply(&mut self, process: usize, connection: ConnectionId, request: Request) -> Reply {
        let id = self.ask(process, connection, request);
        match self.wait(id) {
            Response::Reply(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Items that a connection was sent, in order; looked at once.
    pub(crate) fn items(&mut self, connection: ConnectionId) -> Vec<Item> {
        let (theirs, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.sent)
            .into_iter()
            .partition(|(_, to, message)| *to == connection && matches!(message, ToClient::Items { .. }));
        self.sent = others;
        let items = theirs.into_iter().flat_map(|(.., message)| match message {
            ToClient::Items { items, .. } => items,
            _ => Vec::new(),
        });
        items.collect()
    }

    /// Whether a connection was closed by the service.
    pub(crate) fn is_closed(&self, connection: ConnectionId) -> bool {
        self.closed.iter().any(|(_, closed)| *closed == connection)
    }
}

pub(crate) fn is_unknown(response: &Response) -> bool {
    matches!(response, Response::Failed(Failure::OutcomeUnknown))
}

pub(crate) fn is_unavailable(response: &Response) -> bool {
    matches!(response, Response::Failed(Failure::Unavailable { .. }))
}
