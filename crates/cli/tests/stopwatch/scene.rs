//! One staged incident: a store, and those who act in it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::cluster::{Node, Stage};
use crate::judge::Row;
use crate::lateness::Lateness;
use crate::place::{PATIENCE, Place, Worker, eventually, now, number, pause, worker_at};
use crate::plain::{Act, Plain};

pub(crate) const NAME: &str = "job";

enum Store {
    /// A directory, or one service.
    Place {
        place: Place,
        server: Option<Worker>,
    },
    Cluster {
        nodes: Vec<Node>,
        stage: Stage,
    },
}

enum Client {
    Process(Process),
    Plain(Plain),
}

/// A store, and those who act in it.
pub(crate) struct Scene {
    actors: Vec<Actor>,
    store: Store,
    pub(crate) ttl_ms: u64,
    /// When somebody was kept from the store, by the boot clock.
    pub(crate) cut_off: RefCell<Vec<u64>>,
    pub(crate) lateness: Lateness,
}

/// A process with our library.
struct Process {
    worker: Worker,
    grant: Cell<Option<Act>>,
}

struct Actor {
    label: String,
    client: Client,
    /// How its lease must have ended, if that was staged.
    ending: Cell<&'static [&'static str]>,
}

/// What one of them did, when all is over.
pub(crate) struct Done {
    pub(crate) label: String,
    /// What it was granted, and when it knew.
    pub(crate) grant: Option<Act>,
    pub(crate) acts: Vec<Act>,
    pub(crate) ending: &'static [&'static str],
}

const SILENT: &[&str] = &["expired", "taken"];

impl Scene {
    fn new(store: Store, ttl_ms: u64) -> Self {
        let lateness = Lateness::begin();
        match &store {
            Store::Place { server: Some(server), .. } => lateness.add(server.pid()),
            Store::Place { place, server: None } if place.is_served() => lateness.add(place.service().pid()),
            Store::Place { .. } => {}
            Store::Cluster { nodes, .. } => {
                nodes.iter().for_each(|node| lateness.add(node.pid().as_raw_nonzero().get().unsigned_abs()))
            }
        }
        Self { actors: Vec::new(), store, ttl_ms, cut_off: RefCell::new(Vec::new()), lateness }
    }

    /// Processes that share a directory, served by one that holds nothing.
    pub(crate) fn directory(ttl_ms: u64) -> Self {
        let place = Place::in_memory();
        let server = place.idle_server();
        Self::new(Store::Place { place, server }, ttl_ms)
    }

    /// A directory that its first holder serves.
    pub(crate) fn own_directory(ttl_ms: u64) -> Self {
        Self::new(Store::Place { place: Place::in_memory(), server: None }, ttl_ms)
    }

    /// One service.
    pub(crate) fn service(ttl_ms: u64) -> Self {
        Self::new(Store::Place { place: Place::served_in_memory(), server: None }, ttl_ms)
    }

    /// Three nodes.
    pub(crate) fn cluster(ttl_ms: u64) -> Self {
        let stage = Stage::new();
        let nodes = stage.three();
        Self::new(Store::Cluster { nodes, stage }, ttl_ms)
    }

    /// Runs a command to its end, which must be a good one.
    pub(crate) fn say(&self, arguments: &[&str]) -> String {
        match &self.store {
            Store::Place { place, .. } => {
                let output = place.command(arguments).output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{arguments:?}: {said}");
                String::from_utf8(output.stdout).unwrap()
            }
            Store::Cluster { stage, .. } => stage.good(3, arguments),
        }
    }

    /// A page of the store as JSON; nothing while it cannot be had.
    fn look(&self, arguments: &[&str]) -> Option<Value> {
        let said = match &self.store {
            Store::Place { place, .. } => {
                String::from_utf8(place.command(arguments).output().unwrap().stdout).unwrap()
            }
            Store::Cluster { stage, .. } => stage.say(3, arguments).out,
        };
        serde_json::from_str(&said).ok()
    }

