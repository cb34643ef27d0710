//! A table on a real server, and ways to write to it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold_fence::conformance::{Subject, Trouble, Writer, Written};
use leasehold_fence::{Error, Receiver, Stamp};
use leasehold_fence_cassandra::{Fence, Write};
use leasehold_kit::Receiver as _;
use leasehold_kit::cassandra::Server;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

/// Rows of the log; the time of a cell is that of the transaction that wrote it, so it tells the order.
const TABLE: &str = "CREATE TABLE shop.log (name text, value text, brought bigint, leasehold_token bigint STATIC, \
     leasehold_holder text STATIC, leasehold_write bigint STATIC, PRIMARY KEY (name, value))";

/// A server with the table.
pub(crate) fn server() -> Server {
    let server = Server::start().unwrap();
    let keyspace =
        "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    for statement in [keyspace, TABLE] {
        server.cql(statement).unwrap();
    }
    server
}

/// The server of all tests that do not kill it.
pub(crate) fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(server)
}

/// A session, and the fences of the table.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) session: Arc<Session>,
    pub(crate) fence: Fence,
}

impl World {
    pub(crate) async fn new() -> Self {
        let server = tokio::task::block_in_place(shared);
        Self::at(&server.url()).await
    }

    pub(crate) async fn at(place: &str) -> Self {
        // Long enough for a busy machine, and short enough to wait for when the server stands still.
        let profile = ExecutionProfile::builder().request_timeout(Some(Duration::from_secs(5))).build();
        let session =
            SessionBuilder::new().known_node(place).default_execution_profile_handle(profile.into_handle());
        let session = Arc::new(session.build().await.unwrap());
        let fence = Fence::new(Arc::clone(&session), "shop.log", "name").await.unwrap();
        Self { session, fence }
    }

    pub(crate) async fn add(&self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        self.fence.write(stamp, &line(stamp, value)).await
    }

    /// The same write without a fence, by a transaction too.
    pub(crate) async fn add_anyway(&self, stamp: &Stamp, value: &str) {
        let insert = "INSERT INTO shop.log (name, value, brought) VALUES (?, ?, ?) IF NOT EXISTS";
        self.session.query_unpaged(insert, (stamp.name(), value, stamp.signed_token())).await.unwrap();
    }

    /// What was written, in the order in which it took effect.
    pub(crate) async fn log(&self, name: &str) -> Vec<Written> {
        let select = "SELECT value, brought, WRITETIME(brought) FROM shop.log WHERE name = ?";
        let result = self.session.query_unpaged(select, (name,)).await.unwrap().into_rows_result().unwrap();
        let rows = result.rows::<(Option<String>, Option<i64>, Option<i64>)>().unwrap();
        let rows = rows.map(Result::unwrap).filter_map(|(value, token, at)| Some((at?, token?, value?)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable();
        let rows = rows.into_iter();
        rows.map(|(_, token, value)| Written { token: token.cast_unsigned(), value }).collect()
    }

    pub(crate) async fn tokens(&self, name: &str) -> Vec<u64> {
        self.log(name).await.into_iter().map(|written| written.token).collect()
    }
}

pub(crate) fn line(stamp: &Stamp, value: &str) -> Write {
    let insert = "INSERT INTO shop.log (name, value, brought) VALUES (?, ?, ?)";
    Write::of(insert, (stamp.name().to_owned(), value.to_owned(), stamp.signed_token()))
}

/// A name that no other test has.
pub(crate) fn name() -> String {
    static NAMES: AtomicU32 = AtomicU32::new(0);
    format!("name-{}", NAMES.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn stamp(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) world: World,
    pub(crate) checks: bool,
}

impl Writer for Tried {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        if self.checks {
            return self.world.add(stamp, value).await;
        }
        self.world.add_anyway(stamp, value).await;
        Ok(())
    }
}

impl Subject for Tried {
    type Writer = Self;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.world.fence.clone())
    }

    async fn writer(&self) -> Result<Self, Trouble> {
        Ok(self.clone())
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        Ok(self.world.log(name).await)
    }
}
