//! Where a store is: a directory of this machine, or a service at one or more addresses.
//!
//! Parsing looks at the text alone. Names are resolved when a connection is made, each time anew.

use std::fmt;
use std::net::Ipv6Addr;
#[cfg(feature = "embedded")]
use std::path::PathBuf;

use crate::error::Error;

/// The port of a service, where an address names none.
pub const DEFAULT_PORT: u16 = 7_420;
/// Longest name that the domain name system can carry.
const HOST_BYTES: usize = 253;

const SHAPES: &str = "a directory is dir:PATH, a service is leasehold://HOST:PORT[,HOST:PORT...]";

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    #[cfg(feature = "embedded")]
    Directory(PathBuf),
    /// Any of these serves it.
    Service(Vec<HostPort>),
}

/// One address of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPort {
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let bad = |why: String| Error::BadUrl { url: url.to_owned(), why };
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(bad(format!("it has no scheme; {SHAPES}")));
        };
        match scheme {
            "dir" => directory(rest).map_err(bad),
            "leasehold" => service(rest).map(Self::Service).map_err(bad),
            _ => Err(bad(format!("its scheme {scheme:?} is not known; {SHAPES}"))),
        }
    }
}

#[cfg(feature = "embedded")]
fn directory(path: &str) -> Result<Address, String> {
    if path.is_empty() {
        return Err("the path is missing; a directory is dir:PATH".into());
    }
    // Taken for a part of the name it would make another store, beside the one that is meant, whose tokens begin anew.
    if let Some(at) = path.find('?') {
        let (path, query) = path.split_at(at);
        let path = if path.is_empty() { "PATH" } else { path };
        let next = match query.starts_with("?token_floor") {
            true => {
                format!("its tokens are raised with `leasehold data recover --data {path} --above TOKEN`")
            }
            false => format!("write dir:{path}"),
        };
        return Err(format!("it has a query, {query:?}; a directory has none: {next}"));
    }
    std::path::absolute(path).map(Address::Directory).map_err(|error| error.to_string())
}

#[cfg(not(feature = "embedded"))]
fn directory(_path: &str) -> Result<Address, String> {
    Err("this program was built without directories, the feature `embedded`; it takes leasehold://HOST:PORT"
        .into())
}

fn service(rest: &str) -> Result<Vec<HostPort>, String> {
    let Some(hosts) = rest.strip_prefix("//") else {
        return Err(format!("two slashes are missing after its scheme; {SHAPES}"));
    };
    for (begins, what) in [('/', "path"), ('?', "query"), ('#', "fragment")] {
        if let Some(at) = hosts.find(begins) {
            return Err(format!("it has a {what}, {:?}; a service has none", &hosts[at..]));
        }
    }
    if let Some((user, _)) = hosts.split_once('@') {
        // Not shown whole: there may be a password in it.
        let name = user.split(':').next().unwrap_or_default();
        return Err(format!("it names a user, {name:?}; a service has none"));
    }
    hosts.split(',').map(HostPort::parse).collect()
}

/// As it is written: understood again, it is the same.
#[cfg(feature = "testing")]
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "embedded")]
            Self::Directory(path) => write!(f, "dir:{}", path.display()),
            Self::Service(hosts) => {
                let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
                write!(f, "leasehold://{}", hosts.join(","))
            }
        }
    }
}

impl HostPort {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (host, port) = match text.strip_prefix('[') {
            Some(bracketed) => {
                let Some((host, port)) = bracketed.split_once(']') else {
                    return Err(format!("the bracket in {text:?} is not closed"));
                };
                if host.parse::<Ipv6Addr>().is_err() {
                    return Err(format!("{host:?} is not an IPv6 address, and only these stand in brackets"));
                }
                match port.strip_prefix(':') {
                    None if port.is_empty() => (host, None),
                    None => return Err(format!("{port:?} after the bracket is not a colon and a port")),
                    some => (host, some),
                }
            }
            None => match text.split_once(':') {
                None => (check_host(text)?, None),
                Some((_, port)) if port.contains(':') => {
                    return Err(format!("{text:?} has several colons; an IPv6 address stands in brackets"));
                }
                Some((host, port)) => (check_host(host)?, Some(port)),
            },
        };
        Ok(Self { host: host.to_owned(), port: port.map_or(Ok(DEFAULT_PORT), parse_port)? })
    }
}

fn check_host(host: &str) -> Result<&str, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ['-', '.', '_'].contains(&c);
    if host.is_empty() {
        Err("a host is missing".into())
    } else if host.len() > HOST_BYTES {
        Err(format!("a host of {} bytes is above the maximum of {HOST_BYTES}", host.len()))
    } else if let Some(c) = host.chars().find(|c| !allowed(*c)) {
        Err(format!("the host {host:?} has the character {c:?}; letters, digits, '-', '.' and '_' are taken"))
    } else {
        Ok(host)
    }
}

