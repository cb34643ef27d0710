//! The fence on real servers, over real sockets and with real processes that are killed. One receiver alone: `cargo test -p leasehold-fence redis::`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

mod files;
mod http;
mod mysql;
mod object_store;
mod postgres;
mod proxy;
mod redis;
mod sqlite;
