//! The fence in Kafka, on a real broker: `cargo test -p leasehold-fence-kafka`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "kafka/conformance.rs"]
mod conformance;
#[path = "kafka/crashes.rs"]
mod crashes;
#[path = "kafka/forgotten.rs"]
mod forgotten;
#[path = "kafka/guide.rs"]
mod guide;
#[path = "kafka/order.rs"]
mod order;
#[path = "kafka/relay.rs"]
mod relay;
#[path = "kafka/topics.rs"]
mod topics;
#[path = "kafka/world.rs"]
mod world;
#[path = "kafka/wrong_ways.rs"]
mod wrong_ways;
