//! A node as a pure machine: consensus around the lease table.
//!
//! Inputs (requests, finished writes) and readings of the clocks go in; outputs (what to write, what to send) come out. The
//! driver owns sockets, files and clocks, and the same node runs in the service, in the embedded mode and in the simulator.
//!
//! Promises: nothing is answered before the write it depends on is reported as synced; every entry is stamped with log time
//! by the call that proposes it; log time never outruns real time (see [`clock`]); a request gets one response, and a streamed
//! command gets its answer as an item of its session.
//!
//! What it does not do: it does not decide anything about leases (the table does), and it never waits.

pub mod anchor;
pub mod changes;
pub mod clock;
pub mod members;
mod meter;
pub mod payload;
pub mod peer;

mod batch;
mod forwards;
mod hints;
mod holds;
mod machine;
mod planted;
mod reads;
mod routes;
mod stats;
mod storage;

pub use anchor::{Anchor, Machine, ResumeError};
pub use changes::ChangeLog;
pub use machine::{
    FOUNDER, Fatal, Input, LogEntry, LogWrite, Node, Options, Output, Place, Recovered, SavedSnapshot, Setup,
    Start, Vote, founding_snapshot,
};
pub use members::{Membership, Roster};
pub use meter::{GapFigures, GapPattern, Leaderless};
pub use peer::PeerMessage;
pub use routes::{CALLS, ConnectionId};
pub use stats::{Buckets, NodeStats, Operation, Outcome};
