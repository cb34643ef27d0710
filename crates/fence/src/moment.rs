//! Moments for people: some receivers keep a count of seconds, and nobody reads that. Nothing depends on it.

use std::time::{Duration, SystemTime};

/// From here on years have five digits.
const TOO_LATE: u64 = 253_402_300_800;

/// Seconds since the beginning of 1970, with a fraction or without, in the form in which databases show theirs: `2026-11-18T07:15:05.305Z`.
/// What is no such number stays as it is.
pub(crate) fn shown(kept: &str) -> String {
    let (seconds, fraction) = kept.split_once('.').unwrap_or((kept, ""));
    let is_fraction = fraction.bytes().all(|digit| digit.is_ascii_digit());
    match seconds.parse::<u64>() {
        Ok(seconds) if is_fraction && seconds < TOO_LATE => {
            let whole =
                humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
            format!("{}.{fraction:0<3.3}Z", whole.to_string().trim_end_matches('Z'))
        }
        _ => kept.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_a_date_and_a_time_of_day() {
        for (kept, seen) in [
            ("0", "1970-01-01T00:00:00.000Z"),
            ("951782399.5", "2000-02-28T23:59:59.500Z"),
            ("951782400.000001", "2000-02-29T00:00:00.000Z"),
            ("951868800", "2000-03-01T00:00:00.000Z"),
            ("1767225599.999999", "2025-12-31T23:59:59.999Z"),
            ("1794986105.305614", "2026-11-18T07:15:05.305Z"),
            ("4107542400.25", "2100-03-01T00:00:00.250Z"),
            ("253402300799", "9999-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(shown(kept), seen);
        }
    }

    #[test]
    fn what_is_no_moment_stays() {
        for kept in ["", "noon", "-5", "1.x", "253402300800", "2026-11-18T07:15:05Z"] {
            assert_eq!(shown(kept), kept);
        }
    }
}
