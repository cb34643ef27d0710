//! Workloads in words: what reports call them, and which figures they show.

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
            Self::Cycles { clients, connections: Connections::Own } => format!("{clients} clients"),
            Self::Cycles { clients, connections: Connections::Shared } => {
                format!("{clients} clients over {SHARED} connections")
            }
            Self::Renewals { sessions } => format!("{sessions} sessions"),
            Self::Handover { handovers } => format!("{handovers} handovers"),
            Self::Expiry { ttl_ms, kill_leader: false } => format!("ttl {ttl_ms} ms"),
            Self::Expiry { ttl_ms, kill_leader: true } => format!("ttl {ttl_ms} ms, leader killed"),
            Self::HoldOneByOne { ttl_ms } => format!("holders, ttl {ttl_ms} ms"),
            Self::MassExpiry { leases, .. } | Self::HoldAll { leases, .. } | Self::Restart { leases } => {
                format!("{leases} leases")
            }
            Self::Many { leases, session_each: false } => format!("{leases} leases"),
            Self::Many { leases, session_each: true } => format!("{leases} leases, a session each"),
            Self::FanOut { watchers, .. } => format!("{watchers} watchers"),
        }
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
