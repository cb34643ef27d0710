//! PostgreSQL: a table with a row for each name, changed by one statement each.
//!
//! The row stays when a lease is given back, so that its token never falls. Three nodes are not measured: who decides on a failover is not part
//! of it.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _, Row as _};
use tokio::sync::Mutex;

use super::process::{Process, free_ports, program, tied};
use super::{Running, Tools};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS lease (resource text PRIMARY KEY, holder text, token bigint NOT NULL, \
                     expires_at timestamptz NOT NULL) WITH (fillfactor = 50)";
const ACQUIRE: &str = "INSERT INTO lease AS l VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 ms') \
    ON CONFLICT (resource) DO UPDATE SET holder = excluded.holder, token = l.token + 1, expires_at = excluded.expires_at \
    WHERE l.holder IS NULL OR l.expires_at <= clock_timestamp() RETURNING token";
const RENEW: &str = "UPDATE lease SET expires_at = clock_timestamp() + $4 * interval '1 ms' \
    WHERE resource = $1 AND holder = $2 AND token = $3 AND expires_at > clock_timestamp()";
const RELEASE: &str = "UPDATE lease SET holder = NULL, expires_at = '-infinity' \
    WHERE resource = $1 AND holder = $2 AND token = $3";

/// Connections for more sessions than that: every commit waits for the disk, and only commits of different connections share one sync.
const POOL: usize = 64;

/// How often somebody who waits looks again: it has no queue.
const POLL: Duration = Duration::from_millis(5);

/// Starts one.
///
/// # Errors
/// When its programs are missing, or it does not serve.
pub fn start(tools: &Tools) -> Result<Running> {
    let missing = "postgres is missing: `cargo xtask bench` installs it";
    let [postgres, initdb] = ["postgres", "initdb"].map(|name| program(name, &places()));
    let (postgres, initdb) = (postgres.context(missing)?, initdb.context(missing)?);
    let directory = tools.directory("postgres")?;
    let data = directory.path().join("data");
    std::fs::create_dir(&data)?;
    // It refuses to be root, and its own user must be able to pass.
    let user = other_user()?;
    if let Some((id, group)) = user {
        chown(&data, Some(id), Some(group))?;
        std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    }
    make(&initdb, &data, user)?;
    let port = free_ports(1)?[0];
    let mut server = as_user(user, &postgres);
    server.arg("-D").arg(&data).args(["-p", &port.to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "max_connections=400",
        "wal_level=minimal",
        "max_wal_senders=0",
    ] {
        server.args(["-c", setting]);
    }
    let mut node = Process::start("postgres", server, directory.path().join("log"))?;
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let version = node.until(|| runtime.block_on(prepare(&url)))?;
    let settings = format!(
        "fsync and synchronous_commit on, max_connections 400, wal_level minimal; one prepared INSERT ON CONFLICT or UPDATE per operation \
         by crate sqlx; renewals over {POOL} connections"
    );
    Ok(Running { version, settings, url, beside_leader: None, nodes: vec![node], leader: 0, directory })
}

/// Where Debian has its programs.
fn places() -> Vec<std::path::PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).collect()
}

/// Somebody else, if this is root.
fn other_user() -> Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").context("/etc/passwd cannot be read")?;
    let numbers = |name: &str| {
        let line = users.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let mut fields = line.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    let found = ["postgres", "nobody"].into_iter().find_map(numbers);
    found.map(Some).context("there is no user postgres and no user nobody")
}

fn as_user(user: Option<(u32, u32)>, program: &Path) -> Command {
    let Some((id, group)) = user else { return tied(program) };
    let mut command = tied("setpriv");
    command.args([format!("--reuid={id}"), format!("--regid={group}")]);
    // Who becomes another user is not tied any more.
    command.args(["--clear-groups", "--pdeathsig", "KILL", "--"]).arg(program);
    command
}

fn make(initdb: &Path, data: &Path, user: Option<(u32, u32)>) -> Result<()> {
    let mut make = as_user(user, initdb);
    make.args(["--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"]);
    let made = make.arg(data).current_dir("/").output().context("initdb does not start")?;
    ensure!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

async fn prepare(url: &str) -> Result<String> {
    let mut connection = connect(url).await?;
    connection.execute(TABLE).await?;
    let version: String = sqlx::query("SHOW server_version").fetch_one(&mut connection).await?.get(0);
    connection.close().await?;
    Ok(version.split(' ').next().unwrap_or(&version).to_owned())
}

async fn connect(url: &str) -> Result<PgConnection> {
    Ok(PgConnection::connect_with(&url.parse::<PgConnectOptions>()?).await?)
}

/// A connection, which prepares each statement once. It does one thing at a time.
#[derive(Debug)]
pub struct Link {
    connection: Mutex<PgConnection>,
}

/// Somebody with a number. A holder's name is different for each attempt.
#[derive(Debug)]
pub struct Client {
    link: Arc<Link>,
    number: usize,
    attempts: AtomicU64,
    ttl: Duration,
}

/// The row and who holds it.
#[derive(Debug)]
pub struct Held {
    name: String,
    holder: String,
    token: i64,
}

impl super::Client for Client {
    type Link = Link;
    type Held = Held;

    const RENEWAL_LINKS: usize = POOL;

    async fn link(url: &str, _ttl: Duration) -> Result<Link> {
        Ok(Link { connection: Mutex::new(connect(url).await?) })
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
        let mut connection = self.link.connection.lock().await;
        let query = sqlx::query(RELEASE).bind(&held.name).bind(&held.holder).bind(held.token);
        let changed = query.execute(&mut *connection).await?.rows_affected();
        ensure!(changed == 1, "{} was not held any more", held.name);
        Ok(())
    }

    async fn renew(&self, held: &mut Held) -> Result<()> {
        let mut connection = self.link.connection.lock().await;
        let query =
            sqlx::query(RENEW).bind(&held.name).bind(&held.holder).bind(held.token).bind(self.ttl_ms());
        let changed = query.execute(&mut *connection).await?.rows_affected();
        ensure!(changed == 1, "{} was not held any more", held.name);
        Ok(())
    }
}

impl Client {
    /// One attempt; nothing if somebody else holds it.
    async fn try_acquire(&self, name: &str) -> Result<Option<(u64, Held)>> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let holder = format!("{}/{attempt}", self.number);
        let mut connection = self.link.connection.lock().await;
        let query = sqlx::query(ACQUIRE).bind(name).bind(&holder).bind(self.ttl_ms());
        let row = query.fetch_optional(&mut *connection).await?;
        let Some(row) = row else { return Ok(None) };
        let token: i64 = row.get(0);
        Ok(Some((u64::try_from(token)?, Held { name: name.to_owned(), holder, token })))
    }

    /// As the statements take it: an interval is multiplied by a double.
    fn ttl_ms(&self) -> f64 {
        self.ttl.as_secs_f64() * 1000.0
    }
}
