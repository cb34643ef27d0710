//! What is measured on which system, and why the rest is not: for the plan, and for the report, so that no gap in a table is without a reason.

use super::Peer;
use crate::workloads::{Connections, Work};

impl Peer {
    /// Whether a workload is measured on so many nodes of it.
    pub fn does(self, work: Work, nodes: usize) -> bool {
        self.why_not(work, nodes).is_none()
    }

    /// The reason, if it is not measured.
    pub fn why_not(self, work: Work, nodes: usize) -> Option<&'static str> {
        // What does not depend on replication is measured on one node.
        let on_nodes = match work {
            Work::Expiry { kill_leader, .. } => kill_leader == (nodes == 3),
            Work::MassExpiry { .. } | Work::Many { .. } | Work::Restart { .. } | Work::FanOut { .. } => {
                nodes == 1
            }
            _ => true,
        };
        if !on_nodes {
            return Some("with another number of nodes only");
        }
        Some(match (self, work) {
            (Self::Leasehold, _) => return None,
            (Self::Postgres, Work::Cycles { connections: Connections::Shared, .. }) if nodes == 1 => {
                "a connection does one thing at a time"
            }
            (Self::Consul, Work::Cycles { connections: Connections::Shared, .. }) => {
                "a connection of its HTTP API does one thing at a time"
            }
            (Self::Consul, Work::MassExpiry { .. } | Work::FanOut { .. }) => {
                "a watch is a blocking query, which keeps a connection busy and returns the state, not the change"
            }
            (
                Self::Redis | Self::Postgres,
                Work::Cycles { .. } | Work::Renewals { .. } | Work::Handover { .. },
            ) if nodes == 1 => return None,
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
            (Self::Etcd | Self::Etcd36, Work::MassExpiry { leases: 10_001.., .. }) => {
                "it ends at most 1,000 leases a second, which a smaller size shows"
            }
            (_, Work::Many { leases: 100_001.., .. } | Work::Restart { .. }) => {
                "peers are measured with up to 100,000 leases"
            }
            _ => return None,
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
        let rounds = |peer| Plan { peers: vec![peer], repeats: 1, ..Plan::default() }.rounds();
        let (older, newer) = (rounds(Peer::Etcd), rounds(Peer::Etcd36));
        assert!(!older.is_empty());
        assert!(older.iter().map(|round| &round.works).eq(newer.iter().map(|round| &round.works)));
    }
}
