//! Two fences of one name in two schemas of one database are two fences: for waiting, for entries, and for whoever is named.

use leasehold_fence::postgres::Fence;
use leasehold_fence::{Outcome, Receiver as _};
use sqlx::Executor as _;

use crate::postgres::world::{A_WHILE, World, has, pid, refused_for, run, stamp, why_failed};

/// The same database with a fence in each of two schemas, and in each a table that its own fence protects.
async fn two() -> (World, Fence, Fence) {
    let world = World::bare().await;
    let mut fences = Vec::new();
    for schema in ["one", "two"] {
        run(&world.pool, &format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.report (id int)")).await;
        let fence = world.fence.clone().in_schema(schema).with_seal_patience(A_WHILE);
        fence.migrate().await.unwrap();
        let trigger = format!(
            "CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {schema}.report \
             FOR EACH STATEMENT EXECUTE FUNCTION {schema}.leasehold_require('reports/nightly')"
        );
        run(&world.pool, &trigger).await;
        fences.push(fence);
    }
    let second = fences.pop().unwrap();
    (world, fences.pop().unwrap(), second)
}

#[tokio::test]
async fn a_transaction_in_one_is_not_in_the_way_of_the_other() {
    let (world, one, two) = two().await;
    for token in [33, 34] {
        // At 33 it makes the row, at 34 it raises it: it has the gate for itself both times.
        let mut open = world.begin().await;
        one.enter(&mut open, &stamp(token)).await.unwrap();
        two.seal(&stamp(token)).await.unwrap();
        two.transaction(&stamp(token), async |_| Ok(())).await.unwrap();
        open.commit().await.unwrap();
    }
    // Shared, the other raises all the same.
    let mut open = world.begin().await;
    one.enter(&mut open, &stamp(34)).await.unwrap();
    two.seal(&stamp(35)).await.unwrap();
    assert_eq!(refused_for(two.seal(&stamp(34)).await), 35);
    one.seal(&stamp(34)).await.unwrap();
}

#[tokio::test]
async fn an_entry_into_one_is_none_into_the_other() {
    let (_world, one, two) = two().await;
    let write = |table: &'static str| {
        async move |tx: &mut sqlx::PgConnection| Ok(tx.execute(table).await.map(drop)?)
    };
    one.transaction(&stamp(33), write("INSERT INTO one.report VALUES (1)")).await.unwrap();
    let said = one.transaction(&stamp(33), write("INSERT INTO two.report VALUES (1)")).await;
    has(why_failed(said), "has not entered the fence reports/nightly");
    one.transaction(&stamp(33), async |tx| {
        two.enter(&mut *tx, &stamp(7)).await?;
        tx.execute("INSERT INTO one.report VALUES (2)").await?;
        tx.execute("INSERT INTO two.report VALUES (2)").await?;
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn only_the_backend_in_the_same_schema_is_named() {
    let (world, one, two) = two().await;
    let (mut in_one, mut in_two) = (world.begin().await, world.begin().await);
    one.enter(&mut in_one, &stamp(33)).await.unwrap();
    two.enter(&mut in_two, &stamp(33)).await.unwrap();
    let pids = [pid(&mut in_one).await, pid(&mut in_two).await];
    for (fence, pid, other) in [(&one, pids[0], pids[1]), (&two, pids[1], pids[0])] {
        let said = why_failed(fence.seal(&stamp(34)).await);
        has(&said, &format!("of backend {pid} for longer"));
        assert!(!said.contains(&format!("backend {other}")), "{said}");
    }
}

#[tokio::test]
async fn an_entry_of_one_backend_is_none_of_another() {
    let (world, one, _) = two().await;
    one.seal(&stamp(33)).await.unwrap();
    let (mut entered, mut other) = (world.begin().await, world.begin().await);
    one.enter(&mut entered, &stamp(33)).await.unwrap();
    // Even with what the first has noted of itself: it names another transaction.
    let noted = "SELECT current_setting('leasehold.stamp')";
    let noted: String = sqlx::query_scalar(noted).fetch_one(&mut *entered).await.unwrap();
    sqlx::query("SELECT set_config('leasehold.stamp', $1, true), pg_current_xact_id()")
        .bind(noted)
        .execute(&mut *other)
        .await
        .unwrap();
    let said = other.execute("INSERT INTO one.report VALUES (1)").await.unwrap_err();
    has(said, "has not entered the fence reports/nightly");
    entered.execute("INSERT INTO one.report VALUES (1)").await.unwrap();
}

#[tokio::test]
async fn each_is_counted_at_its_own_place() {
    let (world, one, two) = two().await;
    one.seal(&stamp(34)).await.unwrap();
    refused_for(one.seal(&stamp(33)).await);
    two.seal(&stamp(33)).await.unwrap();
    for (fence, stale, kept) in [(&one, 1, 1), (&two, 0, 0)] {
        assert_eq!(world.counts.seals(fence.place(), Outcome::Stale), stale);
        assert_eq!(fence.look("reports/nightly").await.unwrap().refusals.unwrap().len(), kept);
    }
}