    /// The same, which must come.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        eventually(&arguments.join(" "), || self.look(arguments))
    }

    fn start(&mut self, label: &str, more: &[&str]) -> usize {
        let ttl = self.ttl_ms.to_string();
        let url = match &self.store {
            Store::Place { place, .. } => place.url(),
            Store::Cluster { stage, .. } => stage.url(3),
        };
        let worker = worker_at(&url, "act", &[&[NAME, label, &ttl], more].concat());
        self.lateness.add(worker.pid());
        self.add(label, Client::Process(Process { worker, grant: Cell::new(None) }))
    }

    fn add(&mut self, label: &str, client: Client) -> usize {
        self.actors.push(Actor { label: label.to_owned(), client, ending: Cell::new(&[]) });
        self.actors.len() - 1
    }

    /// Somebody who holds it as soon as it can.
    pub(crate) fn holder(&mut self, label: &str, more: &[&str]) -> usize {
        let actor = self.start(label, more);
        self.granted(actor);
        actor
    }

    /// Somebody who waits for it.
    pub(crate) fn waiter(&mut self, label: &str, more: &[&str]) -> usize {
        let before = self.waiting();
        let actor = self.start(label, more);
        eventually("it waits", || (self.waiting() > before).then_some(()));
        actor
    }

    /// A client over plain HTTP, which holds the name or waits for it.
    pub(crate) fn plain(&mut self, label: &str) -> usize {
        let Store::Place { place, .. } = &self.store else { panic!("one service") };
        let address = place.service().address();
        self.lateness.add(std::process::id());
        self.add(label, Client::Plain(Plain::begin(address, NAME, label, self.ttl_ms)))
    }

    fn waiting(&self) -> u64 {
        self.json(&["get", NAME, "--json"])["waiting"].as_u64().unwrap_or(0)
    }

    pub(crate) fn granted(&self, actor: usize) {
        match &self.actors[actor].client {
            Client::Process(process) => process.granted(),
            Client::Plain(plain) => _ = plain.granted(),
        }
    }

    pub(crate) fn wait(&self, millis: u64) {
        pause(Duration::from_millis(millis));
    }

    fn signal(&self, actor: usize, signal: Signal, ending: &'static [&'static str]) {
        self.actors[actor].ending.set(ending);
        match (&self.actors[actor].client, signal) {
            (Client::Process(process), signal) => process.worker.signal(signal),
            (Client::Plain(plain), Signal::TERM) => plain.gives_back(),
            (Client::Plain(plain), _) => plain.falls_silent(),
        }
    }

    pub(crate) fn freeze(&self, actor: usize) {
        self.signal(actor, Signal::STOP, SILENT);
    }

    pub(crate) fn thaw(&self, actor: usize) {
        self.signal(actor, Signal::CONT, &[]);
    }

    pub(crate) fn kill(&self, actor: usize) {
        self.signal(actor, Signal::KILL, SILENT);
    }

    pub(crate) fn release(&self, actor: usize) {
        self.signal(actor, Signal::TERM, &["released"]);
    }

    pub(crate) fn close(&self, actor: usize) {
        self.signal(actor, Signal::INT, &["session-closed"]);
    }

    pub(crate) fn ready(&self, actor: usize) {
        self.signal(actor, Signal::USR1, &[]);
    }

    /// An operator does something to the lease of an actor.
    pub(crate) fn operate(&self, actor: usize, arguments: &[&str], ending: &'static str) {
        self.say(arguments);
        self.actors[actor].ending.set(match ending {
            "revoked" => &["revoked"],
            "drained" => &["drained"],
            "handed-over" => &["handed-over"],
            _ => &["released"],
        });
    }

    fn note_cut_off(&self) {
        self.cut_off.borrow_mut().push(now());
    }

    /// A signal to whoever serves the directory, or to the service.
    pub(crate) fn server(&self, signal: Signal) {
        self.note_cut_off();
        match &self.store {
            Store::Place { server: Some(server), .. } => server.signal(signal),
            Store::Place { place, server: None } => place.service().signal(signal),
            Store::Cluster { .. } => panic!("a cluster has nodes"),
        }
    }

    /// Ends the service, at once or in order, and starts it again later.
    pub(crate) fn away_for(&self, millis: u64, at_once: bool) {
        let Store::Place { place, .. } = &self.store else { panic!("a cluster has nodes") };
        self.note_cut_off();
        if at_once {
            place.service().kill();
        } else {
            place.service().stop();
        }
        self.wait(millis);
        place.service().start_again();
        self.lateness.add(place.service().pid());
    }

    /// The leader's place among the nodes.
    pub(crate) fn leader(&self) -> usize {
        let Store::Cluster { stage, nodes } = &self.store else { panic!("only a cluster has a leader") };
        let leader = eventually("one leads", || stage.status(3)["leader"].as_str().map(str::to_owned));
        nodes.iter().position(|node| node.name == leader).expect("the leader is a node")
    }

    pub(crate) fn node(&self, node: usize, signal: Signal) {
        let Store::Cluster { nodes, .. } = &self.store else { panic!("only a cluster has nodes") };
        self.note_cut_off();
        nodes[node].signal(signal);
    }

    /// Ends it: holders act on for a moment, and what they did is held against what is told.
    pub(crate) fn judge(self) -> Vec<Row> {
        self.wait(300);
        crate::judge::judge(&self)
    }

    /// What each did so far.
    pub(crate) fn done(&self) -> Vec<Done> {
        let of = |actor: &Actor| {
            let (grant, acts) = match &actor.client {
                Client::Process(process) => process.done(),
                Client::Plain(plain) => (plain.grant(), plain.acts()),
            };
            Done { label: actor.label.clone(), grant, acts, ending: actor.ending.get() }
        };
        self.actors.iter().map(of).collect()
    }
}

impl Process {
    fn granted(&self) {
        let words = self.worker.wait_for("granted", PATIENCE).expect("it is granted in time");
        self.grant.set(Some(moment(&words)));
    }

    /// What it was granted, and when it acted.
    fn done(&self) -> (Option<Act>, Vec<Act>) {
        let mut acts = Vec::new();
        for words in self.worker.drain() {
            match words[0].as_str() {
                "granted" => self.grant.set(Some(moment(&words))),
                "acts" => acts.push(moment(&words)),
                _ => {}
            }
        }
        (self.grant.get(), acts)
    }
}

fn moment(words: &[String]) -> Act {
    Act { token: number(&words[1]), at: number(&words[2]) }
}
