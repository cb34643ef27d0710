//! When and of what something was measured, as text for people: no outcome depends on it.

use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

/// Today by universal time.
pub fn today() -> String {
    day(leasehold_clock::measure().wall / 1_000_000_000)
}

/// The commit that the working directory is at, marked if files differ from it; none without git.
pub fn commit() -> Option<String> {
    let said = Command::new("git").args(["describe", "--always", "--dirty", "--exclude=*"]).output().ok()?;
    let commit = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    (said.status.success() && !commit.is_empty()).then_some(commit)
}

/// The day of so many seconds since 1970, as year, month and day.
fn day(seconds: u64) -> String {
    let moment = humantime::format_rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)).to_string();
    moment.split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let shown = [0, 951_782_400, 951_868_800, 1_798_675_199, 1_798_675_200].map(day);
        assert_eq!(shown, ["1970-01-01", "2000-02-29", "2000-03-01", "2026-12-30", "2026-12-31"]);
    }
}
