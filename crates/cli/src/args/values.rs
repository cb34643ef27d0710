//! Values of the command line, checked where they enter. Every message names the value or its size, the limit and the next step.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use leasehold::core::limits::{LONGEST_MAX_TTL, MAX_POLICY, MAX_RESOURCES, MAX_SLOTS, MAX_WAIT, MIN_TTL};
use leasehold::core::plan::{PRESETS, Preset};
use leasehold::core::{Drift, TextError, Value};
use leasehold::{Label, Reason, ResourceName, Revision, Token};
use leasehold_server::config::LogFormat;

use super::fence::FenceName;
use super::plan::Percent;

/// As many leases as one plan is about: as many names as a table knows.
const MOST_LEASES: u64 = MAX_RESOURCES as u64;

/// Below this every request would be given up on before its answer is on its way.
const SHORTEST_UPSTREAM_TIME: Duration = Duration::from_millis(10);

/// More of a value than this is not repeated in a message.
const LONGEST_QUOTE: usize = 40;

/// A file for a history. Standard output is the command's own.
pub(super) fn history_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" => Err("the name of the file is empty; name one, such as run.jsonl".to_owned()),
        "-" => Err(
            "a history is not written to standard output, which is the command's; name a file, such as run.jsonl"
                .to_owned(),
        ),
        name => Ok(name.into()),
    }
}

/// A name as receivers keep it: a resource, or a slot of one.
pub(super) fn fence_name(text: &str) -> Result<FenceName, String> {
    leasehold::fence::Stamp::new(text, 1).map_err(|error| error.to_string())?;
    let (resource, slot) = match text.rsplit_once('#') {
        Some((resource, slot)) => (resource, Some(self::slot(slot)?)),
        None => (text, None),
    };
    Ok(FenceName { resource: name(resource)?, slot })
}

/// As people write it: digits alone, and no zeros in front of them, because receivers compare names as text.
fn slot(text: &str) -> Result<u32, String> {
    let slot = text.parse::<u32>().ok().filter(|slot| *slot < MAX_SLOTS && slot.to_string() == text);
    let what = "not a slot; write NAME, or NAME#SLOT with a whole number from 0 to";
    slot.ok_or_else(|| wrong(text, &format!("{what} {}", MAX_SLOTS - 1)))
}

/// An address to listen on, with its port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let what = "not an address with a port from 0 to 65535; write it like 127.0.0.1:7421";
    text.parse().map_err(|_| wrong(text, what))
}

/// A length of time such as `10s` or `1m 30s`.
pub(super) fn length(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text.trim()).map_err(|error| {
        let is_too_long = matches!(error, humantime::DurationError::NumberOverflow);
        let what = if is_too_long { "longer than any" } else { "not a" };
        wrong(text, &format!("{what} length of time; write it like 10s, 500ms or 2m"))
    })
}

/// The ttl of a session, or the longest of a service.
pub(super) fn ttl(text: &str) -> Result<Duration, String> {
    within(text, MIN_TTL.duration(), LONGEST_MAX_TTL.duration())
}

/// How long the service behind a proxy has to answer.
pub(super) fn upstream_time(text: &str) -> Result<Duration, String> {
    within(text, SHORTEST_UPSTREAM_TIME, MAX_WAIT.duration())
}

/// A rate error such as `0.1%`, in parts per million.
pub(super) fn drift(text: &str) -> Result<Percent, String> {
    let trimmed = text.trim();
    let ppm = match (trimmed.strip_suffix('%'), trimmed.strip_suffix("ppm")) {
        (Some(percent), _) => ten_thousandths(percent.trim()),
        (None, Some(ppm)) => ppm.trim().parse().ok(),
        (None, None) => None,
    };
    let what = "not a drift from 0% to 50%; write it like 0.1% or 200ppm";
    ppm.and_then(Drift::from_ppm).map(Percent).ok_or_else(|| wrong(text, what))
}

/// A decimal number with at most four places, times ten thousand.
fn ten_thousandths(text: &str) -> Option<u32> {
    let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(places) || places.len() > 4 {
        return None;
    }
    let places: u32 = format!("{places:0<4}").parse().ok()?;
    whole.parse::<u32>().ok()?.checked_mul(10_000)?.checked_add(places)
}

pub(super) fn preset(text: &str) -> Result<&'static Preset, String> {
    Preset::named(text).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        wrong(text, &format!("no preset; there are: {}", names.join(", ")))
    })
}

