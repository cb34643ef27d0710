//! The messages as generated from `proto/leasehold/peer/v1`. Nobody outside of the conversion sees them.
#![expect(unreachable_pub, reason = "generated code does not know how far it is seen")]

include!(concat!(env!("OUT_DIR"), "/leasehold.peer.v1.rs"));
