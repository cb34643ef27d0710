//! One node, a disk that forgets nothing, and many client machines, each with a connection of its own. Messages take no time.

use std::time::Duration;

use leasehold_core::client::{
    ClientSession, Event, Frame, Incoming, Input as ToMachine, Output as Says, Profile,
};
use leasehold_core::command;
use leasehold_core::holder::{Fraction, Reading, Standing};
use leasehold_core::numbers::{Ask, Numbers};
use leasehold_core::protocol::{Request, RequestId, Response, ToClient};
use leasehold_core::{Acquire, Config, Label, Millis, Mode, Nonce, Op, Policies, ResourceName, Value};
use leasehold_node::{
    ConnectionId, FOUNDER, Input, LogEntry, Node, Options, Output, Place, Recovered, Setup, Start, Vote,
};

/// Time moves in steps of this many milliseconds.
const STEP: u64 = 5;
/// Renewals are counted over this many milliseconds.
const WINDOW: u64 = 100;

/// Whether the node asks for other times.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wishes {
    None,
    Default,
}

struct Client {
    machine: ClientSession,
    /// What was asked on the present connection.
    asked: Vec<(RequestId, Frame)>,
    connection: Option<ConnectionId>,
    wake: Option<u64>,
    alive: bool,
}

pub(crate) struct Crowd {
    node: Node,
    options: Options,
    vote: Vote,
    log: Vec<LogEntry>,
    inbox: Vec<Input>,
    clients: Vec<Client>,
    now: u64,
    requests: u64,
    /// Whose each connection is.
    connections: Vec<usize>,
    random: u64,
    /// When renewals were sent.
    renewals: Vec<u64>,
    hints: usize,
    lost: usize,
    /// What clients were sent since somebody looked.
    pub(crate) heard: Vec<(usize, ToClient)>,
}

fn reading(millis: u64) -> Reading {
    Reading { boot: 9_000_000_000, raw: 5_000_000_000 }.plus(Duration::from_millis(millis))
}

fn start(options: &Options, recovered: Recovered, now: u64) -> Node {
    let setup = Setup {
        place: Place::Served,
        member: FOUNDER,
        start: Start::Alone,
        config: Config::default(),
        recovered,
        options: options.clone(),
        version: "test".into(),
        pid: 7,
        seed: 1,
    };
    Node::start(setup, reading(now)).expect("the log is good")
}

impl Crowd {
    /// So many sessions, opened one after the other within a third of the ttl, each with a lease of its own.
    pub(crate) fn open(sessions: usize, ttl: Millis, wishes: Wishes) -> Self {
        let mut options =
            Options { snapshot_entries: u64::MAX, snapshot_bytes: u64::MAX, ..Options::default() };
        if matches!(wishes, Wishes::None) {
            options.renewals_at_once = usize::MAX;
        }
        let mut crowd = Self {
            node: start(&options, Recovered::default(), 0),
            options,
            vote: Vote::default(),
            log: Vec::new(),
            inbox: Vec::new(),
            clients: Vec::new(),
            now: 0,
            requests: 0,
            connections: Vec::new(),
            random: 1,
            renewals: Vec::new(),
            hints: 0,
            lost: 0,
            heard: Vec::new(),
        };
        crowd.run(100);
        let begin = crowd.now;
        for number in 0..sessions {
            let due = begin + ttl.get() / 3 * number as u64 / sessions as u64;
            crowd.run(due.saturating_sub(crowd.now) / STEP * STEP);
            crowd.join(number, ttl);
        }
        crowd
    }

