//! Measurements of Leasehold beside its peers.
//!
//! A measurement belongs here as long as its figures may change. One that has settled a question is deleted; its figures stay in the
//! decision that rests on them.
//! Nothing in the product depends on this crate.

mod clock;
pub mod contest;
pub mod peers;
pub mod soak;
pub mod unread;
pub mod workloads;
