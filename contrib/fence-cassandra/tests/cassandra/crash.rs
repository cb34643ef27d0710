//! The server is killed while a holder writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leasehold_fence::{Outcome, Receiver as _};
use leasehold_fence_cassandra::Write;
use leasehold_kit::Receiver as _;

use crate::world::{World, server, stamp};

/// Each write has two rows and raises the token. After a kill they are all from one write, and none is older than what was
/// acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_nothing_is_half_done_and_the_fence_knows_its_token() {
    let mut server = tokio::task::block_in_place(server);
    let world = World::at(&server.url()).await;
    let (over, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = tokio::spawn({
        let (over, acknowledged) = (Arc::clone(&over), Arc::clone(&acknowledged));
        async move {
            let mut ends = BTreeMap::<Outcome, u32>::new();
            for token in 1.. {
                let token = stamp("a", token);
                let result = world.fence.write(&token, &both(token.signed_token())).await;
                *ends.entry(Outcome::of(&result)).or_default() += 1;
                match result {
                    Ok(()) => acknowledged.store(token.token(), Ordering::SeqCst),
                    Err(_) if over.load(Ordering::SeqCst) => break,
                    Err(_) => {}
                }
            }
            ends
        }
    });
    while acknowledged.load(Ordering::SeqCst) < 20 {
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    over.store(true, Ordering::SeqCst);
    tokio::task::block_in_place(|| server.kill().unwrap());
    let (ends, acknowledged) = (writer.await.unwrap(), acknowledged.load(Ordering::SeqCst));
    tokio::task::block_in_place(|| server.restart().unwrap());

    let world = World::at(&server.url()).await;
    let fence = world.fence.look("a").await.unwrap().highest.unwrap().token;
    println!("killed: {ends:?}, acknowledged {acknowledged}, fence {fence}");
    assert_eq!(world.tokens("a").await, [fence, fence], "half of a write");
    assert!(fence >= acknowledged, "{fence} after {acknowledged} was acknowledged");
    assert!(!ends.contains_key(&Outcome::Stale), "{ends:?}");
    let error = world.fence.seal(&stamp("a", acknowledged - 1)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Stale, "{error}");
}

fn both(token: i64) -> Write {
    let insert = |value| format!("INSERT INTO shop.log (name, value, brought) VALUES ('a', '{value}', ?)");
    Write::of(insert("left").as_str(), (token,)).and(insert("right").as_str(), (token,))
}
