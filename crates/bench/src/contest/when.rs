//! When and of what something was measured, as text for people: no outcome depends on it.

use std::process::Command;

const SECONDS_OF_A_DAY: u64 = 86_400;

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
///
/// Counted in years that begin with March, so that the day that not every year has is the last of one.
fn day(seconds: u64) -> String {
    let days = seconds / SECONDS_OF_A_DAY + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{}-{month:02}-{day:02}", era * 400 + year + next)
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
