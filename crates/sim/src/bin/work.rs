//! A node at work, for counting its instructions: `work cycles N`, `work alone N` or `work renewals N`, N rounds.
//!
//! A round of `cycles` is 64 acquires in one turn and 64 releases in the next, by 64 sessions over 4 connections; a round of `alone` is an acquire
//! in one turn and its release in the next, by one of 64 sessions after the other, so that what a turn and an entry cost by themselves is seen; a
//! round of `renewals` is one turn in which 1,000 sessions renew. The disk reports every write at once, so what is counted is the node: taking in, the entry, consensus,
//! the table, delivery. Twice the rounds less the rounds is what the rounds cost; what comes before them cancels out.

use std::ops::Range;
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Request, RequestId, Response, ToClient};
use leasehold_core::{
    Acquire, Answer, Attach, AttachNumber, CommandNumber, Config, ItemKind, ItemNumber, Label, Millis, Mode,
    Nonce, Op, Open, Policies, RenewalNumber, Reply, ResourceName, Sequence, SessionCommand, SessionId,
    SessionKind, Token, Value, command,
};
use leasehold_node::{ConnectionId, FOUNDER, Input, Node, Options, Output, Place, Recovered, Setup, Start};

const CONNECTIONS: usize = 4;
const CYCLING: usize = 64;
const RENEWING: usize = 1_000;

fn main() {
    let mut words = std::env::args().skip(1);
    let (work, rounds) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let rounds: usize = rounds.parse().expect("the second word is a number of rounds");
    match work.as_str() {
        "cycles" => {
            let mut world = World::with_sessions(CYCLING);
            (0..rounds).for_each(|_| world.cycle(0..CYCLING));
        }
        "alone" => {
            let mut world = World::with_sessions(CYCLING);
            (0..rounds).for_each(|round| world.cycle(round % CYCLING..round % CYCLING + 1));
        }
        "renewals" => {
            let mut world = World::with_sessions(RENEWING);
            (1..=rounds).for_each(|round| world.renew(round as u64));
        }
        other => panic!("{other:?} is no work; cycles, alone and renewals are"),
    }
}

struct Client {
    session: SessionId,
    name: ResourceName,
    command: CommandNumber,
    seen: ItemNumber,
    token: Option<Token>,
}

struct World {
    node: Node,
    now: Reading,
    clients: Vec<Client>,
    written: Vec<Input>,
    requests: u64,
    renewed: usize,
}

impl World {
    fn with_sessions(count: usize) -> Self {
        let now = Reading { boot: 1_000_000_000, raw: 1_000_000_000 };
        let setup = Setup {
            place: Place::Served,
            member: FOUNDER,
            start: Start::Alone,
            config: Config::default(),
            recovered: Recovered::default(),
            options: Options::default(),
            version: "work".to_owned(),
            pid: 1,
            seed: 1,
        };
        let node = Node::start(setup, now).expect("an empty log is good");
        let mut world = Self { node, now, clients: Vec::new(), written: Vec::new(), requests: 0, renewed: 0 };
        while !world.node.is_serving() {
            world.turn(Vec::new());
        }
        for number in 0..count {
            let mut nonce = [0; 16];
            nonce[..8].copy_from_slice(&(number as u64 + 1).to_le_bytes());
            world.clients.push(Client {
                session: SessionId::from_u64(0),
                name: ResourceName::new(&format!("shop/orders/shard-{number}")).expect("it is a good name"),
                command: CommandNumber::NONE,
                seen: ItemNumber::NONE,
                token: None,
            });
            let open = Open {
                nonce: Nonce(nonce),
                label: Label::new(&format!("host-{number}")).expect("it is a good label"),
                ttl: Millis::new(60_000),
                policies: Policies::default(),
                kind: SessionKind::Streamed,
            };
            world.ask(vec![(number, Request::Open(open))]);
            let attach = Attach {
                session: world.clients[number].session,
                attach: AttachNumber::new(1),
                seen: ItemNumber::NONE,
            };
            world.ask(vec![(number, Request::Attach { attach, nonce: Nonce(nonce) })]);
        }
        world
    }

    fn cycle(&mut self, numbers: Range<usize>) {
        let acquires = numbers.clone().map(|number| {
            let name = self.clients[number].name.clone();
            let requests = vec![command::Request { resource: name, mode: Mode::Exclusive }];
            (number, Op::Acquire(Acquire { requests, value: Value::default(), wait: None }))
        });
        let acquires = acquires.collect();
        self.command(acquires);
        let releases = numbers.map(|number| {
            let client = &mut self.clients[number];
            let token = client.token.take().expect("it was granted");
            (number, Op::Release { resource: client.name.clone(), token, drained: false })
        });
        let releases = releases.collect();
        self.command(releases);
    }

    fn command(&mut self, ops: Vec<(usize, Op)>) {
        let requests = ops.into_iter().map(|(number, op)| {
            let client = &mut self.clients[number];
            client.command = client.command.next();
            let sequence = Sequence::Streamed {
                attach: AttachNumber::new(1),
                number: client.command,
                seen: client.seen,
            };
            (number, Request::Command(SessionCommand { session: client.session, sequence, op }))
        });
        let requests = requests.collect();
        self.ask(requests);
    }

    fn renew(&mut self, round: u64) {
        let renewals = self.clients.iter().enumerate().map(|(number, client)| {
            let renewal = RenewalNumber::new(round);
            (number, Request::Renew { session: client.session, number: renewal, seen: client.seen })
        });
        let renewals = renewals.collect();
        let before = self.renewed;
        self.ask(renewals);
        assert_eq!(self.renewed - before, self.clients.len(), "every session is renewed");
    }

    /// Asks, and turns until everything is written and answered.
    fn ask(&mut self, requests: Vec<(usize, Request)>) {
        let inputs = requests.into_iter().map(|(number, request)| {
            self.requests += 1;
            let connection = ConnectionId(1 + (number % CONNECTIONS) as u64);
            Input::Request { connection, id: RequestId(self.requests << 16 | number as u64), request }
        });
        let inputs = inputs.collect();
        self.turn(inputs);
        while !self.written.is_empty() {
            self.turn(Vec::new());
        }
    }

    fn turn(&mut self, mut inputs: Vec<Input>) {
        self.now = self.now.plus(Duration::from_micros(100));
        inputs.append(&mut self.written);
        for output in &self.node.turn(self.now, inputs).expect("the node goes on") {
            match output {
                Output::Write(write) => self.written.push(Input::Written { number: write.number }),
                Output::SaveSnapshot(image) => {
                    self.written.push(Input::SnapshotSaved { index: image.index() });
                }
                Output::Send { message, .. } => self.hear(message),
                _ => {}
            }
        }
    }

    fn hear(&mut self, message: &ToClient) {
        match message {
            ToClient::Response { id, response: Response::Reply(reply) } => match reply {
                Reply::Opened(opened) => self.clients[(id.0 & 0xffff) as usize].session = opened.session,
                Reply::Attached { last_item, .. } => self.clients[(id.0 & 0xffff) as usize].seen = *last_item,
                Reply::Renewed(_) => self.renewed += 1,
                other => panic!("{other:?}"),
            },
            ToClient::Items { session, items } => {
                // They were opened one after the other.
                let client = self.clients.binary_search_by_key(session, |client| client.session);
                let client = &mut self.clients[client.expect("only these have sessions")];
                for item in items {
                    client.seen = item.number;
                    if let ItemKind::Answer { answer: Answer::Granted(grants), .. } = &item.kind {
                        client.token = grants.first().map(|grant| grant.token);
                    }
                }
            }
            ToClient::Hint { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}
