//! A network of namespaces: every node has one, with an address of its own, behind one bridge. The harness and its clients stand
//! outside and reach them all over the bridge.
//!
//! A cut is silent and one-way: the sender has a wrong, permanent hardware address for the receiver, so its packets go nowhere
//! and nobody is told. That is what a broken switch does; a reset connection would be far kinder.
//!
//! Names contain the process id of the harness. Namespaces and bridges of harnesses that are gone are removed when a network
//! is made.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};

use crate::cleanup::{self, Undo};
use crate::shell;

/// Nobody's hardware address.
const NOWHERE: &str = "02:00:00:00:de:ad";
/// The last number of the harness's own address.
const HARNESS: u8 = 254;
/// How names of namespaces begin.
const PREFIX: &str = "lhn";

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    /// A node, counted from 0.
    Node(usize),
    /// All clients.
    Clients,
}

/// How many links this process has made.
static LINKS: AtomicUsize = AtomicUsize::new(1);

/// The network of a run.
#[derive(Debug)]
pub struct Net {
    third: u8,
    bridge: String,
    namespaces: Vec<String>,
    cuts: BTreeSet<(Spot, Spot)>,
}

impl Net {
    /// A network without nodes.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn new() -> Result<Self> {
        sweep();
        let pid = std::process::id();
        let bridge = format!("{PREFIX}b{pid}");
        let third = free_subnet(pid)?;
        cleanup::note(Undo::Link(bridge.clone()));
        shell::run("ip", &["link", "add", &bridge, "type", "bridge"])?;
        shell::run("ip", &["addr", "add", &format!("{}/24", address(third, HARNESS)), "dev", &bridge])?;
        shell::run("ip", &["link", "set", &bridge, "up"])?;
        Ok(Self { third, bridge, namespaces: Vec::new(), cuts: BTreeSet::new() })
    }

    /// Makes room for another node and gives its namespace and address.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn add(&mut self) -> Result<(String, Ipv4Addr)> {
        let (pid, number) = (std::process::id(), self.namespaces.len() + 1);
        // The kernel takes its time to remove those of the scenario before: no name is used twice.
        let unique = LINKS.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{PREFIX}-{pid}-{unique}");
        let link = format!("{PREFIX}{pid}v{unique}");
        let own = self.address(Spot::Node(number - 1));
        cleanup::note(Undo::Namespace(namespace.clone()));
        shell::run("ip", &["netns", "add", &namespace])?;
        shell::run(
            "ip",
            &["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &namespace],
        )?;
        shell::run("ip", &["link", "set", &link, "master", &self.bridge, "up"])?;
        shell::run("ip", &["-n", &namespace, "addr", "add", &format!("{own}/24"), "dev", "eth0"])?;
        shell::run("ip", &["-n", &namespace, "link", "set", "eth0", "up"])?;
        shell::run("ip", &["-n", &namespace, "link", "set", "lo", "up"])?;
        self.namespaces.push(namespace.clone());
        Ok((namespace, own))
    }

    /// Where a spot is reached.
    pub fn address(&self, spot: Spot) -> Ipv4Addr {
        let last = match spot {
            Spot::Node(number) => u8::try_from(number + 1).expect("fewer than 254 nodes"),
            Spot::Clients => HARNESS,
        };
        address(self.third, last)
    }

    /// From now on nothing that `from` sends arrives at `to`.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn cut(&mut self, from: Spot, to: Spot) -> Result<()> {
        if self.cuts.insert((from, to)) {
            self.neighbour(from, to, &["replace"], &["lladdr", NOWHERE, "nud", "permanent"])?;
        }
        Ok(())
    }

    /// Cuts both directions between two.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn part(&mut self, one: Spot, other: Spot) -> Result<()> {
        self.cut(one, other)?;
        self.cut(other, one)
    }

    /// What `from` sends arrives at `to` again.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn mend(&mut self, from: Spot, to: Spot) -> Result<()> {
        if self.cuts.remove(&(from, to)) {
            self.neighbour(from, to, &["del"], &[])?;
        }
        Ok(())
    }

    /// Mends every cut.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn mend_all(&mut self) -> Result<()> {
        for (from, to) in self.cuts.clone() {
            self.mend(from, to)?;
        }
        Ok(())
    }

    fn neighbour(&self, from: Spot, to: Spot, verb: &[&str], rest: &[&str]) -> Result<()> {
        let address = self.address(to).to_string();
        let mut words: Vec<&str> = Vec::new();
        let device = match from {
            Spot::Node(number) => {
                words.extend(["-n", &self.namespaces[number]]);
                "eth0"
            }
            Spot::Clients => &self.bridge,
        };
        words.push("neigh");
        words.extend(verb);
        words.extend([address.as_str(), "dev", device]);
        words.extend(rest);
        shell::run("ip", &words).map(|_| ())
    }
}

fn address(third: u8, last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, third, last)
}

/// A subnet that nobody on this machine uses, beginning with one that the process id decides.
fn free_subnet(pid: u32) -> Result<u8> {
    let used = shell::run("ip", &["-o", "-4", "addr"])?;
    let first = u8::try_from(pid % 250).expect("below 250");
    let mut candidates = (first..250).chain(0..first);
    let free = candidates.find(|third| !used.contains(&format!("inet 10.77.{third}.")));
    match free {
        Some(third) => Ok(third),
        None => bail!("all subnets of 10.77.0.0/16 are used by this machine"),
    }
}

/// Removes what harnesses left behind that were killed.
fn sweep() {
    let list = |words: &[&str]| shell::run("ip", words).unwrap_or_default();
    for line in list(&["netns", "list"]).lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('-')?.split('-').next());
        if pid.is_some_and(is_gone) {
            let _ = shell::run("ip", &["netns", "del", name]);
        }
    }
    for line in list(&["-o", "link", "show", "type", "bridge"]).lines() {
        let name = line.split(": ").nth(1).unwrap_or_default();
        if name.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('b')).is_some_and(is_gone) {
            let _ = shell::run("ip", &["link", "del", name]);
        }
    }
}

fn is_gone(pid: &str) -> bool {
    pid.parse::<u32>().is_ok_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
}
