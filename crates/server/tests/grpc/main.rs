//! The gRPC door as its clients see it: a real service on a real port, and the client that the generator makes.

mod alarms;
mod deadlines;
mod leases;
mod operators;
mod sessions;
mod stream;
mod support;
mod watches;

/// As the generator writes it.
#[expect(unreachable_pub, unused_qualifications, reason = "written by a generator")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/client/leasehold.v1.rs"));
}
