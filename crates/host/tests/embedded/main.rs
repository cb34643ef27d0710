//! The embedded mode on real files and sockets: directories that are broken, copied, full or forbidden, clients that talk
//! nonsense, and servers that go and come back.
//!
//! Clients here speak the session stream by hand, so that nothing between a test and the socket can be polite. Tests that mount
//! file systems or change their user need root, and say so when they do not have it.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod caller;
mod frames;
mod opening;
mod place;
mod refused;
mod requests;
mod restart;
mod space;
