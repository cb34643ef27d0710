//! Ourselves: `leasehold serve` as it is shipped, and the public library.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use leasehold::{Change, ConnectOptions, Lease, Session, SessionOptions, Store, Watch};

use tokio::runtime::Handle;

use super::process::{Process, free_ports, tied};
use super::{Running, Seen, Tools, Watching};

/// How long a connection may take: a cluster elects a leader first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody waits longer in any workload.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Starts one node, or a cluster.
///
/// # Errors
/// When a node does not start.
pub fn start(tools: &Tools, nodes: usize) -> Result<Running> {
    let directory = tools.directory("leasehold")?;
    let ports = free_ports(nodes)?;
    let addresses: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let members: Vec<String> =
        addresses.iter().zip(1..).map(|(address, number)| format!("n{number}={address}")).collect();
    let mut started = Vec::new();
    for (address, number) in addresses.iter().zip(1..) {
        let name = format!("n{number}");
        let mut serve = tied(&tools.program);
        serve.args(["serve", "--log-format", "human", "--listen", address, "--name", &name, "--data"]);
        serve.arg(directory.path().join(&name));
        if nodes > 1 {
            serve.args(["--initial-cluster", &members.join(",")]);
        }
        let log = directory.path().join(format!("{name}.log"));
        started.push(Process::start(&format!("leasehold {name}"), serve, log)?);
    }
    for (node, port) in started.iter_mut().zip(ports) {
        node.until(|| Ok(std::net::TcpStream::connect(("127.0.0.1", port))?))?;
    }
    let url = format!("leasehold://{}", addresses.join(","));
    let settings = "as shipped; clients are sessions of the public library, whose answers are read in the application's runtime (`read_in`)".to_owned();
    let leader = if nodes == 1 { 0 } else { started[0].until(|| leader(&tools.program, &url))? };
    Ok(Running {
        version: version(&tools.program)?,
        settings,
        url,
        beside_leader: None,
        nodes: started,
        leader,
        directory,
    })
}

/// Which node leads, as an operator would ask.
fn leader(program: &Path, url: &str) -> Result<usize> {
    let said = said(program, &["--store", url, "--json", "cluster", "status"])?;
    let status: serde_json::Value = serde_json::from_slice(&said.stdout)
        .with_context(|| String::from_utf8_lossy(&said.stderr).into_owned())?;
    let name = status["leader"].as_str().context("nobody leads")?;
    let number: usize =
        name.trim_start_matches('n').parse().with_context(|| format!("{name} is no node here"))?;
    number.checked_sub(1).context("nodes are counted from one")
}

fn version(program: &Path) -> Result<String> {
    let words = String::from_utf8(said(program, &["--version"])?.stdout)?;
    words.split_whitespace().nth(1).map(str::to_owned).context("it does not say its version")
}

fn said(program: &Path, words: &[&str]) -> Result<Output> {
    let said = Command::new(program).args(words).output();
    said.with_context(|| format!("{} does not start", program.display()))
}

/// A session of the library.
#[derive(Debug)]
pub struct Client {
    session: Session,
}

impl super::Client for Client {
    type Link = Store;
    type Held = Lease;

    async fn link(url: &str, _ttl: Duration) -> Result<Store> {
        let options = ConnectOptions::new().patience(PATIENCE).read_in(Handle::current());
        Ok(Store::connect_with(url, options).await?)
    }

    async fn open(link: &Arc<Store>, number: usize, ttl: Duration) -> Result<Self> {
        let options = SessionOptions::new().ttl(ttl).label(format!("bench {number}"));
        Ok(Self { session: link.session_with(&options).await? })
    }

    async fn acquire(&self, name: &str) -> Result<(u64, Lease)> {
        let lease = self.session.acquire(name).await?;
        Ok((lease.granted().token.get(), lease))
    }

    async fn release(&self, held: Lease) -> Result<()> {
        Ok(held.release().await?)
    }

    async fn wait_for(&self, name: &str) -> Result<(u64, Lease)> {
        let lease = self.session.acquire(name).wait(LONGEST_WAIT).await?;
        Ok((lease.granted().token.get(), lease))
    }

    async fn renew(&self, _held: &mut Lease) -> Result<()> {
        Ok(self.session.renew().await?)
    }
}

impl Watching for Client {
    type Watch = Watch;

    async fn watch(link: &Arc<Store>, prefix: &str) -> Result<Watch> {
        Ok(link.watch(prefix).await?)
    }

    async fn seen(watch: &mut Watch) -> Result<Seen> {
        let changes = watch.next().await?.changes;
        let count = |is: fn(&Change) -> bool| changes.iter().filter(|change| is(change)).count();
        let granted = count(|change| matches!(change, Change::Granted { .. }));
        Ok(Seen { granted, ended: count(|change| matches!(change, Change::Ended { .. })) })
    }
}
