//! One node, a disk that syncs when told to, two clocks moved by hand, and clients.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Changes, Failure, Query, ReadAnswer, Request, RequestId, Response, ToClient};
use leasehold_core::{Config, Item, LogTime, Millis, Reply};
use leasehold_node::payload::Payload;
use leasehold_node::{
    ConnectionId, FOUNDER, Fatal, Input, LogWrite, Machine, Node, Options, Output, Place, Recovered,
    ResumeError, Setup, Start,
};

use crate::disk::{Crash, FakeDisk};
use crate::oracle::Oracle;

/// A write never takes this many turns in a row: if it does, the node writes without end.
const MOST_WRITES_AT_REST: usize = 1_000;

pub(crate) struct World {
    pub(crate) node: Node,
    pub(crate) clock: Reading,
    pub(crate) disk: FakeDisk,
    pub(crate) oracle: Oracle,
    pub(crate) place: Place,
    pub(crate) config: Config,
    options: Options,
    /// What the next turn takes in.
    pub(crate) inbox: Vec<Input>,
    /// What was sent and not looked at yet, in order.
    pub(crate) sent: Vec<(ConnectionId, ToClient)>,
    requests: u64,
    /// Requests that got their response: none gets a second one.
    answered: BTreeSet<(ConnectionId, RequestId)>,
    /// What was handed out since the last look, in order, for transcripts.
    pub(crate) journal: Vec<Happening>,
}

/// Something that a turn handed out.
#[derive(Clone)]
pub(crate) enum Happening {
    Wrote(LogWrite),
    Sent(ConnectionId, ToClient),
    Changed(Arc<Changes>),
    SavesSnapshot(u64),
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn machine(boot: u8, namespace: u64) -> Machine {
    Machine { boot_id: [boot; 16], time_namespace: namespace, offsets: [0; 4] }
}

pub(crate) fn embedded(machine: Machine, end_all_after_wait: bool) -> Place {
    Place::Embedded { machine, end_all_after_wait }
}

fn start(
    place: Place,
    config: Config,
    options: Options,
    recovered: Recovered,
    now: Reading,
) -> Result<Node, Fatal> {
    let version = "test".to_owned();
    Node::start(
        Setup {
            place,
            member: FOUNDER,
            start: Start::Alone,
            config,
            recovered,
            options,
            version,
            pid: 7,
            seed: 1,
        },
        now,
    )
}

impl World {
    /// A new log, not opened yet.
    pub(crate) fn begin(place: Place, config: Config, options: Options) -> Self {
        // Neither clock begins at zero, and they do not begin together.
        let clock = Reading { boot: 9_000_000_000_123, raw: 5_000_000_000_777 };
        let node = start(place.clone(), config.clone(), options.clone(), Recovered::default(), clock)
            .expect("an empty log is good");
        Self {
            node,
            clock,
            disk: FakeDisk::default(),
            oracle: Oracle::new(config.clone()),
            place,
            config,
            options,
            inbox: Vec::new(),
            sent: Vec::new(),
            requests: 0,
            answered: BTreeSet::new(),
            journal: Vec::new(),
        }
    }

    /// A service that is up.
    pub(crate) fn served() -> Self {
        Self::begin(Place::Served, Config::default(), Options::default()).up()
    }

    /// An embedded directory that is served.
    pub(crate) fn embedded() -> Self {
        Self::begin(embedded(machine(1, 7), false), Config::default(), Options::default()).up()
    }

    /// Turns and syncs until requests are judged.
    pub(crate) fn up(mut self) -> Self {
        self.rest();
        assert!(self.node.is_serving(), "the node does not serve though everything is synced");
        self
    }

    /// Both clocks move on. Nothing else happens.
    pub(crate) fn pass(&mut self, length: Duration) {
        self.clock = self.clock.plus(length);
    }

    /// One turn of the loop, with everything that arrived.
    pub(crate) fn turn(&mut self) {
        self.try_turn().expect("the node goes on");
    }

