//! What the fence costs for each write on a real Kafka broker: `cargo run -p leasehold-fence --example cost_kafka`.
//!
//! A transaction of one record with the fence and without it, in turns; a record without a transaction for comparison; and what a seal
//! takes that begins an epoch, with few records in the fence topic and with many.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on stops, and unwrap says where")]
#![expect(dead_code, reason = "it shares the world of the tests and needs a part of it")]

#[path = "../tests/kafka/relay.rs"]
mod relay;
#[path = "../tests/kafka/world.rs"]
mod world;

use std::time::Duration;

use leasehold_fence::Receiver as _;
use leasehold_kit::Receiver as _;
use leasehold_kit::kafka::Server;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use world::{LONG, World, stamp};

const REPEATS: usize = 7;
const WRITES: u32 = 30;
const SEALS: u64 = 9;
/// Seals of as many grants, not compacted.
const MANY: u32 = 100_000;

#[tokio::main]
async fn main() {
    let server = Server::start().unwrap();
    let world = World::on(&server);
    let (fence, token) = (world.fence().await, stamp("a", 1));
    fence.seal(&token).await.unwrap();
    let alone = world.unfenced("alone");
    let plain: BaseProducer = world.config().set("acks", "all").create().unwrap();
    let mut took = [const { Vec::new() }; 3];
    for _ in 0..REPEATS {
        for (way, took) in took.iter_mut().enumerate() {
            let began = leasehold_clock::read().boot;
            for _ in 0..WRITES {
                match way {
                    0 => world.add(&fence, &token, "x").await.unwrap(),
                    1 => {
                        alone.begin_transaction().unwrap();
                        alone.send(BaseRecord::to(&world.data).key("a").payload("x")).unwrap();
                        flush(&alone);
                        alone.commit_transaction(LONG).unwrap();
                    }
                    _ => {
                        plain.send(BaseRecord::to(&world.data).key("a").payload("x")).unwrap();
                        flush(&plain);
                    }
                }
            }
            took.push(since(began) / u128::from(WRITES));
        }
    }
    let [with, without, plain] = took.map(median);
    let (ratio, version) = (with * 100 / without.max(1), server.version());
    println!(
        "kafka, Kafka {version}, {WRITES} transactions {REPEATS} times: {with} us with, {without} us without, ratio {}.{:02}; \
         a record without a transaction {plain} us",
        ratio / 100,
        ratio % 100
    );
    let few = median(seals(&world, 100).await);
    fill(&world);
    let many = median(seals(&world, 200).await);
    println!(
        "kafka, a seal that begins an epoch: {few} us, with {MANY} records in the fence topic {many} us"
    );
}

/// As the fence does it: the library's own flush takes as long as it is given, 100 ms, also for what is delivered in one.
fn flush(producer: &BaseProducer) {
    while producer.flush(Duration::ZERO).is_err() {
        producer.poll(Duration::from_millis(1));
    }
}

/// Each by a process of its own.
async fn seals(world: &World, first: u64) -> Vec<u128> {
    let mut took = Vec::new();
    for token in first..first + SEALS {
        let fence = world.fence().await;
        let began = leasehold_clock::read().boot;
        fence.seal(&stamp("b", token)).await.unwrap();
        took.push(since(began));
    }
    took
}

fn fill(world: &World) {
    let producer: BaseProducer = world.config().create().unwrap();
    for nth in 0..MANY {
        let (key, value) = (format!("shards/{}", nth % 1000), format!("{nth} worker-{}", nth % 7));
        while producer.send(BaseRecord::to(&world.fences).key(&key).payload(&value)).is_err() {
            producer.poll(LONG);
        }
    }
    producer.flush(LONG).unwrap();
}

fn since(began: u64) -> u128 {
    u128::from((leasehold_clock::read().boot - began) / 1000)
}

fn median(mut took: Vec<u128>) -> u128 {
    took.sort_unstable();
    took[took.len() / 2]
}
