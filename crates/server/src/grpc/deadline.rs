//! How long a caller waits, from the header `grpc-timeout`. A call that lasts longer is given up: its future is dropped, and the
//! wait of an acquire goes with it. Most clients end such a call themselves; this is for those that cannot any more.

use std::time::Duration;

use tonic::metadata::MetadataMap;

/// Where callers say it.
const TIMEOUT: &str = "grpc-timeout";
/// Digits that the protocol allows.
const DIGITS: usize = 8;

/// How long the caller waits; nothing if it does not say, or not in a way that is understood.
pub(super) fn of(metadata: &MetadataMap) -> Option<Duration> {
    metadata.get(TIMEOUT).and_then(|value| parse(value.to_str().ok()?))
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_understood() {
        let cases = [("2H", 7_200_000), ("3M", 180_000), ("4S", 4_000), ("5m", 5), ("6000u", 6)];
        for (text, millis) in cases {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("99999999n"), Some(Duration::from_nanos(99_999_999)));
        assert_eq!(parse("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
    }

    #[test]
    fn anything_else_is_no_deadline() {
        for text in ["", "S", "5", "5s", "-5S", "+5S", "123456789S", "5 S", "5\u{df}"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
