//! The keys: one table from which the file, the environment, `--set`, the printed configuration and the reference all follow.

use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use leasehold_core::limits::{LONGEST_MAX_TTL, MIN_TTL};
use leasehold_core::{Drift, Millis};

use super::cluster::{advertise, initial, initial_text};
use super::patterns::patterns;
use super::{Config, LEAST_BODY, LogFormat, ServiceName};

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number that is not negative.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// Texts in an order. Where there are no quotes they are separated by commas.
    List(Vec<String>),
}

/// Something that can be chosen.
#[derive(Debug)]
pub struct Key {
    /// What it is called in a file; the part before a dot is its section.
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// What it can be, in words.
    pub bounds: &'static str,
    get: fn(&Config) -> Value,
    set: fn(&mut Config, Value) -> Result<(), String>,
}

/// Each key: its name, its place in the configuration, what it is for, its bounds, and how a value is shown and read.
macro_rules! keys {
    ($(
        $name:literal: $($place:ident).+, $about:literal, $bounds:literal,
        |$held:ident| $shown:expr, |$value:ident| $read:expr;
    )+) => {
        [$(Key {
            name: $name,
            about: $about,
            bounds: $bounds,
            get: |config| {
                let $held = &config.$($place).+;
                $shown
            },
            set: |config, $value| {
                config.$($place).+ = $read?;
                Ok(())
            },
        }),+]
    };
}

/// All keys: those without a section first, because a file cannot have them in another order.
pub const KEYS: [Key; 23] = keys! {
    "name": name,
        "what the service is called in logs and metrics",
        "1 to 63 letters, digits, dots, dashes and underscores",
        |held| Value::Text(held.to_string()), |value| value.text().and_then(|text| name(&text));
    "data": data,
        "the directory with the log; made if it is missing",
        "a path",
        |held| Value::Text(held.display().to_string()),
        |value| value.text().and_then(|text| directory(&text));
    "listen": listen,
        "address and port; port 0 lets the system choose one",
        "an address, or a name that is looked up at the start",
        |held| Value::Text(held.to_string()), |value| value.text().and_then(|text| address(&text));
    "insecure": insecure,
        "whether other machines may reach it without TLS and authentication",
        "true or false",
        |held| Value::Flag(*held), |value| value.flag();
    "max_ttl_ms": max_ttl,
        "the longest ttl of a session; a directory keeps the one it was made with",
        "500 to 86400000",
        |held| Value::Number(held.get()),
        |value| value.number(MIN_TTL.get()..=LONGEST_MAX_TTL.get()).map(Millis::new);
    "drift_ppm": drift,
        "rate error that clocks are trusted to keep, in millionths; a directory keeps the one it was made with",
        "0 to 499999: below one half",
        |held| Value::Number(held.ppm().into()), |value| value.number(0..=499_999).and_then(drift);
    "shutdown_grace_ms": shutdown_grace,
        "how long a stop waits for what is under way; at least http.request_timeout_ms",
        "0 to 3600000",
        |held| millis(*held), |value| value.length(0..=3_600_000);
    "snapshot_entries": snapshot_entries,
        "a snapshot is taken after so many entries of the log",
        "64 to 10000000",
        |held| Value::Number(*held), |value| value.number(64..=10_000_000);
    "snapshot_bytes": snapshot_bytes,
        "or after so many bytes of them; at least http.max_body_bytes",
        "65536 to 4294967296",
        |held| Value::Number(*held), |value| value.number(64 << 10..=4 << 30);
    "gap_patterns": gap_patterns,
        "names that somebody must always act on; how long nobody did is counted for each pattern",
        "up to 64 names, or beginnings of names with * behind them; the first that fits counts",
        |held| Value::List(held.iter().map(ToString::to_string).collect()),
        |value| value.list().and_then(|list| patterns(&list));
    "http.max_body_bytes": http.max_body_bytes,
        "the longest body of a request; a value of 64 KiB in hexadecimal digits must fit",
        "135168 to 4194304",
        |held| size(*held), |value| value.count(LEAST_BODY..=4 << 20);
    "http.max_header_bytes": http.max_header_bytes,
        "the longest head of a request",
        "8192 to 1048576",
        |held| size(*held), |value| value.count(8 << 10..=1 << 20);
    "http.request_timeout_ms": http.request_timeout,
        "how long a client may take to send one request",
        "100 to 600000",
        |held| millis(*held), |value| value.length(100..=600_000);
    "http.max_wait_ms": http.max_wait,
        "how long one call that waits is kept open, below the patience of proxies; its number goes on with the wait",
        "100 to 3600000",
        |held| millis(*held), |value| value.length(100..=3_600_000);
    "limits.max_connections": limits.max_connections,
        "connections at once, of all kinds together; each takes a descriptor",
        "16 to 1000000",
        |held| size(*held), |value| value.count(16..=1_000_000);
    "limits.max_watches": limits.max_watches,
        "watches at once",
        "1 to 1000000",
        |held| size(*held), |value| value.count(1..=1_000_000);
    "limits.max_watches_per_connection": limits.max_watches_per_connection,
        "watches at once on one connection; at most limits.max_watches",
        "1 to 1000000",
        |held| size(*held), |value| value.count(1..=1_000_000);
    "limits.write_timeout_ms": limits.write_timeout,
        "how long a client may leave unread what was sent to it before it is cut off",
        "100 to 600000",
        |held| millis(*held), |value| value.length(100..=600_000);
    "cluster.initial": cluster.initial,
        "the nodes that found a cluster together, this one among them; only for a new directory",
        "name=host:port, separated by commas; empty for a node that stands alone",
        |held| Value::Text(initial_text(held)), |value| value.text().and_then(|text| initial(&text));
    "cluster.join": cluster.join,
        "whether a new directory waits to be added to a cluster instead of founding one",
        "true or false",
        |held| Value::Flag(*held), |value| value.flag();
    "cluster.advertise": cluster.advertise,
        "where clients and other nodes reach this one, if it is not where it listens",
        "host:port, or empty",
        |held| Value::Text(held.clone().unwrap_or_default()),
        |value| value.text().and_then(|text| advertise(&text));
    "log.format": log.format,
        "auto is human on a terminal and json elsewhere",
        "auto, human or json",
        |held| Value::Text(held.word().to_owned()), |value| value.text().and_then(|text| format(&text));
    "log.level": log.level,
        "a level, or directives such as info,leasehold_server=debug",
        "error, warn, info, debug, trace, off, or directives",
        |held| Value::Text(held.clone()), |value| value.text().and_then(level);
};

