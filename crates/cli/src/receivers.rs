//! Receivers by URL: whatever is protected, for `fence check` and for sealing at a grant.
//!
//! Promises: a URL is understood, or refused with words that name it without its password, say what is accepted and what to do next; and
//! nothing is sent before the receiver is asked or sealed, so that one that is down is the trouble of that moment and of nobody else.
//!
//! What it deliberately does not do: it makes no tables, files or buckets. What is not there is said.

#[cfg(feature = "fences")]
mod redis;
#[cfg(feature = "fences")]
mod s3;
#[cfg(feature = "fences")]
mod sql;
#[cfg(feature = "fences")]
mod sqlite;

use std::fmt::Display;
use std::sync::Arc;

use leasehold::fence::Receiver;

use crate::trouble::Trouble;

const KNOWN: &str = "receivers are postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE (MariaDB too), sqlite:PATH, redis://HOST, \
                     s3://BUCKET/PATH, file:PATH (the file that is protected) and http://HOST:PORT (a fence proxy)";

const NO_TLS: &str = "there is no TLS to a fence proxy here; write http://HOST:PORT for one, or a tunnel to one, that takes plain connections";

/// The receivers behind these URLs, all of them or none. Of those that a variable names, errors begin with its name.
pub(crate) fn open_all(
    urls: &[String],
    variable: Option<&'static str>,
) -> Result<Vec<Arc<dyn Receiver>>, Trouble> {
    urls.iter().map(|url| open(url).map_err(|unfit| unfit.of(variable))).collect()
}

/// Why there is no receiver behind a URL.
#[derive(Debug)]
enum Unfit {
    /// The URL names none.
    Url(String),
    /// It names one that is not there, or not to be used: of that moment, and nothing is wrong with the URL.
    Place(String),
}

impl Unfit {
    fn of(self, variable: Option<&'static str>) -> Trouble {
        match self {
            Self::Url(why) => Trouble::Misuse(from(variable, &why)),
            Self::Place(why) => Trouble::NoReceiver(from(variable, &why)),
        }
    }
}

/// What is said of a receiver, with where it comes from.
pub(crate) fn from(variable: Option<&'static str>, said: &str) -> String {
    match variable {
        Some(variable) => format!("{variable}: {said}"),
        None => said.to_owned(),
    }
}

/// The receiver behind a URL. What is wrong with the URL is said in words without its password. Nothing is sent yet.
fn open(url: &str) -> Result<Arc<dyn Receiver>, Unfit> {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let named = |why: String| format!("receiver {:?}: {why}", shown(url));
    if scheme == "file" && !rest.is_empty() {
        return receiver(leasehold_fence::files::Fence::new(rest)).map_err(|why| Unfit::Place(named(why)));
    }
    let port = if rest.starts_with("//") { port_above(rest) } else { None };
    let opened = match scheme {
        "postgres" | "postgresql" | "mysql" | "mariadb" | "redis" | "valkey" | "http" if port.is_some() => {
            Err(format!("port {} is above the maximum of {}", port.unwrap_or_default(), u16::MAX))
        }
        "postgres" | "postgresql" if !rest.starts_with("//") => Err(KNOWN.to_owned()),
        "postgres" | "postgresql" | "mysql" | "mariadb" if is_misplaced(rest) => Err(KNOWN.to_owned()),
        "postgres" | "postgresql" | "mysql" | "mariadb" | "sqlite" | "redis" | "valkey" | "rediss"
        | "valkeys" | "s3" => with_client(scheme, url),
        "file" => Err("it names no file; write file:PATH".to_owned()),
        "http" => receiver(leasehold_fence::http::Proxy::new(url)),
        "https" => Err(NO_TLS.to_owned()),
        _ => Err(KNOWN.to_owned()),
    };
    opened.map_err(|why| Unfit::Url(named(why)))
}

/// The receiver that a database or an object store is.
#[cfg(feature = "fences")]
fn with_client(scheme: &str, url: &str) -> Result<Arc<dyn Receiver>, String> {
    match scheme {
        "postgres" | "postgresql" => sql::postgres(url),
        "mysql" | "mariadb" => sql::mysql(url),
        "sqlite" => sqlite::open(url.strip_prefix("sqlite:").unwrap_or_default()),
        "redis" | "valkey" => redis::open(url),
        "rediss" | "valkeys" => Err(redis::NO_TLS.to_owned()),
        _ => s3::open(url),
    }
}

/// Clients of databases and object stores are most of what there is to build, and most programs seal none.
#[cfg(not(feature = "fences"))]
fn with_client(scheme: &str, _: &str) -> Result<Arc<dyn Receiver>, String> {
    Err(format!(
        "this leasehold was built without clients for databases and object stores, so {scheme} is not understood; install one that has \
         them: cargo install --path crates/cli --features fences"
    ))
}

