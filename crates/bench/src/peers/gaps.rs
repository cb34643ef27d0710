//! Why a workload is not measured on a system: for the report, so that no gap in a table is without a reason.

use super::Peer;
use crate::workloads::{Connections, Work};

impl Peer {
    /// The reason, if it is not measured.
    pub fn why_not(self, work: Work, nodes: usize) -> Option<&'static str> {
        if self.does(work, nodes) {
            return None;
        }
        Some(match (self, work) {
            (Self::Postgres, Work::Cycles { connections: Connections::Shared, .. }) if nodes == 1 => {
                "a connection does one thing at a time"
            }
            (Self::Consul, Work::Cycles { .. }) => "a connection of its HTTP API does one thing at a time",
            (Self::Consul, Work::MassExpiry { .. } | Work::FanOut { .. }) => {
                "a watch is a blocking query, which keeps a connection busy and returns the state, not the change"
            }
            (Self::Redis, Work::Cycles { .. } | Work::Renewals { .. } | Work::Handover { .. }) => {
                "one node only: its replication can lose an answered grant"
            }
            (Self::Postgres, Work::Cycles { .. } | Work::Renewals { .. } | Work::Handover { .. }) => {
                "one node only: it has no failover of its own"
            }
            (
                Self::Redis | Self::Postgres,
                Work::Expiry { .. } | Work::MassExpiry { .. } | Work::FanOut { .. },
            ) => "no queue, and no reliable event when a lease ends",
            (Self::Redis | Self::Postgres, _) => {
                "leases are plain keys or rows; very many of them are not measured"
            }
            (Self::Zookeeper, Work::Renewals { .. }) => {
                "its client keeps a session alive by pings; there is no renewal to call"
            }
            (Self::Zookeeper, Work::Expiry { kill_leader: true, .. }) => {
                "the harness's client does not move to another node"
            }
            (Self::Zookeeper, Work::Many { session_each: true, .. }) => {
                "a session is a connection; so many are not opened"
            }
            (Self::Consul, Work::Many { session_each: true, .. }) => {
                "so many sessions take minutes to open, which B does already"
            }
            (Self::Zookeeper, Work::MassExpiry { .. } | Work::FanOut { .. }) => {
                "the harness's client has no watches"
            }
            (Self::Etcd | Self::Etcd36, Work::MassExpiry { .. }) => {
                "it ends at most 1,000 leases a second, which a smaller size shows"
            }
            (
                Self::Etcd | Self::Etcd36 | Self::Zookeeper | Self::Consul,
                Work::Many { .. } | Work::Restart { .. },
            ) => "peers are measured with up to 100,000 leases",
            _ => "with another number of nodes only",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::plan::Plan;

    #[test]
    fn a_gap_has_a_reason_and_what_is_measured_has_none() {
        let renewals = Work::Renewals { sessions: 1 };
        assert_eq!(Peer::Etcd.why_not(renewals, 3), None);
        assert!(Peer::Zookeeper.why_not(renewals, 1).unwrap().contains("pings"));
        assert!(Peer::Redis.why_not(renewals, 3).unwrap().contains("one node only"));
        assert_eq!(Peer::Consul.why_not(renewals, 3), None);
        let shared = Work::Cycles { clients: 64, connections: Connections::Shared };
        assert!(Peer::Consul.why_not(shared, 3).unwrap().contains("one thing at a time"));
        let late = Work::Expiry { ttl_ms: 5_000, kill_leader: false };
        assert!(Peer::Postgres.why_not(late, 1).unwrap().contains("no queue"));
    }

    #[test]
    fn a_newer_etcd_does_what_the_older_does() {
        let plan = Plan { peers: vec![], letters: vec![], nodes: vec![], repeats: 1, quick: false };
        let rounds = |peer| Plan { peers: vec![peer], ..plan.clone() }.rounds();
        let (older, newer) = (rounds(Peer::Etcd), rounds(Peer::Etcd36));
        assert!(!older.is_empty());
        assert!(older.iter().map(|round| &round.works).eq(newer.iter().map(|round| &round.works)));
    }
}
