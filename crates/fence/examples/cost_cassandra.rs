//! What the fence costs for each write on a real Cassandra server: `cargo run -p leasehold-fence --example cost_cassandra`.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on stops, and unwrap says where")]
#![expect(dead_code, reason = "it shares the world of the tests and needs a part of it")]

#[path = "../tests/cassandra/world.rs"]
mod world;

use leasehold_fence::cassandra::Write;
use leasehold_kit::Receiver as _;
use world::{World, server, stamp};

const REPEATS: usize = 7;
const WRITES: i64 = 50;

#[tokio::main]
async fn main() {
    let server = tokio::task::block_in_place(server);
    let world = World::at(&server.url()).await;
    let token = stamp("a", 1);
    let session = &world.session;
    let insert = "INSERT INTO shop.log (name, value, brought) VALUES ('a', 'x', ?)";
    let plain = session.prepare(insert).await.unwrap();
    let update = "UPDATE shop.log SET brought = ? WHERE name = 'a' AND value = 'y' IF brought != ?";
    let update = session.prepare(update).await.unwrap();
    let mut took = [const { Vec::new() }; 3];
    // The first one is not looked at: the server has just been started.
    for repeat in 0..=REPEATS {
        for (way, took) in took.iter_mut().enumerate() {
            let began = leasehold_clock::read().boot;
            for nth in 0..WRITES {
                match way {
                    0 => drop(session.execute_unpaged(&plain, (nth,)).await.unwrap()),
                    1 => drop(session.execute_unpaged(&update, (nth, -1_i64)).await.unwrap()),
                    _ => world.fence.write(&token, &Write::of(plain.clone(), (nth,))).await.unwrap(),
                }
            }
            if repeat > 0 {
                took.push(
                    u128::from((leasehold_clock::read().boot - began) / 1000)
                        / u128::from(WRITES.unsigned_abs()),
                );
            }
        }
    }
    let [plain, transaction, with] = took.map(|mut took| {
        took.sort_unstable();
        took[REPEATS / 2]
    });
    for (what, without) in [("a plain write", plain), ("a transaction without a fence", transaction)] {
        let ratio = with * 100 / without.max(1);
        println!(
            "cassandra against {what}, Cassandra {}, {WRITES} writes {REPEATS} times: {with} us with, {without} us without, ratio {}.{:02}",
            server.version(),
            ratio / 100,
            ratio % 100
        );
    }
}