    pub(crate) fn try_turn(&mut self) -> Result<(), Fatal> {
        let inputs = std::mem::take(&mut self.inbox);
        for output in self.node.turn(self.clock, inputs)? {
            match output {
                Output::Write(write) => {
                    for entry in &write.entries {
                        self.oracle.handed_over(entry, self.clock);
                    }
                    self.journal.push(Happening::Wrote(write.clone()));
                    self.disk.take(write);
                    assert!(self.disk.in_flight.len() <= 1, "one write is in flight at a time");
                }
                Output::Send { connection, message } => {
                    self.oracle.sent(&message);
                    if let ToClient::Response { id, response } = &message {
                        let first = self.answered.insert((connection, *id));
                        assert!(first, "request {} is answered a second time: {response:?}", id.0);
                    }
                    self.journal.push(Happening::Sent(connection, message.clone()));
                    self.sent.push((connection, message));
                }
                Output::Changed(changes) => {
                    self.oracle.changed(&changes);
                    self.journal.push(Happening::Changed(changes));
                }
                Output::SaveSnapshot(image) => {
                    let index = image.index();
                    assert!(self.disk.saving.is_none(), "one snapshot is saved at a time");
                    let saved = self.disk.saved.as_ref().map_or(0, |(index, ..)| *index);
                    assert!(index > saved, "a snapshot up to {index} is no progress over {saved}");
                    self.journal.push(Happening::SavesSnapshot(index));
                    self.disk.saving = Some(image);
                }
                Output::SendPeer { message, .. } => panic!("there is nobody to send {message:?} to"),
                Output::MakeSnapshot(image) => panic!("there is nobody to make {image:?} for"),
                Output::Close(_) | Output::Members(_) | Output::Replaced => {
                    panic!("one voter never loses its leadership or its members")
                }
            }
        }
        self.oracle.compare(&self.node);
        Ok(())
    }

    /// The oldest write is synced; the node hears of it in its next turn.
    pub(crate) fn sync(&mut self) -> bool {
        let before = self.disk.synced.len();
        let Some(number) = self.disk.sync() else { return false };
        for entry in &self.disk.synced[before..] {
            self.oracle.synced(entry);
        }
        self.inbox.push(Input::Written { number });
        true
    }

    /// The oldest write is synced, and the node takes its turn.
    pub(crate) fn sync_and_turn(&mut self) {
        assert!(self.sync(), "no write is in flight");
        self.turn();
    }

    /// Turns and syncs until nothing is in flight. No time passes.
    pub(crate) fn rest(&mut self) {
        self.turn();
        for _ in 0..MOST_WRITES_AT_REST {
            if !self.sync() {
                return;
            }
            self.turn();
        }
        panic!("the node writes without end though no time passes");
    }

    /// The loop runs for `length` with a disk that is quick, waking when the node wants to.
    pub(crate) fn run(&mut self, length: Duration) {
        let end = self.clock.plus(length);
        self.rest();
        while self.clock.boot < end.boot {
            let left = Duration::from_nanos(end.boot - self.clock.boot);
            let wake = self.node.sleep();
            assert!(wake > Millis::ZERO && wake <= Node::MAX_SLEEP, "a sleep of {wake}");
            self.pass(wake.duration().min(left));
            self.rest();
        }
    }

    /// The snapshot being saved is safe; the node hears of it in its next turn.
    pub(crate) fn save_snapshot(&mut self) {
        let (index, _) = self.disk.save_snapshot().expect("a snapshot is being saved");
        self.inbox.push(Input::SnapshotSaved { index });
    }

    /// The process is gone, and the next one begins with what the disk kept. It has not taken a turn yet.
    pub(crate) fn crash(&mut self, crash: Crash) {
        self.try_crash(crash).expect("the next process begins");
    }

    pub(crate) fn try_crash(&mut self, crash: Crash) -> Result<(), Fatal> {
        let before = self.disk.synced.len();
        let recovered = self.disk.crash(crash);
        for entry in &self.disk.synced[before..] {
            self.oracle.synced(entry);
        }
        self.inbox.clear();
        self.oracle.begin_again(recovered.snapshot.as_ref().map_or(0, |snapshot| snapshot.index));
        let (config, options) = (self.config.clone(), self.options.clone());
        self.node = start(self.place.clone(), config, options, recovered, self.clock)?;
        Ok(())
    }

