//! The examples in other languages, as real programs against a real service: one at a time acts, a stopped one is refused, and a
//! service that is killed costs neither the holder nor whoever waits.
//!
//! Needs `python3` and `go`. A test whose program is missing fails and says what to install. Nothing here waits for a fixed time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "examples/killed.rs"]
mod killed;
#[path = "examples/language.rs"]
mod language;
#[path = "examples/paused.rs"]
mod paused;
#[path = "examples/stage.rs"]
mod stage;
#[path = "examples/together.rs"]
mod together;
#[path = "examples/turns.rs"]
mod turns;
