//! The session stream as its two ends see it: what goes in comes out, what is damaged is refused, and the bytes stay the same.

mod golden;
mod grpc;
mod hostile;
mod limits;
mod peer;
mod round_trip;
mod strategies;
