//! The guardian with real processes, real signals and real terminals.
//!
//! The wrapper is the example `supervise`, which cargo builds together with these tests. "Gone before the
//! deadline" is measured by both clocks of this process against the last deadline the wrapper wrote down.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "guardian/deadlines.rs"]
mod deadlines;
#[path = "guardian/freezing.rs"]
mod freezing;
#[path = "guardian/guarded.rs"]
mod guarded;
#[path = "guardian/losses.rs"]
mod losses;
#[path = "guardian/orders.rs"]
mod orders;
#[path = "guardian/passing.rs"]
mod passing;
#[path = "guardian/stage.rs"]
mod stage;
#[path = "guardian/terminal.rs"]
mod terminal;
