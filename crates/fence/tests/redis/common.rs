//! A server for all tests that do not hurt it, and what they ask of it.

use std::sync::OnceLock;
use std::time::Duration;

use leasehold_fence::redis::Fence;
use leasehold_fence::{Error, Stamp};
use leasehold_kit::{Receiver as _, redis as server};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue};

/// The address of one server that every test may use under names of its own.
pub(crate) fn url() -> &'static str {
    static SERVER: OnceLock<(server::Server, String)> = OnceLock::new();
    let start = || {
        let server = server::Server::start().unwrap();
        let url = server.url();
        (server, url)
    };
    &SERVER.get_or_init(start).1
}

pub(crate) async fn fence() -> Fence {
    Fence::open(url()).await.unwrap()
}

pub(crate) async fn connect(url: &str) -> MultiplexedConnection {
    // Long, for a machine that has much else to do.
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
    let client = redis::Client::open(url).unwrap();
    client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
}

/// Asks a server on a connection of its own.
pub(crate) async fn ask<T: FromRedisValue>(url: &str, command: &Cmd) -> T {
    command.query_async(&mut connect(url).await).await.unwrap()
}

pub(crate) async fn get(url: &str, key: &str) -> Option<String> {
    ask(url, redis::cmd("GET").arg(key)).await
}

pub(crate) fn stamp(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

/// The highest token that a refusal names.
pub(crate) fn highest<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<u64> {
    match result {
        Err(Error::Stale(stale)) => stale.highest,
        other => panic!("{other:?}"),
    }
}
