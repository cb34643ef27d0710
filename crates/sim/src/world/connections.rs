//! Connections between clients and nodes. What is sent on one arrives in order; a cut holds it back until it is healed, long after whoever sent it has given
//! the connection up, as TCP does. Frames may be lost on a connection that lives: TCP does not do that, but nothing may rely on it.

use leasehold_core::protocol::{Request, RequestId, ToClient};
use leasehold_node::{ConnectionId, Input};

use super::clients::key_of_request;
use super::nodes::End;
use super::{Event, World, wire};
use crate::plan::Fault;
use crate::record::{Event as Noted, LogId, TrueTime};
use crate::trace::MICRO;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: usize,
    pub(super) client_life: u32,
    pub(super) at: usize,
    node_life: u32,
    pub(super) client_open: bool,
    node_open: bool,
    to_node_at: u64,
    to_client_at: u64,
    stalled_to_node: Vec<Vec<(RequestId, Request)>>,
    stalled_to_client: Vec<(LogId, Vec<ToClient>)>,
    /// The end that the other side has not heard of because of a cut.
    stalled_end_to_node: bool,
    stalled_end_to_client: bool,
}

/// One frame of so many arrives twice, where requests are doubled.
const DUPLICATES: u64 = 20;

/// Connections are numbered from one: zero is that of all calls.
const fn index(connection: u64) -> usize {
    connection as usize - 1
}

impl World {
    pub(super) fn client_delay(&mut self) -> u64 {
        let (least, most) = self.plan.client_delay;
        let most =
            if self.phase == super::Phase::Healing { most.min(4_000 * MICRO).max(least) } else { most };
        self.net.between(least, most)
    }

    fn loses_frame(&mut self) -> bool {
        self.phase == super::Phase::Faults && self.net.millionths(self.plan.client_loss)
    }

    /// A connection that both sides know.
    pub(super) fn open_connection(&mut self, client: usize, at: usize) -> u64 {
        self.connections.push(Connection {
            client,
            client_life: self.clients[client].life,
            at,
            node_life: self.processes[at].life,
            client_open: true,
            node_open: true,
            to_node_at: self.now,
            to_client_at: self.now,
            stalled_to_node: Vec::new(),
            stalled_to_client: Vec::new(),
            stalled_end_to_node: false,
            stalled_end_to_client: false,
        });
        let connection = self.connections.len() as u64;
        self.processes[at].connections.insert(connection);
        connection
    }

    pub(super) fn send_to_node(&mut self, connection: u64, frame: Vec<(RequestId, Request)>) {
        if self.loses_frame() {
            return;
        }
        let frame = if self.plan.faults.has(Fault::Wire) { wire::requests(&frame) } else { frame };
        let takes = self.client_delay();
        let known = &mut self.connections[index(connection)];
        if self.faults.client_to_node(known.client, known.at) {
            return known.stalled_to_node.push(frame);
        }
        known.to_node_at = known.to_node_at.max(self.now + takes);
        let arrives = known.to_node_at;
        let doubles = self.phase == super::Phase::Faults && self.plan.faults.has(Fault::DuplicateRequests);
        if doubles && self.net.one_in(DUPLICATES) {
            for (_, request) in &frame {
                if let Some(key) = key_of_request(request) {
                    self.notes.record.push(TrueTime(self.now), Noted::RequestSent { key });
                }
            }
            self.queue.push(arrives, Event::ToNode { connection, frame: frame.clone() });
        }
        self.queue.push(arrives, Event::ToNode { connection, frame });
    }

    pub(super) fn send_to_client(&mut self, at: usize, connection: u64, frame: Vec<ToClient>) {
        if !self.processes[at].connections.contains(&connection) || self.loses_frame() {
            return;
        }
        self.answer_leaves(&frame);
        let frame = if self.plan.faults.has(Fault::Wire) { wire::messages(&frame) } else { frame };
        let log = self.processes[at].state;
        let takes = self.client_delay();
        let known = &mut self.connections[index(connection)];
        if self.faults.node_to_client(known.at, known.client) {
            return known.stalled_to_client.push((log, frame));
        }
        known.to_client_at = known.to_client_at.max(self.now + takes);
        self.queue.push(known.to_client_at, Event::ToClient { connection, log, frame });
    }

    pub(super) fn arrives_at_node(&mut self, connection: u64, frame: Vec<(RequestId, Request)>) {
        let known = &self.connections[index(connection)];
        let own = &self.processes[known.at];
        if !known.node_open || own.life != known.node_life || !own.is_running() {
            // A machine that runs says that it knows nothing of this.
            if known.client_open && own.is_running() {
                self.end_towards_client(connection);
            }
            return;
        }
        let at = known.at;
        self.trace.note(self.now, 5, connection);
        let soon = self.soon();
        for (id, request) in frame {
            self.processes[at]
                .push(Input::Request { connection: ConnectionId(connection), id, request }, soon);
        }
    }

