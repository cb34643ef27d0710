//! Workloads in words, as reports call them.

use super::figures::thousands_apart;
use super::{Connections, SHARED, Work};

impl Work {
    /// The letter in the report.
    pub fn letter(self) -> char {
        match self {
            Self::Cycles { .. } => 'A',
            Self::Renewals { .. } => 'B',
            Self::Handover { .. } => 'C',
            Self::Expiry { .. } | Self::HoldOneByOne { .. } => 'D',
            Self::MassExpiry { .. } | Self::HoldAll { .. } => 'E',
            Self::Many { .. } => 'F',
            Self::Restart { .. } => 'I',
            Self::FanOut { .. } => 'J',
        }
    }

    /// Its size in words.
    pub fn size(self) -> String {
        match self {
            Self::Cycles { clients, connections: Connections::Own } => counted(clients, "client"),
            Self::Cycles { clients, connections: Connections::Shared } => {
                format!("{} over {SHARED} connections", counted(clients, "client"))
            }
            Self::Renewals { sessions } => counted(sessions, "session"),
            Self::Handover { handovers } => counted(handovers, "handover"),
            Self::Expiry { ttl_ms, kill_leader: false } => format!("ttl {ttl_ms} ms"),
            Self::Expiry { ttl_ms, kill_leader: true } => format!("ttl {ttl_ms} ms, leader killed"),
            Self::HoldOneByOne { ttl_ms } => format!("holders, ttl {ttl_ms} ms"),
            Self::MassExpiry { leases, .. } | Self::HoldAll { leases, .. } | Self::Restart { leases } => {
                counted(leases, "lease")
            }
            Self::Many { leases, session_each: false } => counted(leases, "lease"),
            Self::Many { leases, session_each: true } => {
                format!("{}, a session each", counted(leases, "lease"))
            }
            Self::FanOut { watchers, .. } => counted(watchers, "watcher"),
        }
    }

    /// Whether a figure of this is one of renewals, so that how durable they are belongs beside it.
    pub fn is_of_renewals(self, figure: &str) -> bool {
        matches!(self, Self::Renewals { .. }) || figure.starts_with("living_renewal_")
    }
}

/// A count with its noun, thousands apart.
fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands_apart(&count.to_string()), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_client_and_many_have_thousands_apart() {
        let own = |clients| Work::Cycles { clients, connections: Connections::Own }.size();
        assert_eq!([own(1), own(64)], ["1 client", "64 clients"]);
        assert_eq!(Work::Renewals { sessions: 100_000 }.size(), "100,000 sessions");
        assert_eq!(Work::Restart { leases: 1_000_000 }.size(), "1,000,000 leases");
    }
}
