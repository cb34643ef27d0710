//! The pretended network and service: requests go into a real node, answers come back to the drivers.

use std::collections::{HashMap, VecDeque};

use leasehold_core::Config;
use leasehold_core::protocol::{Request, RequestId, ToClient};
use leasehold_node::{ConnectionId, FOUNDER, Input, Node, Options, Output, Place, Recovered, Setup, Start};
use tokio::sync::mpsc;

use super::HandClock;
use crate::driver::{DriverHandle, ToDriver, Wire};

/// One connection of a driver.
#[derive(Debug)]
struct Plugged {
    driver: DriverHandle,
    outgoing: mpsc::UnboundedReceiver<Vec<(RequestId, Request)>>,
}

/// The service of a world.
pub(super) struct Service {
    node: Node,
    clock: HandClock,
    wires: HashMap<ConnectionId, Plugged>,
    /// Answers held back by a test, per connection.
    delayed: HashMap<ConnectionId, VecDeque<ToClient>>,
    next: u64,
    stopped: bool,
}

impl Service {
    pub(super) fn new(clock: HandClock) -> Self {
        let setup = Setup {
            place: Place::Served,
            member: FOUNDER,
            start: Start::Alone,
            config: Config::default(),
            recovered: Recovered::default(),
            options: Options::default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            seed: 1,
        };
        let node = Node::start(setup, clock.now()).expect("an empty log can always be begun");
        let mut service =
            Self { node, clock, wires: HashMap::new(), delayed: HashMap::new(), next: 1, stopped: false };
        service.turn(Vec::new());
        service
    }

    /// Connects a driver.
    pub(super) fn connect(&mut self, driver: &DriverHandle) -> ConnectionId {
        let connection = ConnectionId(self.next);
        self.next += 1;
        let (sender, outgoing) = mpsc::unbounded_channel();
        let _ = driver.send(ToDriver::Connected { number: 0, wire: Wire::Memory(sender), leaderless: None });
        self.wires.insert(connection, Plugged { driver: driver.clone(), outgoing });
        connection
    }

    /// Ends a connection; what was on its way is lost.
    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        self.delayed.remove(&connection);
        if let Some(wire) = self.wires.remove(&connection) {
            let _ = wire.driver.send(ToDriver::Disconnected { why: None });
            self.turn(vec![Input::Disconnected(connection)]);
        }
    }

    /// Holds back every answer on a connection, or lets all of them through.
    pub(super) fn delay(&mut self, connection: ConnectionId, on: bool) {
        if on {
            self.delayed.entry(connection).or_default();
        } else if let Some(messages) = self.delayed.remove(&connection)
            && let Some(wire) = self.wires.get(&connection)
        {
            let _ = wire.driver.send(ToDriver::Received { number: 0, messages: messages.into() });
        }
    }

    pub(super) fn stop(&mut self, stopped: bool) {
        self.stopped = stopped;
    }

    /// Takes in what the drivers sent and hands out what comes of it. Says whether there was anything.
    pub(super) fn serve(&mut self) -> bool {
        if self.stopped {
            return false;
        }
        let mut inputs = Vec::new();
        for (connection, wire) in &mut self.wires {
            while let Ok(requests) = wire.outgoing.try_recv() {
                inputs.extend(requests.into_iter().map(|(id, request)| Input::Request {
                    connection: *connection,
                    id,
                    request,
                }));
            }
        }
        let any = !inputs.is_empty();
        self.turn(inputs) || any
    }

    /// One turn of the node, and more until its pretended disk has nothing left. Says whether anything was sent.
    fn turn(&mut self, mut inputs: Vec<Input>) -> bool {
        let mut any = false;
        loop {
            let outputs = self.node.turn(self.clock.now(), inputs).expect("a disk in memory does not fail");
            inputs = Vec::new();
            for output in outputs {
                match output {
                    Output::Write(write) => inputs.push(Input::Written { number: write.number }),
                    Output::SaveSnapshot(image) => {
                        inputs.push(Input::SnapshotSaved { index: image.index() });
                    }
                    Output::Send { connection, message } => {
                        any = true;
                        self.send(connection, message);
                    }
                    // Nobody else is here, and nobody watches.
                    Output::SendPeer { .. }
                    | Output::MakeSnapshot(_)
                    | Output::Changed(_)
                    | Output::Close(_)
                    | Output::Members(_)
                    | Output::Replaced => {}
                }
            }
            if inputs.is_empty() {
                return any;
            }
        }
    }

    fn send(&mut self, connection: ConnectionId, message: ToClient) {
        if let Some(held) = self.delayed.get_mut(&connection) {
            held.push_back(message);
        } else if let Some(wire) = self.wires.get(&connection) {
            let _ = wire.driver.send(ToDriver::Received { number: 0, messages: vec![message] });
        }
    }
}
