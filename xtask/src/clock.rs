//! How long a step takes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since this machine was started. It also counts while the machine is suspended.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::try_from(now).expect("a machine is started before its programs")
}

/// Seconds for people.
pub(crate) fn seconds(length: Duration) -> String {
    format!("{:.1} s", length.as_secs_f64())
}
