//! A service on the network: one or more addresses, any of which will do.
//!
//! Promises that every attempt looks names up anew, so that a service that moves is found again; that an address that does not answer
//! does not keep the others from being tried; and that of several nodes the one that leads is used if it can be reached, also one that
//! stands in no list. What it deliberately does not do: it does not choose by speed, and it does not insist on the leader. Any
//! node answers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use leasehold_core::Millis;
use leasehold_core::holder::Reading;
use tokio::net::TcpStream;

use super::address::HostPort;
use super::connection::{Connection, is_opening_error};
use super::life::Lives;
use super::rotation::Rotation;
use crate::error::Unreachable;

/// An address takes a connection within this time, or the next one is tried: it may be cut off.
const CONNECT_TIME: Duration = Duration::from_millis(1_000);
/// The same while there are others that have not been tried: one that is silent must not cost more than an election.
const FIRST_CONNECT_TIME: Duration = Duration::from_millis(400);
/// The leader is reached within this time, or whoever named it will do.
const LEADER_TIME: Duration = Duration::from_millis(300);
/// A leader that was not reached is not tried again for so long: its address may be one that only nodes reach.
const LEADER_PAUSE: Duration = Duration::from_secs(10);
/// A name is looked up within this time. Resolvers ask their second server after five seconds; it is to have its turn.
const RESOLVE_TIME: Duration = Duration::from_millis(6_000);

/// Which node is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The one that leads, if it can be reached: it answers without a detour.
    Leader,
    /// Anyone that knows who leads.
    Anyone,
}

/// The addresses of a service.
pub(super) struct Service {
    rotation: Rotation,
    lives: Lives,
    away_since: Option<Reading>,
    /// Rounds over all addresses without a connection since the last one that was good.
    failed_rounds: u32,
    /// The leader that could not be reached, and when.
    unreached: Option<(HostPort, Reading)>,
    connect_time: Duration,
    hello_time: Duration,
    resolve_time: Duration,
}

/// A node that was reached, and where.
struct Reached {
    connection: Connection,
    address: SocketAddr,
}

/// Why a host was not reached.
enum Trouble {
    /// It, or its name, did not answer.
    NoAnswer(String),
    /// It speaks something else, or for another state.
    Refused(Unreachable),
}

impl Service {
    /// `hosts` are not empty.
    pub(super) fn new(
        hosts: Vec<HostPort>,
        draw: u32,
        lives: Lives,
        patience: Duration,
        hello_time: Duration,
    ) -> Self {
        let rotation = Rotation::new(hosts, draw);
        // A short patience must still leave time for all of them, and to say what went wrong.
        let share = patience / u32::try_from(2 * rotation.count()).unwrap_or(u32::MAX);
        Self {
            rotation,
            lives,
            away_since: None,
            failed_rounds: 0,
            unreached: None,
            connect_time: CONNECT_TIME.min(share),
            hello_time: hello_time.min(share),
            resolve_time: RESOLVE_TIME.min(patience * 3 / 4),
        }
    }

    /// One attempt at each of the hosts until one is good; the next attempt begins with that one.
    pub(super) async fn connect(&mut self, wanted: Wanted) -> Result<Connection, Unreachable> {
        let began = leasehold_clock::read();
        let several = self.rotation.count() > 1;
        let mut leaderless = None;
        let (mut silent, mut refused) = (Vec::new(), None);
        for _ in 0..self.rotation.count() {
            let host = self.rotation.current().clone();
            match self.try_host(&host).await {
                // Cut off from the others, or part of nothing yet: it will do if there is no better one.
                Ok(reached) if several && reached.connection.hello.leader.is_empty() => {
                    leaderless.get_or_insert((host, reached.connection));
                    self.rotation.next();
                }
                Ok(reached) => {
                    let connection = match wanted {
                        Wanted::Leader => self.towards_leader(&host, reached).await,
                        Wanted::Anyone => reached.connection,
                    };
                    return Ok(self.good(connection));
                }
                Err(trouble) => {
                    self.rotation.next();
                    match trouble {
                        Trouble::NoAnswer(why) => silent.push(why),
                        Trouble::Refused(why) => refused = Some(why),
                    }
                }
            }
        }
        if let Some((host, connection)) = leaderless {
            self.rotation.stay_with(&host);
            return Ok(self.good(connection));
        }
        self.failed_rounds = self.failed_rounds.saturating_add(1);
        let waited = leasehold_clock::read().since(*self.away_since.get_or_insert(began)).greater();
        let waited = Millis::from_duration(waited).duration();
        let last = Some(silent.join("; "));
        Err(refused.unwrap_or_else(|| Unreachable::NoConnection { store: self.url(), waited, last }))
    }

