//! The stream between nodes as bytes: its opening, its frames, and the messages in them.
//!
//! A node dials another and sends the [preface](PEER_PREFACE) and a [hello](PeerHello); the other answers with the preface and a
//! [welcome](PeerWelcome). Once accepted, [frames](PeerFrameReader) follow, from the node that dialled alone. The messages are described
//! in `proto/leasehold/peer/v1/peer.proto`.
//!
//! What this promises:
//! - What goes in comes out, and a byte that was changed on the way is noticed: everything behind the preface has a checksum.
//! - What comes out of an opening is valid: ids are not zero, names and addresses have passed the core's checks.
//! - A client's request that is not understood does not harm its neighbours, and can be answered by its connection and id. Everything
//!   else that is not understood fails its frame: two nodes that do not understand each other must not go on.
//! - No input panics, and none makes the reader reserve memory on the word of a length alone.
//!
//! What it deliberately does not do: it does not know raft. A [`RaftMessage`] is what was sent, and not one number in it is judged. It
//! opens no connection and decides nobody's membership.

mod frame;
mod hello;
mod message;
mod opening;
mod proto;
mod raft;

pub use frame::{MAX_PEER_FRAME_BYTES, PeerFrameReader};
pub use hello::{
    MAX_INITIAL_CLUSTER_BYTES, PEER_VERSION, PeerHello, PeerPurpose, PeerRefusal, PeerVerdict, PeerWelcome,
};
pub use message::{PeerMessage, decode_peer_frame, encode_peer_frame};
pub use opening::{
    MAX_PEER_OPENING_BYTES, PEER_PREFACE, PeerOpeningReader, encode_peer_hello, encode_peer_welcome,
};
pub use raft::{ConfState, RaftEntry, RaftMessage, SnapshotMeta};