fn parse_port(port: &str) -> Result<u16, String> {
    // Digits alone: a sign would be taken by the parser.
    let digits = port.chars().all(|c| c.is_ascii_digit());
    match port.parse() {
        Ok(number @ 1..) if digits => Ok(number),
        _ if port.is_empty() => Err("a port is missing after its colon".into()),
        _ => Err(format!("the port {port:?} is not a number from 1 to 65535")),
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        match Address::parse(url) {
            Ok(Address::Service(hosts)) => {
                hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
            #[cfg(feature = "embedded")]
            Ok(Address::Directory(path)) => path.display().to_string(),
            Err(Error::BadUrl { why, .. }) => format!("bad: {why}"),
            Err(other) => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn services_are_named_by_their_hosts_and_ports() {
        for (url, expected) in [
            ("leasehold://localhost", "localhost:7420"),
            ("leasehold://db-1.example.com:1", "db-1.example.com:1"),
            ("leasehold://127.0.0.1:65535", "127.0.0.1:65535"),
            ("leasehold://[::1]", "[::1]:7420"),
            ("leasehold://[fd00::7]:9000", "[fd00::7]:9000"),
            ("leasehold://a,b:2,[::1]:3", "a:7420 b:2 [::1]:3"),
            ("leasehold://under_score:07420", "under_score:7420"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }

    #[test]
    fn a_bad_url_names_the_part_that_is_wrong() {
        let long = format!("leasehold://{}", "h".repeat(254));
        for (url, part) in [
            ("", "no scheme"),
            ("localhost", "no scheme"),
            ("localhost:7420", "scheme \"localhost\""),
            ("etcd://localhost", "scheme \"etcd\""),
            ("leasehold:localhost", "two slashes"),
            ("leasehold:/localhost", "two slashes"),
            ("leasehold://", "a host is missing"),
            ("leasehold://:7420", "a host is missing"),
            ("leasehold://a,", "a host is missing"),
            ("leasehold://a,,b", "a host is missing"),
            ("leasehold://a:", "a port is missing"),
            ("leasehold://a:0", "port \"0\""),
            ("leasehold://a:65536", "port \"65536\""),
            ("leasehold://a:+1", "port \"+1\""),
            ("leasehold://a:x", "port \"x\""),
            ("leasehold://a:1,b:-1", "port \"-1\""),
            ("leasehold://::1", "several colons"),
            ("leasehold://fd00::7:9000", "several colons"),
            ("leasehold://[::1", "not closed"),
            ("leasehold://[::1]7420", "\"7420\" after the bracket"),
            ("leasehold://[::1]:", "a port is missing"),
            ("leasehold://[localhost]:1", "\"localhost\" is not an IPv6 address"),
            ("leasehold://[]", "\"\" is not an IPv6 address"),
            ("leasehold://a b", "character ' '"),
            ("leasehold://bücher.example", "character 'ü'"),
            ("leasehold://a:1;b:2", "several colons"),
            ("leasehold://a/", "path, \"/\""),
            ("leasehold://a/jobs", "path, \"/jobs\""),
            ("leasehold://a?token_floor=1", "query, \"?token_floor=1\""),
            ("leasehold://a#b", "fragment, \"#b\""),
            ("leasehold://me:secret@a", "user, \"me\""),
            (&long, "254 bytes is above the maximum of 253"),
        ] {
            let why = shown(url);
            assert!(why.starts_with("bad: ") && why.contains(part), "{url}: {why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[cfg(feature = "embedded")]
    #[test]
    fn directories_are_made_absolute() {
        assert_eq!(shown("dir:/a/b:c"), "/a/b:c");
        assert!(shown("dir:a").starts_with('/'));
        assert!(shown("dir:").contains("path is missing"));
    }

    #[cfg(feature = "embedded")]
    #[test]
    fn a_directory_with_a_query_is_refused_with_the_next_step() {
        for (url, why) in [
            (
                "dir:?token_floor",
                "\"?token_floor\"; a directory has none: its tokens are raised with `leasehold data recover --data PATH --above TOKEN`",
            ),
            (
                "dir:/a?token_floor=8",
                "\"?token_floor=8\"; a directory has none: its tokens are raised with `leasehold data recover --data /a --above TOKEN`",
            ),
            ("dir:/a?x=1?", "\"?x=1?\"; a directory has none: write dir:/a"),
        ] {
            assert_eq!(shown(url), format!("bad: it has a query, {why}"), "{url}");
        }
    }

    #[cfg(not(feature = "embedded"))]
    #[test]
    fn directories_are_refused_by_name_where_they_are_not_built_in() {
        assert!(shown("dir:/a").contains("`embedded`"), "{}", shown("dir:/a"));
    }
}
