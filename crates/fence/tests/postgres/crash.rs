//! `kill -9` of the server at every point of a fenced write: nothing half done, and the fence knows its token.

use leasehold_fence::{Error, Receiver as _};
use leasehold_kit::{Receiver as _, postgres};
use sqlx::Executor as _;

use crate::postgres::world::{NAME, World, put, refused_for, run, stamp};

async fn restarted(server: &mut postgres::Server) -> World {
    server.restart().unwrap();
    World::at(server.url().parse().unwrap()).await
}

#[tokio::test]
async fn the_server_dies_between_entry_and_write_and_between_write_and_commit() {
    let mut server = postgres::Server::start().unwrap();
    let world = World::at(server.url().parse().unwrap()).await;
    world.fence.migrate().await.unwrap();
    world.write(&stamp(34), "before").await.unwrap();

    // Two who have entered: one has raised the fence and written nothing, one has written under the old token.
    let mut entered = world.begin().await;
    world.fence.enter(&mut entered, &stamp(34)).await.unwrap();
    let mut written = world.begin().await;
    world.fence.enter(&mut written, &stamp(34)).await.unwrap();
    put(&mut written, &stamp(34), "half").await.unwrap();
    let mut raised = world.begin().await;
    world.fence.enter(&mut raised, &crate::postgres::world::of("other", 9)).await.unwrap();
    server.kill().unwrap();
    for mut dead in [entered, written, raised] {
        dead.execute("SELECT 1").await.unwrap_err();
    }

    let world = restarted(&mut server).await;
    assert_eq!(world.entries().await, ["34 before"]);
    assert_eq!((world.highest(NAME).await, world.highest("other").await), (Some(34), None));
    assert_eq!(refused_for(world.write(&stamp(33), "stale").await), 34);
    world.fence.seal(&stamp(35)).await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(34), "stale").await), 35);
}

#[tokio::test]
async fn the_server_dies_in_the_middle_of_the_work() {
    let mut server = postgres::Server::start().unwrap();
    let world = World::at(server.url().parse().unwrap()).await;
    world.fence.migrate().await.unwrap();
    let said = world
        .fence
        .transaction(&stamp(34), async |tx| {
            put(tx, &stamp(34), "half").await?;
            server.kill()?;
            Ok(put(tx, &stamp(34), "other half").await?)
        })
        .await;
    assert!(matches!(said, Err(Error::Failed { .. })), "{said:?}");
    let world = restarted(&mut server).await;
    assert_eq!((world.entries().await, world.highest(NAME).await), (vec![], None));
}

#[tokio::test]
async fn the_server_dies_before_the_commit_arrives() {
    let mut server = postgres::Server::start().unwrap();
    let world = World::at(server.url().parse().unwrap()).await;
    world.fence.migrate().await.unwrap();
    let said = world
        .fence
        .transaction(&stamp(34), async |tx| {
            put(tx, &stamp(34), "half").await?;
            Ok(server.kill()?)
        })
        .await;
    assert!(matches!(said, Err(Error::Unknown { .. })), "{said:?}");
    let world = restarted(&mut server).await;
    assert_eq!((world.entries().await, world.highest(NAME).await), (vec![], None));
}

/// Whoever has switched off waiting for the disk still gets a fence that is not forgotten.
#[tokio::test]
async fn a_raise_is_not_forgotten_where_commits_do_not_wait_for_the_disk() {
    let mut server = postgres::Server::start().unwrap();
    let world = World::at(server.url().parse().unwrap()).await;
    world.fence.migrate().await.unwrap();
    // So that nobody else brings it to the disk in the meantime.
    run(&world.pool, "ALTER SYSTEM SET wal_writer_delay = '10s'").await;
    run(&world.pool, "ALTER SYSTEM SET synchronous_commit = off").await;
    run(&world.pool, "SELECT pg_reload_conf()").await;
    let world = restarted(&mut server).await;
    world.fence.seal(&stamp(34)).await.unwrap();
    let mut direct = world.begin().await;
    world.fence.enter(&mut direct, &stamp(34)).await.unwrap();
    put(&mut direct, &stamp(34), "may be forgotten").await.unwrap();
    direct.commit().await.unwrap();
    server.kill().unwrap();
    let world = restarted(&mut server).await;
    assert_eq!(world.highest(NAME).await, Some(34));
    assert_eq!(world.entries().await, Vec::<String>::new(), "this server does forget what did not wait");
}

/// The row is its own fence, so it must not be forgotten either.
#[tokio::test]
async fn a_row_with_its_own_token_is_not_forgotten_where_commits_do_not_wait_for_the_disk() {
    let mut server = postgres::Server::start().unwrap();
    let world = World::at(server.url().parse().unwrap()).await;
    run(&world.pool, "ALTER SYSTEM SET wal_writer_delay = '10s'").await;
    run(&world.pool, "ALTER SYSTEM SET synchronous_commit = off").await;
    run(&world.pool, "CREATE TABLE doc (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0)").await;
    run(&world.pool, "INSERT INTO doc VALUES (7)").await;
    run(&world.pool, "SELECT pg_reload_conf()").await;
    let world = restarted(&mut server).await;
    let update = |token| sqlx::query("UPDATE doc SET fence = $1 WHERE id = 7 AND fence <= $1").bind(token);
    let seen = || sqlx::query_scalar("SELECT fence FROM doc WHERE id = 7");
    world.fence.update_row(&stamp(34), update, seen).await.unwrap();
    let mut direct = world.begin().await;
    put(&mut direct, &stamp(34), "may be forgotten").await.unwrap();
    direct.commit().await.unwrap();
    server.kill().unwrap();
    let world = restarted(&mut server).await;
    assert_eq!(refused_for(world.fence.update_row(&stamp(33), update, seen).await), 34);
    assert_eq!(world.entries().await, Vec::<String>::new(), "this server does forget what did not wait");
}
