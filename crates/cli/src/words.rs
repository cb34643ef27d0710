//! Words for people: lengths of time, endings, who asks.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;
use std::time::{Duration, SystemTime};

use leasehold::core::limits::MAX_LABEL_BYTES;
use leasehold::core::table::AlarmView;
use leasehold::core::{Millis, Mode, Unavailable};
use leasehold::{EndedWhy, Ending, Label, LeaseState, ResourceName};
use leasehold_api::word;

use crate::successor::Successor;

/// A length of time as people say it, rounded down: three digits are enough.
pub(crate) fn length(length: Duration) -> String {
    let (seconds, tenths) = (length.as_secs(), length.subsec_millis() / 100);
    match seconds {
        0 => humantime::format_duration(Duration::from_millis(length.subsec_millis().into())).to_string(),
        1..10 if tenths > 0 => format!("{seconds}.{tenths}s"),
        _ => humantime::format_duration(Duration::from_secs(seconds)).to_string(),
    }
}

/// A length to three digits that tell something, rounded to the nearest: for figures that are compared with each other.
pub(crate) fn three_digits(length: Duration) -> String {
    let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let places = |whole: u64, rest: u64, width: usize| {
        let places = format!("{rest:0width$}");
        match places.trim_end_matches('0') {
            "" => format!("{whole}s"),
            places => format!("{whole}.{places}s"),
        }
    };
    match millis {
        0 => "0s".to_owned(),
        1..1_000 => format!("{millis}ms"),
        1_000..9_995 => places((millis + 5) / 1_000, (millis + 5) % 1_000 / 10, 2),
        9_995..59_950 => places((millis + 50) / 1_000, (millis + 50) % 1_000 / 100, 1),
        59_950..3_599_500 => two((millis + 500) / 1_000, 60, "m", "s"),
        3_599_500..172_770_000 => two((millis + 30_000) / 60_000, 60, "h", "m"),
        172_770_000.. => two((millis / 60_000 + 30) / 60, 24, "d", "h"),
    }
}

/// So many of the lesser unit, as two.
fn two(lesser: u64, each: u64, greater_unit: &str, lesser_unit: &str) -> String {
    match (lesser / each, lesser % each) {
        (greater, 0) => format!("{greater}{greater_unit}"),
        (greater, lesser) => format!("{greater}{greater_unit} {lesser}{lesser_unit}"),
    }
}

/// A bar that is full when all of a length has passed.
pub(crate) fn bar(passed: Duration, length: Duration, width: usize) -> String {
    let full = passed.as_millis().saturating_mul(width as u128) / length.as_millis().max(1);
    let full = usize::try_from(full).unwrap_or(width).min(width);
    "█".repeat(full) + &"░".repeat(width - full)
}

/// Whole milliseconds, rounded down.
pub(crate) fn whole_millis(length: Duration) -> u64 {
    Millis::from_duration(length).get()
}

pub(crate) fn millis(millis: Millis) -> String {
    length(millis.duration())
}

/// How a lease ended.
pub(crate) fn ending(how: &Ending) -> String {
    match how {
        Ending::Released => "released".to_owned(),
        Ending::HandedOver { to } => format!("handed over to session {to}"),
        Ending::Drained => "drained and released".to_owned(),
        Ending::Expired => "expired".to_owned(),
        Ending::Taken { by } => format!("taken by token {by} while overdue"),
        Ending::Revoked { by, reason } => format!("revoked by {by}: {reason}"),
        Ending::SessionClosed => "session closed".to_owned(),
        Ending::Rebooted => "machine rebooted".to_owned(),
        Ending::Restored => "store restored".to_owned(),
    }
}

pub(crate) fn ended_why(why: &EndedWhy) -> String {
    match why {
        EndedWhy::ByService(how) => ending(how),
        EndedWhy::Released => "released".to_owned(),
        EndedWhy::Closed => "session closed".to_owned(),
        EndedWhy::SessionEnded => "its session has ended".to_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn ended_code(why: &EndedWhy) -> &'static str {
    match why {
        EndedWhy::ByService(how) => word::ending(how),
        EndedWhy::Released => "released",
        EndedWhy::Closed => "session-closed",
        EndedWhy::SessionEnded => "session-ended",
        _ => "ended",
    }
}

/// Where a lease stands, in one word.
pub(crate) fn state_code(state: &LeaseState) -> &'static str {
    match state {
        LeaseState::Held { .. } => "held",
        LeaseState::Retrying { .. } => "retrying",
        LeaseState::Uncertain { .. } => "uncertain",
        LeaseState::Lapsed { .. } => "lapsed",
        _ => "ended",
    }
}

pub(crate) fn mode(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => "exclusive".to_owned(),
        Mode::Shared => "shared".to_owned(),
        Mode::Slot { of } => format!("{of} slots"),
    }
}

/// Up to when a lease was confirmed, as a moment and as an age. Wall time is for people and decides nothing.
pub(crate) fn confirmed_until(ago: Option<Duration>) -> String {
    let Some(ago) = ago else { return "it was never confirmed".to_owned() };
    let moment = humantime::format_rfc3339_millis(back(ago));
    format!("it was confirmed until {moment}, {} ago", length(ago))
}

/// The same for a moment that lies ahead.
pub(crate) fn confirmed_for(left: Duration) -> String {
    format!("it was confirmed until {}", humantime::format_rfc3339_millis(ahead(left)))
}

/// A moment that lies back, to the second.
pub(crate) fn moment_ago(ago: Duration) -> String {
    humantime::format_rfc3339_seconds(back(ago)).to_string()
}

