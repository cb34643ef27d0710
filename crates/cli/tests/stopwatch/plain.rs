//! A holder over plain HTTP, as a client without our library is one: it renews, and acts while its own clock lets it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::place::{eventually, nanos, now, number, pause};

/// One moment at which a holder acted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    pub(crate) at: u64,
    pub(crate) token: u64,
}

#[derive(Default)]
struct State {
    acts: Mutex<Vec<Act>>,
    granted: Mutex<Option<Act>>,
    /// The client that this stands for was killed or stopped.
    silent: AtomicBool,
    gives_back: AtomicBool,
    /// When the last renewal was sent that was answered, by the boot clock.
    renewed: AtomicU64,
}

pub(crate) struct Plain {
    state: Arc<State>,
}

impl Plain {
    /// Opens a session and waits for the name, in a thread of its own.
    pub(crate) fn begin(address: SocketAddr, name: &'static str, label: &str, ttl_ms: u64) -> Self {
        let state = Arc::new(State::default());
        state.renewed.store(now(), Ordering::Relaxed);
        let opened = ask(address, "/v1/sessions", "", &json!({ "label": label, "ttl_ms": ttl_ms }));
        let key = opened.expect("a session is opened")["session_key"].as_str().unwrap().to_owned();
        let (renewing, of_renewing) = (Arc::clone(&state), key.clone());
        std::thread::spawn(move || renew(&renewing, address, &of_renewing, ttl_ms));
        let acting = Arc::clone(&state);
        std::thread::spawn(move || act(&acting, address, name, &key, ttl_ms));
        Self { state }
    }

    pub(crate) fn granted(&self) -> u64 {
        let granted = || self.state.granted.lock().unwrap().map(|grant| grant.token);
        eventually("it is granted", granted)
    }

    pub(crate) fn grant(&self) -> Option<Act> {
        *self.state.granted.lock().unwrap()
    }

    pub(crate) fn falls_silent(&self) {
        self.state.silent.store(true, Ordering::Relaxed);
    }

    pub(crate) fn gives_back(&self) {
        self.state.gives_back.store(true, Ordering::Relaxed);
    }

    pub(crate) fn acts(&self) -> Vec<Act> {
        self.state.acts.lock().unwrap().clone()
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.falls_silent();
    }
}

fn renew(state: &State, address: SocketAddr, key: &str, ttl_ms: u64) {
    let session = key.split('-').next().unwrap_or_default().to_owned();
    let mut due = now() + nanos(Duration::from_millis(ttl_ms / 3));
    while !state.silent.load(Ordering::Relaxed) {
        pause(Duration::from_millis(5));
        if now() < due {
            continue;
        }
        due = now() + nanos(Duration::from_millis(ttl_ms / 3));
        let sent = now();
        if let Some(answer) = ask(address, &format!("/v1/sessions/{session}/renew"), key, &json!({})) {
            let held = state.grant_is_in(&answer);
            if held {
                state.renewed.store(sent, Ordering::Relaxed);
            }
        }
    }
}

impl State {
    /// Before its grant a session has nothing to lose.
    fn grant_is_in(&self, answer: &Value) -> bool {
        let Some(grant) = *self.granted.lock().unwrap() else { return true };
        let leases = answer["leases"].as_array().cloned().unwrap_or_default();
        leases.iter().any(|lease| lease["token"].as_str().map(number) == Some(grant.token))
    }
}

fn act(state: &State, address: SocketAddr, name: &str, key: &str, ttl_ms: u64) {
    let wanted = json!({ "resource": name, "wait_ms": 600_000 });
    let Some(granted) = ask(address, "/v1/leases/acquire", key, &wanted) else { return };
    let Some(token) = granted["leases"][0]["token"].as_str().map(number) else { return };
    *state.granted.lock().unwrap() = Some(Act { at: now(), token });
    // A tenth of the ttl is the margin of our library too.
    let belief = nanos(Duration::from_millis(ttl_ms * 9 / 10));
    while !state.silent.load(Ordering::Relaxed) {
        if state.gives_back.load(Ordering::Relaxed) {
            let held = json!({ "resource": name, "token": token.to_string() });
            ask(address, "/v1/leases/release", key, &held);
            return;
        }
        let at = now();
        if at < state.renewed.load(Ordering::Relaxed) + belief {
            state.acts.lock().unwrap().push(Act { at, token });
        }
        pause(Duration::from_millis(3));
    }
}

/// The answer to a request that went well.
fn ask(address: SocketAddr, path: &str, key: &str, body: &Value) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    let body = body.to_string();
    let key = if key.is_empty() { String::new() } else { format!("\r\nleasehold-session: {key}") };
    let head = format!("POST {path} HTTP/1.1\r\nhost: here\r\nconnection: close{key}");
    let rest = format!("content-type: application/json\r\ncontent-length: {}", body.len());
    write!(stream, "{head}\r\n{rest}\r\n\r\n{body}").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let good = head.split(' ').nth(1) == Some("200");
    good.then(|| serde_json::from_str(body).ok()).flatten()
}
