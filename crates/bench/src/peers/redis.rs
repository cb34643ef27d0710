//! Redis: one node that appends every write to its log and syncs before it answers, and a script with a token.
//!
//! A lease is a key that expires, with its holder as value; tokens come from a counter beside it that never expires. Three nodes are not measured:
//! replication does not wait, so an acknowledged grant can be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redis::aio::MultiplexedConnection;
use redis::{Script, cmd};

use super::process::{Process, free_ports, program, tied};
use super::{Running, Tools};

const ACQUIRE: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then \
                       return redis.call('INCR', KEYS[2]) else return 0 end";
const RENEW: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                     return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                       return redis.call('DEL', KEYS[1]) else return 0 end";

/// How often somebody who waits looks again: it has no queue.
const POLL: Duration = Duration::from_millis(5);

/// Starts one.
///
/// # Errors
/// When its program is missing, or it does not serve.
pub fn start(tools: &Tools) -> Result<Running> {
    let program = program("redis-server", &[tools.installed.join("redis/usr/bin")]);
    let program = program.context("redis-server is missing: `cargo xtask bench` installs it")?;
    let directory = tools.directory("redis")?;
    let port = free_ports(1)?[0];
    let mut server = tied(program);
    server.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
    server.args(["--port", &port.to_string(), "--dir"]).arg(directory.path());
    let mut node = Process::start("redis", server, directory.path().join("log"))?;
    let url = format!("redis://127.0.0.1:{port}/");
    let version = node.until(|| version(&url))?;
    let settings = "appendonly yes, appendfsync always, save off; EVALSHA of a script that sets with NX PX and raises a token counter; \
                    pipelined connections of crate redis"
        .to_owned();
    Ok(Running { version, settings, url, beside_leader: None, nodes: vec![node], leader: 0, directory })
}

fn version(url: &str) -> Result<String> {
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let info: String = cmd("INFO").arg("server").query(&mut connection)?;
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    version.map(|version| version.trim().to_owned()).context("it does not say its version")
}

/// A connection with the scripts.
#[derive(Debug)]
pub struct Link {
    connection: MultiplexedConnection,
    acquire: Script,
    renew: Script,
    release: Script,
}

/// Somebody with a number. The value of a key names the holder and its attempt.
#[derive(Debug)]
pub struct Client {
    link: Arc<Link>,
    number: usize,
    attempts: AtomicU64,
    ttl: Duration,
}

/// The key and who holds it.
#[derive(Debug)]
pub struct Held {
    name: String,
    holder: String,
}

impl super::Client for Client {
    type Link = Link;
    type Held = Held;

    async fn link(url: &str, _ttl: Duration) -> Result<Link> {
        let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        let [acquire, renew, release] = [ACQUIRE, RENEW, RELEASE].map(Script::new);
        Ok(Link { connection, acquire, renew, release })
    }

    async fn open(link: &Arc<Link>, number: usize, ttl: Duration) -> Result<Self> {
        Ok(Self { link: Arc::clone(link), number, attempts: AtomicU64::new(0), ttl })
    }

    async fn acquire(&self, name: &str) -> Result<(u64, Held)> {
        self.try_acquire(name).await?.with_context(|| format!("{name} is held by somebody else"))
    }

    async fn wait_for(&self, name: &str) -> Result<(u64, Held)> {
        loop {
            if let Some(granted) = self.try_acquire(name).await? {
                return Ok(granted);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn release(&self, held: Held) -> Result<()> {
        let mut connection = self.link.connection.clone();
        let mut call = self.link.release.key(&held.name);
        let released: u64 = call.arg(&held.holder).invoke_async(&mut connection).await?;
        ensure!(released == 1, "{} was not held any more", held.name);
        Ok(())
    }

    async fn renew(&self, held: &mut Held) -> Result<()> {
        let mut connection = self.link.connection.clone();
        let mut call = self.link.renew.key(&held.name);
        let renewed: u64 = call.arg(&held.holder).arg(self.ttl_ms()).invoke_async(&mut connection).await?;
        ensure!(renewed == 1, "{} was not held any more", held.name);
        Ok(())
    }
}

impl Client {
    /// One attempt; nothing if somebody else holds it.
    async fn try_acquire(&self, name: &str) -> Result<Option<(u64, Held)>> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let holder = format!("{}/{attempt}", self.number);
        let mut connection = self.link.connection.clone();
        let mut call = self.link.acquire.key(name);
        call.key(format!("{name}#token")).arg(&holder).arg(self.ttl_ms());
        let token: u64 = call.invoke_async(&mut connection).await?;
        Ok((token > 0).then(|| (token, Held { name: name.to_owned(), holder })))
    }

    fn ttl_ms(&self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)
    }
}
