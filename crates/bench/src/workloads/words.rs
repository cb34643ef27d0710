//! Workloads in words: what reports call them, and which figures they show.

use super::expiry::HOLDERS;
use super::handover::CLIENTS;
use super::many::{CYCLES, IDLE};
use super::mass_expiry::LIVING;
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

    /// What one repeat takes its figures from, where that is not a window of time.
    pub fn sample(self) -> Option<String> {
        match self {
            Self::Cycles { .. } | Self::Renewals { .. } => None,
            Self::Handover { handovers } => {
                Some(format!("{} among {}", counted(handovers, "handover"), counted(CLIENTS, "client")))
            }
            Self::Expiry { .. } | Self::HoldOneByOne { .. } => {
                Some(format!("{} that die at once, with a waiter for each", counted(HOLDERS, "holder")))
            }
            Self::MassExpiry { .. } | Self::HoldAll { .. } => {
                Some(format!("every lease ends once; {} live on and renew", counted(LIVING, "session")))
            }
            Self::Many { .. } => Some(format!(
                "every lease is acquired once; then {} s of rest and {}, as before",
                IDLE.as_secs(),
                counted(CYCLES, "cycle")
            )),
            Self::Restart { .. } => Some("one restart".to_owned()),
            Self::FanOut { watchers, changes } => {
                Some(format!("{}, each seen by {}", counted(changes, "change"), counted(watchers, "watcher")))
            }
        }
    }

    /// Whether a figure of this is one of renewals, so that how durable they are belongs beside it.
    pub fn is_of_renewals(self, figure: &str) -> bool {
        matches!(self, Self::Renewals { .. }) || figure.starts_with("living_renewal_")
    }

    /// The figures that a table shows, each with its unit.
    pub fn shown(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Cycles { .. } => &[
                ("per_second", "cycles/s"),
                ("p50_us", "p50 us"),
                ("p99_us", "p99 us"),
                ("server_cpu_s_per_100k", "G: server s/100k"),
                ("disk_bytes_per_operation", "H: bytes/operation"),
                ("load_cpu_s", "load s"),
            ],
            Self::Renewals { .. } => &[
                ("per_second", "renewals/s"),
                ("p50_us", "p50 us"),
                ("p99_us", "p99 us"),
                ("server_cpu_s_per_100k", "server s/100k"),
                ("load_cpu_s", "load s"),
            ],
            Self::Handover { .. } => {
                &[("gap_p50_us", "p50 us"), ("gap_p99_us", "p99 us"), ("gap_max_us", "most us")]
            }
            Self::Expiry { .. } | Self::HoldOneByOne { .. } => &[
                ("late_p50_us", "late p50 us"),
                ("late_max_us", "late most us"),
                ("longest_cycle_us", "longest cycle of another client us"),
                ("late_beyond_outage_us", "late most, less that longest cycle us"),
            ],
            Self::MassExpiry { .. } | Self::HoldAll { .. } => &[
                ("first_s", "first s"),
                ("median_s", "median s"),
                ("last_s", "last s"),
                ("living_renewal_p99_us", "renewals of the living p99 us"),
            ],
            Self::Many { .. } => &[
                ("create_s", "create s"),
                ("resident_mib", "resident MiB"),
                ("idle_cpu_percent", "at rest % of a core"),
                ("cycle_p50_us", "cycle p50 us"),
                ("cycle_ratio", "against an empty store"),
            ],
            Self::Restart { .. } => &[("restart_s", "until granted s")],
            Self::FanOut { .. } => &[
                ("first_p50_us", "first p50 us"),
                ("last_p50_us", "last p50 us"),
                ("last_p99_us", "last p99 us"),
            ],
        }
    }
}

/// A count with its noun, thousands apart.
fn counted(count: usize, noun: &str) -> String {
    let digits = count.to_string();
    let mut apart = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    format!("{apart} {noun}{}", if count == 1 { "" } else { "s" })
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
