//! Consul: a session for every client, and a key that the session locks.
//!
//! The session is made once and kept, without health checks, so that its ttl alone decides. Acquire is a transaction of one `lock`, whose answer
//! has the lock index; that is the token, as in its own sequencers (a PUT with `acquire` does the same write, and answers `true` alone). Release is
//! one PUT. A key stays when it is given back, so that its lock index never falls.
//!
//! A renewal sets a timer of the leader anew: it is neither on a disk nor replicated, and a new leader gives every session its whole time again.
//! That time is twice the ttl: a session may rely on the ttl, and nobody else gets its locks before the double of it.

mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::process::{Process, free_ports, tied};
use super::{Running, Tools};
use crate::clock::now_ns;
use wire::{Answer, Connection};

/// Connections for more sessions than that: each does one thing at a time.
const POOL: usize = 64;
/// Connections that it takes from one address; 200 unless told otherwise, which is less than the clients of one workload.
const CONNECTIONS: usize = 4096;
/// How soon somebody who waits asks again when it is told that nobody leads.
const AGAIN: Duration = Duration::from_millis(10);
/// How long somebody who waits is told so before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where `cargo xtask bench` builds it, below what was installed.
const PROGRAM: &str = "go/consul/consul";

/// Starts one node or three.
///
/// # Errors
/// When its program is missing, or it does not serve.
pub fn start(tools: &Tools, nodes: usize) -> Result<Running> {
    let program = tools.installed.join(PROGRAM);
    ensure!(program.is_file(), "consul is missing: `cargo xtask bench` builds it");
    let directory = tools.directory("consul")?;
    let all = free_ports(3 * nodes)?;
    let (clients, inner) = all.split_at(nodes);
    let (gossip, servers) = inner.split_at(nodes);
    let mut started = Vec::new();
    for number in 0..nodes {
        let name = format!("n{number}");
        let [file, log] = ["json", "log"].map(|ending| directory.path().join(format!("{name}.{ending}")));
        let ports = Ports { client: clients[number], gossip: gossip[number], server: servers[number] };
        let config = config(&name, &directory.path().join(&name), &ports, gossip);
        std::fs::write(&file, config.to_string())?;
        let mut agent = tied(&program);
        agent.args(["agent", "-config-file"]).arg(file);
        started.push(Process::start(&format!("consul {name}"), agent, log)?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (version, leader) = started[0].until(|| runtime.block_on(leader(clients, servers)))?;
    let settings = format!(
        "server with raft_multiplier 1 and the write-ahead log store, session_ttl_min 1s, {CONNECTIONS} connections allowed; a session per client \
         (behavior release, lock delay 0, no checks), a Txn with lock per acquire and PUT release, HTTP/1.1 connections to the leader that stay open, \
         waiting by blocking queries; renewals over {POOL} connections; a session ends at twice its ttl by its own rule"
    );
    let url = format!("127.0.0.1:{}", clients[leader]);
    let beside = clients.iter().enumerate().find(|(number, _)| *number != leader);
    let beside_leader = beside.map(|(_, port)| format!("127.0.0.1:{port}"));
    Ok(Running { version, settings, url, beside_leader, nodes: started, leader, directory })
}

/// What one node listens on.
struct Ports {
    client: u16,
    gossip: u16,
    server: u16,
}

fn config(name: &str, home: &Path, ports: &Ports, gossip: &[u16]) -> Value {
    let join: Vec<String> = gossip.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    json!({
        "server": true,
        "bootstrap_expect": gossip.len(),
        "node_name": name,
        "data_dir": home,
        "bind_addr": "127.0.0.1",
        "client_addr": "127.0.0.1",
        "ports": {
            "http": ports.client, "serf_lan": ports.gossip, "server": ports.server,
            "https": -1, "dns": -1, "grpc": -1, "grpc_tls": -1, "serf_wan": -1,
        },
        "retry_join": if gossip.len() > 1 { join } else { Vec::new() },
        "retry_interval": "1s",
        // As its documentation advises for production: elections are as quick as they can be.
        "performance": { "raft_multiplier": 1 },
        "raft_logstore": { "backend": "wal" },
        "limits": { "http_max_conns_per_client": CONNECTIONS },
        "session_ttl_min": "1s",
        "connect": { "enabled": false },
        "peering": { "enabled": false },
        "disable_update_check": true,
        "log_level": "WARN",
    })
}

/// Version and number of the leader, if all nodes know it and take sessions.
async fn leader(clients: &[u16], servers: &[u16]) -> Result<(String, usize)> {
    let (mut found, mut version) = (None, String::new());
    for port in clients {
        let link = Arc::new(Connection::open(&format!("127.0.0.1:{port}")).await?);
        let said: String = read(&link.request("GET", "/v1/status/leader", "").await?)?;
        let number = servers.iter().position(|port| said == format!("127.0.0.1:{port}"));
        let number = number.with_context(|| format!("node on port {port} says that {said:?} leads"))?;
        ensure!(*found.get_or_insert(number) == number, "nodes disagree on who leads");
        // A node is known to the others a little later than it serves, and has no session before.
        let session = session(&link, Duration::from_secs(10)).await?;
        let ended = link.request("PUT", &format!("/v1/session/destroy/{session}"), "").await?;
        ensure!(ended.status == 200, "a session does not end: {}", words(&ended));
        let about: Value = read(&link.request("GET", "/v1/agent/version", "").await?)?;
        version = about["HumanVersion"].as_str().context("it does not say its version")?.to_owned();
    }
    Ok((version, found.context("nobody leads")?))
}

/// Makes a session.
async fn session(link: &Connection, ttl: Duration) -> Result<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    struct Made {
        id: String,
    }
    let wanted = json!({
        "TTL": format!("{}ms", ttl.as_millis()),
        "Behavior": "release",
        "LockDelay": "0s",
        "NodeChecks": [],
        "Checks": [],
    });
    let made: Made = read(&link.request("PUT", "/v1/session/create", &wanted.to_string()).await?)?;
    Ok(made.id)
}

/// What an answer says, if it is a good one.
fn read<'a, T: Deserialize<'a>>(answer: &'a Answer) -> Result<T> {
    ensure!(answer.status == 200, "it says {}: {}", answer.status, words(answer));
    serde_json::from_slice(&answer.body).with_context(|| format!("it says {}", words(answer)))
}

fn words(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).trim().to_owned()
}