pub(super) fn leases(text: &str) -> Result<u64, String> {
    count(text, "leases", MOST_LEASES)
}

/// How many there are to be.
pub(super) fn count<N: Copy + Display + FromStr + From<u8> + PartialOrd>(
    text: &str,
    what: &str,
    most: N,
) -> Result<N, String> {
    let count = text.parse::<N>().ok().filter(|count| (N::from(1)..=most).contains(count));
    count.ok_or_else(|| wrong(text, &format!("not a number of {what}; give a whole number from 1 to {most}")))
}

pub(super) fn wait(text: &str) -> Result<Duration, String> {
    within(text, Duration::ZERO, MAX_WAIT.duration())
}

/// How far back to look.
pub(super) fn window(text: &str) -> Result<Duration, String> {
    let window = length(text)?;
    match window < Duration::from_millis(1) {
        true => Err(wrong(text, "nothing to look back on; write it like 24h or 10m")),
        false => Ok(window),
    }
}

/// The whole of a drain: below this a second to let go in leaves the command none.
const SHORTEST_DRAIN: Duration = Duration::from_secs(2);

pub(super) fn drain(text: &str) -> Result<Duration, String> {
    within(text, SHORTEST_DRAIN, MAX_WAIT.duration())
}

/// How long is measured: a rate of clocks needs a second, and what takes longer than an hour is the business of metrics.
const PROBE_LENGTHS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3_600)];

pub(super) fn probe(text: &str) -> Result<Duration, String> {
    let [least, most] = PROBE_LENGTHS;
    within(text, least, most)
}

pub(super) fn policy(text: &str) -> Result<Duration, String> {
    within(text, Duration::ZERO, MAX_POLICY.duration())
}

/// A length between two limits. The message begins with the value as it was written, and is put behind the name of its option.
fn within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let length = length(text)?;
    let (given, [least_shown, most_shown]) = (quote(text).replace('"', ""), [least, most].map(in_units));
    match length {
        _ if length < least => {
            Err(format!("{given} is below the minimum of {least_shown}; choose a longer one"))
        }
        _ if length > most => {
            Err(format!("{given} is above the maximum of {most_shown}; choose a shorter one"))
        }
        _ => Ok(length),
    }
}

/// A limit as people write it: 24h, and not 1day.
fn in_units(length: Duration) -> String {
    match length.as_millis() {
        millis if millis % 3_600_000 == 0 => format!("{}h", millis / 3_600_000),
        millis if millis % 1_000 == 0 => format!("{}s", millis / 1_000),
        millis => format!("{millis}ms"),
    }
}

/// What this program ends with: a shell knows no others.
pub(super) fn exit_code(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| wrong(text, "not an exit code; give a whole number from 0 to 255"))
}

pub(super) fn name(text: &str) -> Result<ResourceName, String> {
    ResourceName::new(text).map_err(|error| text_error(&error))
}

pub(super) fn label(text: &str) -> Result<Label, String> {
    Label::new(text).map_err(|error| text_error(&error))
}

pub(super) fn reason(text: &str) -> Result<Reason, String> {
    if text.trim().is_empty() {
        return Err("reason is empty; say in a few words why, for the history".to_owned());
    }
    Reason::new(text).map_err(|error| text_error(&error))
}

pub(super) fn token(text: &str) -> Result<Token, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err(wrong(text, "not a token; a token is a whole number, as `leasehold get` shows it"));
    }
    // More digits than any number here has are above the maximum too.
    let token: Option<Token> = text.parse().ok();
    token.filter(|token| i64::try_from(token.get()).is_ok()).ok_or_else(|| {
        let (quoted, most) = (quote(text), i64::MAX);
        let token = quoted.trim_matches('"');
        format!("token {token} is above the maximum of {most}; copy it from `leasehold get`")
    })
}

pub(super) fn revision(text: &str) -> Result<Revision, String> {
    let what = "not a revision; a revision is a whole number, as `leasehold watch` shows it";
    text.parse().map(Revision::new).map_err(|_| wrong(text, what))
}

pub(super) fn slots(text: &str) -> Result<u32, String> {
    count(text, "slots", MAX_SLOTS)
}

/// Bytes, because values need not be text.
pub(super) fn value(given: OsString) -> Result<Value, TextError> {
    Value::new(given.into_vec())
}

/// How the log looks. The words are for completions; whether it is one of them is known to the configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogFormats;

