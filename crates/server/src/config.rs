//! The configuration of a service: what can be chosen, what is chosen when nobody says anything, and what fits together.
//!
//! [`Config`] is the outcome, plain and typed. How it comes about (file, environment, flags) is the business of [`Layers`], which also knows
//! where each value came from. A configuration that passed [`Config::check`] can be served; whether the machine has what it asks for (the
//! port, the directory, descriptors) is found out by whoever serves it. Nothing here can be changed while a service runs.

mod cluster;
mod file;
mod keys;
mod layers;
mod nearest;
mod patterns;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use leasehold_core::limits::{DEFAULT_MAX_TTL, MAX_VALUE_BYTES};
use leasehold_core::{Drift, Millis};
use leasehold_node::{GapPattern, Options};

pub use cluster::ClusterConfig;
pub use keys::{KEYS, Key, Value};
pub use layers::{ConfigError, Effective, FILE_VARIABLE, Layers, PREFIX, Source};
pub use patterns::MAX_GAP_PATTERNS;

/// The port of a service that was not given another.
pub const PORT: u16 = 7420;
/// The smallest body that must be taken: the longest value in hexadecimal digits, and the names around it.
const LEAST_BODY: usize = 2 * MAX_VALUE_BYTES + 4096;

/// Everything that can be chosen about a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What the service is called, in logs and metrics.
    pub name: ServiceName,
    /// The directory with its log.
    pub data: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether it may listen where others than this machine can reach it, without TLS and authentication.
    pub insecure: bool,
    /// The longest ttl of a session. Only for a directory that is new: an older one keeps the one that it was made with.
    pub max_ttl: Millis,
    /// The rate error that clocks are trusted to keep. Only for a directory that is new.
    pub drift: Drift,
    /// How long a service that was asked to stop waits for what is under way.
    pub shutdown_grace: Duration,
    /// A snapshot is taken after this many entries.
    pub snapshot_entries: u64,
    /// Or after this many bytes of entries.
    pub snapshot_bytes: u64,
    /// Names that somebody must always act on: for how long nobody did is counted for each pattern, and a name counts for the first that
    /// it fits.
    pub gap_patterns: Vec<GapPattern>,
    /// Requests over HTTP.
    pub http: HttpConfig,
    /// What clients can use up.
    pub limits: LimitsConfig,
    /// Several nodes.
    pub cluster: ClusterConfig,
    /// What is written to standard error.
    pub log: LogConfig,
}

/// Requests over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// The longest body of a request.
    pub max_body_bytes: usize,
    /// The longest head of a request.
    pub max_header_bytes: usize,
    /// How long a client may take to send one request.
    pub request_timeout: Duration,
    /// How long a call that waits is kept open. A longer wait goes on with the next call of its number.
    pub max_wait: Duration,
}

/// What clients can use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Connections at once, of all kinds together.
    pub max_connections: usize,
    /// Watches at once.
    pub max_watches: usize,
    /// Watches at once on one connection.
    pub max_watches_per_connection: usize,
    /// How long a client may leave unread what was sent to it.
    pub write_timeout: Duration,
}

/// What is written to standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// For people or for programs.
    pub format: LogFormat,
    /// How much: a level, or directives such as `info,leasehold_server=debug`.
    pub level: String,
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people on a terminal, for programs elsewhere.
    Auto,
    /// Text.
    Human,
    /// One JSON object a line.
    Json,
}

/// What a service is called: 1 to 63 letters, digits, dots, dashes and underscores, so that it fits a host name, a metric's label and a list
/// of members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceName(String);

