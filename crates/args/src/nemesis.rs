//! The command line of `cargo xtask nemesis`.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser};

/// Breaks clusters of real processes on purpose, and checks what their clients saw.
#[derive(Debug, Parser)]
#[command(name = "nemesis", bin_name = "cargo xtask nemesis", max_term_width = 120)]
pub struct Args {
    /// What to run
    #[arg(value_parser = PossibleValuesParser::new(scenarios()))]
    pub scenario: String,
    /// Decides faults and requests; drawn if it is not given
    #[arg(long)]
    pub seed: Option<u64>,
    /// Fewer faults and shorter lengths
    #[arg(long)]
    pub quick: bool,
    /// How often something is broken, where the scenario counts that
    #[arg(long)]
    pub rounds: Option<usize>,
    /// How many nodes a cluster has, where the scenario does not decide it
    #[arg(long, default_value_t = 3)]
    pub nodes: usize,
    /// The program to serve with; the one beside this by default
    #[arg(long)]
    pub program: Option<PathBuf>,
    /// Where histories and logs go; `nemesis` in the target directory if it is not given
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// A line of JSON for each scenario on standard output, and everything else on standard error
    #[arg(long)]
    pub json: bool,
    /// The same lines into a file
    #[arg(long)]
    pub json_file: Option<PathBuf>,
    /// For check: the history to check again
    #[arg(long)]
    pub history: Option<PathBuf>,
}

fn scenarios() -> Vec<PossibleValue> {
    let named = SCENARIOS.iter().map(|(name, about)| PossibleValue::new(*name).help(*about));
    let others = [
        ("all", "all of them, one after the other"),
        ("quick", "the short forms of the main ones, as the tests run them"),
        ("check", "none: checks the history of --history again"),
    ];
    named.chain(others.map(|(name, about)| PossibleValue::new(name).help(about))).collect()
}

/// The scenarios and what each shows, in the order in which they are run.
pub const SCENARIOS: [(&str, &str); 15] = [
    ("calm", "nothing is broken: the harness itself, on one node"),
    ("kill-leader", "kill -9 of the leader, again and again"),
    ("ttl-failover", "a dead holder's lease ends although leaders die all the time"),
    ("stop-leader", "the leader stands still for three ttls, and goes on"),
    ("freeze-disk", "the leader's disk stands still for four ttls"),
    ("one-way", "nothing that one node sends to another arrives"),
    ("bridge", "two nodes do not reach each other, and both reach the third"),
    ("flap", "links break and heal faster than anybody can settle"),
    ("rolling", "every node is restarted by SIGTERM under a thousand leases that come and go"),
    ("replace-all", "every node is replaced, and the old ones come back from their old directories"),
    ("grow", "one node becomes three, and is killed at every step"),
    ("clocks", "times of day that jump, clocks that are ahead, rates within the bound"),
    ("fast-clocks", "clocks of the service that run five percent too fast"),
    ("damage", "nodes are damaged in different ways, one by one and all at once"),
    ("restore", "a backup is restored after ten thousand grants, and then once more"),
];
