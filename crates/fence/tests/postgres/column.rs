//! A row that carries its own token.

use leasehold_fence::{Error, Outcome, Receiver as _, Stamp};

use crate::postgres::world::{World, has, refused_for, run, stamp, why_failed};

async fn updated(world: &World, stamp: &Stamp, id: i32, body: &str) -> Result<(), Error> {
    let update = "UPDATE doc SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2";
    world
        .fence
        .update_row(
            stamp,
            |token| sqlx::query(update).bind(body.to_owned()).bind(token).bind(id),
            || sqlx::query_scalar("SELECT fence FROM doc WHERE id = $1").bind(id),
        )
        .await
}

async fn with_a_row() -> World {
    let world = World::bare().await;
    run(&world.pool, "CREATE TABLE doc (id int PRIMARY KEY, body text, fence bigint NOT NULL DEFAULT 0)")
        .await;
    run(&world.pool, "INSERT INTO doc VALUES (7, '')").await;
    world
}

#[tokio::test]
async fn a_smaller_token_is_refused_with_the_highest_and_equal_ones_pass() {
    let world = with_a_row().await;
    updated(&world, &stamp(33), 7, "a").await.unwrap();
    updated(&world, &stamp(33), 7, "b").await.unwrap();
    let edge = 1 << 53;
    updated(&world, &stamp(edge + 1), 7, "c").await.unwrap();
    assert_eq!(refused_for(updated(&world, &stamp(edge), 7, "d").await), edge + 1);
    let body: String = sqlx::query_scalar("SELECT body FROM doc").fetch_one(&world.pool).await.unwrap();
    assert_eq!(body, "c");
    let place = world.fence.place();
    assert_eq!(world.counts.writes(place, Outcome::Accepted), 3);
    assert_eq!(world.counts.writes(place, Outcome::Stale), 1);
}

#[tokio::test]
async fn a_row_that_is_missing_is_not_called_stale() {
    let world = with_a_row().await;
    has(
        why_failed(updated(&world, &stamp(33), 8, "a").await),
        "there is no such row for token 33 of reports/nightly",
    );
}

#[tokio::test]
async fn another_condition_that_does_not_hold_is_not_called_stale() {
    let world = with_a_row().await;
    let said = world
        .fence
        .update_row(
            &stamp(33),
            |token| {
                sqlx::query("UPDATE doc SET fence = $1 WHERE id = 7 AND fence <= $1 AND body = 'x'")
                    .bind(token)
            },
            || sqlx::query_scalar("SELECT fence FROM doc WHERE id = 7"),
        )
        .await;
    has(why_failed(said), "another condition of the statement did not hold");
}

/// The row is locked and compared in its newest version: an update that waited is refused.
#[tokio::test]
async fn an_update_that_waited_for_a_greater_token_is_refused() {
    let world = with_a_row().await;
    let mut new = world.begin().await;
    sqlx::query("UPDATE doc SET fence = 34, body = 'new' WHERE id = 7 AND fence <= 34")
        .execute(&mut *new)
        .await
        .unwrap();
    let fence = world.fence.clone();
    let old = crate::postgres::world::beside(async move {
        let update = |token| {
            sqlx::query("UPDATE doc SET fence = $1, body = 'old' WHERE id = 7 AND fence <= $1").bind(token)
        };
        fence
            .update_row(&stamp(33), update, || sqlx::query_scalar("SELECT fence FROM doc WHERE id = 7"))
            .await
    });
    world.until_waiting(1).await;
    new.commit().await.unwrap();
    assert_eq!(refused_for(crate::postgres::world::soon(old).await), 34);
}
