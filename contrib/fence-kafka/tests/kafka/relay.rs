//! A way to the broker on which requests can be held back and answers lost.
//!
//! It knows of the protocol that a request begins with its length, its kind, its version and a number that the answer repeats. Brokers tell
//! clients where they are; the relay puts its own port in that place, so that clients come back to it.

use std::collections::HashSet;
use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Kinds of requests.
pub(crate) const INIT_PRODUCER_ID: i16 = 22;
pub(crate) const END_TXN: i16 = 26;

/// How long it is waited for what a client does, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What becomes of requests and answers.
#[derive(Debug, Default)]
struct Rules {
    /// Requests of these kinds wait here.
    held: HashSet<i16>,
    /// How many wait.
    waiting: u32,
    /// The next request of this kind is passed on, its answer is lost, and the connection with it.
    loses: Option<i16>,
    /// Numbers of requests whose answer is lost.
    lost: HashSet<i32>,
    /// How many answers were lost.
    count: u32,
}

#[derive(Debug, Default)]
struct State {
    rules: Mutex<Rules>,
    changed: Condvar,
}

#[derive(Debug, Clone)]
pub(crate) struct Relay {
    port: u16,
    state: Arc<State>,
}

impl Relay {
    pub(crate) fn to(broker: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let relay = Self { port, state: Arc::default() };
        let state = Arc::clone(&relay.state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, Ok(server)) = (client.unwrap(), TcpStream::connect(("127.0.0.1", broker)))
                else {
                    continue;
                };
                let state = Arc::clone(&state);
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let requests = Arc::clone(&state);
                std::thread::spawn(move || pass(from, to, |frame| requests.request(frame)));
                let there = [&b"127.0.0.1"[..], &u32::from(broker).to_be_bytes()].concat();
                let here = [&b"127.0.0.1"[..], &u32::from(port).to_be_bytes()].concat();
                std::thread::spawn(move || pass(server, client, |frame| state.answer(frame, &there, &here)));
            }
        });
        relay
    }

    pub(crate) fn url(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Holds requests of a kind back from now on.
    pub(crate) fn hold(&self, kind: i16) {
        self.state.rules.lock().unwrap().held.insert(kind);
    }

    /// Loses the answer to the next request of a kind, and the connection. Requests of that kind that come after it are held.
    pub(crate) fn lose_and_hold(&self, kind: i16) {
        self.state.rules.lock().unwrap().loses = Some(kind);
    }

    /// Waits until a request is held.
    pub(crate) async fn holds(&self) {
        self.until("a request is held", |rules| rules.waiting > 0).await;
    }

    /// Waits until an answer was lost.
    pub(crate) async fn has_lost(&self) {
        self.until("an answer is lost", |rules| rules.count > 0).await;
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Rules) -> bool) {
        for _ in 0..PATIENCE.as_millis() / LOOK_AGAIN.as_millis() {
            if is_so(&self.state.rules.lock().unwrap()) {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        panic!("it does not come to pass that {what}");
    }

    /// Holds nothing back any more.
    pub(crate) fn release(&self) {
        self.state.rules.lock().unwrap().held.clear();
        self.state.changed.notify_all();
    }
}

impl State {
    /// Waits if the request is held. It is passed on as it is.
    fn request(&self, frame: &mut [u8]) -> bool {
        let kind = i16::from_be_bytes([frame[0], frame[1]]);
        let mut rules = self.rules.lock().unwrap();
        if rules.held.contains(&kind) {
            rules.waiting += 1;
            rules = self.changed.wait_while(rules, |rules| rules.held.contains(&kind)).unwrap();
            rules.waiting -= 1;
        }
        if rules.loses == Some(kind) {
            rules.loses = None;
            rules.held.insert(kind);
            rules.lost.insert(number(&frame[4..]));
        }
        true
    }

    /// Puts this port in the place of the broker's. Says no if the answer is to be lost.
    fn answer(&self, frame: &mut [u8], there: &[u8], here: &[u8]) -> bool {
        let mut rules = self.rules.lock().unwrap();
        if rules.lost.remove(&number(frame)) {
            rules.count += 1;
            return false;
        }
        for start in 0..frame.len().saturating_sub(there.len() - 1) {
            if frame[start..].starts_with(there) {
                frame[start..start + here.len()].copy_from_slice(here);
            }
        }
        true
    }
}

fn number(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes[..4].try_into().unwrap())
}

/// Passes frames on until one side has gone, or `look` says no.
fn pass(mut from: TcpStream, mut to: TcpStream, look: impl Fn(&mut [u8]) -> bool) {
    let mut length = [0; 4];
    while from.read_exact(&mut length).is_ok() {
        let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        if from.read_exact(&mut frame).is_err() || !look(&mut frame) {
            break;
        }
        if to.write_all(&[&length[..], &frame].concat()).is_err() {
            break;
        }
    }
    // Whichever is gone already does not mind.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