/// A port that is none, in what stands behind the scheme.
fn port_above(rest: &str) -> Option<&str> {
    // Before anything else is looked for: a password that should have been escaped may have anything in it.
    let behind_user = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let authority = behind_user.trim_start_matches('/').split(['/', '?', ',']).next()?;
    let (_, port) = authority.rsplit_once(':')?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && port.parse::<u16>().is_err()).then_some(port)
}

/// Whether a user stands behind a third slash: drivers take it, with its password, for the name of a database. Without a user that is a
/// database behind a socket.
fn is_misplaced(rest: &str) -> bool {
    rest.starts_with("///") && rest.contains('@')
}

fn receiver<R: Receiver + 'static>(made: Result<R, impl Display>) -> Result<Arc<dyn Receiver>, String> {
    match made {
        Ok(receiver) => Ok(Arc::new(receiver)),
        Err(error) => Err(error.to_string()),
    }
}

/// The same URL for people and logs: without a password, wherever in it one may stand. Passwords that should have been escaped have
/// slashes, question marks and at signs in them, and a list that is cut at its commas may cut one in two.
fn shown(url: &str) -> String {
    if url.starts_with("file:") || url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let (scheme, rest) = match url.find("://") {
        Some(at) => url.split_at(at + "://".len()),
        None => ("", url),
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) if scheme.is_empty() => (Some(if user.is_empty() { "" } else { "..." }), rest),
        Some((user, rest)) => (user.split([':', '/', '?']).next(), rest),
        None => (None, rest),
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, _)) => (place, "?..."),
        None => (rest, ""),
    };
    let place = match user {
        Some(user) => format!("{user}@{place}"),
        None => without_cut_password(place),
    };
    format!("{scheme}{place}{query}")
}

/// What stands behind a colon and is no port may be the first half of a password.
fn without_cut_password(place: &str) -> String {
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    match host.split_once(':') {
        Some((host, port)) if !host.starts_with('[') && port.chars().any(|digit| !digit.is_ascii_digit()) => {
            format!("{host}:...")
        }
        _ => format!("{host}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_repeated() {
        for (url, seen) in [
            ("postgres://app:secret@db:5432/x", "postgres://app@db:5432/x"),
            ("postgres://app:secret@db:5432/x?password=secret", "postgres://app@db:5432/x?..."),
            ("mysql://app:se/cr?et@db/x", "mysql://app@db/x"),
            ("mysql://app:sec@ret@db/x", "mysql://app@db/x"),
            ("redis://:p@ss@cache", "redis://@cache"),
            ("redis://cache/1", "redis://cache/1"),
            ("redis://[::1]:6379/1", "redis://[::1]:6379/1"),
            ("s3://key:secret@bucket/x", "s3://key@bucket/x"),
            ("s3://bucket/x?endpoint=http://key:secret@host", "s3://bucket@host"),
            ("postgres://app:sec", "postgres://app:..."),
            ("ret@db/x", "...@db/x"),
            ("file:/x@y", "file:/x@y"),
            ("sqlite:/x@y", "sqlite:/x@y"),
        ] {
            assert_eq!(shown(url), seen);
        }
    }

    #[tokio::test]
    async fn what_is_no_receiver_is_named_with_those_that_are() {
        for url in ["", "nonsense", "ftp://host/x", "mysqls://db/x"] {
            let Unfit::Url(said) = open(url).map(drop).expect_err("it is none") else { panic!("{url}") };
            assert!(said.starts_with(&format!("receiver {url:?}: receivers are postgres://")), "{said}");
        }
    }

    #[tokio::test]
    async fn a_password_in_the_wrong_place_is_neither_used_nor_repeated() {
        for url in [
            "postgres:/app:secret@db/x",
            "postgres:app:secret@db/x",
            "postgres:///app:secret@db/x",
            "mysql:///app:secret@db/x",
        ] {
            let Unfit::Url(said) = open(url).map(drop).expect_err("it names no server") else {
                panic!("{url}")
            };
            assert!(
                said.contains("receivers are postgres://USER@HOST") && !said.contains("secret"),
                "{said}"
            );
        }
    }

    #[tokio::test]
    async fn what_is_understood_is_named_without_a_password() {
        for (url, place) in [
            ("postgres://app:secret@db/shop", "postgres://db:5432/shop"),
            ("mysql://app:secret@db/shop", "mysql://db:3306/shop"),
            ("mariadb://app:secret@db:3307/shop", "mysql://db:3307/shop"),
            ("sqlite:/srv/app.db", "sqlite:/srv/app.db"),
            ("sqlite:///srv/app.db", "sqlite:/srv/app.db"),
            ("redis://:secret@cache", "redis://cache:6379/0"),
            ("valkey://cache:7000/2", "redis://cache:7000/2"),
            ("s3://bucket/reports/nightly.json", "s3://bucket/reports/nightly.json"),
            (
                "s3://bucket/x?endpoint=http://127.0.0.1:9000&region=eu",
                "s3://bucket/x?endpoint=http://127.0.0.1:9000",
            ),
        ] {
            assert_eq!(open(url).expect(url).place(), place);
        }
    }
}
