//! What `docs/guides/fence-http.md` shows, run.

use crate::http::stage::{send, serve};

// From here to the end of `app` it stands in the guide.
use axum::Router;
use axum::extract::{Extension, State};
use axum::response::Response;
use axum::routing::put;
use leasehold_fence::http::{StampLayer, refusal};
use leasehold_fence::sqlite::Fence;
use leasehold_fence::{Error, Stamp};
use sqlx::SqlitePool;

#[derive(Clone)]
struct Reports {
    pool: SqlitePool,
    fence: Fence,
}

async fn write(reports: &Reports, stamp: &Stamp, body: &str) -> Result<(), Error> {
    let failed = |why| Error::failed("reports", why);
    let mut tx = reports.pool.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    reports.fence.enter(&mut tx, stamp).await?; // compares, in the transaction that writes
    sqlx::query("INSERT INTO report (body) VALUES (?)").bind(body).execute(&mut *tx).await.map_err(failed)?;
    tx.commit().await.map_err(|why| Error::unknown("reports", why))
}

async fn put_report(
    State(reports): State<Reports>,
    Extension(stamp): Extension<Stamp>,
    body: String,
) -> Response {
    match write(&reports, &stamp, &body).await {
        Ok(()) => Response::default(),
        Err(error) => refusal(&error),
    }
}

fn app(reports: Reports) -> Router {
    Router::new()
        .route("/report", put(put_report))
        .layer(StampLayer::new().named(|_| Some("reports/nightly".to_owned())))
        .with_state(reports)
}

#[tokio::test]
async fn the_handler_of_the_guide_refuses_a_stale_write() {
    let directory = tempfile::tempdir().unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(directory.path().join("reports.db"))
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("CREATE TABLE report (body TEXT)").execute(&pool).await.unwrap();
    let fence = Fence::new(pool.clone());
    fence.migrate().await.unwrap();
    let url = serve(app(Reports { pool: pool.clone(), fence })).await;
    let put = async |token: &str, body: &str| {
        let request = http::Request::put("/report").header("fencing-token", token).body(body.to_owned());
        send(&url, request.unwrap()).await.0
    };
    assert_eq!([put("34", "new").await, put("33", "stale").await, put("34", "more").await], [200, 412, 200]);
    let bodies: Vec<String> =
        sqlx::query_scalar("SELECT body FROM report ORDER BY rowid").fetch_all(&pool).await.unwrap();
    assert_eq!(bodies, ["new", "more"]);
}
