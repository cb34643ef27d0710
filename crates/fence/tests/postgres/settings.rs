//! Settings with which a database forgets a fence, or does not notice a change of it, are named, and nothing is refused for them.

use leasehold_fence::Receiver as _;
use leasehold_fence::postgres::Fence;
use leasehold_kit::{Receiver as _, postgres};

use crate::postgres::world::{World, pool, run, stamp};

async fn hazards(world: &World) -> Vec<String> {
    world.fence.hazards().await.unwrap().iter().map(ToString::to_string).collect()
}

/// On a server that waits for its disk.
async fn kept(server: &postgres::Server) -> World {
    let world = World::at(server.url().parse().unwrap()).await;
    world.fence.migrate().await.unwrap();
    world
}

#[tokio::test]
async fn a_server_that_waits_for_its_disk_has_no_hazard() {
    let server = postgres::Server::start().unwrap();
    let world = kept(&server).await;
    assert_eq!(hazards(&world).await, Vec::<String>::new());
    // A raise waits for the disk all the same.
    run(&world.pool, "ALTER DATABASE postgres SET synchronous_commit = off").await;
    let lazy = pool(server.url().parse().unwrap(), 1).await;
    assert_eq!(Fence::new(lazy).hazards().await.unwrap(), []);
}

#[tokio::test]
async fn each_setting_that_loses_a_fence_is_named_with_what_to_do() {
    let server = postgres::Server::start().unwrap();
    let world = kept(&server).await;
    run(&world.pool, "ALTER TABLE leasehold_fence SET UNLOGGED").await;
    let unlogged = "table leasehold_fence is unlogged: a server that crashes empties it, and takes stale writes until the next seal; \
                    set it to logged, with ALTER TABLE leasehold_fence SET LOGGED";
    assert_eq!(hazards(&world).await, [unlogged]);
    run(&world.pool, "ALTER TABLE leasehold_fence SET LOGGED").await;
    for (statement, is) in [
        ("ALTER TABLE leasehold_fence DISABLE TRIGGER ALL", "switched off"),
        ("ALTER TABLE leasehold_fence ENABLE TRIGGER ALL", "not fired for changes that a replica applies"),
        ("DROP TRIGGER leasehold_by_hand ON leasehold_fence", "missing"),
    ] {
        run(&world.pool, statement).await;
        let so = "a row that is changed by hand is not noticed by those who have entered before";
        let always = "set it to always, by running the migration again";
        assert_eq!(hazards(&world).await, [format!("trigger leasehold_by_hand is {is}: {so}; {always}")]);
        world.fence.migrate().await.unwrap();
        assert_eq!(hazards(&world).await, Vec::<String>::new(), "after {statement}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_wait_for_its_disk_is_named() {
    let world = World::new().await;
    let fsync =
        "fsync is off: a machine that loses its power may forget raises that were acknowledged; set it to on";
    assert_eq!(hazards(&world).await, [fsync]);
    world.fence.seal(&stamp(33)).await.unwrap();
}

#[tokio::test]
async fn the_hazards_of_a_schema_are_those_of_its_own_table() {
    let world = World::new().await;
    run(&world.pool, "CREATE SCHEMA jobs; ALTER TABLE leasehold_fence SET UNLOGGED").await;
    let jobs = Fence::new(world.pool.clone()).in_schema("jobs");
    jobs.migrate().await.unwrap();
    assert_eq!((jobs.hazards().await.unwrap().len(), hazards(&world).await.len()), (1, 2));
}
