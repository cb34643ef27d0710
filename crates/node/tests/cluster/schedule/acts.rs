//! What clients of a schedule send, and what they make of what they hear.

use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{Failure, RequestId, Response, ToClient};
use leasehold_core::{Answer, CommandNumber, Op, Refusal, Reply, SessionKind};
use leasehold_node::{CALLS, Input};

use super::client::Client;
use super::{Play, RESOURCES};
use crate::actor::{Actor, look};

impl Play {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// A client that nobody knows yet.
    pub(super) fn fresh(&mut self) -> Client {
        let (number, at) = (self.number(), self.somewhere());
        let connection = self.world.connection();
        let mut actor = Actor::new(at, connection, number, [500, 1_000, 3_000][self.random.index(3)]);
        if number % 2 == 1 {
            actor.kind = SessionKind::Plain;
            actor.connection = CALLS;
        }
        Client::new(actor)
    }

    /// A process to connect to: one that runs, if any.
    fn somewhere(&mut self) -> usize {
        let up: Vec<usize> = (0..self.world.processes.len())
            .filter(|at| self.world.is_up(*at) && !self.leaving.contains(at))
            .collect();
        if up.is_empty() { 0 } else { up[self.random.index(up.len())] }
    }

    /// The connection of a client is gone: it takes another one, here or elsewhere.
    pub(super) fn reconnect(&mut self, client: usize) {
        let at = self.somewhere();
        let connection = self.world.connection();
        let client = &mut self.clients[client];
        client.actor.at = at;
        if !client.is_plain() {
            client.actor.connection = connection;
            client.is_attached = false;
        }
    }

    /// A process is gone, and its clients with it go elsewhere.
    pub(super) fn leave(&mut self, process: usize) {
        self.owed.retain(|_, at| *at != process);
        for client in 0..self.clients.len() {
            if self.clients[client].actor.at == process {
                self.reconnect(client);
            }
        }
    }

    fn ask_call(&mut self, client: usize, request: leasehold_core::protocol::Request) -> Option<RequestId> {
        let at = self.clients[client].actor.at;
        if !self.world.is_up(at) {
            self.reconnect(client);
            return None;
        }
        let id = self.world.ask(at, CALLS, request);
        self.asked.insert(id, client);
        self.owed.insert(id, at);
        Some(id)
    }

    /// A client does something.
    pub(super) fn act(&mut self, number: usize) {
        let what = self.random.below(100);
        let client = &self.clients[number];
        if !self.world.is_up(client.actor.at) {
            return self.reconnect(number);
        }
        match (client.is_plain(), what) {
            (_, 0..2) => self.disconnect(number),
            (true, _) => self.act_plain(number, what),
            (false, _) => self.act_streamed(number, what),
        }
    }

    fn disconnect(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let at = client.actor.at;
        if client.is_plain() {
            // A caller that is kept waiting goes away; sometimes the client also speaks with another node afterwards.
            if let Some(id) = client.calls.pop_last()
                && let Some(at) = self.owed.remove(&id)
            {
                self.asked.remove(&id);
                self.world.processes[at].inbox.push(Input::Abandoned { connection: CALLS, id });
            }
        } else {
            let connection = client.actor.connection;
            self.world.processes[at].inbox.push(Input::Disconnected(connection));
        }
        self.reconnect(number);
    }

    fn act_plain(&mut self, number: usize, what: u64) {
        let now = self.clocks[number].0;
        let resource = RESOURCES[self.random.index(RESOURCES.len())];
        let (wait, tag) = (1 + self.random.below(4_000), self.number());
        let client = &mut self.clients[number];
        if !client.is_open {
            client.sent.entry(0).or_insert(now);
            let open = client.actor.open();
            self.ask_call(number, open);
            return;
        }
        match what {
            0..55 => {
                let renew = client.actor.plain_renew();
                if let Some(id) = self.ask_call(number, renew) {
                    self.clients[number].unnumbered.insert(id, now);
                }
            }
            55..80 => {
                let acquire = client.actor.held_acquire(resource, wait, tag);
                if let Some(id) = self.ask_call(number, acquire) {
                    self.clients[number].calls.insert(id);
                }
            }
            80..92 => {
                let Some(token) = client.gives_back(resource) else { return };
                let release = client.actor.plain_release(resource, token);
                self.ask_call(number, release);
            }
            92..98 => {
                self.ask_call(number, look(resource));
            }
            _ => {
                client.closes();
                let close = client.actor.plain_op(Op::Close);
                self.ask_call(number, close);
            }
        }
    }

