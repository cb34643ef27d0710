//! How a client comes to a connection: one address after the other, and on to the leader that is named there, as the library does it.

use leasehold_core::client::Input;
use leasehold_core::protocol::{Incarnation, MemberId};

use super::{Event, World};
use crate::trace::{MILLI, SECOND};

/// An address takes a connection and says hello within this time, or the next one is tried.
const CONNECT_TIME: u64 = SECOND;
/// The same while there are others that have not been tried.
const FIRST_CONNECT_TIME: u64 = 400 * MILLI;
/// The leader is reached within this time, or whoever named it will do.
const LEADER_TIME: u64 = 300 * MILLI;
/// A leader that was not reached is not tried again for so long.
const LEADER_PAUSE: u64 = 10 * SECOND;
/// Pauses between two rounds.
const SHORTEST_PAUSE: u64 = 10 * MILLI;
const LONGEST_PAUSE: u64 = 500 * MILLI;
/// A connection that lasted so long was a good one.
const STEADY: u64 = 100 * MILLI;

/// What a node says of itself to whoever connects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hello {
    leader: Option<MemberId>,
    this: MemberId,
    incarnation: Incarnation,
    epoch: u16,
}

/// How a client stands with its connection.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) connection: Option<u64>,
    /// Counts attempts: what belongs to an earlier one is for nobody.
    dial: u64,
    /// The address that is tried next.
    host: usize,
    tried: usize,
    leaderless: Option<usize>,
    /// While the leader is tried: whoever named it.
    named_by: Option<usize>,
    /// The leader that was tried last.
    leader: Option<usize>,
    up_since: Option<u64>,
    backoff: u64,
    unreached: Option<(usize, u64)>,
    /// The life of the state that is known.
    pub(super) life: Option<(Incarnation, u16)>,
}

impl Way {
    pub(super) const fn set_host(&mut self, host: usize) {
        self.host = host;
    }

    pub(super) const fn new(host: usize) -> Self {
        Self {
            connection: None,
            dial: 0,
            host,
            tried: 0,
            leaderless: None,
            named_by: None,
            leader: None,
            up_since: None,
            backoff: SHORTEST_PAUSE,
            unreached: None,
            life: None,
        }
    }
}

impl World {
    /// A client's process begins to look for a node.
    pub(super) fn begin_dialling(&mut self, client: usize, pause: u64) {
        let way = &mut self.clients[client].way;
        way.dial += 1;
        let dial = way.dial;
        self.queue.push(self.now + pause, Event::Dials { client, dial });
    }

    pub(super) fn dials(&mut self, client: usize, dial: u64) {
        let way = &mut self.clients[client].way;
        if way.dial != dial {
            return;
        }
        way.tried = 0;
        way.leaderless = None;
        way.named_by = None;
        self.try_host(client);
    }

    fn try_host(&mut self, client: usize) {
        let hosts = self.plan.nodes;
        let way = &mut self.clients[client].way;
        if way.tried == hosts {
            return match way.leaderless {
                Some(at) => {
                    way.host = at;
                    self.connected(client, at);
                }
                None => self.pauses(client),
            };
        }
        let (at, last) = (way.host, way.tried + 1 == hosts);
        self.dial(client, at, if last { CONNECT_TIME } else { FIRST_CONNECT_TIME });
    }

    fn dial(&mut self, client: usize, at: usize, patience: u64) {
        let takes = self.client_delay();
        let way = &mut self.clients[client].way;
        way.dial += 1;
        let dial = way.dial;
        if !self.faults.client_to_node(client, at) {
            self.queue.push(self.now + takes, Event::Dialled { client, dial, at });
        }
        self.queue.push(self.now + patience, Event::DialFailed { client, dial });
    }

