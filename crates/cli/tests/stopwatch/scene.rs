//! One staged incident: a store, holders that act, and the judge.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::cluster::{Node, Stage};
use crate::place::{PATIENCE, Place, Waits, Worker, eventually, millis, now, number, pause, worker_at};

const NAME: &str = "job";
/// A holder acts so often, and one more time may fall to a read of a clock.
const GRAIN_MS: u64 = 15;
/// A third of a ttl, as the library has it unless it is told otherwise.
const RENEWALS_PER_TTL: u64 = 3;
/// What the greater length may exceed a stopwatch by, beside a renewal interval.
const ROOM_MS: u64 = 200;

enum Store {
    /// A directory, or one service.
    Place {
        place: Place,
        server: Option<Worker>,
    },
    Cluster {
        stage: Stage,
        nodes: Vec<Node>,
    },
}

/// A store, and those who act in it.
pub(crate) struct Scene {
    store: Store,
    workers: Vec<Worker>,
    ttl_ms: u64,
}

/// One gap, or one silence that `gaps` does not tell.
#[derive(Debug)]
pub(crate) struct Row {
    stopwatch_ms: Option<u64>,
    at_least_ms: u64,
    at_most_ms: u64,
    said: String,
    pub(crate) wrong: Option<String>,
}

/// One moment at which a holder acted.
#[derive(Debug, Clone, Copy)]
struct Act {
    at: u64,
    token: u64,
}

impl Scene {
    /// Processes that share a directory, served by one that holds nothing.
    pub(crate) fn directory(ttl_ms: u64) -> Self {
        let place = Place::new();
        let server = place.idle_server();
        Self { store: Store::Place { place, server }, workers: Vec::new(), ttl_ms }
    }

    /// A directory that its first holder serves.
    pub(crate) fn own_directory(ttl_ms: u64) -> Self {
        Self { store: Store::Place { place: Place::new(), server: None }, workers: Vec::new(), ttl_ms }
    }

    /// One service.
    pub(crate) fn service(ttl_ms: u64) -> Self {
        Self { store: Store::Place { place: Place::served(), server: None }, workers: Vec::new(), ttl_ms }
    }

    /// Three nodes.
    pub(crate) fn cluster(ttl_ms: u64) -> Self {
        let stage = Stage::new();
        let nodes = stage.three();
        Self { store: Store::Cluster { stage, nodes }, workers: Vec::new(), ttl_ms }
    }

    fn url(&self) -> String {
        match &self.store {
            Store::Place { place, .. } => place.url(),
            Store::Cluster { stage, .. } => stage.url(3),
        }
    }

