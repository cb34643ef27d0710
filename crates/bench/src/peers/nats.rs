//! NATS: a bucket of its key-value store in files, synced before every answer; every operation is one message that names the last one it knows of.
//!
//! The token is the sequence number of the message that made the key; renewals are messages too, and move the number but not the token.

mod wire;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use super::process::{Process, Recipe, free_ports, program};
use super::{RenewOne, Renewed, Running, TTL, Tools, renew_each};
use crate::workloads::Window;
use wire::Connection;

const BUCKET: &str = "bench";
/// The code of an answer that says that the last message of a key is another one.
const WRONG_LAST: u64 = 10_071;
/// The code of an answer of a cluster that has not settled yet what the last message of a key is: asked again, it has.
const UNSETTLED: u64 = 10_164;
/// How often it is asked again.
const TRIES: usize = 100;

/// How long a bucket may take before it is asked for again.
const PATIENCE: Duration = Duration::from_secs(3);

/// Starts one node or three.
///
/// # Errors
/// When its program is missing, or it does not serve.
pub fn start(tools: &Tools, nodes: usize) -> Result<Running> {
    let program = program("nats-server", &[tools.installed.join("python/bin")]);
    let program = program.context("nats-server is missing: `cargo xtask bench` installs it")?;
    let directory = tools.directory("nats")?;
    let (clients, routes) = (free_ports(nodes)?, free_ports(nodes)?);
    let mut started = Vec::new();
    for (number, (client, route)) in clients.iter().zip(&routes).enumerate() {
        let file = directory.path().join(format!("n{number}.conf"));
        let home = directory.path().join(format!("n{number}"));
        std::fs::write(&file, config(number, &home, *client, *route, &routes))?;
        let words = vec![program.display().to_string(), "-c".to_owned(), file.display().to_string()];
        let log = directory.path().join(format!("n{number}.log"));
        started.push(Process::start(Recipe {
            name: format!("nats n{number}"),
            words,
            variables: Vec::new(),
            log,
        })?);
    }
    let url = format!("127.0.0.1:{}", clients[0]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // While nobody leads, a request may be lost without a word.
    let make = || async { tokio::time::timeout(PATIENCE, make_bucket(&url, nodes)).await? };
    let version = started[0].until(|| runtime.block_on(make()))?;
    let settings = format!(
        "JetStream with sync_interval always, a bucket in files with {nodes} replica(s) and history 1; one message per operation with the \
         sequence number expected, over pipelined connections"
    );
    Ok(Running { version, settings, url, beside_leader: None, nodes: started, leader: 0, directory })
}

fn config(number: usize, home: &Path, client: u16, route: u16, routes: &[u16]) -> String {
    let mut config = format!(
        "server_name: n{number}\nlisten: 127.0.0.1:{client}\njetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
        home.display()
    );
    if routes.len() > 1 {
        let all: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        config +=
            &format!("cluster {{ name: bench, listen: 127.0.0.1:{route}, routes: [{}] }}\n", all.join(", "));
    }
    config
}

/// Makes the bucket as its own client libraries do.
async fn make_bucket(address: &str, replicas: usize) -> Result<String> {
    let connection = Connection::open(address).await?;
    let name = format!("KV_{BUCKET}");
    let bucket = json!({
        "name": name,
        "subjects": [format!("$KV.{BUCKET}.>")],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_msgs_per_subject": 1,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msg_size": -1,
        "max_age": TTL.as_secs() * 10_000_000_000,
        "num_replicas": replicas,
        "allow_rollup_hdrs": true,
        "deny_delete": true,
        "allow_direct": true,
    });
    let made = connection.request(&format!("$JS.API.STREAM.CREATE.{name}"), "", &bucket.to_string()).await?;
    ensure!(made["config"].is_object(), "the bucket was not made: {made}");
    Ok(connection.version.clone())
}

/// Somebody who remembers the last message of every name it had.
#[derive(Debug)]
pub struct Client {
    link: Arc<Connection>,
    number: usize,
    last: Mutex<HashMap<String, u64>>,
}

/// The key, and the last message of it.
#[derive(Debug)]
pub struct Held {
    name: String,
    last: u64,
}

impl Client {
    /// Publishes to a key whose last message is `last`. Nothing if it is another one.
    async fn publish(&self, name: &str, last: u64, delete: bool) -> Result<Option<u64>> {
        let operation = if delete { "KV-Operation: DEL\r\n" } else { "" };
        let headers = format!("Nats-Expected-Last-Subject-Sequence: {last}\r\n{operation}");
        let value = if delete { String::new() } else { self.number.to_string() };
        let subject = format!("$KV.{BUCKET}.{name}");
        for _ in 0..TRIES {
            let answer = self.link.request(&subject, &headers, &value).await?;
            match (answer["seq"].as_u64(), answer["error"]["err_code"].as_u64()) {
                (Some(sequence), None) => return Ok(Some(sequence)),
                (_, Some(WRONG_LAST)) => return Ok(None),
                (_, Some(UNSETTLED)) => tokio::time::sleep(Duration::from_millis(1)).await,
                _ => bail!("{name} was not written: {answer}"),
            }
        }
        bail!("{name} was not written: the cluster does not settle")
    }
}

impl super::Client for Client {
    type Link = Connection;
    type Held = Held;

    async fn link(url: &str, _ttl: Duration) -> Result<Connection> {
        Connection::open(url).await
    }

    async fn open(link: &Arc<Connection>, number: usize, _ttl: Duration) -> Result<Self> {
        Ok(Self { link: Arc::clone(link), number, last: Mutex::default() })
    }

    async fn acquire(&self, name: &str) -> Result<(u64, Held)> {
        // Whoever comes back knows the message that gave the name back; for whoever does not, the name was never there.
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        let token = self.publish(name, known.unwrap_or(0), false).await?;
        let token = token.with_context(|| format!("{name} is held by somebody else"))?;
        Ok((token, Held { name: name.to_owned(), last: token }))
    }

    async fn release(&self, held: Held) -> Result<()> {
        let Held { name, last } = held;
        let last = self.publish(&name, last, true).await?;
        let last = last.with_context(|| format!("{name} was not held any more"))?;
        self.last.lock().unwrap_or_else(PoisonError::into_inner).insert(name, last);
        Ok(())
    }

    async fn wait_for(&self, name: &str) -> Result<(u64, Held)> {
        bail!("waiting for {name} is not measured: no recipe of its own has a queue")
    }

    async fn renew_all(all: Vec<(Self, Held)>, window: Window) -> Result<Renewed<Self>> {
        renew_each(all, window).await
    }
}

impl RenewOne for Client {
    async fn renew(&self, held: &mut Held) -> Result<()> {
        let last = self.publish(&held.name, held.last, false).await?;
        held.last = last.with_context(|| format!("{} was not held any more", held.name))?;
        Ok(())
    }
}
