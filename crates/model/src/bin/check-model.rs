//! Goes through one scope of the model, with all rules or with a bug, and tells what it found.
//!
//! `check-model SCOPE [--bug NAME] [--deeper N]`. A line of progress per second goes to standard error.

use std::process::ExitCode;

use clap::Parser;
use leasehold_model::{Protocol, Rules, Scope, WrongRule, story};
use stateright::report::WriteReporter;
use stateright::{Checker, HasDiscoveries, Model};

#[derive(Parser)]
struct Arguments {
    /// Which scope: clocks, tight, releases, expiries, leaders, failover, patience, restore, lives, fence, lateness or everything.
    scope: String,
    /// The bug to put in, as its variant is spelt.
    #[arg(long)]
    bug: Option<String>,
    /// So many more ticks and renewals.
    #[arg(long, default_value_t = 0)]
    deeper: u8,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Some(scope) = Scope::named(&arguments.scope) else {
        eprintln!("there is no scope {:?}", arguments.scope);
        return ExitCode::from(2);
    };
    let rules = match arguments.bug.as_deref().map(WrongRule::named) {
        None => Rules::all(),
        Some(Some(bug)) => Rules::with(bug),
        Some(None) => {
            eprintln!("there is no such bug; there are {:?}", WrongRule::ALL);
            return ExitCode::from(2);
        }
    };
    let protocol = Protocol { scope: scope.deeper(arguments.deeper), rules };
    let checker = protocol.checker().threads(arguments.threads).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().report(&mut WriteReporter::new(&mut std::io::stderr()));
    println!(
        "{}: {} states, {} different, at most {} steps deep",
        arguments.scope,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth()
    );
    let mut broken = false;
    for (name, path) in checker.discoveries() {
        if checker.model().property(name).expectation.discovery_is_failure() {
            broken = true;
            println!("broken: {name}\n{}", story::tell(path));
        }
    }
    ExitCode::from(u8::from(broken))
}
