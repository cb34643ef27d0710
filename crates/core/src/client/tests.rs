//! Tests of the session machine: facts one by one, and machines at play against the lease table.

mod actor;
mod judge;
mod leases;
mod play;
mod random;
mod streams;
mod weather;
mod world;