    pub(super) fn arrives_at_client(&mut self, connection: u64, log: LogId, frame: Vec<ToClient>) {
        let known = &self.connections[index(connection)];
        let client = known.client;
        if known.client_open && self.clients[client].life == known.client_life {
            self.trace.note(self.now, 6, connection);
            let soon = self.soon();
            self.clients[client].hears((connection, log), frame, soon);
        }
    }

    /// The node ends a connection: what it said before still arrives.
    pub(super) fn node_closes(&mut self, at: usize, connection: u64) {
        if !self.processes[at].connections.remove(&connection) {
            return;
        }
        self.queue.push(self.now + 20 * MICRO, Event::NodeSeesEnd { connection });
        self.end_towards_client(connection);
    }

    fn end_towards_client(&mut self, connection: u64) {
        let takes = self.client_delay();
        let known = &mut self.connections[index(connection)];
        if self.faults.node_to_client(known.at, known.client) {
            known.stalled_end_to_client = true;
            return;
        }
        known.to_client_at = known.to_client_at.max(self.now + takes);
        self.queue.push(known.to_client_at, Event::ClientSeesEnd { connection });
    }

    /// The client ends a connection, or its process does.
    pub(super) fn client_closes(&mut self, connection: u64) {
        let takes = self.client_delay();
        let known = &mut self.connections[index(connection)];
        if !known.client_open {
            return;
        }
        known.client_open = false;
        known.stalled_to_client = Vec::new();
        if self.faults.client_to_node(known.client, known.at) {
            known.stalled_end_to_node = true;
            return;
        }
        known.to_node_at = known.to_node_at.max(self.now + takes);
        self.queue.push(known.to_node_at, Event::NodeSeesEnd { connection });
    }

    pub(super) fn node_sees_end(&mut self, connection: u64) {
        let known = &mut self.connections[index(connection)];
        if !known.node_open {
            return;
        }
        known.node_open = false;
        let (at, life) = (known.at, known.node_life);
        if self.processes[at].life == life {
            let soon = self.soon();
            self.processes[at].connections.remove(&connection);
            // What arrives here is the end that the client's side has sent.
            self.processes[at].push(Input::HungUp(ConnectionId(connection)), soon);
            self.processes[at].push(Input::Disconnected(ConnectionId(connection)), soon);
        }
    }

    pub(super) fn client_sees_end(&mut self, connection: u64) {
        let known = &mut self.connections[index(connection)];
        if !known.client_open {
            return;
        }
        known.client_open = false;
        let (client, life) = (known.client, known.client_life);
        if self.clients[client].life == life {
            self.connection_lost(client, connection);
        }
    }

    /// A process of a node is gone. Its machine says so for it, unless that is gone as well.
    pub(super) fn connections_of_the_dead(&mut self, at: usize, end: End) {
        let silent = end == End::PowerLost && self.chance.one_in(2);
        for connection in std::mem::take(&mut self.processes[at].connections) {
            self.connections[index(connection)].node_open = false;
            if !silent {
                self.end_towards_client(connection);
            }
        }
    }

    /// What a cut held back goes on.
    pub(super) fn flush_connections(&mut self, client: usize, at: usize) {
        for place in 0..self.connections.len() {
            let known = &self.connections[place];
            let holds = !known.stalled_to_node.is_empty()
                || !known.stalled_to_client.is_empty()
                || known.stalled_end_to_node
                || known.stalled_end_to_client;
            if known.client == client && known.at == at && holds {
                self.flush(place);
            }
        }
    }

    fn flush(&mut self, place: usize) {
        let connection = place as u64 + 1;
        let takes = self.client_delay();
        let known = &mut self.connections[place];
        if !self.faults.client_to_node(known.client, known.at) {
            known.to_node_at = known.to_node_at.max(self.now + takes);
            for frame in std::mem::take(&mut known.stalled_to_node) {
                self.queue.push(known.to_node_at, Event::ToNode { connection, frame });
            }
            if std::mem::take(&mut known.stalled_end_to_node) {
                self.queue.push(known.to_node_at, Event::NodeSeesEnd { connection });
            }
        }
        if !self.faults.node_to_client(known.at, known.client) {
            known.to_client_at = known.to_client_at.max(self.now + takes);
            for (log, frame) in std::mem::take(&mut known.stalled_to_client) {
                self.queue.push(known.to_client_at, Event::ToClient { connection, log, frame });
            }
            if std::mem::take(&mut known.stalled_end_to_client) {
                self.queue.push(known.to_client_at, Event::ClientSeesEnd { connection });
            }
        }
    }
}
