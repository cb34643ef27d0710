//! Numbered calls over HTTP through cut answers, requests that arrive late, and leaders that are killed: none is taken twice, and none leaves
//! a lease that its client does not know.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use serde_json::{Value, json};

use super::stage::{Node, Stage, eventually, take};

/// Clients that ask at the same time.
const CLIENTS: usize = 4;
/// Names that they all want.
const NAMES: u64 = 6;
/// Operations of all clients together, and leaders killed meanwhile, unless `LEASEHOLD_NUMBERED` says `OPERATIONS:LEADERS`.
const SHORT: (usize, usize) = (500, 1);
/// A lease that is not known by so long after the last fault is a ghost.
const NEWS: Duration = Duration::from_secs(5);
/// No answer by then is none. Renewals are not waited for longer than that either.
const PATIENCE: Duration = Duration::from_secs(2);
/// A request that is held up arrives up to so many milliseconds later.
const HELD_UP: u64 = 3_000;

/// The same numbers every time, one row per client.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What a client knows, shared by its calls and its renewals.
#[derive(Default)]
struct Known {
    /// Tokens that an answer told it of.
    tokens: BTreeSet<String>,
    /// Acquires whose outcome is open, with what they ask for; and since when none is.
    open: BTreeMap<u64, String>,
    /// Acquires that were open when the last renewal was sent.
    were_open: BTreeSet<String>,
    /// Leases that a renewal listed without a reason.
    ghosts: Vec<String>,
    /// The list of the last renewal.
    listed: BTreeSet<String>,
}

/// One client with its session.
struct Client {
    addresses: Arc<Vec<String>>,
    key: String,
    known: Arc<Mutex<Known>>,
    dice: Dice,
    number: u64,
    held: Vec<(String, String)>,
    late: Vec<JoinHandle<()>>,
    faults: Arc<AtomicBool>,
}

