//! A report service with SQLite, in two versions: checked in the handler's transaction, or in middleware.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, put};
use leasehold_fence::http::{StampLayer, refusal, stamped};
use leasehold_fence::{Error, Stale, Stamp};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions};
use tempfile::TempDir;
use tokio::sync::Semaphore;

const NAME: &str = "reports/nightly";

/// The service. A write whose value has a gate waits there: between check and write.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    pool: SqlitePool,
    gates: Arc<Mutex<BTreeMap<String, Gate>>>,
    _directory: Arc<TempDir>,
}

#[derive(Debug, Clone)]
pub(crate) struct Gate {
    reached: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    /// Waits until somebody stands before it.
    pub(crate) async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }
}

impl Service {
    pub(crate) async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let file = format!("sqlite://{}/reports.db?mode=rwc", directory.path().display());
        let options = SqliteConnectOptions::from_str(&file).unwrap().busy_timeout(Duration::from_secs(30));
        let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
        for statement in [
            "PRAGMA journal_mode = WAL",
            "CREATE TABLE fence (name TEXT PRIMARY KEY, token INTEGER NOT NULL)",
            "CREATE TABLE report (id INTEGER PRIMARY KEY, token INTEGER NOT NULL, value TEXT NOT NULL)",
        ] {
            sqlx::query(statement).execute(&pool).await.unwrap();
        }
        Self { pool, gates: Arc::default(), _directory: Arc::new(directory) }
    }

    pub(crate) fn gate(&self, value: &str) -> Gate {
        let gate = Gate { reached: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) };
        self.gates.lock().unwrap().insert(value.to_owned(), gate.clone());
        gate
    }

    async fn pause(&self, value: &str) {
        let gate = self.gates.lock().unwrap().get(value).cloned();
        if let Some(gate) = gate {
            gate.reached.add_permits(1);
            gate.open.acquire().await.unwrap().forget();
        }
    }

    /// Tokens and values in the order in which they were written.
    pub(crate) async fn written(&self) -> Vec<(i64, String)> {
        let rows =
            sqlx::query("SELECT token, value FROM report ORDER BY id").fetch_all(&self.pool).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Serves the right way: the layer reads, the handler checks.
    pub(crate) async fn serve(&self) -> String {
        let layer =
            StampLayer::new().named(|request| request.uri.path().strip_prefix('/').map(str::to_owned));
        let app = Router::new()
            .route("/reports/nightly", put(write_fenced).get(|| async { "the report" }))
            .route("/broken/{how}", put(write_broken))
            .layer(layer)
            .route("/health", get(|| async { "well" }))
            .with_state(self.clone());
        serve(app).await
    }

    /// Serves the wrong way: middleware checks and raises, and the handler trusts it.
    pub(crate) async fn serve_wrong(&self) -> String {
        let app = Router::new()
            .route("/reports/nightly", put(write_unchecked))
            .layer(from_fn_with_state(self.clone(), check_in_middleware))
            .layer(StampLayer::new())
            .with_state(self.clone());
        serve(app).await
    }
}

pub(crate) async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

/// The guard of a transaction that has begun.
async fn guard(connection: &mut SqliteConnection, stamp: &Stamp) -> Result<(), Error> {
    let raise = "INSERT INTO fence VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET token = excluded.token \
                 WHERE fence.token <= excluded.token RETURNING token";
    let raised = sqlx::query(raise)
        .bind(stamp.name())
        .bind(stamp.signed_token())
        .fetch_optional(&mut *connection)
        .await;
    if raised.map_err(|why| Error::failed("reports", why))?.is_some() {
        return Ok(());
    }
    let highest =
        sqlx::query("SELECT token FROM fence WHERE name = ?").bind(stamp.name()).fetch_one(connection).await;
    let highest: i64 = highest.map_err(|why| Error::failed("reports", why))?.get(0);
    Err(Stale { name: stamp.name().to_owned(), token: stamp.token(), highest: Some(highest.cast_unsigned()) }
        .into())
}

async fn insert(connection: &mut SqliteConnection, stamp: &Stamp, value: &str) -> Result<(), Error> {
    let insert = sqlx::query("INSERT INTO report (token, value) VALUES (?, ?)");
    let inserted = insert.bind(stamp.signed_token()).bind(value).execute(connection).await;
    inserted.map(drop).map_err(|why| Error::failed("reports", why))
}

async fn write_fenced(
    State(service): State<Service>,
    Extension(stamp): Extension<Stamp>,
    value: String,
) -> Response {
    // Before the transaction: the place at which a handler may be paused for as long as it likes.
    service.pause(&format!("before {value}")).await;
    let write = async {
        let mut transaction =
            service.pool.begin_with("BEGIN IMMEDIATE").await.map_err(|why| Error::failed("reports", why))?;
        guard(&mut transaction, &stamp).await?;
        service.pause(&format!("inside {value}")).await;
        insert(&mut transaction, &stamp, &value).await?;
        transaction.commit().await.map_err(|why| Error::unknown("reports", why))
    };
    match write.await {
        Ok(()) => Response::default(),
        Err(error) => refusal(&error),
    }
}

async fn write_broken(axum::extract::Path(how): axum::extract::Path<String>) -> Response {
    match how.as_str() {
        "failed" => refusal(&Error::failed("reports", "the disk is full")),
        _ => refusal(&Error::unknown("reports", "the connection was lost at the commit")),
    }
}

async fn check_in_middleware(State(service): State<Service>, request: Request, next: Next) -> Response {
    let stamp = request.extensions().get::<Stamp>().unwrap().clone();
    let check = async {
        let mut transaction =
            service.pool.begin_with("BEGIN IMMEDIATE").await.map_err(|why| Error::failed("reports", why))?;
        guard(&mut transaction, &stamp).await?;
        transaction.commit().await.map_err(|why| Error::unknown("reports", why))
    };
    match check.await {
        Ok(()) => next.run(request).await,
        Err(error) => refusal(&error),
    }
}

async fn write_unchecked(
    State(service): State<Service>,
    Extension(stamp): Extension<Stamp>,
    value: String,
) -> Response {
    service.pause(&format!("before {value}")).await;
    let mut connection = service.pool.acquire().await.unwrap();
    insert(&mut connection, &stamp, &value).await.unwrap();
    Response::default()
}

/// The status, the code of a refusal, and the body.
pub(crate) type Said = (u16, Option<String>, String);

/// One write over a connection of its own.
pub(crate) async fn write(url: &str, token: u64, value: &str) -> Said {
    let mut request = http::Request::put("/reports/nightly").body(value.to_owned()).unwrap();
    stamped(request.headers_mut(), &Stamp::new(NAME, token).unwrap()).unwrap();
    send(url, request).await
}

pub(crate) async fn send(url: &str, request: http::Request<String>) -> Said {
    use http_body_util::BodyExt;
    let stream = tokio::net::TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    let code = response.headers().get("fencing-answer").map(|code| code.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, code, String::from_utf8(body.to_vec()).unwrap())
}