    fn good(&mut self, connection: Connection) -> Connection {
        self.away_since = None;
        self.failed_rounds = 0;
        connection
    }

    /// Connected, and then it ended or nothing came: one that says hello may be unable to do more.
    pub(super) fn next(&mut self) {
        self.rotation.next();
    }

    fn url(&self) -> String {
        let hosts: Vec<String> = self.rotation.hosts().iter().map(ToString::to_string).collect();
        format!("leasehold://{}", hosts.join(","))
    }

    /// The leader that a node names, if it can be reached soon; else that node.
    async fn towards_leader(&mut self, host: &HostPort, reached: Reached) -> Connection {
        let named = &reached.connection.hello.leader;
        if named == leasehold_wire::THIS_NODE {
            return reached.connection;
        }
        let Ok(leader) = HostPort::parse(named) else { return reached.connection };
        let here = leader == *host || *named == reached.address.to_string();
        let lately = |(host, at): &(HostPort, Reading)| {
            *host == leader && leasehold_clock::read().since(*at).greater() < LEADER_PAUSE
        };
        if here || self.unreached.as_ref().is_some_and(lately) {
            return reached.connection;
        }
        match tokio::time::timeout(LEADER_TIME, self.try_host(&leader)).await {
            Ok(Ok(there)) => {
                self.rotation.stay_with(&leader);
                self.unreached = None;
                there.connection
            }
            Ok(Err(_)) | Err(_) => {
                self.unreached = Some((leader, leasehold_clock::read()));
                reached.connection
            }
        }
    }

    /// Tries everything that a name stands for.
    async fn try_host(&self, host: &HostPort) -> Result<Reached, Trouble> {
        let resolve = tokio::net::lookup_host((host.host.as_str(), host.port));
        let found = within(self.resolve_time, "its name was not found", resolve).await;
        let mut last = Trouble::NoAnswer(format!("{host}: its name stands for no address"));
        for address in found.map_err(|error| Trouble::NoAnswer(format!("{host}: {error}")))? {
            let place = named(host, address);
            match self.try_address(address).await {
                Ok(connection) => match self.lives.meet(&place, &connection.hello) {
                    Ok(()) => return Ok(Reached { connection, address }),
                    Err(other) => last = Trouble::Refused(other),
                },
                Err(error) if is_opening_error(&error) => {
                    last = Trouble::Refused(Unreachable::Protocol(format!("{place}: {error}")));
                }
                Err(error) => last = Trouble::NoAnswer(format!("{place}: {error}")),
            }
        }
        Err(last)
    }

    async fn try_address(&self, address: SocketAddr) -> io::Result<Connection> {
        let in_haste = self.rotation.count() > 1 && self.failed_rounds == 0;
        let haste = if in_haste { FIRST_CONNECT_TIME } else { Duration::MAX };
        let connect = TcpStream::connect(address);
        let stream = within(self.connect_time.min(haste), "nobody took the connection", connect).await?;
        // A renewal is small and must not wait for the acknowledgement of what went before.
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        let known = self.lives.known();
        let opening = Connection::open(read, write, &known);
        within(self.hello_time.min(haste), "it took the connection, but said no hello", opening).await
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

    #[test]
    fn the_address_behind_a_name_is_shown() {
        let address: SocketAddr = "10.0.0.7:1".parse().unwrap();
        assert_eq!(named(&HostPort { host: "a".into(), port: 1 }, address), "a:1 (10.0.0.7)");
        assert_eq!(named(&HostPort { host: "10.0.0.7".into(), port: 1 }, address), "10.0.0.7:1");
    }
}
