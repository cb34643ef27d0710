//! The command line with the real binary and real directories: what it prints, where, and with which exit code.
//!
//! Nothing here waits for a fixed time: whatever takes time says when it is there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "cli/alarms.rs"]
mod alarms;
#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/drain.rs"]
mod drain;
#[path = "cli/ending.rs"]
mod ending;
#[path = "cli/fenced_stores.rs"]
mod fenced_stores;
#[path = "cli/fences.rs"]
mod fences;
#[path = "cli/fences_over_tls.rs"]
mod fences_over_tls;
#[path = "cli/gaps.rs"]
mod gaps;
#[path = "cli/gateway.rs"]
mod gateway;
#[path = "cli/handover.rs"]
mod handover;
#[path = "cli/histories.rs"]
mod histories;
#[path = "cli/hold.rs"]
mod hold;
#[path = "cli/inputs.rs"]
mod inputs;
#[path = "cli/looking.rs"]
mod looking;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/probe.rs"]
mod probe;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/several.rs"]
mod several;
#[path = "cli/stage.rs"]
mod stage;
#[path = "cli/streams.rs"]
mod streams;
