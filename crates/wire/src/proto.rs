//! The messages as generated from `proto/leasehold/v1/session.proto`. They stay inside this crate: outside of it only values
//! exist that were checked.
#![expect(
    unreachable_pub,
    reason = "the generator writes pub everywhere, and the module is private on purpose"
)]

include!(concat!(env!("OUT_DIR"), "/leasehold.v1.rs"));
