//! A plain store that knows nothing of tokens, a proxy in front of it, and raw requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{any, get, post};
use leasehold_fence::Stamp;
use leasehold_fence::http::Proxy;
use leasehold_fence::proxy::{FenceProxy, Settings};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Longer than anything here takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the store was told, in the order in which it was carried out: under which name, with which token, what.
pub(crate) type Entry = (String, u64, String);

/// A store: appends what it is sent, and keeps what is said to be held until it is let go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    log: Arc<Mutex<Vec<Entry>>>,
    arrived: Arc<Mutex<Vec<String>>>,
    held: Arc<watch::Sender<BTreeSet<String>>>,
    /// Whether it takes some time, another for each, before it writes.
    dawdles: bool,
}

impl Store {
    pub(crate) fn dawdling() -> Self {
        Self { dawdles: true, ..Self::default() }
    }

    /// Starts it; gives where it is.
    pub(crate) async fn serve(&self) -> String {
        let app = Router::new()
            .route("/append/{*name}", post(append).put(append))
            .route("/held/{value}", post(append_held))
            .route("/echo", any(|body: Body| async { Response::new(body) }))
            .route("/headers", any(show_headers))
            .route(
                "/plain",
                get(|| async { "plain" }).post(|body: Bytes| async move { body.len().to_string() }),
            )
            .with_state(self.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        url
    }

    pub(crate) fn log(&self) -> Vec<Entry> {
        self.log.lock().unwrap().clone()
    }

    /// Tokens and values, in the order in which they were carried out.
    pub(crate) fn order(&self) -> Vec<(u64, String)> {
        self.log().into_iter().map(|(_, token, value)| (token, value)).collect()
    }

    /// Requests with this value are not carried out until they are let go.
    pub(crate) fn hold(&self, value: &str) {
        self.held.send_modify(|held| held.extend([value.to_owned()]));
    }

    pub(crate) fn let_go(&self, value: &str) {
        self.held.send_modify(|held| held.retain(|one| one != value));
    }

    /// Waits until a request with this value is in the hands of the store.
    pub(crate) async fn has(&self, value: &str) {
        eventually("the store has it", || self.arrived.lock().unwrap().iter().any(|one| one == value)).await;
    }

    pub(crate) fn ever_had(&self, value: &str) -> bool {
        self.arrived.lock().unwrap().iter().any(|one| one == value)
    }

    pub(crate) fn arrivals(&self) -> usize {
        self.arrived.lock().unwrap().len()
    }

    async fn carry_out(&self, name: String, headers: &HeaderMap, value: String) {
        self.arrived.lock().unwrap().push(value.clone());
        let token: u64 = headers["fencing-token"].to_str().unwrap().parse().unwrap();
        if self.dawdles {
            // Longer for smaller tokens, so that whoever is let in too early overtakes.
            tokio::time::sleep(Duration::from_millis((4 - (token + 2) % 5) * 6)).await;
        }
        self.held.subscribe().wait_for(|held| !held.contains(&value)).await.unwrap();
        self.log.lock().unwrap().push((name, token, value));
    }
}

async fn append(
    State(store): State<Store>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    store.carry_out(name, &headers, body).await;
    StatusCode::CREATED
}

/// As a service that goes on with what it has begun, whether anybody waits for it or not.
async fn append_held(
    State(store): State<Store>,
    Path(value): Path<String>,
    headers: HeaderMap,
) -> StatusCode {
    let work = async move { store.carry_out("held".to_owned(), &headers, value).await };
    tokio::spawn(work).await.unwrap();
    StatusCode::CREATED
}

async fn show_headers(headers: HeaderMap) -> String {
    let shown: BTreeMap<&str, &str> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    format!("{shown:?}")
}

/// A proxy that serves.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Serving {
    pub(crate) async fn start(settings: Settings) -> Self {
        let proxy = FenceProxy::open(settings).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let stop = async { drop(stopped.await) };
            proxy.serve(listener, stop).await.unwrap();
        });
        Self { address, stop: Some(stop), task }
    }

    pub(crate) fn proxy(&self) -> Proxy {
        Proxy::new(&format!("http://{}", self.address)).unwrap()
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.ask_to_stop();
        self.task.await.unwrap();
    }

    pub(crate) fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Sends raw bytes, and reads to the end of the connection.
    pub(crate) async fn raw(&self, request: &str) -> String {
        raw(self.address, request).await
    }
}

pub(crate) async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is cut has said what it said.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A store and a proxy in front of it.
pub(crate) struct Stage {
    pub(crate) store: Store,
    pub(crate) upstream: String,
    pub(crate) directory: TempDir,
    pub(crate) serving: Serving,
    pub(crate) proxy: Proxy,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(Store::default(), |settings| settings).await
    }

    pub(crate) async fn with(store: Store, change: impl FnOnce(Settings) -> Settings) -> Self {
        let upstream = store.serve().await;
        let directory = TempDir::new().unwrap();
        let settings = Settings::new(&upstream, directory.path().join("fence"));
        let serving = Serving::start(change(settings)).await;
        let proxy = serving.proxy();
        Self { store, upstream, directory, serving, proxy }
    }

    /// A write in the background.
    pub(crate) fn begin(
        &self,
        token: u64,
        path: &str,
        value: &str,
    ) -> JoinHandle<Result<u16, leasehold_fence::Error>> {
        let (proxy, path, value) = (self.proxy.clone(), path.to_owned(), value.to_owned());
        tokio::spawn(async move { write(&proxy, token, &path, &value).await })
    }

    pub(crate) async fn write(&self, token: u64, value: &str) -> Result<u16, leasehold_fence::Error> {
        write(&self.proxy, token, "/append/a", value).await
    }
}

pub(crate) async fn write(
    proxy: &Proxy,
    token: u64,
    path: &str,
    value: &str,
) -> Result<u16, leasehold_fence::Error> {
    let request = http::Request::post(path).body(value.to_owned()).unwrap();
    proxy.send(&stamp(token), request).await.map(|answer| answer.status().as_u16())
}

pub(crate) fn stamp(token: u64) -> Stamp {
    Stamp::new("a", token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

/// The head of a raw write with a token.
pub(crate) fn head(token: u64, path: &str, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nFencing-Token: {token}\r\nFencing-Name: a\r\nConnection: close\r\n{more}"
    )
}

pub(crate) async fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    let waited = async {
        while !look() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waited).await.is_ok(), "waited in vain: {what}");
}

pub(crate) fn highest(result: Result<u16, leasehold_fence::Error>) -> Option<u64> {
    match result {
        Err(leasehold_fence::Error::Stale(stale)) => stale.highest,
        other => panic!("not stale: {other:?}"),
    }
}
