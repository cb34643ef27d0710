//! The DynamoDB adapter on a real server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "dynamodb/crash.rs"]
mod crash;
#[path = "dynamodb/http.rs"]
mod http;
#[path = "dynamodb/lost.rs"]
mod lost;
#[path = "dynamodb/world.rs"]
mod world;
#[path = "dynamodb/wrong_way.rs"]
mod wrong_way;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Put, TransactWriteItem, Update};
use leasehold_fence::conformance::{self, Load, Violation};
use leasehold_fence::{
    Authority, Counts, Error, LARGEST_TOKEN, Mark, NoAuthority, Outcome, Receiver, Seen, Stamp,
};
use world::{Tried, Way, World, key, stamp};

/// Every write waits for the disk, so there are fewer of them than the suite has by itself.
const LOAD: Load = Load { rounds: 4, holders: 4, writes: 6 };

#[tokio::test(flavor = "multi_thread")]
async fn both_ways_pass_the_suite() {
    for way in [Way::Transaction, Way::Item] {
        let world = World::new().await;
        let report = conformance::run(&Tried { world, way }, "suite", LOAD).await.unwrap();
        println!("DynamoDB Local, {way:?}: {report}");
        assert!(report.races == 4 && report.accepted > 20 && report.stale_tried > 20, "{report}");
        assert_eq!(report.unknown, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_finds_a_write_without_the_check() {
    let world = World::new().await;
    let found = conformance::run(&Tried { world, way: Way::NoCheck }, "suite", LOAD).await;
    assert!(matches!(found, Err(Violation::Broken { rule: "tokens never fall", .. })), "{found:?}");
}

#[tokio::test]
async fn a_stale_write_is_refused_before_the_first_write_of_the_new_holder() {
    let world = World::new().await;
    let (old, new) = (stamp("a", 33), stamp("a", 34));
    world.add_fenced(&old, "one").await.unwrap();
    world.fence().seal(&new).await.unwrap();
    let error = world.add_fenced(&old, "late").await.unwrap_err();
    assert_eq!(error.to_string(), "token 33 of a is stale: the receiver has seen 34; nothing was written");
    world.add_fenced(&new, "two").await.unwrap();
    world.add_fenced(&new, "equal tokens pass").await.unwrap();
    assert_eq!(world.tokens("a").await, [33, 34, 34]);
}

#[tokio::test]
async fn a_seal_is_refused_below_the_highest_token_and_may_be_repeated() {
    let world = World::new().await;
    for receiver in [&world.fence() as &dyn Receiver, &world.item("a")] {
        receiver.seal(&stamp("a", 34)).await.unwrap();
        receiver.seal(&stamp("a", 34)).await.unwrap();
        let error = receiver.seal(&stamp("a", 33)).await.unwrap_err();
        assert!(matches!(&error, Error::Stale(stale) if stale.highest == Some(34)), "{error}");
        let highest = Mark { token: 34, holder: Some("holder-34".to_owned()) };
        assert_eq!(receiver.look("a").await.unwrap(), Seen { highest: Some(highest), refusals: None });
        assert_eq!(receiver.look("b").await.unwrap(), Seen::default());
    }
}

#[tokio::test]
async fn neighbours_above_doubles_and_the_largest_token_differ() {
    let world = World::new().await;
    let (old, new) = (stamp("a", LARGEST_TOKEN - 1), stamp("a", LARGEST_TOKEN));
    world.add_fenced(&old, "old").await.unwrap();
    world.add_fenced(&new, "new").await.unwrap();
    assert_eq!(world.add_fenced(&old, "late").await.unwrap_err().outcome(), Outcome::Stale);
    world.add_to_item(&new, "new").await.unwrap();
    assert_eq!(world.add_to_item(&old, "late").await.unwrap_err().outcome(), Outcome::Stale);
    assert_eq!(world.fence().look("a").await.unwrap().highest.unwrap().token, LARGEST_TOKEN);
}

/// One thread is paused between its guard and its write; the other goes on under a new lease of the same process.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_was_paused_writes_with_its_own_token() {
    let world = World::new().await;
    let (go, wait) = tokio::sync::oneshot::channel();
    let paused = tokio::spawn({
        let (world, guard) = (world.clone(), stamp("a", 7));
        async move {
            wait.await.unwrap();
            world.add_fenced(&guard, "paused").await
        }
    });
    world.add_fenced(&stamp("a", 8), "other").await.unwrap();
    go.send(()).unwrap();
    assert_eq!(paused.await.unwrap().unwrap_err().outcome(), Outcome::Stale);
    assert_eq!(world.tokens("a").await, [8]);
}

#[tokio::test]
async fn a_condition_of_the_caller_that_does_not_hold_is_failed_and_not_stale() {
    let world = World::new().await;
    let check = ConditionCheck::builder()
        .table_name(&world.table)
        .set_key(Some(key("nothing").into()))
        .condition_expression("attribute_exists(pk)");
    let check = TransactWriteItem::builder().condition_check(check.build().unwrap()).build();
    let token = stamp("a", 1);
    let items = vec![world.add(&token, "x"), check];
    let error = world.fence().transact(&token, items).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
    assert!(world.log("a").await.is_empty());
    assert_eq!(world.fence().look("a").await.unwrap().highest, None, "a failed write raises nothing");

    let item = world.item("b");
    let write = world.client.update_item().update_expression("SET body = :body");
    let write = write.expression_attribute_values(":body", AttributeValue::N("1".into()));
    let first = write.clone().condition_expression("attribute_not_exists(body) OR body = :body");
    item.update(&stamp("b", 5), first.clone()).await.unwrap();
    let other = first.expression_attribute_values(":body", AttributeValue::N("2".into()));
    let error = item.update(&stamp("b", 5), other.clone()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
    let error = item.update(&stamp("b", 4), other).await.unwrap_err();
    assert!(matches!(&error, Error::Stale(stale) if stale.highest == Some(5)), "{error}");
}

/// Whoever wrote one would let in those who are late, of this name or another.
#[tokio::test]
async fn an_item_that_would_write_a_fence_is_refused_and_nothing_is_sent() {
    let world = World::new().await;
    let (fence, token) = (world.fence(), stamp("a", 1));
    fence.seal(&stamp("b", 34)).await.unwrap();
    let arn = format!("arn:aws:dynamodb:eu-north-1:000000000000:table/{}", world.table);
    for (name, table) in [("b", &world.table), ("b", &arn), ("a", &world.table)] {
        let key = key(&format!("leasehold-fence#{name}"));
        let put = Put::builder().table_name(table).set_item(Some(key.clone().into()));
        let delete = Delete::builder().table_name(table).set_key(Some(key.clone().into()));
        let update = Update::builder().table_name(table).set_key(Some(key.into()));
        let update = update.update_expression("REMOVE holder");
        for item in [
            TransactWriteItem::builder().put(put.build().unwrap()),
            TransactWriteItem::builder().delete(delete.build().unwrap()),
            TransactWriteItem::builder().update(update.build().unwrap()),
        ] {
            let items = vec![world.add(&token, "x"), item.build()];
            let error = fence.transact(&token, items).await.unwrap_err();
            let words = format!(
                "an item would write \"leasehold-fence#{name}\", which is a fence; leave it out, or seal to raise it"
            );
            assert!(error.to_string().ends_with(&words), "{error}");
            assert_eq!(error.outcome(), Outcome::Failed);
        }
    }
    assert!(world.log("a").await.is_empty());
    assert_eq!(fence.look("b").await.unwrap().highest.unwrap().token, 34);
}

#[tokio::test]
async fn the_fence_of_another_name_may_be_a_condition_and_its_key_an_item_of_another_table() {
    let (world, other) = (World::new().await, World::new().await);
    let (fence, token) = (world.fence(), stamp("a", 1));
    fence.seal(&stamp("b", 34)).await.unwrap();
    let check = ConditionCheck::builder()
        .table_name(&world.table)
        .set_key(Some(key("leasehold-fence#b").into()))
        .condition_expression("attribute_exists(pk)");
    let check = TransactWriteItem::builder().condition_check(check.build().unwrap()).build();
    let put = Put::builder().table_name(&other.table).set_item(Some(key("leasehold-fence#b").into()));
    let put = TransactWriteItem::builder().put(put.build().unwrap()).build();
    fence.transact(&token, vec![world.add(&token, "x"), check, put]).await.unwrap();
    assert_eq!(world.tokens("a").await, [1]);
}

#[tokio::test]
async fn an_update_may_remove_and_add_and_must_begin_with_set() {
    let world = World::new().await;
    let (item, token) = (world.item("a"), stamp("a", 1));
    let write = |text: &str| world.client.update_item().update_expression(text);
    let one = || AttributeValue::N("1".into());
    item.update(&token, write("set x = :one").expression_attribute_values(":one", one())).await.unwrap();
    item.update(&token, write("REMOVE x ADD y :one").expression_attribute_values(":one", one()))
        .await
        .unwrap();
    item.update(&token, world.client.update_item()).await.unwrap();
    let error =
        item.update(&token, write("REMOVE y SET x = :one").expression_attribute_values(":one", one()));
    assert_eq!(error.await.unwrap_err().outcome(), Outcome::Failed);
    let get = world.client.get_item().table_name(&world.table).set_key(Some(key("log#a").into()));
    let found = get.send().await.unwrap().item.unwrap();
    assert!(found.contains_key("y") && !found.contains_key("x"), "{found:?}");
}

#[tokio::test]
async fn a_fence_that_is_no_number_is_not_called_stale() {
    let world = World::new().await;
    let put =
        world.client.put_item().table_name(&world.table).set_item(Some(key("leasehold-fence#a").into()));
    put.item("token", AttributeValue::S("34".into())).send().await.unwrap();
    let error = world.add_fenced(&stamp("a", 35), "x").await.unwrap_err();
    assert!(
        error.to_string().ends_with("attribute token of the fence a is no token; put a number there"),
        "{error}"
    );
    assert_eq!(error.outcome(), Outcome::Failed);
}

struct Lapsed;

impl Authority for Lapsed {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Err(NoAuthority { name: "a".to_owned(), why: "the lease has expired".to_owned() })
    }
}

#[tokio::test]
async fn every_end_is_counted_once() {
    let world = World::new().await;
    let counts = Counts::default();
    let fence = world.fence().counted(&counts);
    let place = fence.place().to_owned();
    assert_eq!(place, format!("dynamodb:eu-north-1/{}", world.table));
    let (old, new) = (stamp("a", 33), stamp("a", 34));
    fence.seal(&new).await.unwrap();
    fence.seal(&old).await.unwrap_err();
    fence.transact(&new, vec![world.add(&new, "x")]).await.unwrap();
    fence.transact(&old, vec![world.add(&old, "x")]).await.unwrap_err();
    fence.transact(&Lapsed, vec![world.add(&old, "x")]).await.unwrap_err();
    let error = fence.transact(&new, vec![world.add(&new, "x"); 100]).await.unwrap_err();
    assert!(
        error.to_string().ends_with("100 items are above the limit of 99; write them in parts"),
        "{error}"
    );
    let item = world.item("b").counted(&counts);
    let error = item.update(&new, world.client.update_item()).await.unwrap_err();
    assert!(error.to_string().ends_with("the item is protected under b, and not under a"), "{error}");
    let writes = [Outcome::Accepted, Outcome::Stale, Outcome::Lapsed, Outcome::Failed];
    assert_eq!(writes.map(|outcome| counts.writes(&place, outcome)), [1, 1, 1, 2]);
    assert_eq!([Outcome::Accepted, Outcome::Stale].map(|outcome| counts.seals(&place, outcome)), [1, 1]);
}