/// A moment that lies ahead, to the second.
pub(crate) fn moment_in(left: Duration) -> String {
    humantime::format_rfc3339_seconds(ahead(left)).to_string()
}

fn back(length: Duration) -> SystemTime {
    let now = wall_time();
    now.checked_sub(length).unwrap_or(now)
}

fn ahead(length: Duration) -> SystemTime {
    let now = wall_time();
    now.checked_add(length).unwrap_or(now)
}

#[expect(clippy::disallowed_methods, reason = "a moment shown to people, on which nothing depends")]
fn wall_time() -> SystemTime {
    SystemTime::now()
}

/// Why a resource is not free, and for how long, in words and with the next step.
pub(crate) fn unavailable(why: &Unavailable) -> String {
    match why {
        Unavailable::Held { holder, token, overdue } => {
            let late = if *overdue { ", which is overdue but may come back" } else { "" };
            format!("held by {} with token {token}{late}", somebody(holder))
        }
        Unavailable::Queue { waiting } => format!("{waiting} were first; wait in line with --wait"),
        Unavailable::RevokePending { token, remaining } => format!(
            "token {token} was revoked, and its holder may not know for another {}; wait with --wait",
            millis(*remaining)
        ),
        Unavailable::CoolDown { remaining } => {
            format!(
                "after an involuntary end it goes to nobody for another {}; wait with --wait",
                millis(*remaining)
            )
        }
        Unavailable::RestoreWait { remaining } => {
            format!(
                "the store was restored and grants nothing for another {}; wait with --wait",
                millis(*remaining)
            )
        }
        Unavailable::Alarm { token } => {
            format!("token {token} was shown, which was never granted here: see `leasehold alarms`")
        }
    }
}

/// Why nothing is granted to anybody.
pub(crate) fn restore_wait(left: Millis) -> String {
    format!(
        "the state was restored, and nothing is granted for another {}: holders of before may still act",
        millis(left)
    )
}

/// Why a resource goes to nobody although it may be free.
pub(crate) fn alarm(alarm: &AlarmView) -> String {
    let (token, who, since) = (alarm.token, somebody(&alarm.by), millis(alarm.age));
    format!("token {token} was shown by {who} {since} ago and was never granted here, so it goes to nobody")
}

/// A label, or a word for whoever has none.
pub(crate) fn somebody(label: &Label) -> &str {
    if label.as_str().is_empty() { "somebody" } else { label.as_str() }
}

/// Several names in one line.
pub(crate) fn names(names: &[ResourceName]) -> String {
    let names: Vec<&str> = names.iter().map(ResourceName::as_str).collect();
    names.join(", ")
}

/// So many of something: one, or several.
pub(crate) fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, what: &str) -> String {
    format!("{number} {what}{}", if number == N::from(1) { "" } else { "s" })
}

/// What this process is called in lists: user, host, pid, and what it runs.
pub(crate) fn own_label(doing: Option<&OsStr>) -> Label {
    let user = user_name();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut text = format!("{user}@{host}:{}", std::process::id());
    if let Some(name) = doing.and_then(|program| Path::new(program).file_name()) {
        text.push(' ');
        text.push_str(&name.to_string_lossy());
    }
    let mut text: String = text.chars().filter(|c| !c.is_control()).collect();
    while text.len() > MAX_LABEL_BYTES {
        text.pop();
    }
    Label::new(&text).expect("a text without control characters, cut to the limit, is a label")
}

/// The name of the user that this process runs as; jobs of a timer often have no variable that says it.
fn user_name() -> String {
    let user = rustix::process::getuid().as_raw().to_string();
    let named = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user && !name.is_empty()).then(|| name.to_owned())
    };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    users.lines().find_map(named).unwrap_or(user)
}

/// Who holds a name after a lease of it has ended.
pub(crate) fn succeeded(name: &ResourceName, next: &Successor) -> String {
    let (label, token) = (somebody(&next.label), next.token);
    if next.holds {
        format!("{name}: now held by {label}, token {token}")
    } else {
        format!("{name}: was held by {label} meanwhile, token {token}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([0, 1, 2_usize].map(|number| count(number, "grant")), ["0 grants", "1 grant", "2 grants"]);
    }

    #[test]
    fn lengths_are_short_to_read() {
        for (ms, text) in [
            (0, "0s"),
            (12, "12ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (1_234, "1.2s"),
            (9_098, "9s"),
            (9_998, "9.9s"),
            (12_345, "12s"),
            (90_999, "1m 30s"),
            (3_600_000, "1h"),
        ] {
            assert_eq!(length(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn three_digits_are_kept_and_rounded() {
        for (ms, text) in [
            (0, "0s"),
            (712, "712ms"),
            (3_006, "3.01s"),
            (3_001, "3s"),
            (9_994, "9.99s"),
            (9_996, "10s"),
            (11_704, "11.7s"),
            (59_949, "59.9s"),
            (59_951, "1m"),
            (192_400, "3m 12s"),
            (3_599_600, "1h"),
            (18_180_000, "5h 3m"),
            (86_400_000, "24h"),
            (172_800_000, "2d"),
            (216_000_000, "2d 12h"),
        ] {
            assert_eq!(three_digits(Duration::from_millis(ms)), text, "{ms}");
        }
    }

    #[test]
    fn a_very_long_program_still_makes_a_label() {
        let program = "ä".repeat(400);
        assert!(own_label(Some(OsStr::new(&program))).as_str().len() <= MAX_LABEL_BYTES);
    }
}
