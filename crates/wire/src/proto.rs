//! The messages as generated from `proto/leasehold/v1/session.proto`. They stay inside this crate: outside of it only values
//! exist that were checked.
#![expect(
    unreachable_pub,
    reason = "the generator writes pub everywhere, and the module is private on purpose"
)]
#![expect(
    dead_code,
    reason = "frames are walked message by message, and enum names are generated for both directions"
)]

include!(concat!(env!("OUT_DIR"), "/leasehold.v1.rs"));
