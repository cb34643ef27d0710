//! The client's end of a streamed session: a pure machine under an asynchronous driver.
//!
//! [`ClientSession`] opens one session, attaches connections to it, numbers commands and sends them again until they are
//! answered, takes in answers and events strictly in order, and knows which leases are held and until when. The driver owns
//! sockets, clocks and random numbers and does three things: it hands inputs to [`ClientSession::handle`] and
//! [`ClientSession::submit`], calls [`ClientSession::poll`] after each of them and when [`ClientSession::next_wake`] says so, and
//! does what the outputs say.
//!
//! Promised: every command submitted is resolved exactly once, by its answer, or as unknown when the session ended first; what is
//! unknown is never called refused. Belief in a lease ends in the step in which its release is submitted or its ending is
//! processed. A lease that nobody wants any more is given back. An ending that the holder did not ask for is acknowledged by the
//! application's release, once nothing acts under the lease any more: before that, or before the ttl is over, the service grants
//! the resource to nobody.
//!
//! Not done here: a session that has ended stays so, and a new one needs a new machine with a new nonce. Work that was begun
//! under a guard is not waited for.

mod commands;
mod items;
mod lease;
mod link;
mod message;
mod opening;
mod receive;
mod session;

pub use commands::{MAX_BACKLOG, WINDOW};
pub use lease::{EndedWhy, LeaseHandle, LeaseState};
pub use message::{Event, Frame, Incoming, Input, Outcome, Output, SessionEnd, SubmitError, WaitOver};
pub use session::{ClientSession, Profile};

#[cfg(test)]
mod tests;
