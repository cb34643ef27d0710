//! The Cassandra adapter on a real server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "cassandra/crash.rs"]
mod crash;
#[path = "cassandra/lost.rs"]
mod lost;
#[path = "cassandra/proxy.rs"]
mod proxy;
#[path = "cassandra/world.rs"]
mod world;
#[path = "cassandra/wrong_way.rs"]
mod wrong_way;

use leasehold_fence::conformance::{self, Load, Violation};
use leasehold_fence::{
    Authority, Counts, Error, LARGEST_TOKEN, Mark, NoAuthority, Outcome, Receiver, Seen, Stamp,
};
use leasehold_fence_cassandra::{Fence, Write};
use leasehold_kit::Receiver as _;
use world::{Tried, World, line, name, shared, stamp};

/// Every transaction takes several rounds and waits for the disk, so there are fewer of them than the suite has by itself.
const LOAD: Load = Load { rounds: 4, holders: 4, writes: 6 };

#[tokio::test(flavor = "multi_thread")]
async fn it_passes_the_suite() {
    let world = World::new().await;
    let report = conformance::run(&Tried { world, checks: true }, "suite", LOAD).await.unwrap();
    println!("Cassandra {}: {report}", shared().version());
    assert!(report.races == 4 && report.accepted > 20 && report.stale_tried > 20, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_finds_a_write_without_the_check() {
    let world = World::new().await;
    let found = conformance::run(&Tried { world, checks: false }, "planted", LOAD).await;
    assert!(matches!(found, Err(Violation::Broken { rule: "tokens never fall", .. })), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_write_is_refused_before_the_first_write_of_the_new_holder() {
    let (world, name) = (World::new().await, name());
    let (old, new) = (stamp(&name, 33), stamp(&name, 34));
    world.add(&old, "one").await.unwrap();
    world.fence.seal(&new).await.unwrap();
    let error = world.add(&old, "late").await.unwrap_err();
    assert!(matches!(&error, Error::Stale(stale) if stale.highest == Some(34)), "{error}");
    world.add(&new, "two").await.unwrap();
    world.add(&new, "equal tokens pass").await.unwrap();
    assert_eq!(world.tokens(&name).await, [33, 34, 34]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_is_refused_below_the_highest_token_and_may_be_repeated() {
    let (world, name) = (World::new().await, name());
    assert_eq!(world.fence.look(&name).await.unwrap(), Seen::default());
    world.fence.seal(&stamp(&name, 34)).await.unwrap();
    world.fence.seal(&stamp(&name, 34)).await.unwrap();
    let error = world.fence.seal(&stamp(&name, 33)).await.unwrap_err();
    assert!(matches!(&error, Error::Stale(stale) if stale.highest == Some(34)), "{error}");
    let highest = Mark { token: 34, holder: Some("holder-34".to_owned()) };
    assert_eq!(world.fence.look(&name).await.unwrap(), Seen { highest: Some(highest), refusals: None });
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_above_doubles_and_the_largest_token_differ() {
    let (world, name) = (World::new().await, name());
    let (old, new) = (stamp(&name, LARGEST_TOKEN - 1), stamp(&name, LARGEST_TOKEN));
    world.add(&old, "old").await.unwrap();
    world.add(&new, "new").await.unwrap();
    assert_eq!(world.add(&old, "late").await.unwrap_err().outcome(), Outcome::Stale);
    assert_eq!(world.fence.look(&name).await.unwrap().highest.unwrap().token, LARGEST_TOKEN);
}

/// One thread is paused between its guard and its write; the other goes on under a new lease of the same process.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_was_paused_writes_with_its_own_token() {
    let (world, name) = (World::new().await, name());
    let (go, wait) = tokio::sync::oneshot::channel();
    let paused = tokio::spawn({
        let (world, guard) = (world.clone(), stamp(&name, 7));
        async move {
            wait.await.unwrap();
            world.add(&guard, "paused").await
        }
    });
    world.add(&stamp(&name, 8), "other").await.unwrap();
    go.send(()).unwrap();
    assert_eq!(paused.await.unwrap().unwrap_err().outcome(), Outcome::Stale);
    assert_eq!(world.tokens(&name).await, [8]);
}

/// Many first writers at once, none of which finds a fence.
#[tokio::test(flavor = "multi_thread")]
async fn first_writers_that_meet_are_not_taken_for_stale() {
    let (world, name) = (World::new().await, name());
    let writers = (0..4).map(|nth| {
        let (world, name) = (world.clone(), name.clone());
        tokio::spawn(async move { world.add(&stamp(&name, 5), &nth.to_string()).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(world.tokens(&name).await, [5; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_batch_cannot_do_is_failed_and_writes_nothing() {
    let (world, name) = (World::new().await, name());
    let token = stamp(&name, 1);
    world.add(&token, "x").await.unwrap();
    let again = "INSERT INTO shop.log (name, value, brought) VALUES (?, 'x', 9) IF NOT EXISTS";
    let other = "INSERT INTO shop.log (name, value, brought) VALUES ('elsewhere', 'x', 9)";
    for (write, why) in [
        (line(&token, "y").and(again, (name.clone(),)), "a condition of the statements does not hold"),
        (line(&token, "y").and(other, ()), "multiple partitions"),
        (Write::of("INSERT INTO shop.nothing (name) VALUES ('x')", ()), "nothing"),
    ] {
        let result = world.fence.write(&token, &write).await;
        let Err(error) = result else { panic!("{why}: {:?}", world.log(&name).await) };
        assert_eq!(error.outcome(), Outcome::Failed, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(world.tokens(&name).await, [1]);
    assert!(world.log("elsewhere").await.is_empty());
    // A condition of the caller's and a stale token: it is the token.
    world.fence.seal(&stamp(&name, 2)).await.unwrap();
    let error = world.fence.write(&token, &Write::of(again, (name.clone(),))).await.unwrap_err();
    assert!(matches!(&error, Error::Stale(stale) if stale.highest == Some(2)), "{error}");
}

/// All cells of a transaction have its own time, so nothing that was accepted is hidden by what was there before.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_in_the_callers_statement_does_not_count() {
    let (world, name) = (World::new().await, name());
    let token = stamp(&name, 1);
    world.add(&token, "x").await.unwrap();
    let timed = "INSERT INTO shop.log (name, value, brought) VALUES (?, 'x', 9) USING TIMESTAMP 9";
    world.fence.write(&token, &Write::of(timed, (name.clone(),))).await.unwrap();
    assert_eq!(world.tokens(&name).await, [9]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_clustering_columns_has_the_fence_in_its_row_and_it_does_not_expire() {
    let world = World::new().await;
    let table = "CREATE TABLE shop.flat (name text PRIMARY KEY, body text, leasehold_token bigint, leasehold_holder text, \
         leasehold_write bigint) WITH default_time_to_live = 1";
    world.session.query_unpaged(table, ()).await.unwrap();
    let fence = Fence::new(world.session.clone(), "shop.flat", "name").await.unwrap();
    fence.seal(&stamp("a", 2)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    let write = Write::of("UPDATE shop.flat SET body = 'x' WHERE name = 'a'", ());
    assert_eq!(fence.write(&stamp("a", 1), &write).await.unwrap_err().outcome(), Outcome::Stale);
    fence.write(&stamp("a", 2), &write).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_the_columns_is_refused_by_their_names() {
    let world = World::new().await;
    world.session.query_unpaged("CREATE TABLE shop.bare (name text PRIMARY KEY)", ()).await.unwrap();
    let error = Fence::new(world.session.clone(), "shop.bare", "name").await.unwrap_err();
    assert!(error.to_string().contains("the table needs the columns leasehold_token bigint"), "{error}");
}

struct Lapsed;

impl Authority for Lapsed {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Err(NoAuthority { name: "a".to_owned(), why: "the lease has expired".to_owned() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_is_counted_once() {
    let (world, name) = (World::new().await, name());
    let counts = Counts::default();
    let fence = world.fence.clone().counted(&counts);
    assert_eq!(fence.place(), "cassandra:shop.log");
    let (old, new) = (stamp(&name, 33), stamp(&name, 34));
    fence.seal(&new).await.unwrap();
    fence.seal(&old).await.unwrap_err();
    fence.write(&new, &line(&new, "x")).await.unwrap();
    fence.write(&old, &line(&old, "x")).await.unwrap_err();
    fence.write(&Lapsed, &line(&old, "x")).await.unwrap_err();
    fence.write(&new, &Write::of("nonsense", ())).await.unwrap_err();
    let writes = [Outcome::Accepted, Outcome::Stale, Outcome::Lapsed, Outcome::Failed];
    assert_eq!(writes.map(|outcome| counts.writes(fence.place(), outcome)), [1; 4]);
    assert_eq!(
        [Outcome::Accepted, Outcome::Stale].map(|outcome| counts.seals(fence.place(), outcome)),
        [1; 2]
    );
}