/// A session.
#[derive(Debug)]
pub struct Client {
    link: Arc<Connection>,
    session: String,
}

/// A key that the session has locked.
#[derive(Debug)]
pub struct Held {
    name: String,
}

/// What came of an attempt to lock a key.
#[derive(Debug, PartialEq, Eq)]
enum Tried {
    Granted { token: u64 },
    HeldByAnother,
    NobodyLeads { said: String },
}

/// What is known of a key without locking it.
#[derive(Debug, PartialEq, Eq)]
enum Looked {
    /// Nobody holds it, or this session itself does, which may lock again what it has.
    Free,
    HeldByAnother,
    NobodyLeads {
        said: String,
    },
}

fn tried(answer: &Answer) -> Result<Tried> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Done {
        results: Vec<One>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    struct One {
        kv: Key,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Key {
        lock_index: u64,
    }
    match answer.status {
        409 if words(answer).contains("already held") => Ok(Tried::HeldByAnother),
        500.. => Ok(Tried::NobodyLeads { said: words(answer) }),
        _ => {
            let done: Done = read(answer)?;
            let one = done.results.first().context("a transaction without a result")?;
            Ok(Tried::Granted { token: one.kv.lock_index })
        }
    }
}

fn looked(answer: &Answer, own: &str) -> Result<Looked> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Key {
        session: Option<String>,
    }
    match answer.status {
        404 => Ok(Looked::Free),
        500.. => Ok(Looked::NobodyLeads { said: words(answer) }),
        _ => {
            let keys: Vec<Key> = read(answer)?;
            let mut holders = keys.into_iter().filter_map(|key| key.session);
            let held = holders.any(|holder| !holder.is_empty() && holder != own);
            Ok(if held { Looked::HeldByAnother } else { Looked::Free })
        }
    }
}

impl Client {
    async fn try_lock(&self, name: &str) -> Result<Tried> {
        // Names of workloads and ids of sessions have nothing in them that JSON or an address would write otherwise.
        let session = &self.session;
        let body = format!(r#"[{{"KV":{{"Verb":"lock","Key":"{name}","Session":"{session}"}}}}]"#);
        tried(&self.link.request("PUT", "/v1/txn", &body).await?)
    }

    /// Looks at a key, at once or as soon as it is another than at an index, and moves the index on.
    async fn look(&self, name: &str, behind: &mut Option<u64>) -> Result<Looked> {
        let path = match behind {
            Some(index) => format!("/v1/kv/{name}?index={index}"),
            None => format!("/v1/kv/{name}"),
        };
        let answer = self.link.request("GET", &path, "").await?;
        // An index that fell, or that is missing, begins anew: so its documentation wants it.
        *behind = Some(answer.index).filter(|index| *index > 0 && Some(*index) >= *behind);
        looked(&answer, &self.session)
    }
}

impl super::Client for Client {
    type Link = Connection;
    type Held = Held;

