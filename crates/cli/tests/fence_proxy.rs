//! `leasehold fence proxy` as a real process, in front of a plain store: killed, started twice, asked to stop.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "fence_proxy/killed.rs"]
mod killed;
#[path = "fence_proxy/saying.rs"]
mod saying;
#[path = "fence_proxy/stage.rs"]
mod stage;
