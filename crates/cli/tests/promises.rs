//! The promises, with real processes and real signals.
//!
//! Everything here runs the real binary and a worker that uses the library, in directories of its own. What is said of holders is
//! shown twice: for processes that share a directory, and `over_tcp` for those of a service. Where time is measured, both clocks of this machine are read by this process and by the workers: they are the same clocks.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "promises/big.rs"]
mod big;
#[path = "promises/crashes.rs"]
mod crashes;
#[path = "promises/delay.rs"]
mod delay;
#[path = "promises/gap.rs"]
mod gap;
#[path = "promises/many.rs"]
mod many;
#[path = "promises/proxied.rs"]
mod proxied;
#[path = "promises/proxy.rs"]
mod proxy;
#[path = "promises/restart.rs"]
mod restart;
#[path = "promises/stage.rs"]
mod stage;
#[path = "promises/stall.rs"]
mod stall;
#[path = "promises/stopped.rs"]
mod stopped;
#[path = "promises/takeover.rs"]
mod takeover;
#[path = "promises/wrapper.rs"]
mod wrapper;
