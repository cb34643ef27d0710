//! Measurements of Leasehold beside its peers.
//!
//! A measurement belongs here when a decision rests on it: what was chosen is written in `docs/decisions`, and
//! the program that produced the figures stays runnable, so that anyone can doubt them with one command.
//! Nothing in the product depends on this crate.

pub mod coalescing;
pub mod contest;
pub mod peers;
pub mod session_stream;
pub mod soak;
pub mod workloads;