    /// Runs a command to its end.
    pub(crate) fn say(&self, arguments: &[&str]) -> String {
        match &self.store {
            Store::Place { place, .. } => {
                let output = place.command(arguments).output().unwrap();
                String::from_utf8(output.stdout).unwrap()
            }
            Store::Cluster { stage, .. } => stage.say(3, arguments).out,
        }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let said = self.say(arguments);
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}"))
    }

    fn start(&mut self, label: &str, more: &[&str]) -> usize {
        let ttl = self.ttl_ms.to_string();
        let url = self.url();
        self.workers.push(worker_at(&url, "act", &[&[NAME, label, &ttl], more].concat()));
        self.workers.len() - 1
    }

    /// Somebody who holds it as soon as it can.
    pub(crate) fn holder(&mut self, label: &str, more: &[&str]) -> usize {
        let worker = self.start(label, more);
        self.granted(worker);
        worker
    }

    /// Somebody who waits for it.
    pub(crate) fn waiter(&mut self, label: &str, more: &[&str]) -> usize {
        let before = self.waiting();
        let worker = self.start(label, more);
        eventually("it waits", || (self.waiting() > before).then_some(()));
        worker
    }

    fn waiting(&self) -> u64 {
        self.json(&["get", NAME, "--json"])["waiting"].as_u64().unwrap_or(0)
    }

    pub(crate) fn granted(&self, worker: usize) -> u64 {
        let words = self.workers[worker].wait_for("granted", PATIENCE);
        number(&words.expect("it is granted in time")[1])
    }

    pub(crate) fn wait(&self, millis: u64) {
        pause(Duration::from_millis(millis));
    }

    pub(crate) fn freeze(&self, worker: usize) {
        self.workers[worker].signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self, worker: usize) {
        self.workers[worker].signal(Signal::CONT);
    }

    pub(crate) fn kill(&self, worker: usize) {
        self.workers[worker].signal(Signal::KILL);
    }

    pub(crate) fn release(&self, worker: usize) {
        self.workers[worker].signal(Signal::TERM);
    }

    pub(crate) fn close(&self, worker: usize) {
        self.workers[worker].signal(Signal::INT);
    }

    pub(crate) fn ready(&self, worker: usize) {
        self.workers[worker].signal(Signal::USR1);
    }

    /// A signal to whoever serves the directory, or to the service.
    pub(crate) fn server(&self, signal: Signal) {
        match &self.store {
            Store::Place { server: Some(server), .. } => server.signal(signal),
            Store::Place { place, server: None } => place.service().signal(signal),
            Store::Cluster { .. } => panic!("a cluster has nodes"),
        }
    }

    /// Ends the service, at once or in order, and starts it again later.
    pub(crate) fn away_for(&self, millis: u64, at_once: bool) {
        let Store::Place { place, .. } = &self.store else { panic!("a cluster has nodes") };
        if at_once {
            place.service().kill();
        } else {
            place.service().stop();
        }
        self.wait(millis);
        place.service().start_again();
    }

    /// The leader's place among the nodes.
    pub(crate) fn leader(&self) -> usize {
        let Store::Cluster { stage, nodes } = &self.store else { panic!("only a cluster has a leader") };
        let leader = eventually("one leads", || stage.status(3)["leader"].as_str().map(str::to_owned));
        nodes.iter().position(|node| node.name == leader).expect("the leader is a node")
    }

    pub(crate) fn node(&self, node: usize, signal: Signal) {
        let Store::Cluster { nodes, .. } = &self.store else { panic!("only a cluster has nodes") };
        nodes[node].signal(signal);
    }

    /// Ends it: holders act on for a moment, and what they did is held against what is told.
    pub(crate) fn judge(self) -> Vec<Row> {
        self.wait(300);
        let held_back = Waits::of(&self.workers.iter().map(Worker::pid).collect::<Vec<_>>());
        let told = self.json(&["gaps", NAME, "--min", "1ms", "--json"]);
        let mut acts: Vec<Act> = Vec::new();
        for worker in &self.workers {
            let lines = worker.drain().into_iter().filter(|words| words[0] == "acts");
            acts.extend(lines.map(|words| Act { token: number(&words[1]), at: number(&words[2]) }));
        }
        acts.sort_unstable_by_key(|act| act.at);
        let gaps = told["names"][0]["gaps"].as_array().cloned().unwrap_or_default();
        let mut gaps: BTreeMap<(u64, u64), Value> =
            gaps.into_iter().rev().filter_map(|gap| Some((sides(&gap)?, gap))).collect();
        let mut rows = Vec::new();
        for pair in acts.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let silent = millis(after.at - before.at);
            if before.token > after.token {
                rows.push(Row::failed("two acted at once"));
            }
            let told = gaps
                .remove(&(before.token, after.token))
                .filter(|_| before.token != after.token || silent > ROOM_MS);
            match told {
                Some(gap) => rows.push(self.row(&gap, silent, millis(held_back.so_far()))),
                None if before.token != after.token && silent > 2 * GRAIN_MS => {
                    rows.push(Row::failed(&format!(
                        "{silent} ms from token {} to {}, and no gap: {told:?}",
                        before.token, after.token
                    )));
                }
                None => {}
            }
        }
        for ((before, after), gap) in gaps {
            let acted = |token: u64| acts.iter().any(|act| act.token == token);
            if acted(before) && acted(after) && gap["length_ms"].as_u64() > Some(2 * GRAIN_MS + ROOM_MS) {
                rows.push(Row::failed(&format!("nobody was silent from token {before} to {after}: {gap}")));
            }
        }
        if rows.is_empty() {
            rows.push(Row::failed("no gap was staged"));
        }
        rows
    }

    fn row(&self, gap: &Value, stopwatch: u64, held_back: u64) -> Row {
        let number = |key: &str| gap[key].as_u64().unwrap_or_else(|| panic!("{key} in {gap}"));
        let (at_least, at_most) = (number("at_least_ms"), number("length_ms"));
        let room = self.ttl_ms / RENEWALS_PER_TTL + ROOM_MS + held_back;
        let wrong = if at_least > stopwatch + GRAIN_MS {
            Some("the lesser is too long")
        } else if at_most + GRAIN_MS + held_back < stopwatch {
            Some("the greater is too short")
        } else if at_most > stopwatch + room {
            Some("the greater is too long")
        } else {
            None
        };
        Row {
            stopwatch_ms: Some(stopwatch),
            at_least_ms: at_least,
            at_most_ms: at_most,
            said: gap["message"].as_str().unwrap_or_default().to_owned(),
            wrong: wrong.map(str::to_owned),
        }
    }
}

impl Row {
    pub(crate) fn failed(why: &str) -> Self {
        let wrong = Some(why.to_owned());
        Self { stopwatch_ms: None, at_least_ms: 0, at_most_ms: 0, said: String::new(), wrong }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stopwatch = self.stopwatch_ms.map_or("-".to_owned(), |millis| millis.to_string());
        let wrong = self.wrong.as_deref().map_or(String::new(), |why| format!("WRONG: {why}"));
        write!(f, "{stopwatch} | {} | {} | {} | {wrong}", self.at_least_ms, self.at_most_ms, self.said)
    }
}

/// The tokens on both sides of a gap that is over.
fn sides(gap: &Value) -> Option<(u64, u64)> {
    let token = |side: &str| gap[side]["token"].as_str().map(number);
    gap["ended_ago_ms"].as_u64()?;
    Some((token("before")?, token("after")?))
}
