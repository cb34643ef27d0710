//! The options of `bench`.

use std::time::Duration;

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
A cycle is one acquire and one release of a free name. P50, P99 and P99.9 are upper bounds, a sixteenth too large at most. \
The names stay behind, free and with their history; leasehold list --all shows them.

Examples:
  leasehold bench --store leasehold://db-1:7420
  leasehold bench --store leasehold://db-1:7420 --clients 256 --connections 8 --for 1m

Exit codes: 0 measured, also if a signal ended it early; 1 a lease was lost or the connection broke; 2 other clients use the \
store; 128 + N signal N came before the first measurement, so 130 after Ctrl-C.";

/// Most clients and connections: beyond that this process is measured and not the store.
const MOST_CLIENTS: u16 = 4_096;
const MOST_CONNECTIONS: u16 = 64;

/// `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Run for LENGTH, 1s to 1h: half of it cycles, half of it renewals
    #[arg(long = "for", value_name = "LENGTH", default_value = "10s", value_parser = values::probe, allow_hyphen_values = true)]
    pub(crate) length: Duration,
    /// Number of clients, 1 to 4096, each with a session and one request at a time
    #[arg(long, value_name = "N", default_value = "16", value_parser = clients, allow_hyphen_values = true)]
    pub(crate) clients: u16,
    /// Number of connections, 1 to 64, and not more than clients
    #[arg(long, value_name = "N", default_value = "1", value_parser = connections, allow_hyphen_values = true)]
    pub(crate) connections: u16,
    /// Run even if other clients hold leases in this store, and slow them down
    #[arg(long)]
    pub(crate) beside_others: bool,
}

fn clients(text: &str) -> Result<u16, String> {
    values::count(text, "clients", MOST_CLIENTS)
}

fn connections(text: &str) -> Result<u16, String> {
    values::count(text, "connections", MOST_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_up_to_their_limit() {
        assert_eq!([clients("1"), clients("4095"), clients("4096")], [Ok(1), Ok(4_095), Ok(4_096)]);
        assert_eq!(connections("64"), Ok(64));
        for wrong in ["0", "65", "-1", "", "many", "70000"] {
            let expected =
                format!("{wrong:?} is not a number of connections; give a whole number from 1 to 64");
            assert_eq!(connections(wrong), Err(expected));
        }
        assert!(clients("4097").is_err());
    }

    #[test]
    fn the_help_names_the_limits() {
        use clap::{Args as _, Command};
        let help = BenchArgs::augment_args(Command::new("bench")).render_help().to_string();
        for most in [MOST_CLIENTS, MOST_CONNECTIONS] {
            assert!(help.contains(&format!("1 to {most}")), "{help}");
        }
    }
}
