//! Answers that are lost, and a server that stands still.

use leasehold_fence::{Outcome, Receiver as _};
use leasehold_kit::Receiver as _;

use crate::proxy::Proxy;
use crate::world::{World, name, server, shared, stamp};

/// The write was made, the answer is lost, and a read proves it by the number that the write left.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_found_was_accepted() {
    let server = tokio::task::block_in_place(shared);
    let proxy = Proxy::before(server.url()).await;
    let (world, name) = (World::at(&proxy.place).await, name());
    world.add(&stamp(&name, 1), "first").await.unwrap();
    proxy.lose_answer();
    world.add(&stamp(&name, 1), "second").await.unwrap();
    proxy.lose_answer();
    world.fence.seal(&stamp(&name, 2)).await.unwrap();
    assert_eq!(world.tokens(&name).await, [1, 1]);
}

/// The write was refused and that answer is lost: nothing proves it, because one that was made and overwritten looks the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_not_found_is_unknown_and_a_seal_is_stale() {
    let server = tokio::task::block_in_place(shared);
    let proxy = Proxy::before(server.url()).await;
    let (world, name) = (World::at(&proxy.place).await, name());
    world.fence.seal(&stamp(&name, 2)).await.unwrap();
    proxy.lose_answer();
    let error = world.add(&stamp(&name, 1), "late").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    proxy.lose_answer();
    let error = world.fence.seal(&stamp(&name, 1)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Stale, "{error}");
    assert!(world.log(&name).await.is_empty());
}

/// The token is its own, and yet the write was not made. It could still be under way, as far as anybody can see.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_never_arrived_is_not_called_accepted() {
    let server = tokio::task::block_in_place(shared);
    let proxy = Proxy::before(server.url()).await;
    let (world, name) = (World::at(&proxy.place).await, name());
    world.add(&stamp(&name, 1), "first").await.unwrap();
    proxy.lose_request();
    let error = world.add(&stamp(&name, 1), "second").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert_eq!(world.tokens(&name).await, [1]);
}

/// The server stands still with the write on its way, and makes it after the writer has given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_to_a_server_that_stands_still_is_unknown() {
    let server = tokio::task::block_in_place(server);
    let (world, name) = (World::at(&server.url()).await, name());
    world.add(&stamp(&name, 1), "before").await.unwrap();
    server.pause().unwrap();
    let error = world.add(&stamp(&name, 2), "during").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    server.resume().unwrap();
    // Whatever became of it, the next holder's seal puts an end to it.
    let world = World::at(&server.url()).await;
    world.fence.seal(&stamp(&name, 3)).await.unwrap();
    let tokens = world.tokens(&name).await;
    assert!(tokens == [1] || tokens == [1, 2], "{tokens:?}");
    assert_eq!(world.add(&stamp(&name, 2), "late").await.unwrap_err().outcome(), Outcome::Stale);
}
