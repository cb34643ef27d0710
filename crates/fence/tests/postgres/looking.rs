//! What operators see, and how refusals are kept.

use leasehold_fence::{KEPT_REFUSALS, Mark, Receiver as _, Seen};

use crate::postgres::world::{NAME, World, pool, run, stamp};

#[tokio::test]
async fn an_unknown_name_has_nothing_and_a_known_one_its_token_and_holder() {
    let world = World::new().await;
    let nothing = Seen { highest: None, refusals: Some(Vec::new()) };
    assert_eq!(world.fence.look(NAME).await.unwrap(), nothing);
    world.fence.seal(&stamp(34)).await.unwrap();
    let seen = world.fence.look(NAME).await.unwrap();
    assert_eq!(seen.highest, Some(Mark { token: 34, holder: Some("worker-34".to_owned()) }));
}

#[tokio::test]
async fn refusals_of_seals_writes_and_entries_are_kept_the_newest_first() {
    let world = World::new().await;
    world.fence.seal(&stamp(34)).await.unwrap();
    world.fence.seal(&stamp(31)).await.unwrap_err();
    world.write(&stamp(32), "x").await.unwrap_err();
    let mut tx = world.begin().await;
    world.fence.enter(&mut tx, &stamp(33)).await.unwrap_err();
    let seen = world.fence.look(NAME).await.unwrap().refusals.unwrap();
    let said: Vec<_> =
        seen.iter().map(|one| (one.token, one.highest, one.holder.as_deref().unwrap())).collect();
    assert_eq!(said, [(33, 34, "worker-33"), (32, 34, "worker-32"), (31, 34, "worker-31")]);
    let at = seen[0].at.as_deref().unwrap();
    assert!(at.len() == 24 && at.ends_with('Z'), "{at}");
}

#[tokio::test]
async fn as_many_refusals_are_kept_as_the_contract_says() {
    let world = World::new().await;
    world.fence.seal(&stamp(100)).await.unwrap();
    for token in 1..=40 {
        world.write(&stamp(token), "x").await.unwrap_err();
    }
    let kept = "SELECT count(*) FROM leasehold_refusal";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(&world.pool).await.unwrap();
    assert_eq!(usize::try_from(kept).unwrap(), KEPT_REFUSALS);
    let seen = world.fence.look(NAME).await.unwrap().refusals.unwrap();
    assert_eq!((seen.len(), seen[0].token, seen[KEPT_REFUSALS - 1].token), (16, 40, 25));
}

#[tokio::test]
async fn a_refusal_that_cannot_be_noted_is_a_refusal_all_the_same() {
    let world = World::new().await;
    world.fence.seal(&stamp(34)).await.unwrap();
    run(&world.pool, "DROP TABLE leasehold_refusal").await;
    assert_eq!(crate::postgres::world::refused_for(world.write(&stamp(33), "x").await), 34);
    assert_eq!(crate::postgres::world::refused_for(world.fence.seal(&stamp(33)).await), 34);
    // The pool has no other connection to note it on.
    let alone = pool((*world.pool.connect_options()).clone(), 1).await;
    let fence = leasehold_fence::postgres::Fence::new(alone.clone());
    let mut tx = alone.begin().await.unwrap();
    assert_eq!(crate::postgres::world::refused_for(fence.enter(&mut tx, &stamp(33)).await), 34);
}

#[tokio::test]
async fn no_refusal_is_noted_of_a_token_that_is_none_or_of_a_name_that_nobody_knows() {
    let world = World::new().await;
    world.fence.seal(&stamp(34)).await.unwrap();
    run(&world.pool, "SELECT leasehold_refused('reports/nightly', 34), leasehold_refused('nobody', 1)").await;
    let noted: i64 =
        sqlx::query_scalar("SELECT count(*) FROM leasehold_refusal").fetch_one(&world.pool).await.unwrap();
    assert_eq!(noted, 0);
}