    fn act_streamed(&mut self, number: usize, what: u64) {
        let now = self.clocks[number].0;
        let resource = RESOURCES[self.random.index(RESOURCES.len())];
        let wait = (!what.is_multiple_of(5)).then_some(1 + what * 40);
        let client = &mut self.clients[number];
        let request = match what {
            // A repeated open counts from its first sending.
            _ if !client.is_open => {
                client.sent.entry(0).or_insert(now);
                client.actor.open()
            }
            _ if !client.is_attached => client.actor.attach(),
            0..5 => client.actor.attach(),
            5..60 => {
                let renew = client.actor.renew();
                client.sent.insert(client.actor.renewal.get(), now);
                renew
            }
            60..82 => client.actor.acquire(resource, wait),
            82..97 => {
                let Some(token) = client.gives_back(resource) else { return };
                client.actor.release(resource, token)
            }
            _ => {
                client.closes();
                self.closing.insert(number);
                client.actor.op(Op::Close)
            }
        };
        self.world.ask(client.actor.at, client.actor.connection, request);
    }

    pub(super) fn hear(&mut self, client: usize, message: ToClient) {
        match message {
            ToClient::Items { items, .. } => {
                for item in items {
                    self.clients[client].process(item.number, &item.kind);
                }
                if self.closing.contains(&client) {
                    // Belief ends when the close is sent: what is granted meanwhile is nobody's.
                    self.clients[client].closes();
                }
            }
            ToClient::Response { id, response } => {
                let listens = self.clients[client].calls.remove(&id);
                match response {
                    Response::Reply(reply) => self.hear_reply(client, id, &reply, listens),
                    // Its connection speaks for nobody any more.
                    Response::Failed(Failure::NotYourSession { .. }) => self.reconnect(client),
                    _ => {}
                }
            }
            ToClient::Hint { .. } | ToClient::Watched { .. } => {}
        }
        self.clients[client].count_kept();
        if planted(Bug::DeadlineFromReceipt) {
            let now = self.clocks[client].0;
            self.clients[client].sent.values_mut().for_each(|sent| *sent = now);
        }
    }

    fn hear_reply(&mut self, client: usize, id: RequestId, reply: &Reply, listens: bool) {
        let heard = &mut self.clients[client];
        match reply {
            Reply::Opened(opened) => {
                heard.actor.session = opened.session;
                heard.is_open = true;
            }
            Reply::Attached { last_command, .. } => {
                heard.actor.command = *last_command;
                heard.is_attached = true;
            }
            Reply::Plain { answer: Answer::Granted(grants), renewal, .. } if listens => {
                heard.plain_granted(grants, *renewal);
            }
            Reply::Renewed(renewed) if heard.is_plain() => {
                heard.plain_renewed(id, renewed);
            }
            Reply::Renewed(renewed) => {
                heard.kept.push((renewed.number.get(), renewed.after));
            }
            Reply::Closed | Reply::Refused(Refusal::SessionEnded { .. }) => {
                // What is still on its way to the old one is heard by nobody.
                self.asked.retain(|_, theirs| *theirs != client);
                let fresh = self.fresh();
                self.clients[client] = fresh;
                self.closing.remove(&client);
            }
            Reply::Refused(Refusal::CommandGap { expected, .. }) => {
                heard.actor.command = CommandNumber::new(expected.get() - 1);
            }
            _ => {}
        }
    }
}
