//! A service under load and under attack: very many watchers, very many connections, and clients that mean no good.
//!
//! Everything here runs the real binary, is told about it by its own HTTP interface and by the kernel, and speaks to it in bytes
//! of its own making where a proper client would not do. How leases behave meanwhile is the matter of `promises.rs`.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "service/garbage.rs"]
mod garbage;
#[path = "service/idle.rs"]
mod idle;
#[path = "service/raw.rs"]
mod raw;
#[path = "service/server.rs"]
mod server;
#[path = "service/slow.rs"]
mod slow;
#[path = "service/stage.rs"]
mod stage;
#[path = "service/story.rs"]
mod story;
#[path = "service/watchers.rs"]
mod watchers;
