//! The options of `cluster`.

use std::time::Duration;

use clap::{Args, Subcommand};
use leasehold::core::cluster::{check_address, check_member_name};

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold cluster status
  leasehold cluster add n4=10.0.0.4:7420 --promote   after: serve --join --name n4
  leasehold cluster remove n1
  leasehold cluster transfer n2

  LEASEHOLD_STORE=leasehold://10.0.0.1,10.0.0.2,10.0.0.3 names all nodes;
  one reachable node is enough.";

pub(super) const STATUS_EXIT_CODES: &str = "\
Exit codes:
  0    reachable, with a leader; every member reachable; no alarm
  1    it serves, but needs attention: a member is unreachable, an alarm is raised,
       or it grants nothing until the safety wait after a restore is over
  122  unreachable, or without a leader

Examples:
  leasehold status --timeout 2s && echo healthy
  leasehold status --json";

/// `cluster`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the nodes, the leader, and how far each node is behind
    Status,
    /// Add a node that waits to join
    ///
    /// Start it first: leasehold serve --join --name NAME. It becomes a learner: it receives the log and does not vote until it is promoted.
    Add(AddArgs),
    /// Make a learner that has caught up a voter
    Promote {
        /// The node
        #[arg(value_parser = member_name)]
        name: String,
        /// Wait up to LENGTH until it has caught up [default: 5m]
        #[arg(long, value_name = "LENGTH", value_parser = values::wait, num_args = 0..=1, require_equals = true, default_missing_value = "5m")]
        wait: Option<Duration>,
    },
    /// Remove a node for ever
    ///
    /// A leader hands over first. A removed node stops; its directory cannot join this cluster again.
    Remove {
        /// The node
        #[arg(value_parser = member_name)]
        name: String,
    },
    /// Transfer leadership to another node
    ///
    /// Holders do not notice. Stopping the leader with SIGTERM does the same.
    Transfer {
        /// The next leader [default: the voter with the most of the log]
        #[arg(value_parser = member_name)]
        name: Option<String>,
    },
}

/// A node to be, by name and address.
#[derive(Debug, Clone)]
pub(crate) struct NewNode {
    pub(crate) name: String,
    pub(crate) address: String,
}

/// `cluster add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Name of the node, and the address at which clients and other nodes reach it
    #[arg(value_name = "NAME=HOST:PORT", value_parser = new_node)]
    pub(crate) node: NewNode,
    /// Wait up to LENGTH until it has caught up [default: 5m]
    #[arg(long, value_name = "LENGTH", value_parser = values::wait, num_args = 0..=1, require_equals = true, default_missing_value = "5m")]
    pub(crate) wait: Option<Duration>,
    /// Wait until it has caught up, then make it a voter
    #[arg(long)]
    pub(crate) promote: bool,
}

fn new_node(text: &str) -> Result<NewNode, String> {
    let Some((name, address)) = text.split_once('=') else {
        return Err("a node is NAME=HOST:PORT, such as n4=10.0.0.4:7420".to_owned());
    };
    check_address(address).map_err(|error| format!("{error}; write it like {name}=HOST:PORT"))?;
    Ok(NewNode { name: member_name(name)?, address: address.to_owned() })
}

fn member_name(text: &str) -> Result<String, String> {
    check_member_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_says_how_to_write_it() {
        let error = new_node("n5=127.9.20.5").unwrap_err();
        assert!(error.ends_with("; write it like n5=HOST:PORT"), "{error}");
        assert!(new_node("n5=127.9.20.5:7420").is_ok());
    }
}
