//! Clients that speak HTTP, with nothing but a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{NAMES, Shared};

/// An answer is waited for this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts callers and watchers, one thread each.
pub fn start(address: &str, callers: usize, watchers: usize, shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let thread = |work: fn(&str, u64, &Shared), number: u64| {
        let (address, shared) = (address.to_owned(), Arc::clone(shared));
        std::thread::spawn(move || work(&address, number, &shared))
    };
    let callers = (0..callers as u64).map(|number| thread(call, number));
    callers.chain((0..watchers as u64).map(|number| thread(watch, number))).collect()
}

/// Opens a session, takes leases, and in every tenth round goes away in the middle of a wait, leaving a session that has to expire.
fn call(address: &str, number: u64, shared: &Shared) {
    let mut round = 0;
    while !shared.is_over() {
        round += 1;
        if one_round(address, number, round, shared).is_err() && !shared.is_over() {
            shared.troubles.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn one_round(address: &str, number: u64, round: u64, shared: &Shared) -> Result<()> {
    let mut connection = Connection::new(address)?;
    let (status, opened) = connection.post("/v1/sessions", &json!({"ttl_ms": 2_000, "label": "soak"}))?;
    anyhow::ensure!(status == 200, "open gave {status}");
    let key = opened["session_key"].as_str().context("no key")?.to_owned();
    for step in 0..20 {
        let name = format!("soak/{}", (number * 31 + round * 17 + step * 7) % NAMES);
        let ask = json!({"session_key": key, "resource": name, "wait_ms": 100, "value": "http"});
        let (status, answer) = connection.post("/v1/leases/acquire", &ask)?;
        if status != 200 {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        shared.grants.fetch_add(1, Ordering::Relaxed);
        let token = &answer["leases"][0]["token"];
        connection.post("/v1/sessions/SESSION/renew", &json!({"session_key": key}))?;
        std::thread::sleep(shared.pace);
        let give = json!({"session_key": key, "resource": name, "token": token});
        connection.post("/v1/leases/release", &give)?;
    }
    // What makes no sense is refused, and nothing else happens.
    let (status, _) = connection.post("/v1/leases/acquire", &json!({"session_key": key, "resorce": "x"}))?;
    anyhow::ensure!(status == 400, "nonsense gave {status}");
    shared.nonsense.fetch_add(1, Ordering::Relaxed);
    if round.is_multiple_of(10) {
        let ask = json!({"session_key": key, "resource": "soak/0", "wait_ms": 50_000});
        connection.send("POST", "/v1/leases/acquire", &ask.to_string())?;
        return Ok(());
    }
    connection.post("/v1/sessions/SESSION/close", &json!({"session_key": key}))?;
    Ok(())
}

/// Watches by server-sent events; begins anew now and then, where it was.
fn watch(address: &str, number: u64, shared: &Shared) {
    let mut after = String::new();
    while !shared.is_over() {
        let most = if number.is_multiple_of(2) { u64::MAX } else { 500 };
        if watch_for(address, most, &mut after, shared).is_err() && !shared.is_over() {
            shared.troubles.fetch_add(1, Ordering::Relaxed);
            after.clear();
        }
    }
}

fn watch_for(address: &str, most: u64, after: &mut String, shared: &Shared) -> Result<()> {
    let mut connection = Connection::new(address)?;
    let query = if after.is_empty() { String::new() } else { format!("&after={after}") };
    connection.send("GET", &format!("/v1/watch?prefix=soak/{query}"), "")?;
    let status = connection.head()?.0;
    anyhow::ensure!(status == 200, "watch gave {status}");
    let mut lines = 0;
    while lines < most && !shared.is_over() {
        let mut line = String::new();
        anyhow::ensure!(connection.reader.read_line(&mut line)? > 0, "the watch ended");
        if let Some(id) = line.strip_prefix("id: ") {
            id.trim().clone_into(after);
        } else if line.starts_with("data: ") {
            lines += 1;
            shared.seen.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

struct Connection {
    reader: BufReader<TcpStream>,
    address: String,
}

impl Connection {
    fn new(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream), address: address.to_owned() })
    }

    /// A `session_key` in the body says for which session it is: it goes into the header, and `SESSION` in the path is its id.
    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let mut fields: Value = serde_json::from_str(body).unwrap_or_default();
        let key = fields.as_object_mut().and_then(|fields| fields.remove("session_key"));
        let key = key.as_ref().and_then(Value::as_str).unwrap_or_default();
        let path = path.replace("SESSION", key.split('-').next().unwrap_or_default());
        let body = if key.is_empty() { body.to_owned() } else { fields.to_string() };
        let (host, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nleasehold-session: {key}\r\n\
             content-length: {length}\r\n\r\n"
        );
        self.reader.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        Ok(())
    }

    /// Status and length of what follows.
    fn head(&mut self) -> Result<(u16, usize)> {
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            anyhow::ensure!(self.reader.read_line(&mut line)? > 0, "the connection ended");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                return Ok((status, length));
            }
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.split(' ').next().unwrap_or_default().parse()?;
            } else if let Some(rest) = line.strip_prefix("content-length:") {
                length = rest.trim().parse()?;
            }
        }
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<(u16, Value)> {
        self.send("POST", path, &body.to_string())?;
        let (status, length) = self.head()?;
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes)?;
        Ok((status, serde_json::from_slice(&bytes)?))
    }
}
