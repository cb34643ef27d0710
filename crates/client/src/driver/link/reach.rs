//! One attempt to reach one host: its name, its addresses, and the hello.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use leasehold_wire::Hello;
use tokio::net::TcpStream;

use super::address::HostPort;
use super::connection::{Connection, Met, is_opening_error};
use super::learned::{LearnedHost, is_this_machine};
use super::life::Lives;
use super::socket::Socket;
use crate::error::Unreachable;

/// While there are others that have not been tried, one that is silent must not cost more than an election.
const FIRST_CONNECT_TIME: Duration = Duration::from_millis(400);

/// How hosts are reached. Clones do the same.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    pub(super) lives: Lives,
    pub(super) connect_time: Duration,
    pub(super) hello_time: Duration,
    pub(super) resolve_time: Duration,
    /// Whether there are others to try soon.
    pub(super) in_haste: bool,
}

/// A node that was reached, and where.
pub(super) struct Reached {
    pub(super) connection: Connection,
    pub(super) address: SocketAddr,
}

impl Reached {
    /// Whether the node says who leads, or leads itself.
    pub(super) fn knows_leader(&self) -> bool {
        !self.connection.hello.leader.is_empty()
    }
}

/// Why a host was not reached.
pub(super) enum Trouble {
    /// It, or its name, did not answer.
    NoAnswer(String),
    /// It speaks something else, or for another state.
    Refused(Unreachable),
}

impl Trouble {
    pub(super) fn words(&self) -> String {
        match self {
            Self::NoAnswer(why) => why.clone(),
            Self::Refused(why) => why.to_string(),
        }
    }
}

impl Reach {
    /// Tries everything that a name of the list stands for.
    pub(super) async fn try_host(&self, host: &HostPort) -> Result<Reached, Trouble> {
        let meets = |place: &str, hello: &Hello| self.lives.meet(place, hello);
        self.try_those(host, |_| true, meets).await
    }

    /// Tries everything that a name stands for which a node told. What "this machine" means to that node is somewhere else.
    pub(super) async fn try_learned(&self, learned: &LearnedHost) -> Result<Reached, Trouble> {
        let meets = |place: &str, hello: &Hello| self.lives.meet_known(place, hello);
        self.try_those(&learned.host, |address| learned.near || !is_this_machine(address.ip()), meets).await
    }

    async fn try_those(
        &self,
        host: &HostPort,
        takes: impl Fn(&SocketAddr) -> bool + Send,
        meets: impl Fn(&str, &Hello) -> Result<(), Unreachable> + Send,
    ) -> Result<Reached, Trouble> {
        let resolve = tokio::net::lookup_host((host.host.as_str(), host.port));
        let found = within(self.resolve_time.min(self.haste()), "its name was not found", resolve).await;
        let mut last = Trouble::NoAnswer(format!("{host}: its name stands for no address"));
        let found = found.map_err(|error| Trouble::NoAnswer(format!("{host}: {error}")))?;
        for address in found.filter(takes) {
            let place = named(host, address);
            match self.try_address(address, &place).await {
                Ok(connection) => match meets(&place, &connection.hello) {
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

    const fn haste(&self) -> Duration {
        if self.in_haste { FIRST_CONNECT_TIME } else { Duration::MAX }
    }

    async fn try_address(&self, address: SocketAddr, place: &str) -> io::Result<Connection> {
        let haste = self.haste();
        let connect = TcpStream::connect(address);
        let stream = within(self.connect_time.min(haste), "nobody took the connection", connect).await?;
        // A renewal is small and must not wait for the acknowledgement of what went before.
        stream.set_nodelay(true)?;
        let known = self.lives.known();
        let opening = Connection::open(Socket::Tcp(stream.into_std()?), &known);
        let what = "it took the connection, but said no hello";
        let opened = within(self.hello_time.min(haste), what, opening).await?;
        let met = Met { place: place.to_owned(), near: is_this_machine(address.ip()) };
        Ok(Connection { met: Some(met), ..opened })
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

    #[tokio::test]
    async fn a_member_on_this_machine_is_reached_only_if_this_machine_named_it() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut taken = Vec::new();
            while let Ok(stream) = listener.accept().await {
                taken.push(stream);
            }
        });
        let (time, lives) = (Duration::from_millis(200), Lives::default());
        let reach =
            Reach { lives, connect_time: time, hello_time: time, resolve_time: time, in_haste: false };
        for host in ["127.0.0.1", "localhost", "0.0.0.0"] {
            let host = HostPort { host: host.into(), port };
            for (near, words) in [(false, "stands for no address"), (true, "said no hello")] {
                let tried = reach.try_learned(&LearnedHost { host: host.clone(), near }).await;
                let why = tried.err().unwrap().words();
                assert!(why.contains(words), "{host}, {near}: {why}");
            }
        }
    }
}