    pub(super) fn dialled(&mut self, client: usize, dial: u64, at: usize) {
        if self.clients[client].way.dial != dial || self.faults.node_to_client(at, client) {
            return;
        }
        let takes = self.client_delay();
        let own = &self.processes[at];
        if !own.is_running() {
            // The machine refuses for it.
            return self.queue.push(self.now + takes, Event::DialFailed { client, dial });
        }
        if own.paused {
            return;
        }
        let leader = own.node.as_ref().and_then(leasehold_node::Node::leader);
        let hello = Hello {
            leader,
            this: own.member.id,
            incarnation: own.membership.incarnation,
            epoch: own.membership.epoch,
        };
        self.queue.push(self.now + takes, Event::Hello { client, dial, at, hello: Box::new(hello) });
    }

    pub(super) fn hello(&mut self, client: usize, dial: u64, at: usize, hello: Hello) {
        let hosts = self.plan.nodes;
        let way = &mut self.clients[client].way;
        if way.dial != dial {
            return;
        }
        if hello.incarnation.is_known() {
            let found = (hello.incarnation, hello.epoch);
            if way.life.is_some_and(|known| known.0 != found.0 && known.1 >= found.1) {
                return self.dial_failed(client, dial);
            }
            way.life = Some(found);
        }
        if way.named_by.take().is_some() {
            return self.connected(client, at);
        }
        let Some(leader) = hello.leader.filter(|_| hello.incarnation.is_known()) else {
            way.leaderless.get_or_insert(at);
            way.tried += 1;
            way.host = (way.host + 1) % hosts;
            return self.try_host(client);
        };
        let lately = |slot: usize, way: &Way, now: u64| {
            way.unreached.is_some_and(|(known, since)| known == slot && now - since < LEADER_PAUSE)
        };
        match self.slot_of(leader) {
            Some(slot) if leader != hello.this && !lately(slot, &self.clients[client].way, self.now) => {
                self.clients[client].way.named_by = Some(at);
                self.clients[client].way.leader = Some(slot);
                self.dial(client, slot, LEADER_TIME);
            }
            _ => self.connected(client, at),
        }
    }

    pub(super) fn dial_failed(&mut self, client: usize, dial: u64) {
        let (hosts, now) = (self.plan.nodes, self.now);
        let way = &mut self.clients[client].way;
        if way.dial != dial || way.connection.is_some() {
            return;
        }
        if let Some(at) = way.named_by.take() {
            way.unreached = way.leader.map(|slot| (slot, now));
            return self.connected(client, at);
        }
        way.tried += 1;
        way.host = (way.host + 1) % hosts;
        self.try_host(client);
    }

    fn connected(&mut self, client: usize, at: usize) {
        let way = &mut self.clients[client].way;
        way.dial += 1;
        if !self.processes[at].is_running() {
            return self.pauses(client);
        }
        let connection = self.open_connection(client, at);
        let way = &mut self.clients[client].way;
        way.connection = Some(connection);
        way.up_since = Some(self.now);
        self.trace.note(self.now, 7, connection);
        let soon = self.soon();
        self.clients[client].connection_is(Input::Connected, soon);
    }

    /// The connection has ended, or was given up: the next attempt is made at another address.
    pub(super) fn connection_lost(&mut self, client: usize, connection: u64) {
        let (hosts, now) = (self.plan.nodes, self.now);
        let way = &mut self.clients[client].way;
        if way.connection != Some(connection) {
            return;
        }
        way.connection = None;
        way.host = (way.host + 1) % hosts;
        let steady = way.up_since.take().is_some_and(|since| now - since >= STEADY);
        let soon = self.soon();
        self.clients[client].connection_is(Input::Disconnected, soon);
        if steady {
            self.clients[client].way.backoff = SHORTEST_PAUSE;
            self.begin_dialling(client, 1);
        } else {
            self.pauses(client);
        }
    }

    fn pauses(&mut self, client: usize) {
        let way = &mut self.clients[client].way;
        let half = way.backoff / 2;
        way.backoff = (way.backoff * 3 / 2).min(LONGEST_PAUSE);
        let pause = half + self.net.below(half + 1);
        self.begin_dialling(client, pause);
    }
}
