//! A service on the network: one or more addresses, any of which will do.
//!
//! Promises that every attempt looks names up anew, so that a service that moves is found again; that an address that does not answer
//! does not keep the others from being tried; that of several nodes the one that leads is used if it can be reached, also one that
//! stands in no list; and that the members that the service itself has named are tried when those of the list do not answer. What it
//! deliberately does not do: it does not choose by speed, and it does not insist on the leader. Any node answers.

mod beyond;

use std::time::Duration;

use leasehold_core::Millis;
use leasehold_core::holder::Reading;

use self::beyond::Silences;
use super::Known;
use super::address::HostPort;
use super::connection::Connection;
use super::learned::{Learned, LearnedHost, Learning};
use super::reach::{Reach, Reached, Trouble};
use super::rotation::Rotation;
use crate::error::Unreachable;
use crate::store::ConnectOptions;

/// An address takes a connection within this time, or the next one is tried: it may be cut off.
const CONNECT_TIME: Duration = Duration::from_millis(1_000);
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
    reach: Reach,
    learned: Learned,
    silences: Silences,
    away_since: Option<Reading>,
    /// Rounds over all addresses without a connection since the last one that was good.
    failed_rounds: u32,
    /// The leader that could not be reached, and when.
    unreached: Option<(HostPort, Reading)>,
    /// Whether nobody is used who is not on the list.
    only_listed: bool,
}

/// What has come of an attempt so far, as long as nothing good has.
#[derive(Default)]
struct Round {
    /// Cut off from the others, or part of nothing yet: it will do if there is no better one.
    leaderless: Option<(HostPort, Connection)>,
    silent: Vec<String>,
    refused: Option<Unreachable>,
}

impl Service {
    /// `hosts` are not empty.
    pub(super) fn new(
        hosts: Vec<HostPort>,
        draw: u32,
        known: Known,
        options: &ConnectOptions,
        hello_time: Duration,
    ) -> Self {
        let patience = options.patience;
        let rotation = Rotation::new(hosts, draw);
        // A short patience must still leave time for all of them, and to say what went wrong.
        let share = patience / u32::try_from(2 * rotation.count()).unwrap_or(u32::MAX);
        let reach = Reach {
            lives: known.lives,
            connect_time: CONNECT_TIME.min(share),
            hello_time: hello_time.min(share),
            resolve_time: RESOLVE_TIME.min(patience * 3 / 4),
            in_haste: false,
        };
        Self {
            rotation,
            reach,
            learned: known.learned,
            silences: Silences::default(),
            away_since: None,
            failed_rounds: 0,
            unreached: None,
            only_listed: options.only_listed,
        }
    }

    /// One attempt at each host of the list until one is good; the next attempt begins with that one. If none is, one at all others that are
    /// known.
    pub(super) async fn connect(&mut self, wanted: Wanted) -> Result<Connection, Unreachable> {
        let began = leasehold_clock::read();
        let others = self.learned.beside(self.rotation.hosts());
        let several = self.rotation.count() + others.len() > 1;
        self.reach.in_haste = several && self.failed_rounds == 0;
        let mut round = Round::default();
        for _ in 0..self.rotation.count() {
            let host = self.rotation.current().clone();
            match self.reach.try_host(&host).await {
                Ok(reached) if several && !reached.knows_leader() => round.keep(host, reached),
                Ok(reached) => return Ok(self.use_it(wanted, &host, reached).await),
                Err(Trouble::NoAnswer(why)) => round.silent.push(why),
                Err(Trouble::Refused(why)) => round.refused = Some(why),
            }
            self.rotation.next();
        }
        if let Some((host, reached)) = self.try_others(others, &mut round).await {
            return Ok(self.use_it(wanted, &host, reached).await);
        }
        // Another one of the list may have shown since that this one is of an earlier life.
        let leaderless = round.leaderless.filter(|(_, kept)| self.reach.lives.is_current(&kept.hello));
        if let Some((host, connection)) = leaderless {
            self.rotation.stay_with(&host);
            return Ok(self.good(connection));
        }
        self.failed_rounds = self.failed_rounds.saturating_add(1);
        let waited = leasehold_clock::read().since(*self.away_since.get_or_insert(began)).greater();
        let waited = Millis::from_duration(waited).duration();
        let last = Some(round.silent.join("; "));
        Err(round.refused.unwrap_or_else(|| Unreachable::NoConnection { store: self.url(), waited, last }))
    }

    async fn use_it(&mut self, wanted: Wanted, host: &HostPort, reached: Reached) -> Connection {
        let connection = match wanted {
            Wanted::Leader if !self.only_listed => self.towards_leader(host, reached).await,
            Wanted::Leader | Wanted::Anyone => reached.connection,
        };
        self.good(connection)
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

    /// What a connection can learn for the next ones.
    pub(super) fn learning(&self, connection: &Connection) -> Option<Learning> {
        // A node that is part of nothing has nobody to name, and hangs up on whoever asks.
        if self.only_listed || connection.hello.incarnation.is_empty() {
            return None;
        }
        let near = connection.met.as_ref().is_some_and(|met| met.near);
        Some(Learning { learned: self.learned.clone(), lives: self.reach.lives.clone(), near })
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
        let near = reached.connection.met.as_ref().is_some_and(|met| met.near);
        let member = LearnedHost { host: leader, near };
        let there = tokio::time::timeout(LEADER_TIME, self.reach.try_learned(&member)).await;
        if let Ok(Ok(there)) = there {
            self.rotation.stay_with(&member.host);
            self.unreached = None;
            return there.connection;
        }
        self.unreached = Some((member.host, leasehold_clock::read()));
        reached.connection
    }
}

impl Round {
    fn keep(&mut self, host: HostPort, reached: Reached) {
        self.leaderless.get_or_insert((host, reached.connection));
    }
}
