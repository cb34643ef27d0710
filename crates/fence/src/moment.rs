//! Moments for people: some receivers keep a count of seconds, and nobody reads that. Nothing depends on it.

/// From here on years have five digits.
const TOO_LATE: u64 = 253_402_300_800;

/// Seconds since the beginning of 1970, with a fraction or without, in the form in which databases show theirs: `2026-11-18T07:15:05.305Z`.
/// What is no such number stays as it is.
pub(crate) fn shown(kept: &str) -> String {
    let (seconds, fraction) = kept.split_once('.').unwrap_or((kept, ""));
    let is_fraction = fraction.bytes().all(|digit| digit.is_ascii_digit());
    match seconds.parse::<u64>() {
        Ok(seconds) if is_fraction && seconds < TOO_LATE => {
            let (year, month, day) = date(seconds / 86_400);
            let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:0<3.3}Z")
        }
        _ => kept.to_owned(),
    }
}

/// Year, month and day of a day that is so many after the first one of 1970. Years begin in March here, so that the odd day is the last one.
const fn date(days: u64) -> (u64, u64, u64) {
    // 1970 began so many days after the first of March of the year 0; 400 years have always as many days.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
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
