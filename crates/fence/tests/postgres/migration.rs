//! The migration: as often as you like, by many at once, in any schema, for roles that may do little.

use leasehold_fence::Receiver as _;
use leasehold_fence::migration::POSTGRES as MIGRATION;
use leasehold_fence::postgres::Fence;

use crate::postgres::world::{NAME, World, beside, pool, refused_for, run, soon, stamp};

#[tokio::test(flavor = "multi_thread")]
async fn it_may_be_run_by_many_at_once_and_keeps_what_is_there() {
    let world = World::bare().await;
    let all: Vec<_> = (0..8)
        .map(|_| {
            let fence = world.fence.clone();
            beside(async move { fence.migrate().await })
        })
        .collect();
    for one in all {
        soon(one).await.unwrap();
    }
    world.fence.seal(&stamp(34)).await.unwrap();
    world.fence.migrate().await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(33), "x").await), 34);
}

#[tokio::test]
async fn it_may_stand_in_a_schema_of_its_own() {
    let world = World::bare().await;
    run(&world.pool, r#"CREATE SCHEMA "Jo""bs'\""#).await;
    let fence = world.fence.clone().in_schema(r#"Jo"bs'\"#);
    assert!(fence.place().ends_with(r#"?schema=Jo"bs'\"#), "{}", fence.place());
    fence.migrate().await.unwrap();
    fence.seal(&stamp(34)).await.unwrap();
    assert_eq!(refused_for(fence.transaction(&stamp(33), async |_| Ok(())).await), 34);
    let mut tx = world.begin().await;
    assert_eq!(refused_for(fence.enter(&mut tx, &stamp(33)).await), 34);
    assert_eq!(fence.look(NAME).await.unwrap().refusals.unwrap().len(), 2);
    let outside: bool = sqlx::query_scalar("SELECT to_regclass('leasehold_fence') IS NULL")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert!(outside, "nothing was made in the schema of the search path");
}

/// Whatever somebody has in a temporary schema, or in front in the search path, the fence uses its own tables.
#[tokio::test]
async fn the_search_path_of_the_caller_does_not_matter() {
    let world = World::new().await;
    world.fence.seal(&stamp(34)).await.unwrap();
    let mut tx = world.begin().await;
    let shadow = "CREATE TEMPORARY TABLE leasehold_fence (LIKE public.leasehold_fence INCLUDING ALL); \
                  SET LOCAL search_path = pg_temp, public";
    sqlx::raw_sql(shadow).execute(&mut *tx).await.unwrap();
    assert_eq!(refused_for(world.fence.enter(&mut tx, &stamp(33)).await), 34);
}

/// The rights that the head of the migration lists are those that are needed.
#[tokio::test]
async fn a_role_with_the_listed_rights_can_do_all_that_is_needed() {
    let world = World::new().await;
    run(&world.pool, "CREATE ROLE fence_app LOGIN").await;
    run(
        &world.pool,
        "GRANT SELECT, INSERT ON entry TO fence_app; GRANT USAGE ON SEQUENCE entry_id_seq TO fence_app",
    )
    .await;
    let app = pool((*world.pool.connect_options()).clone().username("fence_app"), 2).await;
    let fence = Fence::new(app);
    fence.seal(&stamp(33)).await.unwrap_err();
    for right in MIGRATION.lines().filter_map(|line| line.strip_prefix("--     GRANT ")) {
        run(&world.pool, &format!("GRANT {}", right.replace(" TO app;", " TO fence_app"))).await;
    }
    fence.seal(&stamp(34)).await.unwrap();
    fence
        .transaction(&stamp(34), async |tx| Ok(crate::postgres::world::put(tx, &stamp(34), "x").await?))
        .await
        .unwrap();
    assert_eq!(refused_for(fence.seal(&stamp(33)).await), 34);
    assert_eq!(fence.look(NAME).await.unwrap().refusals.unwrap().len(), 1);
    run(&world.pool, "DROP OWNED BY fence_app; DROP ROLE fence_app").await;
}

#[tokio::test]
async fn nothing_depends_on_a_clock() {
    let code: String = MIGRATION.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    for word in ["now()", "current_timestamp", "localtimestamp", "transaction_timestamp"] {
        assert!(!code.to_lowercase().contains(word), "{word}");
    }
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    for moment in ["'infinity'", "'-infinity'", "NULL"] {
        run(&world.pool, &format!("UPDATE leasehold_fence SET raised_at = {moment}")).await;
        world.write(&stamp(33), "equal").await.unwrap();
        assert_eq!(refused_for(world.write(&stamp(32), "stale").await), 33);
    }
}

#[tokio::test]
async fn what_is_no_stamp_is_refused_by_the_database_too() {
    let world = World::new().await;
    world.fence.seal(&stamp(34)).await.unwrap();
    let long = "x".repeat(545);
    for arguments in [
        "NULL, 1",
        "'a', NULL",
        "'a', 0",
        "'a', -1",
        "'', 1",
        "E'a\\nb', 1",
        "'reports/nightly', 0",
        "'reports/nightly', NULL",
        "'a', 9223372036854775808",
        &format!("'{long}', 1"),
        &format!("'a', 1, '{long}'"),
    ] {
        let enter = format!("SELECT leasehold_enter({arguments})");
        sqlx::raw_sql(&enter).execute(&world.pool).await.expect_err(&enter);
    }
}

#[tokio::test]
async fn a_name_or_a_token_that_is_none_is_named_with_its_limits() {
    let world = World::new().await;
    let long = format!("'{}'", "n".repeat(545));
    for function in ["leasehold_seal", "leasehold_enter"] {
        for (arguments, said) in [
            ("'', 34", "a fence name of 0 bytes is outside 1 to 544 bytes; nothing was written"),
            ("NULL, 34", "a fence name of 0 bytes is outside 1 to 544 bytes"),
            (&format!("{long}, 34"), "a fence name of 545 bytes is outside 1 to 544 bytes"),
            ("'a', 0", "token 0 of a is outside 1 to 9223372036854775807; nothing was written"),
            ("'a', -1", "token -1 of a is outside 1 to 9223372036854775807"),
            ("'a', NULL", "token NULL of a is outside 1 to 9223372036854775807"),
        ] {
            let asked = sqlx::query(&format!("SELECT {function}({arguments})")).execute(&world.pool).await;
            let error = asked.unwrap_err().to_string();
            assert!(error.contains(said), "{function}({arguments}): {error}");
        }
    }
}
