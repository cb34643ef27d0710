//! Several nodes as real processes on addresses of this machine: found, grown, killed, drained and started again.
//!
//! Every node has an address of its own in 127.0.0.0/8 and a directory of its own. Nothing here waits for a fixed time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "cluster/failover.rs"]
mod failover;
#[path = "cluster/founding.rs"]
mod founding;
#[path = "cluster/handovers.rs"]
mod handovers;
#[path = "cluster/leaderless.rs"]
mod leaderless;
#[path = "cluster/learning.rs"]
mod learning;
#[path = "cluster/lost.rs"]
mod lost;
#[path = "cluster/members.rs"]
mod members;
#[path = "cluster/mistakes.rs"]
mod mistakes;
#[path = "cluster/numbers.rs"]
mod numbers;
#[path = "cluster/refused.rs"]
mod refused;
#[path = "cluster/saying.rs"]
mod saying;
#[path = "cluster/stage.rs"]
mod stage;
