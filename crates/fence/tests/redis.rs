//! The fence in Redis, on a real server: `cargo test -p leasehold-fence redis::`.

mod cluster;
mod common;
mod conformance;
mod crashes;
mod guide;
mod halfway;
mod order;
mod settings;
mod wrong_ways;
