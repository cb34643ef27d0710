//! A service whose handlers check in their own transaction, over real sockets; and beside it one that checks in middleware.

#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "http/guide.rs"]
mod guide;
#[path = "http/handlers.rs"]
mod handlers;
#[path = "http/stage.rs"]
mod stage;
