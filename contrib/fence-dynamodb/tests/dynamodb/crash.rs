//! The server is killed while holders write.
//!
//! DynamoDB answers when a write is durable. The server for developers does that for single writes; its transactions it acknowledges
//! a moment too early, so that a kill may take back the last one, as a whole. That is a fault of this server and is seen without the
//! adapter too. So transactions are tried here for being whole, and single writes and seals for being kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use leasehold_fence::{Outcome, Receiver as _};
use leasehold_kit::Receiver as _;
use leasehold_kit::dynamodb::Server;

use crate::world::{World, key, stamp};

/// How often the server is killed.
const LIVES: u32 = 3;
/// The first token, sealed before anybody writes.
const FIRST: u64 = 1_000;

/// What a writer has seen.
#[derive(Debug, Default)]
struct Seen {
    over: AtomicBool,
    accepted: AtomicU64,
    acknowledged: AtomicU64,
}

/// Kills the server while a holder writes with rising tokens, one after the other. Gives back the last token that was acknowledged
/// and how writes ended.
async fn killed_while_writing(
    server: &mut Server,
    world: &World,
    transactions: bool,
) -> (u64, BTreeMap<Outcome, u32>) {
    let seen = Arc::new(Seen::default());
    let writer = tokio::spawn({
        let (world, seen) = (world.clone(), Arc::clone(&seen));
        async move {
            let mut ends = BTreeMap::<Outcome, u32>::new();
            for token in FIRST.. {
                let token = stamp("a", token);
                let result = if transactions {
                    let items = ["left", "right"].map(|pk| put(&world, pk, token.token()));
                    world.fence().transact(&token, items.into()).await
                } else {
                    let n = AttributeValue::N(token.token().to_string());
                    let write = world.client.update_item().update_expression("SET n = :n");
                    world.item("a").update(&token, write.expression_attribute_values(":n", n)).await
                };
                *ends.entry(Outcome::of(&result)).or_default() += 1;
                match result {
                    Ok(()) => {
                        seen.acknowledged.store(token.token(), Ordering::SeqCst);
                        seen.accepted.fetch_add(1, Ordering::SeqCst);
                    }
                    Err(_) if seen.over.load(Ordering::SeqCst) => break,
                    Err(_) => {}
                }
            }
            ends
        }
    });
    for life in 1..=LIVES {
        let before = seen.accepted.load(Ordering::SeqCst);
        while seen.accepted.load(Ordering::SeqCst) < before + 5 {
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
        seen.over.store(life == LIVES, Ordering::SeqCst);
        tokio::task::block_in_place(|| server.kill().unwrap());
        if life < LIVES {
            tokio::task::block_in_place(|| server.restart().unwrap());
        }
    }
    let ends = writer.await.unwrap();
    tokio::task::block_in_place(|| server.restart().unwrap());
    (seen.acknowledged.load(Ordering::SeqCst), ends)
}

/// Each transaction writes a fence and two items. After a kill they are all from one transaction, and the fence is not below what
/// was sealed.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_no_transaction_is_half_done_and_the_seal_is_kept() {
    let mut server = Server::start().unwrap();
    let world = World::on(server.port()).await;
    world.fence().seal(&stamp("a", FIRST)).await.unwrap();
    let (acknowledged, ends) = killed_while_writing(&mut server, &world, true).await;

    let fence = world.fence().look("a").await.unwrap().highest.unwrap().token;
    let both = [number_of(&world, "left").await, number_of(&world, "right").await];
    println!("transactions, killed {LIVES} times: {ends:?}, acknowledged {acknowledged}, fence {fence}");
    assert_eq!(both, [fence, fence], "half of a transaction");
    assert!(fence > FIRST && !ends.contains_key(&Outcome::Stale), "{fence}, {ends:?}");
    let error = world.add_fenced(&stamp("a", FIRST - 1), "late").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Stale, "{error}");
}

/// Token and content are in one item, and nothing that was acknowledged is gone.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_an_item_has_what_was_acknowledged_and_its_token() {
    let mut server = Server::start().unwrap();
    let world = World::on(server.port()).await;
    let (acknowledged, ends) = killed_while_writing(&mut server, &world, false).await;

    let highest = world.item("a").look("a").await.unwrap().highest.unwrap().token;
    println!("an item, killed {LIVES} times: {ends:?}, acknowledged {acknowledged}, fence {highest}");
    assert_eq!(number_of(&world, "log#a").await, highest, "half of a write");
    assert!(highest >= acknowledged, "{highest} after {acknowledged} was acknowledged");
    assert!(!ends.contains_key(&Outcome::Stale), "{ends:?}");
    let error = world.item("a").seal(&stamp("a", acknowledged - 1)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Stale, "{error}");
}

/// While the server is down: no connection, nothing sent, and that is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_listen_has_written_nothing() {
    let mut server = Server::start().unwrap();
    let world = World::on(server.port()).await;
    server.kill().unwrap();
    // The connection that is left is written to before anybody notices that nobody reads.
    let error = world.fence().seal(&stamp("a", 1)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    let error = world.fence().seal(&stamp("a", 1)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
}

fn put(world: &World, pk: &str, token: u64) -> TransactWriteItem {
    let put = Put::builder().table_name(&world.table).set_item(Some(key(pk).into()));
    let put = put.item("n", AttributeValue::N(token.to_string())).build().unwrap();
    TransactWriteItem::builder().put(put).build()
}

async fn number_of(world: &World, pk: &str) -> u64 {
    let get = world.client.get_item().table_name(&world.table).set_key(Some(key(pk).into()));
    get.consistent_read(true).send().await.unwrap().item.unwrap()["n"].as_n().unwrap().parse().unwrap()
}
