//! A service whose handlers check in their own transaction, over real sockets; and beside it one that checks in middleware.

mod guide;
mod handlers;
mod stage;