/// One POST; nothing if there is no whole answer in time.
fn post(address: &str, path: &str, key: &str, body: &Value, reads: bool) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let body = body.to_string();
    let session = if key.is_empty() { String::new() } else { format!("Leasehold-Session: {key}\r\n") };
    let head = format!(
        "POST /v1/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n{session}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).ok()?;
    if !reads {
        // Cut: it has arrived, and what comes back is lost.
        thread::sleep(Duration::from_millis(2));
        let _ = stream.shutdown(Shutdown::Both);
        return None;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

impl Client {
    fn open(addresses: &Arc<Vec<String>>, nth: usize, faults: &Arc<AtomicBool>) -> Self {
        let body = json!({ "label": format!("c{nth}"), "ttl_ms": 60_000 });
        let opened = eventually("a session opens", || {
            post(&addresses[nth % addresses.len()], "sessions", "", &body, true)
                .filter(|(status, _)| *status == 200)
        });
        Self {
            addresses: Arc::clone(addresses),
            key: opened.1["session_key"].as_str().unwrap().to_owned(),
            known: Arc::default(),
            dice: Dice(nth as u64 + 1),
            number: 0,
            held: Vec::new(),
            late: Vec::new(),
            faults: Arc::clone(faults),
        }
    }

    /// Renews and looks at the list until it is told to stop, on a thread of its own.
    fn keep_renewing(&self, ends: &Arc<AtomicBool>) -> JoinHandle<()> {
        let (addresses, key) = (Arc::clone(&self.addresses), self.key.clone());
        let (known, ends) = (Arc::clone(&self.known), Arc::clone(ends));
        thread::spawn(move || {
            let mut turn = 0;
            while !ends.load(Ordering::Relaxed) {
                turn += 1;
                renew(&addresses[turn % addresses.len()], &key, &known);
                thread::sleep(Duration::from_millis(100));
            }
        })
    }

    /// A call under the next number, sent until it is answered; an acquire is given up now and then. Gives its answer.
    fn call(&mut self, path: &str, mut body: Value) -> Option<(u16, Value)> {
        self.number += 1;
        let number = self.number;
        body["number"] = number.to_string().into();
        let acquires = body["wait_ms"].is_u64();
        if acquires {
            let name = body["resource"].as_str().unwrap().to_owned();
            self.known.lock().unwrap().open.insert(number, name);
        }
        let mut answered = None;
        for round in 0.. {
            if acquires && round > 0 && self.dice.below(8) == 0 {
                self.give_up(number);
                break;
            }
            // Only this call is open.
            body["settled"] = number.to_string().into();
            answered =
                self.send(path, &body).filter(|(status, _)| ![202, 500, 503, 429, 408].contains(status));
            if answered.is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let mut known = self.known.lock().unwrap();
        if let Some((200, answer)) = &answered
            && acquires
        {
            for lease in answer["leases"].as_array().unwrap() {
                known.tokens.insert(lease["token"].as_str().unwrap().to_owned());
            }
        }
        known.open.remove(&number);
        answered
    }

    /// Cancels an acquire by its number until that is answered. What it had been granted all the same is held.
    fn give_up(&mut self, of: u64) {
        self.number += 1;
        let cancel = json!({
            "acquire_number": of.to_string(), "number": self.number.to_string(), "settled": of.to_string(),
        });
        let (status, answer) = loop {
            let answered = self.send("leases/cancel", &cancel);
            if let Some(answered) = answered.filter(|(status, _)| [200, 404].contains(status)) {
                break answered;
            }
            thread::sleep(Duration::from_millis(20));
        };
        if status == 200 {
            for lease in answer["leases"].as_array().unwrap() {
                let text = |field: &str| lease[field].as_str().unwrap().to_owned();
                self.known.lock().unwrap().tokens.insert(text("token"));
                self.held.push((text("resource"), text("token")));
            }
        }
    }

    /// One sending, to any node: one in five is not answered, and one in ten arrives later, perhaps a second time.
    fn send(&mut self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let address = self.addresses[self.dice.below(self.addresses.len() as u64) as usize].clone();
        let faults = self.faults.load(Ordering::Relaxed);
        if faults && self.dice.below(10) == 0 {
            let (address, path, key, body) = (address, path.to_owned(), self.key.clone(), body.clone());
            let held_up = Duration::from_millis(self.dice.below(HELD_UP));
            self.late.push(thread::spawn(move || {
                thread::sleep(held_up);
                post(&address, &path, &key, &body, false);
            }));
            return None;
        }
        let cut = faults && self.dice.below(5) == 0;
        post(&address, path, &self.key, body, !cut)
    }

    /// Does so many operations.
    fn works(&mut self, done: &AtomicUsize, enough: usize) {
        while done.fetch_add(1, Ordering::Relaxed) < enough {
            if self.held.len() >= 2 || (!self.held.is_empty() && self.dice.below(2) == 0) {
                let (resource, token) = self.held.remove(0);
                self.call("leases/release", json!({ "resource": resource, "token": token }));
            } else {
                let name = format!("n{}", self.dice.below(NAMES));
                let wait = self.dice.below(3) * 100;
                let granted = self.call("leases/acquire", json!({ "resource": name, "wait_ms": wait }));
                let Some((200, answer)) = granted else { continue };
                let token = answer["leases"][0]["token"].as_str().unwrap();
                self.held.push((name, token.to_owned()));
            }
        }
        for late in self.late.drain(..) {
            late.join().unwrap();
        }
    }
}

/// One renewal. Each lease that it lists is known, or one of an acquire that is open or was when it was sent.
fn renew(address: &str, key: &str, known: &Mutex<Known>) {
    let asked: BTreeSet<String> = known.lock().unwrap().open.values().cloned().collect();
    let path = format!("sessions/{}/renew", key.split('-').next().unwrap());
    let Some((200, answer)) = post(address, &path, key, &json!({}), true) else { return };
    let mut known = known.lock().unwrap();
    known.were_open = asked;
    let leases = answer["leases"].as_array().unwrap();
    known.listed = leases.iter().map(|lease| lease["token"].as_str().unwrap().to_owned()).collect();
    for lease in leases {
        let (token, name) = (lease["token"].as_str().unwrap(), lease["resource"].as_str().unwrap());
        let is_open = known.were_open.contains(name) || known.open.values().any(|open| open == name);
        if !known.tokens.contains(token) && !is_open {
            known.ghosts.push(format!("{name} with token {token}"));
        }
    }
}

/// How much is done: operations, and leaders killed.
fn size() -> (usize, usize) {
    let said = std::env::var("LEASEHOLD_NUMBERED").ok();
    let said = said.as_deref().and_then(|said| said.split_once(':'));
    said.map_or(SHORT, |(operations, leaders)| (operations.parse().unwrap(), leaders.parse().unwrap()))
}

#[test]
fn no_call_is_taken_twice_and_none_becomes_a_ghost() {
    let (operations, leaders) = size();
    let stage = Stage::new();
    let mut nodes: Vec<Node> = stage.three();
    let addresses: Arc<Vec<String>> = Arc::new((1..=3).map(|number| stage.address(number)).collect());
    let (faults, ends) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
    let mut clients: Vec<Client> = (0..CLIENTS).map(|nth| Client::open(&addresses, nth, &faults)).collect();
    let renewals: Vec<JoinHandle<()>> = clients.iter().map(|client| client.keep_renewing(&ends)).collect();
    let known: Vec<Arc<Mutex<Known>>> = clients.iter().map(|client| Arc::clone(&client.known)).collect();
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| client.works(&done, operations));
        }
        for killed in 1..=leaders {
            let due = operations * killed / (leaders + 1);
            while done.load(Ordering::Relaxed) < due {
                thread::sleep(Duration::from_millis(5));
            }
            let leader = eventually("somebody leads", || {
                let status = stage.say(3, &["cluster", "status", "--json"]);
                let status: Value = serde_json::from_str(&status.out).ok()?;
                status["leader"].as_str().map(str::to_owned)
            });
            take(&mut nodes, &leader).kill();
            thread::sleep(Duration::from_secs(1));
            nodes.push(stage.start(leader[1..].parse().unwrap(), &[]));
        }
    });
    faults.store(false, Ordering::Relaxed);
    let quiet = Point::now();
    for client in &clients {
        // Everything is answered: a lease that is listed from here on is known, or a ghost.
        assert!(client.known.lock().unwrap().open.is_empty());
    }
    thread::sleep(NEWS);
    ends.store(true, Ordering::Relaxed);
    renewals.into_iter().for_each(|renewal| renewal.join().unwrap());
    for (client, known) in clients.iter().zip(&known) {
        eventually("a last look", || {
            renew(&client.addresses[0], &client.key, known);
            Some(())
        });
        let known = known.lock().unwrap();
        assert_eq!(known.ghosts, Vec::<String>::new(), "leases that no client asked for");
        let unknown: Vec<&String> = known.listed.difference(&known.tokens).collect();
        assert!(
            unknown.is_empty(),
            "{unknown:?} are not known {:?} after the last fault",
            Point::now().remaining(quiet)
        );
    }
    let tokens: usize = known.iter().map(|known| known.lock().unwrap().tokens.len()).sum();
    println!("{operations} operations, {leaders} leaders killed, {tokens} leases granted, no ghost");
    assert!(tokens > operations / 10, "only {tokens} leases were granted");
}
