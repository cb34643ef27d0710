//! What `docs/guides/fence-sql.md` shows, run.

use leasehold_fence::Receiver as _;

use super::{highest, stamp, wal};

// From here to the end of the function.
use leasehold_fence::sqlite::Fence;
use leasehold_fence::{Authority, Error};

async fn in_a_transaction(fence: &Fence, guard: &impl Authority) -> Result<(), Error> {
    fence
        .transaction(guard, async |tx| {
            sqlx::query("INSERT INTO report (day) VALUES (CURRENT_DATE)").execute(&mut *tx).await?;
            Ok(())
        })
        .await?;
    Ok(())
}

async fn in_your_own(
    pool: &sqlx::SqlitePool,
    fence: &Fence,
    guard: &impl Authority,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    fence.enter(&mut tx, guard).await?; // first, and every error from here on ends the transaction
    sqlx::query("INSERT INTO report (day) VALUES (CURRENT_DATE)").execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(())
}

#[tokio::test]
async fn what_the_guide_shows_is_fenced() {
    let file = wal().await;
    let (pool, fence) = (&file.pool, &file.fence);
    sqlx::query("CREATE TABLE report (day TEXT)").execute(pool).await.unwrap();
    in_a_transaction(fence, &stamp("reports/nightly", 33)).await.unwrap();
    in_your_own(pool, fence, &stamp("reports/nightly", 33)).await.unwrap();
    fence.seal(&stamp("reports/nightly", 34)).await.unwrap();
    assert_eq!(highest(in_a_transaction(fence, &stamp("reports/nightly", 33)).await), Some(34));
    in_your_own(pool, fence, &stamp("reports/nightly", 33)).await.unwrap_err();
    let reports: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM report").fetch_one(pool).await.unwrap();
    assert_eq!(reports, 2);
}