    /// The next process knows this version of what may stand in a log.
    pub(crate) fn upgrade(&mut self, cluster_version: u32) {
        self.options.cluster_version = cluster_version;
    }

    /// A restart of a quick machine: down for `length`, then up again.
    pub(crate) fn restart(&mut self, crash: Crash, down: Duration) {
        self.pass(down);
        self.crash(crash);
        self.rest();
        assert!(self.node.is_serving());
    }

    /// The error with which the next process refuses to serve.
    pub(crate) fn refused_restart(&mut self) -> ResumeError {
        self.crash(Crash::KeepsAcknowledged);
        loop {
            match self.try_turn() {
                Ok(()) => assert!(self.sync(), "the node neither serves nor refuses"),
                Err(Fatal::Resume(error)) => return error,
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// A request arrives; the next turn takes it in.
    pub(crate) fn ask(&mut self, connection: ConnectionId, request: Request) -> RequestId {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.inbox.push(Input::Request { connection, id, request });
        id
    }

    /// Whoever asked does not wait for the answer any more; the node hears of it in its next turn.
    pub(crate) fn give_up(&mut self, connection: ConnectionId, id: RequestId) {
        self.inbox.push(Input::Abandoned { connection, id });
    }

    /// Whether a request was answered, looked at or not.
    pub(crate) fn is_answered(&self, connection: ConnectionId, id: RequestId) -> bool {
        self.answered.contains(&(connection, id))
    }

    /// The response to a request, if it was sent; looked at once.
    pub(crate) fn response(&mut self, id: RequestId) -> Option<Response> {
        let found = self.sent.iter().position(
            |(_, message)| matches!(message, ToClient::Response { id: theirs, .. } if *theirs == id),
        )?;
        match self.sent.remove(found).1 {
            ToClient::Response { response, .. } => Some(response),
            ToClient::Items { .. } | ToClient::Hint { .. } | ToClient::Watched { .. } => None,
        }
    }

    /// Asks, lets the node rest, and gives back the response.
    pub(crate) fn response_to(&mut self, connection: ConnectionId, request: Request) -> Response {
        let id = self.ask(connection, request);
        self.rest();
        self.response(id).expect("every request but a streamed command gets a response")
    }

    pub(crate) fn reply_to(&mut self, connection: ConnectionId, request: Request) -> Reply {
        match self.response_to(connection, request) {
            Response::Reply(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn failure_of(&mut self, connection: ConnectionId, request: Request) -> Failure {
        match self.response_to(connection, request) {
            Response::Failed(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn read(&mut self, query: Query) -> ReadAnswer {
        match self.response_to(ConnectionId(u64::MAX), Request::Read(query)) {
            Response::Read { answer, .. } => answer,
            other => panic!("{other:?}"),
        }
    }

    /// Everything sent through a connection and not looked at yet.
    pub(crate) fn received(&mut self, connection: ConnectionId) -> Vec<ToClient> {
        let (theirs, others) =
            std::mem::take(&mut self.sent).into_iter().partition(|(to, _)| *to == connection);
        self.sent = others;
        let theirs: Vec<_> = theirs;
        theirs.into_iter().map(|(_, message)| message).collect()
    }

    /// The items sent through a connection, and nothing else; the rest is dropped.
    pub(crate) fn items(&mut self, connection: ConnectionId) -> Vec<Item> {
        let received = self.received(connection).into_iter();
        let items = received.filter_map(|message| match message {
            ToClient::Items { items, .. } => Some(items),
            ToClient::Response { .. } | ToClient::Hint { .. } | ToClient::Watched { .. } => None,
        });
        items.flatten().collect()
    }

    /// The entry in flight, if there is one with a stamp.
    pub(crate) fn entry_in_flight(&self) -> Option<Payload> {
        let entry =
            self.disk.in_flight.front()?.entries.iter().rev().find(|entry| !entry.payload.is_empty())?;
        Some(Payload::decode(&entry.payload).expect("the node wrote it"))
    }

    /// The last stamp in the log, synced or not.
    pub(crate) fn last_at(&self) -> LogTime {
        LogTime::new(self.oracle.stamps().last().unwrap_or(0))
    }
}
