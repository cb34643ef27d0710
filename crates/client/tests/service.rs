//! The library on a service of the network: a server made by hand on a real socket of this machine.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "service/finding.rs"]
mod finding;
#[path = "service/leading.rs"]
mod leading;
#[path = "service/learning.rs"]
mod learning;
#[path = "service/openings.rs"]
mod openings;
#[path = "service/stage.rs"]
mod stage;
#[path = "service/watch_ends.rs"]
mod watch_ends;
#[path = "service/watch_sharing.rs"]
mod watch_sharing;
#[path = "service/watches.rs"]
mod watches;
