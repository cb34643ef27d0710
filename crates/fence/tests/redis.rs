//! The fence in Redis, on a real server: `cargo test -p leasehold-fence --test redis`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "redis/cluster.rs"]
mod cluster;
#[path = "redis/common.rs"]
mod common;
#[path = "redis/conformance.rs"]
mod conformance;
#[path = "redis/crashes.rs"]
mod crashes;
#[path = "redis/guide.rs"]
mod guide;
#[path = "redis/halfway.rs"]
mod halfway;
#[path = "redis/order.rs"]
mod order;
#[path = "redis/settings.rs"]
mod settings;
#[path = "redis/wrong_ways.rs"]
mod wrong_ways;
