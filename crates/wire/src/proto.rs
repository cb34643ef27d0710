//! The messages as generated from `proto/leasehold/v1`. A message was not checked: outside of this crate only the doors that
//! speak protobuf themselves see them, as [`messages`](crate::messages), and turn them into values of the core at once.

include!(concat!(env!("OUT_DIR"), "/leasehold.v1.rs"));
