//! What the fence costs for each write on a real DynamoDB server: `cargo run -p leasehold-fence --example cost_dynamodb`.
//!
//! A transaction is compared with a transaction and an update with an update: this server waits for its disk with the one and not with
//! the other, so nothing can be said across.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on stops, and unwrap says where")]
#![expect(dead_code, reason = "it shares the world of the tests and needs a part of it")]

#[path = "../tests/dynamodb/http.rs"]
mod http;
#[path = "../tests/dynamodb/world.rs"]
mod world;

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use leasehold_kit::Receiver as _;
use leasehold_kit::dynamodb::Server;
use world::{World, key, stamp};

const REPEATS: usize = 7;
const WRITES: u32 = 50;

#[tokio::main]
async fn main() {
    let server = Server::start().unwrap();
    let world = World::on(server.port()).await;
    let token = stamp("a", 1);
    let mut took = [const { Vec::new() }; 4];
    for _ in 0..REPEATS {
        for (way, took) in took.iter_mut().enumerate() {
            let began = leasehold_clock::read().boot;
            for nth in 0..WRITES {
                let body = AttributeValue::N(nth.to_string());
                let write = world.client.update_item().update_expression("SET body = :body");
                let write = write.expression_attribute_values(":body", body);
                let alone = world.client.transact_write_items().transact_items(set(&world, nth));
                match way {
                    0 => drop(
                        write.table_name(&world.table).set_key(Some(key("x").into())).send().await.unwrap(),
                    ),
                    1 => world.item("a").update(&token, write).await.unwrap(),
                    2 => drop(alone.send().await.unwrap()),
                    _ => world.fence().transact(&token, vec![set(&world, nth)]).await.unwrap(),
                }
            }
            took.push(u128::from((leasehold_clock::read().boot - began) / 1000) / u128::from(WRITES));
        }
    }
    let version = server.version();
    let median = took.map(|mut took| {
        took.sort_unstable();
        took[REPEATS / 2]
    });
    for (what, with, without) in [("item", median[1], median[0]), ("transaction", median[3], median[2])] {
        let ratio = with * 100 / without.max(1);
        println!(
            "dynamodb {what}, DynamoDB Local {version}, {WRITES} writes {REPEATS} times: {with} us with, {without} us without, ratio {}.{:02}",
            ratio / 100,
            ratio % 100
        );
    }
}

fn set(world: &World, nth: u32) -> TransactWriteItem {
    let put = Put::builder().table_name(&world.table);
    let put = put.set_item(Some(key("x").into())).item("body", AttributeValue::N(nth.to_string()));
    TransactWriteItem::builder().put(put.build().unwrap()).build()
}
