//! What passes between the members of a cluster.

use leasehold_core::protocol::{Request, RequestId, ToClient};
use raft::eraftpb::Message;

use crate::routes::ConnectionId;

/// From one member to another.
#[derive(Debug, Clone)]
pub enum PeerMessage {
    /// Raft's own. One that carries a snapshot is large and may take long: it must not keep the others waiting.
    Raft(Box<Message>),
    /// A client's request, for the leader, as it came.
    Request {
        /// The client's connection at the sender.
        connection: ConnectionId,
        /// The id that the client gave it.
        id: RequestId,
        /// What.
        request: Request,
    },
    /// The receiver of a request does not lead and has not taken it in.
    NotLeading {
        /// The client's connection at the receiver of this.
        connection: ConnectionId,
        /// The request.
        id: RequestId,
    },
    /// Nobody waits for the answer to a request any more.
    Abandoned {
        /// The client's connection at the sender.
        connection: ConnectionId,
        /// The request.
        id: RequestId,
    },
    /// A client has ended its connection itself, or died. That it is gone follows. Only between members of version 3.
    HungUp {
        /// The client's connection at the sender.
        connection: ConnectionId,
    },
    /// A client's connection is gone.
    Disconnected {
        /// The client's connection at the sender.
        connection: ConnectionId,
    },
    /// Something for a client.
    Reply {
        /// The client's connection at the receiver of this.
        connection: ConnectionId,
        /// What.
        message: ToClient,
    },
    /// A client must connect anew: what it was attached to is not here any more.
    Close {
        /// The client's connection at the receiver of this.
        connection: ConnectionId,
    },
}
