//! Tests of the session machine: facts one by one, and machines at play against the lease table.

mod actor;
mod facts;
mod judge;
mod random;
mod world;
