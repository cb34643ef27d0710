//! What an answer stands for: where a grant and a renewal are when a client is told of them.

use super::Peer;

/// Where something is when it is answered, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// Lost with one process.
    LeaderMemory,
    /// Lost with one disk.
    LocalDisk,
    /// Lost with most of the disks; with one node that is its own.
    QuorumDisks,
}

impl Reached {
    /// As a table says it.
    pub fn words(self) -> &'static str {
        match self {
            Self::LeaderMemory => "in the memory of the leader alone",
            Self::LocalDisk => "on the disk of its one node",
            Self::QuorumDisks => "on the disks of a quorum",
        }
    }
}

impl Peer {
    /// Where an acquire is when it is answered, with the settings that it is measured with.
    pub fn acquires_reach(self) -> Reached {
        match self {
            Self::Leasehold | Self::Etcd | Self::Etcd36 | Self::Zookeeper | Self::Consul => {
                Reached::QuorumDisks
            }
            Self::Redis | Self::Postgres => Reached::LocalDisk,
        }
    }

    /// Where a renewal is when it is answered. ZooKeeper's are the pings of a session; one of Consul's sets a timer of the leader anew.
    pub fn renewals_reach(self) -> Reached {
        match self {
            Self::Leasehold => Reached::QuorumDisks,
            Self::Etcd | Self::Etcd36 | Self::Zookeeper | Self::Consul => Reached::LeaderMemory,
            Self::Redis | Self::Postgres => Reached::LocalDisk,
        }
    }

    /// Whether its renewals are less than its grants, which has to be said where they are compared.
    pub fn renewals_are_weaker(self) -> bool {
        self.renewals_reach() < self.acquires_reach()
    }
}