impl Key {
    /// Its value in a configuration.
    pub fn get(&self, config: &Config) -> Value {
        (self.get)(config)
    }

    /// Sets it, if it can be that. The message names the value and what it could be.
    pub(super) fn set(&self, config: &mut Config, value: Value) -> Result<(), String> {
        (self.set)(config, value)
    }

    /// Reads a value from text that has no types of its own: a variable, or the command line.
    pub(super) fn read(&self, config: &Config, text: &str) -> Result<Value, String> {
        match self.get(config) {
            Value::Text(_) => Ok(Value::Text(text.to_owned())),
            Value::List(_) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Ok(Value::List(parts.map(str::to_owned).collect()))
            }
            Value::Flag(_) => match text {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => Err(format!("{text:?} is neither true nor false")),
            },
            Value::Number(_) => {
                text.parse().map(Value::Number).map_err(|_| format!("{text:?} is not a whole number"))
            }
        }
    }

    /// Its name as a variable of the environment.
    pub fn variable(&self) -> String {
        format!("{}{}", super::layers::PREFIX, self.name.replace('.', "_").to_uppercase())
    }
}

impl Value {
    /// As it is written where there are no quotes: a variable, or a field of the log.
    pub fn bare(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(list) => list.join(","),
            other => other.to_string(),
        }
    }

    fn text(self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text),
            other => Err(format!("{other} is not text in quotes")),
        }
    }

    fn list(self) -> Result<Vec<String>, String> {
        match self {
            Self::List(list) => Ok(list),
            other => Err(format!("{other} is not a list of texts, such as [\"jobs/*\", \"leader\"]")),
        }
    }

    fn flag(self) -> Result<bool, String> {
        match self {
            Self::Flag(flag) => Ok(flag),
            other => Err(format!("{other} is neither true nor false")),
        }
    }

    fn number(self, range: RangeInclusive<u64>) -> Result<u64, String> {
        match self {
            Self::Number(number) if range.contains(&number) => Ok(number),
            Self::Number(number) => Err(format!("{number} is outside {} to {}", range.start(), range.end())),
            other => Err(format!("{other} is not a whole number")),
        }
    }

    fn count(self, range: RangeInclusive<usize>) -> Result<usize, String> {
        let number = self.number(*range.start() as u64..=*range.end() as u64)?;
        usize::try_from(number).map_err(|_| format!("{number} is more than this machine can count"))
    }

    fn length(self, range: RangeInclusive<u64>) -> Result<Duration, String> {
        self.number(range).map(Duration::from_millis)
    }
}

