//! The fence on a real PostgreSQL.
//!
//! `cargo test -p leasehold-fence postgres:: -- --nocapture` prints what was tried.

mod column;
mod commit;
mod conformance;
mod crash;
mod ends;
mod gate;
mod guide;
mod interleavings;
mod isolation;
mod looking;
mod migration;
mod patience;
mod schemas;
mod seal;
mod settings;
mod trigger;
mod world;
mod wrong_ways;
