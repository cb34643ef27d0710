//! NATS: a bucket of its key-value store in files, synced before every answer; every operation is one message that names the last one it knows of.
//!
//! The token is the sequence number of the message that made the key; renewals are messages too, and move the number but not the token.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::{self, Context, kv};

use super::process::{Process, Recipe, free_ports, program};
use super::{RenewOne, Renewed, Running, TTL, Tools, renew_each};
use crate::workloads::Window;

const BUCKET: &str = "bench";
/// Answers that may be missing on one connection at a time: more than there are sessions.
const IN_FLIGHT: usize = 200_000;
/// A synced write may wait behind very many others.
const PATIENCE: Duration = Duration::from_secs(60);

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
    let url = format!("nats://127.0.0.1:{}", clients[0]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let version = started[0].until(|| runtime.block_on(make_bucket(&url, nodes)))?;
    let settings = format!(
        "JetStream with sync_interval always, a bucket in files with {nodes} replica(s) and history 1; one message per operation with the \
         sequence number expected, crate async-nats"
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

async fn make_bucket(url: &str, replicas: usize) -> Result<String> {
    let client = async_nats::connect(url).await?;
    let bucket = kv::Config {
        bucket: BUCKET.to_owned(),
        history: 1,
        num_replicas: replicas,
        max_age: TTL * 10,
        ..kv::Config::default()
    };
    jetstream::new(client.clone()).create_key_value(bucket).await?;
    Ok(client.server_info().version)
}

/// Somebody who remembers the last message of every name it had.
#[derive(Debug)]
pub struct Client {
    link: Arc<Context>,
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
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, last.to_string());
        if delete {
            headers.insert("KV-Operation", "DEL");
        }
        let subject = format!("$KV.{BUCKET}.{name}");
        let value = if delete { String::new() } else { self.number.to_string() };
        let sent = self.link.publish_with_headers(subject, headers, value.into()).await;
        match match sent {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        } {
            Ok(answer) => Ok(Some(answer.sequence)),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn remember(&self, name: &str, last: u64) {
        let mut known = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get_mut(name) {
            Some(known) => *known = last,
            None => drop(known.insert(name.to_owned(), last)),
        }
    }
}

impl super::Client for Client {
    type Link = Context;
    type Held = Held;

    async fn link(url: &str, _ttl: Duration) -> Result<Context> {
        let client = async_nats::connect(url).await?;
        let builder = jetstream::context::ContextBuilder::new();
        Ok(builder.max_ack_inflight(IN_FLIGHT).ack_timeout(PATIENCE).build(client))
    }

    async fn open(link: &Arc<Context>, number: usize, _ttl: Duration) -> Result<Self> {
        Ok(Self { link: Arc::clone(link), number, last: Mutex::default() })
    }

    async fn acquire(&self, name: &str) -> Result<(u64, Held)> {
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        let token = match self.publish(name, known.unwrap_or(0), false).await? {
            Some(token) => token,
            None => {
                // Somebody else had it meanwhile: free if the last message is its end.
                let bucket = self.link.get_key_value(BUCKET).await?;
                let entry = bucket.entry(name).await?.context("a key that is there and is not")?;
                if entry.operation == kv::Operation::Put {
                    bail!("{name} is held by somebody else");
                }
                let token = self.publish(name, entry.revision, false).await?;
                token.with_context(|| format!("{name} is held by somebody else"))?
            }
        };
        Ok((token, Held { name: name.to_owned(), last: token }))
    }

    async fn release(&self, held: Held) -> Result<()> {
        let last = self.publish(&held.name, held.last, true).await?;
        self.remember(&held.name, last.with_context(|| format!("{} was not held any more", held.name))?);
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
