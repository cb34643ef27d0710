//! A service on the network: one or more addresses, any of which will do.
//!
//! Promises that every attempt looks names up anew, so that a service that moves is found again, and that an address that does not
//! answer does not keep the others from being tried. What it deliberately does not do: it does not judge which of several
//! addresses is the best one. It stays with the one that worked.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use leasehold_core::Millis;
use leasehold_core::holder::Reading;
use tokio::net::TcpStream;

use super::address::HostPort;
use super::connection::{Connection, is_opening_error};
use crate::error::Unreachable;

/// An address takes a connection within this time, or the next one is tried: it may be cut off.
const CONNECT_TIME: Duration = Duration::from_millis(1_000);
/// A name is looked up within this time. Resolvers ask their second server after five seconds; it is to have its turn.
const RESOLVE_TIME: Duration = Duration::from_millis(6_000);

/// Which of several addresses is tried.
#[derive(Debug, Clone)]
struct Rotation {
    hosts: Vec<HostPort>,
    at: usize,
}

impl Rotation {
    /// `draw` is random, so that not all clients begin with the same address.
    fn new(hosts: Vec<HostPort>, draw: u32) -> Self {
        let count = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
        Self { hosts, at: (draw % count) as usize }
    }

    fn current(&self) -> &HostPort {
        &self.hosts[self.at]
    }

    fn next(&mut self) {
        self.at = (self.at + 1) % self.hosts.len();
    }
}

/// The addresses of a service.
pub(super) struct Service {
    rotation: Rotation,
    away_since: Option<Reading>,
    connect_time: Duration,
    hello_time: Duration,
    resolve_time: Duration,
}

impl Service {
    /// `hosts` are not empty.
    pub(super) fn new(hosts: Vec<HostPort>, draw: u32, patience: Duration, hello_time: Duration) -> Self {
        Self {
            rotation: Rotation::new(hosts, draw),
            away_since: None,
            // A short patience must still leave time to say what went wrong.
            connect_time: CONNECT_TIME.min(patience / 2),
            hello_time,
            resolve_time: RESOLVE_TIME.min(patience * 3 / 4),
        }
    }

    /// One attempt, at one of the hosts; the next attempt is made at the same one if this was good, else at the next.
    pub(super) async fn connect(&mut self) -> Result<Connection, Unreachable> {
        let began = leasehold_clock::read();
        let host = self.rotation.current().clone();
        match self.try_host(&host).await {
            Ok(connected) => {
                self.away_since = None;
                Ok(connected)
            }
            Err((place, error)) => {
                self.rotation.next();
                let last = format!("{place}: {error}");
                if is_opening_error(&error) {
                    return Err(Unreachable::Protocol(last));
                }
                let waited = leasehold_clock::read().since(*self.away_since.get_or_insert(began)).greater();
                let waited = Millis::from_duration(waited).duration();
                Err(Unreachable::NoConnection { store: self.url(), waited, last: Some(last) })
            }
        }
    }

    /// Connected, and then nothing came: one that says hello may be unable to do more.
    pub(super) fn fell_silent(&mut self) {
        self.rotation.next();
    }

    fn url(&self) -> String {
        let hosts: Vec<String> = self.rotation.hosts.iter().map(ToString::to_string).collect();
        format!("leasehold://{}", hosts.join(","))
    }

    /// Tries everything that a name stands for. An error comes with the place it happened at.
    async fn try_host(&self, host: &HostPort) -> Result<Connection, (String, io::Error)> {
        let resolve = tokio::net::lookup_host((host.host.as_str(), host.port));
        let found = within(self.resolve_time, "its name was not found", resolve).await;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "its name stands for no address");
        let mut place = host.to_string();
        for address in found.map_err(|error| (host.to_string(), error))? {
            match self.try_address(address).await {
                Ok(connected) => return Ok(connected),
                Err(error) => last = error,
            }
            place = named(host, address);
        }
        Err((place, last))
    }

    async fn try_address(&self, address: SocketAddr) -> io::Result<Connection> {
        let connect = TcpStream::connect(address);
        let stream = within(self.connect_time, "nobody took the connection", connect).await?;
        // A renewal is small and must not wait for the acknowledgement of what went before.
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        within(self.hello_time, "it took the connection, but said no hello", Connection::open(read, write))
            .await
    }
}

async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, format!("{what} within {limit:?}"))))
}

/// The name that was given, and what it was found to stand for.
fn named(host: &HostPort, address: SocketAddr) -> String {
    let (given, found) = (host.to_string(), address.to_string());
    if given == found { given } else { format!("{given} ({})", address.ip()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Vec<HostPort> {
        ["a", "b", "c"].map(|host| HostPort { host: host.into(), port: 1 }).to_vec()
    }

    #[test]
    fn every_host_is_the_first_for_somebody() {
        let first = |draw| Rotation::new(hosts(), draw).current().host.clone();
        assert_eq!([0, 1, 2, 3, u32::MAX].map(first), ["a", "b", "c", "a", "a"]);
    }

    #[test]
    fn a_host_that_failed_is_tried_again_after_all_others() {
        let mut rotation = Rotation::new(hosts(), 1);
        let mut tried = Vec::new();
        for _ in 0..4 {
            tried.push(rotation.current().host.clone());
            rotation.next();
        }
        assert_eq!(tried, ["b", "c", "a", "b"]);
    }

    #[test]
    fn the_address_behind_a_name_is_shown() {
        let address: SocketAddr = "10.0.0.7:1".parse().unwrap();
        assert_eq!(named(&hosts()[0], address), "a:1 (10.0.0.7)");
        assert_eq!(named(&HostPort { host: "10.0.0.7".into(), port: 1 }, address), "10.0.0.7:1");
    }
}