    fn join(&mut self, number: usize, ttl: Millis) {
        let numbers = Numbers::check(Ask::for_ttl(ttl)).expect("the defaults fit");
        let label = Label::new(&format!("c{number}")).expect("a short label");
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&(number as u64).to_le_bytes());
        let machine =
            ClientSession::new(Profile { label, numbers, policies: Policies::default() }, Nonce(nonce));
        self.clients.push(Client { machine, asked: Vec::new(), connection: None, wake: None, alive: true });
        self.connect(number);
        self.acquire(number, &format!("own/{number}"), None);
    }

    fn connect(&mut self, client: usize) {
        self.connections.push(client);
        let own = &mut self.clients[client];
        own.connection = Some(ConnectionId(self.connections.len() as u64));
        own.machine.handle(ToMachine::Connected, reading(self.now));
        own.wake = Some(self.now);
    }

    pub(crate) fn acquire(&mut self, client: usize, name: &str, wait: Option<Millis>) {
        let resource = ResourceName::new(name).expect("a short name");
        let requests = vec![command::Request { resource, mode: Mode::Exclusive }];
        let acquire = Acquire { requests, wait, value: Value::default() };
        self.clients[client].machine.submit(Op::Acquire(acquire)).expect("the session lives");
        self.clients[client].wake = Some(self.now);
    }

    /// This client is never heard of again.
    pub(crate) fn kill(&mut self, client: usize) {
        let own = &mut self.clients[client];
        own.alive = false;
        if let Some(connection) = own.connection.take() {
            self.inbox.push(Input::Disconnected(connection));
        }
    }

    /// The service is gone for so many milliseconds; another process goes on with its log, and everybody comes back at one moment.
    pub(crate) fn fail_over(&mut self, millis: u64) {
        self.inbox.clear();
        for client in &mut self.clients {
            client.connection = None;
            client.asked.clear();
            client.machine.handle(ToMachine::Disconnected, reading(self.now));
        }
        for _ in 0..millis / STEP {
            self.now += STEP;
            self.poll_clients();
        }
        let recovered = Recovered { vote: self.vote, entries: self.log.clone(), snapshot: None };
        self.node = start(&self.options, recovered, self.now);
        self.settle();
        for client in 0..self.clients.len() {
            self.connect(client);
        }
    }

    pub(crate) fn run(&mut self, millis: u64) {
        for _ in 0..millis / STEP {
            self.poll_clients();
            self.settle();
            self.now += STEP;
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn hints(&self) -> usize {
        self.hints
    }

    pub(crate) fn lost(&self) -> usize {
        self.lost
    }

    pub(crate) fn renewals(&self) -> usize {
        self.renewals.len()
    }

    pub(crate) fn queue(&self, name: &str) -> usize {
        let name = ResourceName::new(name).expect("a short name");
        self.node.table().lease(&name).map_or(0, |view| view.waiting)
    }

    /// The greatest number of renewals that were sent in a window between two points.
    pub(crate) fn peak(&self, from: u64, to: u64) -> usize {
        let mut counts = vec![0; usize::try_from((to - from).div_ceil(WINDOW)).expect("a few")];
        for sent in self.renewals.iter().filter(|sent| (from..to).contains(*sent)) {
            counts[usize::try_from((sent - from) / WINDOW).expect("a few")] += 1;
        }
        counts.into_iter().max().unwrap_or(0)
    }

    fn draw(&mut self) -> Fraction {
        // A multiplicative generator: the spread is what matters.
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Fraction::from_bits(u32::try_from(self.random >> 32).expect("half of it"))
    }

    fn poll_clients(&mut self) {
        for client in 0..self.clients.len() {
            let is_due = |own: &Client| own.alive && own.wake.is_some_and(|wake| wake <= self.now);
            if !is_due(&self.clients[client]) {
                continue;
            }
            let jitter = self.draw();
            let outputs = self.clients[client].machine.poll(reading(self.now), jitter);
            for output in outputs {
                match output {
                    Says::Send(frame) => self.send(client, frame),
                    Says::Event(
                        Event::SessionEnded { .. }
                        | Event::LeaseEnded { .. }
                        | Event::Standing(Standing::Lapsed { .. } | Standing::Uncertain { .. }),
                    ) => self.lost += 1,
                    Says::Event(_) => {}
                    Says::NeedNonce | Says::Reconnect => panic!("the service answers at once"),
                }
            }
            let own = &mut self.clients[client];
            let wake = own.machine.next_wake(reading(self.now));
            own.wake = wake.map(|wake| self.now + u64::try_from(wake.as_millis()).expect("less than an age"));
        }
    }

    fn send(&mut self, client: usize, frame: Frame) {
        let Some(connection) = self.clients[client].connection else { return };
        self.requests += 1;
        let id = RequestId(self.requests);
        if matches!(frame, Frame::Renew { .. }) {
            self.renewals.push(self.now);
        }
        let request = match frame.clone() {
            Frame::Open(open) => Request::Open(open),
            Frame::Attach { attach, nonce } => Request::Attach { attach, nonce },
            Frame::Renew { session, number, seen } => Request::Renew { session, number, seen },
            Frame::Command(command) => Request::Command(command),
        };
        self.clients[client].asked.push((id, frame));
        self.inbox.push(Input::Request { connection, id, request });
    }

    /// The node turns, and its disk syncs, until nothing is on its way.
    fn settle(&mut self) {
        loop {
            let inputs = std::mem::take(&mut self.inbox);
            let outputs = self.node.turn(reading(self.now), inputs).expect("the node goes on");
            for output in outputs {
                match output {
                    Output::Write(write) => {
                        self.vote = write.vote.unwrap_or(self.vote);
                        self.log.extend(write.entries);
                        self.inbox.push(Input::Written { number: write.number });
                    }
                    Output::Send { connection, message } => self.hear(connection, message),
                    Output::Changed(_) | Output::Members(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            if self.inbox.is_empty() {
                return;
            }
        }
    }

    fn hear(&mut self, connection: ConnectionId, message: ToClient) {
        let client = self.connections[usize::try_from(connection.0).expect("a few") - 1];
        let (own, now) = (&mut self.clients[client], reading(self.now));
        if own.connection != Some(connection) {
            return;
        }
        match message.clone() {
            ToClient::Items { session, items } => {
                for item in items {
                    own.machine.handle(ToMachine::Received(Incoming::Item { session, item }), now);
                }
            }
            ToClient::Response { id, response } => {
                let place = own.asked.iter().position(|(asked, _)| *asked == id).expect("it was asked");
                let (_, frame) = own.asked.swap_remove(place);
                let Response::Reply(reply) = response else { panic!("{response:?}") };
                if let Some(incoming) = frame.answered_with(reply) {
                    own.machine.handle(ToMachine::Received(incoming), now);
                }
            }
            ToClient::Hint { length, .. } => {
                self.hints += 1;
                own.machine.handle(ToMachine::Hint(length.duration()), now);
            }
            ToClient::Watched { .. } => {}
        }
        own.wake = Some(self.now);
        self.heard.push((client, message));
    }
}
