//! What the tests of several files begin with.

use leasehold_core::Config;
use leasehold_core::protocol::{Member, MemberId};
use leasehold_node::{SavedSnapshot, founding_snapshot};

pub(super) fn member(id: u64) -> Member {
    Member::new(MemberId(id), "n1", "127.0.0.1:7420").unwrap()
}

/// The state of a service that has just begun.
pub(super) fn small_snapshot() -> SavedSnapshot {
    founding_snapshot(&Config::default(), vec![member(7)])
}
