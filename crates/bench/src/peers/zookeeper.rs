//! ZooKeeper: an ephemeral node for each name, made by one request and deleted by one.
//!
//! The token is the transaction that made the node. A session lives by pings of its connection, which the client sends by itself and which
//! are neither on a disk nor replicated: there is no renewal of a lease to measure.

mod wire;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::process::{Process, free_ports, program, tied};
use super::{Running, Tools};
use wire::{Kind, Session};

/// The longest that it grants with its usual tick of 2 s.
const LONGEST_SESSION: Duration = Duration::from_secs(40);

/// Starts one node or three.
///
/// # Errors
/// When it is missing, or does not serve.
pub fn start(tools: &Tools, nodes: usize) -> Result<Running> {
    let java = program("java", &[]).context("java is missing: `cargo xtask bench` installs it")?;
    let jars = tools.installed.join("zookeeper");
    ensure!(jars.is_dir(), "zookeeper is missing: `cargo xtask bench` installs it");
    let directory = tools.directory("zookeeper")?;
    let (clients, internal) = (free_ports(nodes)?, free_ports(2 * nodes)?);
    let members: String = if nodes == 1 {
        String::new()
    } else {
        let pairs = internal.chunks(2).zip(1..);
        pairs
            .map(|(ports, number)| format!("server.{number}=127.0.0.1:{}:{}\n", ports[0], ports[1]))
            .collect()
    };
    let mut started = Vec::new();
    for (port, number) in clients.iter().zip(1..) {
        let name = format!("n{number}");
        let home = directory.path().join(&name);
        std::fs::create_dir(&home)?;
        std::fs::write(home.join("myid"), number.to_string())?;
        let [file, log] = ["cfg", "log"].map(|ending| directory.path().join(format!("{name}.{ending}")));
        let data = home.display();
        let settings = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n{members}"
        );
        std::fs::write(&file, settings)?;
        let mut server = tied(&java);
        server.args(["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp"]).arg(jars.join("*"));
        server.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(file);
        started.push(Process::start(&format!("zookeeper {name}"), server, log)?);
    }
    let (version, leader) = started[0].until(|| leader(&clients))?;
    let settings = "defaults (forceSync on), 1 GiB of heap, connections without limit; an ephemeral node by create and delete, \
                    pipelined connections to the leader"
        .to_owned();
    let url = format!("127.0.0.1:{}", clients[leader]);
    Ok(Running { version, settings, url, beside_leader: None, nodes: started, leader, directory })
}

/// Version and number of the one that leads or stands alone.
fn leader(ports: &[u16]) -> Result<(String, usize)> {
    let mut found = None;
    for (number, port) in ports.iter().enumerate() {
        let mut stream = TcpStream::connect(("127.0.0.1", *port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"srvr")?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        let word = |key: &str| said.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        match word("Mode:") {
            Some("leader" | "standalone") => {
                let version = word("Zookeeper version:").unwrap_or_default();
                found = Some((version.split('-').next().unwrap_or(version).to_owned(), number));
            }
            Some("follower") => {}
            _ => bail!("node on port {port} says {said:?}"),
        }
    }
    found.context("nobody leads")
}

/// Whoever shares a connection shares its session too.
#[derive(Debug)]
pub struct Client {
    session: Arc<Session>,
}

/// The path of a node.
#[derive(Debug)]
pub struct Held {
    path: String,
}

impl super::Client for Client {
    type Link = Session;
    type Held = Held;

    async fn link(url: &str, ttl: Duration) -> Result<Session> {
        Session::open(url, ttl.min(LONGEST_SESSION)).await
    }

    async fn open(link: &Arc<Session>, _number: usize, _ttl: Duration) -> Result<Self> {
        Ok(Self { session: Arc::clone(link) })
    }

    async fn acquire(&self, name: &str) -> Result<(u64, Held)> {
        // Below the root, so that no other node has to be made first.
        let made = self.session.create(&path_of(name), Kind::Ephemeral).await?;
        let (path, transaction) = made.with_context(|| format!("{name} is held by somebody else"))?;
        Ok((u64::try_from(transaction)?, Held { path }))
    }

    async fn release(&self, held: Held) -> Result<()> {
        self.session.delete(&held.path).await
    }

    /// The recipe of its own documentation: a sequential node for each who waits, and a watch on the one before.
    async fn wait_for(&self, name: &str) -> Result<(u64, Held)> {
        let parent = path_of(name);
        // Whether it was there already is all the same.
        self.session.create(&parent, Kind::Persistent).await?;
        let made = self.session.create(&format!("{parent}/wait-"), Kind::Sequential).await?;
        let (path, transaction) = made.context("a number was given twice")?;
        loop {
            let mut all = self.session.children(&parent).await?;
            all.sort_unstable();
            let place = all
                .iter()
                .position(|child| path.ends_with(child.as_str()))
                .context("the own node is gone")?;
            let Some(before) = place.checked_sub(1).map(|place| &all[place]) else { break };
            self.session.until_changed(&format!("{parent}/{before}")).await?;
        }
        Ok((u64::try_from(transaction)?, Held { path }))
    }
}

fn path_of(name: &str) -> String {
    format!("/{}", name.replace('/', "-"))
}
