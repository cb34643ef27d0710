//! A node for a service, with the real loop and real files, and no socket: single calls, watches, session streams over memory,
//! and the end.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod calls;
mod directory;
mod peer;
mod person;
mod stopping;
mod streams;
mod watching;