/// As it is written in a file.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => super::file::write_text(f, text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(list) => {
                f.write_str("[")?;
                for (at, text) in list.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    super::file::write_text(f, text)?;
                }
                f.write_str("]")
            }
        }
    }
}

impl LogFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Human, Self::Json];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

fn millis(length: Duration) -> Value {
    Value::Number(u64::try_from(length.as_millis()).expect("lengths were milliseconds when they were set"))
}

fn size(size: usize) -> Value {
    Value::Number(size as u64)
}

fn name(text: &str) -> Result<ServiceName, String> {
    ServiceName::new(text)
        .ok_or_else(|| format!("{text:?} is not 1 to 63 letters, digits, dots, dashes and underscores"))
}

/// Absolute, so that messages say which directory it is wherever the service was started.
fn directory(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("the path is empty; name a directory".to_owned());
    }
    if text.starts_with('~') {
        // Nobody wants a directory of that name, and whoever looks for the log would look in another place.
        return Err(format!(
            "{text:?} begins with ~, which a shell replaces and a configuration does not; write the whole path"
        ));
    }
    std::path::absolute(text).map_err(|error| format!("cannot find the present directory: {error}"))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let is_name = text
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && !host.contains(':') && port.parse::<u16>().is_ok());
    if !is_name {
        return Err(format!(
            "{text:?} is not an address with a port; write it like 127.0.0.1:7420, [::1]:7420 or localhost:7420"
        ));
    }
    let found = text.to_socket_addrs().map_err(|error| format!("{text:?} cannot be looked up: {error}"))?;
    most_exposed(found.collect()).ok_or_else(|| format!("{text:?} is a name without an address"))
}

/// Of several addresses of a name one that other machines reach, if there is one: a name is taken for this machine alone only if all of its
/// addresses are. Of those the first of IPv4, where clients without a store look.
fn most_exposed(found: Vec<SocketAddr>) -> Option<SocketAddr> {
    let place = |address: &SocketAddr| (address.ip().to_canonical().is_loopback(), address.is_ipv6());
    // Of equal ones the first.
    found.into_iter().min_by_key(place)
}

fn drift(ppm: u64) -> Result<Drift, String> {
    let drift = u32::try_from(ppm).ok().and_then(Drift::from_ppm);
    drift.ok_or_else(|| format!("{ppm} is above {}", Drift::MAX.ppm()))
}

fn format(text: &str) -> Result<LogFormat, String> {
    LogFormat::ALL
        .into_iter()
        .find(|format| format.word() == text)
        .ok_or_else(|| format!("{text:?} is none of auto, human and json"))
}

fn level(text: String) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("the level is empty; write off for silence".to_owned())
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_this_machine_alone_only_if_all_its_addresses_are() {
        let chosen = |texts: &[&str]| {
            most_exposed(texts.iter().map(|text| text.parse().unwrap()).collect())
                .map(|found| found.to_string())
        };
        assert_eq!(chosen(&["[::1]:1", "127.0.0.1:1"]).as_deref(), Some("127.0.0.1:1"));
        assert_eq!(chosen(&["127.0.1.1:1", "10.0.0.5:1", "10.0.0.6:1"]).as_deref(), Some("10.0.0.5:1"));
        assert_eq!(chosen(&["127.0.0.1:1", "[2001:db8::1]:1"]).as_deref(), Some("[2001:db8::1]:1"));
        assert_eq!(chosen(&["127.0.0.1:1", "[::ffff:10.0.0.1]:1"]).as_deref(), Some("[::ffff:10.0.0.1]:1"));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn what_is_no_address_and_no_name_with_a_port_is_not_looked_up() {
        for text in ["localhost", "::1:7420", ":7420", "localhost:", "localhost:70000", ""] {
            assert!(address(text).unwrap_err().contains("localhost:7420"), "{text}");
        }
        assert!(address("localhost:7420").unwrap().ip().is_loopback());
    }
}