impl ServiceName {
    /// A name, or nothing if it cannot be one.
    pub fn new(text: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        ((1..=63).contains(&text.len()) && text.chars().all(fits)).then(|| Self(text.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Config {
    /// The defaults, with a directory for the log: there is no default for that which fits everybody.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        let node = Options::default();
        Self {
            name: ServiceName("leasehold".to_owned()),
            data: data.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            insecure: false,
            max_ttl: DEFAULT_MAX_TTL,
            drift: Drift::DEFAULT,
            shutdown_grace: Duration::from_secs(10),
            snapshot_entries: node.snapshot_entries,
            snapshot_bytes: node.snapshot_bytes,
            gap_patterns: node.gap_patterns,
            http: HttpConfig {
                max_body_bytes: 256 * 1024,
                max_header_bytes: 16 * 1024,
                request_timeout: Duration::from_secs(10),
                // Proxies and load balancers hang up after a silence of a minute.
                max_wait: Duration::from_secs(55),
            },
            limits: LimitsConfig {
                max_connections: 16_384,
                max_watches: 8_192,
                max_watches_per_connection: 64,
                write_timeout: Duration::from_secs(30),
            },
            cluster: ClusterConfig::default(),
            log: LogConfig { format: LogFormat::Auto, level: "info".to_owned() },
        }
    }

    /// Whether others than this machine can reach it.
    pub fn is_exposed(&self) -> bool {
        !self.listen.ip().to_canonical().is_loopback()
    }

    /// Whether all of it fits together. That each value alone lies within its bounds was seen when it was set.
    ///
    /// # Errors
    /// Names both sides of what does not fit, and the next step.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_with(|_| String::new())
    }

    /// The same, with words behind each value that say where it came from: what has to be changed may stand in another place than what
    /// was changed last.
    pub(crate) fn check_with(&self, from: impl Fn(&str) -> String) -> Result<(), ConfigError> {
        let refused = |why: String| Err(ConfigError::Refused(why));
        let of = |key: &str, value: &dyn fmt::Display| format!("{key} of {value}{}", from(key));
        if !self.insecure && self.is_exposed() {
            return refused(format!(
                "{} can be reached from other machines, and without TLS and authentication whoever reaches it can \
                 take and end every lease; listen on 127.0.0.1:{port}, or accept that with --insecure",
                of("listen", &self.listen),
                port = self.listen.port()
            ));
        }
        let (each, all) = (self.limits.max_watches_per_connection, self.limits.max_watches);
        if each > all {
            let (each, all) =
                (of("limits.max_watches_per_connection", &each), of("limits.max_watches", &all));
            return refused(format!("{each} is above {all}; lower the first or raise the second"));
        }
        let (snapshot, body) = (self.snapshot_bytes, self.http.max_body_bytes as u64);
        if snapshot < body {
            let (snapshot, body) = (of("snapshot_bytes", &snapshot), of("http.max_body_bytes", &body));
            return refused(format!(
                "{snapshot} is below {body}, so that one request could cause a snapshot; raise the first or lower the second"
            ));
        }
        let (reading, grace) = (self.http.request_timeout.as_millis(), self.shutdown_grace.as_millis());
        if reading > grace {
            let (reading, grace) = (of("http.request_timeout_ms", &reading), of("shutdown_grace_ms", &grace));
            return refused(format!(
                "{reading} is above {grace}, so that a stop would cut off requests that are still in time; \
                 lower the first or raise the second"
            ));
        }
        self.check_cluster()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Config)) -> Option<String> {
        let mut config = Config::new("/data");
        change(&mut config);
        config.check().err().map(|error| error.to_string())
    }

    #[test]
    fn the_defaults_fit_together() {
        assert_eq!(refusal(|_| {}), None);
    }

    #[test]
    fn an_address_that_others_can_reach_must_be_asked_for() {
        let listen = |address: &str, insecure: bool| {
            refusal(|config| (config.listen, config.insecure) = (address.parse().unwrap(), insecure))
        };
        for here in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(listen(here, false), None, "{here}");
        }
        for elsewhere in ["0.0.0.0:80", "[::]:80", "10.0.0.1:80", "[::ffff:10.0.0.1]:80"] {
            let why = listen(elsewhere, false).unwrap();
            assert!(why.contains(elsewhere) && why.contains("--insecure"), "{why}");
            assert_eq!(listen(elsewhere, true), None, "{elsewhere}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_told_with_both_values() {
        let why = refusal(|config| config.limits.max_watches = 10).unwrap();
        assert!(why.contains("of 64 is above") && why.contains("of 10;"), "{why}");
        let why = refusal(|config| config.snapshot_bytes = 200_000).unwrap();
        assert!(why.contains("of 200000 is below") && why.contains("of 262144,"), "{why}");
        let why = refusal(|config| config.shutdown_grace = Duration::from_millis(9_999)).unwrap();
        assert!(why.contains("of 10000 is above") && why.contains("of 9999,"), "{why}");
    }

    #[test]
    fn names_fit_a_host_name_and_a_list() {
        for good in ["n1", "leasehold", "eu-west_1.a", &"n".repeat(63)] {
            assert_eq!(ServiceName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a=b", "a,b", "ä", &"n".repeat(64)] {
            assert!(ServiceName::new(bad).is_none(), "{bad}");
        }
    }
}