    const RENEWAL_LINKS: usize = POOL;

    async fn link(url: &str, _ttl: Duration) -> Result<Connection> {
        Connection::open(url).await
    }

    async fn open(link: &Arc<Connection>, _number: usize, ttl: Duration) -> Result<Self> {
        Ok(Self { link: Arc::clone(link), session: session(link, ttl).await? })
    }

    async fn acquire(&self, name: &str) -> Result<(u64, Held)> {
        match self.try_lock(name).await? {
            Tried::Granted { token } => Ok((token, Held { name: name.to_owned() })),
            Tried::HeldByAnother => bail!("{name} is held by somebody else"),
            Tried::NobodyLeads { said } => bail!("{name} is not granted: {said}"),
        }
    }

    async fn release(&self, Held { name }: Held) -> Result<()> {
        let path = format!("/v1/kv/{name}?release={}", self.session);
        let released: bool = read(&self.link.request("PUT", &path, "").await?)?;
        ensure!(released, "{name} was not held any more");
        Ok(())
    }

    /// The recipe of its own client library: a blocking query until nobody holds the key, then an attempt, in which all who wait compete.
    async fn wait_for(&self, name: &str) -> Result<(u64, Held)> {
        let (mut behind, mut led) = (None, now_ns());
        loop {
            let tried = match self.look(name, &mut behind).await? {
                Looked::Free => self.try_lock(name).await?,
                Looked::HeldByAnother => Tried::HeldByAnother,
                Looked::NobodyLeads { said } => Tried::NobodyLeads { said },
            };
            match tried {
                Tried::Granted { token } => return Ok((token, Held { name: name.to_owned() })),
                // Whoever was first has changed the key since it was looked at, so the next look does not wait in vain.
                Tried::HeldByAnother => led = now_ns(),
                Tried::NobodyLeads { said } => {
                    ensure!(now_ns() - led < u64::try_from(PATIENCE.as_nanos())?, "nobody leads: {said}");
                    // What was asked for may have been done all the same.
                    behind = None;
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn renew(&self, held: &mut Held) -> Result<()> {
        let renewed = self.link.request("PUT", &format!("/v1/session/renew/{}", self.session), "").await?;
        ensure!(renewed.status == 200, "the session of {} is lost: {}", held.name, words(&renewed));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, index: 7, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn the_token_of_a_grant_is_the_lock_index() {
        let done = r#"{"Results":[{"KV":{"LockIndex":3,"Key":"a","Flags":0,"Value":null,"Session":"s","CreateIndex":9,"ModifyIndex":12}}],"Errors":null}"#;
        assert_eq!(tried(&answer(200, done)).unwrap(), Tried::Granted { token: 3 });
    }

    #[test]
    fn held_by_another_is_told_from_every_other_refusal() {
        let errors = |what: &str| {
            answer(409, &format!(r#"{{"Results":null,"Errors":[{{"OpIndex":0,"What":"{what}"}}]}}"#))
        };
        let held = errors("failed to lock key 'a', lock is already held");
        assert_eq!(tried(&held).unwrap(), Tried::HeldByAnother);
        let lost = tried(&errors("invalid session 's'")).unwrap_err().to_string();
        assert!(lost.contains("invalid session"), "{lost}");
        let said = "No cluster leader".to_owned();
        assert_eq!(tried(&answer(500, &said)).unwrap(), Tried::NobodyLeads { said });
    }

    #[test]
    fn a_key_is_free_without_a_session_and_for_its_own() {
        let of = |session: &str| answer(200, &format!(r#"[{{"LockIndex":1,"Key":"a"{session}}}]"#));
        let looked = |answer: &Answer| looked(answer, "own").unwrap();
        assert_eq!(looked(&answer(404, "")), Looked::Free);
        assert_eq!(looked(&of("")), Looked::Free);
        assert_eq!(looked(&of(r#","Session":"own""#)), Looked::Free);
        assert_eq!(looked(&of(r#","Session":"other""#)), Looked::HeldByAnother);
    }
}