impl TypedValueParser for LogFormats {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(LogFormat::ALL.into_iter().map(|format| PossibleValue::new(format.word()))))
    }
}

/// A key and its value. Whether there is such a key is known to the configuration.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) =
        parts.ok_or_else(|| wrong(text, "not KEY=VALUE; write it like limits.max_watches=100"))?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

fn text_error(error: &TextError) -> String {
    let next = match error {
        TextError::TooLong { .. } => "; choose a shorter one",
        TextError::BadCharacter { .. } => "; choose another",
        TextError::Empty { .. } => "",
    };
    format!("{error}{next}")
}

/// What is said of a value that makes no sense.
fn wrong(text: &str, what: &str) -> String {
    format!("{} is {what}", quote(text))
}

fn quote(text: &str) -> String {
    if text.chars().count() <= LONGEST_QUOTE {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(LONGEST_QUOTE).collect();
    format!("{start:?}... ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_are_none_are_named() {
        for bad in ["", "-1", "NaN", "10", "9223372036854775808", "ten seconds", "inf"] {
            let message = length(bad).unwrap_err();
            assert!(message.contains(&format!("{bad:?}")) && message.contains("10s"), "{message}");
        }
        assert!(length("99999999999999999999s").unwrap_err().contains("longer than any"));
        assert_eq!(length("1m 30s"), Ok(Duration::from_secs(90)));
    }

    #[test]
    fn a_ttl_outside_its_limits_names_the_limit() {
        assert_eq!(ttl("0s").unwrap_err(), "0s is below the minimum of 500ms; choose a longer one");
        assert_eq!(ttl("25h").unwrap_err(), "25h is above the maximum of 24h; choose a shorter one");
        assert_eq!(ttl("500ms"), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn a_budget_outside_its_limits_names_the_limit() {
        assert!(drain("1s").unwrap_err().starts_with("1s is below the minimum of 2s; "));
        assert!(drain("25h").unwrap_err().contains("above the maximum of 24h"));
        assert_eq!(drain("30s"), Ok(Duration::from_secs(30)));
    }

    #[test]
    fn a_longest_ttl_outside_its_limits_is_answered_in_the_units_of_people() {
        assert_eq!(ttl("2d").unwrap_err(), "2d is above the maximum of 24h; choose a shorter one");
        assert!(ttl("100ms").unwrap_err().starts_with("100ms is below the minimum of 500ms"));
        assert_eq!(ttl("1d"), Ok(Duration::from_secs(86_400)));
    }

    #[test]
    fn a_drift_is_read_to_the_millionth() {
        let ppm = |text| drift(text).map(|percent| percent.0.ppm());
        assert_eq!([ppm("0.1%"), ppm("20 %"), ppm("200ppm")], [Ok(1_000), Ok(200_000), Ok(200)]);
        assert_eq!([ppm("0%"), ppm("50%"), ppm("0.0001%")], [Ok(0), Ok(500_000), Ok(1)]);
        for bad in ["", "%", "51%", "-1%", "0.1", "1.%", ".5%", "0.00001%", "1e3ppm", "99999999999%"] {
            assert!(ppm(bad).unwrap_err().contains("0.1% or 200ppm"), "{bad}");
        }
    }

    #[test]
    fn a_very_long_value_is_not_repeated() {
        assert!(token(&"9".repeat(100_000)).unwrap_err().len() < 200);
        assert!(name(&"a".repeat(100_000)).unwrap_err().len() < 200);
    }

    #[test]
    fn a_slot_is_a_number_below_the_limit() {
        let slot = |text: &str| fence_name(text).map(|name| name.slot);
        assert_eq!(
            [slot("pool"), slot("pool#0"), slot("pool#9999")],
            [Ok(None), Ok(Some(0)), Ok(Some(9_999))]
        );
        assert_eq!(fence_name("a/b#7").unwrap().to_string(), "a/b#7");
        for bad in ["x", "", "-1", "+1", "01", "10000", "99999999999"] {
            let said = slot(&format!("pool#{bad}")).unwrap_err();
            assert!(said.contains(&format!("{bad:?} is not a slot")) && said.contains("0 to 9999"), "{said}");
        }
    }

    #[test]
    fn tokens_are_whole_numbers_below_the_sign_bit() {
        assert_eq!(token("17"), Ok(Token::from_u64(17)));
        for bad in ["", "-1", "1.5", "9223372036854775808"] {
            assert!(token(bad).is_err(), "{bad}");
        }
    }
}
