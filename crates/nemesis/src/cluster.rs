//! A cluster of nodes in a network, and what an operator would type about it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::history::{At, Now};
use crate::net::Net;
use crate::node::{Beginning, Node};
use crate::numbers::{self, Numbers};
use crate::shell;

/// Where every node listens; addresses differ, so the port need not.
const PORT: u16 = 7420;
/// How long a command about the cluster may take before it is asked again.
const COMMAND_TIME: &str = "3s";

/// How soon nodes are asked again how they stand.
const PACE: Duration = Duration::from_millis(20);
/// A node that is fewer entries behind has caught up: under load nobody is ever quite equal.
const CLOSE: u64 = 20;

/// A cluster.
#[derive(Debug)]
pub struct Cluster {
    /// Its nodes, in the order of their names.
    pub nodes: Vec<Node>,
    /// Its network.
    pub net: Net,
    program: PathBuf,
    home: PathBuf,
}

/// How a cluster stands, as `cluster status --json` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Status {
    /// Which life of the state it is.
    pub incarnation: String,
    /// How often the state was restored.
    pub epoch: u64,
    /// The term of the leader, as text.
    pub term: String,
    /// The name of the leader.
    pub leader: Option<String>,
    /// The members.
    #[serde(default)]
    pub members: Vec<MemberStatus>,
}

/// How a member stands.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Where it is reached.
    pub address: String,
    /// `voter` or `learner`.
    pub role: String,
    /// Whether the leader has heard of it lately.
    pub reachable: bool,
}

impl Cluster {
    /// As many nodes, none of which runs yet. They begin together, or alone if there is but one.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn new(program: &Path, home: &Path, count: usize) -> Result<Self> {
        let net = Net::new()?;
        let mut cluster = Self { nodes: Vec::new(), net, program: program.to_owned(), home: home.to_owned() };
        for _ in 0..count {
            cluster.add()?;
        }
        if count > 1 {
            let all: Vec<String> =
                cluster.nodes.iter().map(|node| format!("{}={}", node.name, node.address)).collect();
            let all = all.join(",");
            for node in &mut cluster.nodes {
                node.beginning = Beginning::Together(all.clone());
            }
        }
        Ok(cluster)
    }

    /// Makes room for another node, which joins, and gives its number.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn add(&mut self) -> Result<usize> {
        let (namespace, address) = self.net.add()?;
        let name = format!("n{}", self.nodes.len() + 1);
        let address = format!("{address}:{PORT}");
        let mut node = Node::new(&self.program, &self.home, &name, namespace, address);
        node.beginning = if self.nodes.is_empty() { Beginning::Alone } else { Beginning::Joins };
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    /// The address of the store, with every node in it.
    pub fn url(&self) -> String {
        let all: Vec<&str> = self.nodes.iter().map(|node| node.address.as_str()).collect();
        format!("leasehold://{}", all.join(","))
    }

    /// Starts every node that does not run and is not idle.
    ///
    /// # Errors
    /// When one does not start.
    pub fn start(&mut self) -> Result<()> {
        for node in &mut self.nodes {
            if !node.idle && !node.is_running() {
                node.start()?;
            }
        }
        Ok(())
    }

    /// Waits until there is a leader, and gives its number.
    ///
    /// # Errors
    /// When there is none in `patience`; the message says what was last heard.
    pub fn leader(&self, patience: Duration) -> Result<usize> {
        until(patience, PACE, || {
            let standing = self.standing();
            let leads = |stand: &Result<Numbers>| stand.as_ref().is_ok_and(|numbers| numbers.serving);
            let leaders: Vec<usize> = (0..standing.len()).filter(|node| leads(&standing[*node])).collect();
            match leaders[..] {
                [leader] => Ok(leader),
                [] => bail!("nobody leads: {standing:?}"),
                // An old leader may not know yet that it is one no more.
                _ => bail!("nodes {leaders:?} say that they lead"),
            }
        })
    }

    /// Waits until every node that is not idle answers and is close behind the leader.
    ///
    /// # Errors
    /// When they are not in `patience`.
    pub fn whole(&self, patience: Duration) -> Result<()> {
        until(patience, PACE, || {
            let leader = self.leader(Duration::ZERO)?;
            let standing = self.standing();
            let first = standing[leader].as_ref().map_or(0, |numbers| numbers.revision);
            for (node, numbers) in self.nodes.iter().zip(standing).filter(|(node, _)| !node.idle) {
                let behind = first.saturating_sub(numbers?.revision);
                if behind > CLOSE {
                    bail!("{} is {behind} entries behind", node.name);
                }
            }
            Ok(())
        })
    }

    /// How every node stands, as it says itself.
    fn standing(&self) -> Vec<Result<Numbers>> {
        let ask = |node: &Node| if node.idle { bail!("idle") } else { numbers::ask(&node.address) };
        self.nodes.iter().map(ask).collect()
    }

    /// How it stands.
    ///
    /// # Errors
    /// When no node says so.
    pub fn status(&self) -> Result<Status> {
        let text = self.operate(&["cluster", "status"])?;
        serde_json::from_str(&text).with_context(|| format!("this status is not understood: {text}"))
    }

    /// Runs a command of the program on this store and gives its JSON.
    ///
    /// # Errors
    /// When it ends with anything but 0.
    pub fn operate(&self, words: &[&str]) -> Result<String> {
        let mut command = self.command();
        command.args(["--json", "--timeout", COMMAND_TIME]).args(words);
        let output = shell::output(&mut command)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("leasehold {}: {}: {}", words.join(" "), output.status, said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The program, told of this store.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("LEASEHOLD_STORE", self.url());
        command
    }

    /// Ends that nobody asked for.
    pub fn deaths(&mut self) -> Vec<String> {
        self.nodes.iter_mut().flat_map(|node| node.deaths().to_vec()).collect()
    }
}

/// Asks at this pace until there is an answer that is no error, and gives the last error if there is none in time.
pub(crate) fn until<T>(patience: Duration, pace: Duration, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
    let end = At::now().plus(patience);
    loop {
        let last = match ask() {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        if At::now() > end {
            return Err(last.context(format!("not within {patience:?}")));
        }
        std::thread::sleep(pace);
    }
}
