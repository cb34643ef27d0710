//! The nodes that keep a log together, as values: who they are, what can be asked of them, and how they stand.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::Revision;

/// Longest name of a node.
pub const MAX_MEMBER_NAME_BYTES: usize = 64;
/// Longest address of a node: a host name of 253 bytes, a colon and a port.
pub const MAX_ADDRESS_BYTES: usize = 260;
/// Members of a cluster at most, learners included. More voters make every entry slower and nothing safer.
pub const MAX_MEMBERS: usize = 9;

/// Names a member for ever: drawn when its directory is made, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberId(pub u64);

impl core::fmt::Display for MemberId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Names one life of a cluster's state: drawn at its founding and at every restore. Zero is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Incarnation(pub u128);

impl Incarnation {
    /// Whether it is known.
    pub const fn is_known(self) -> bool {
        self.0 != 0
    }
}

impl core::fmt::Display for Incarnation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A node that keeps the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// What people call it.
    pub name: String,
    /// Where clients and peers reach it, as `host:port`.
    pub address: String,
}

/// A name or address that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// The name.
    #[error(
        "node name {name:?} is not 1 to {MAX_MEMBER_NAME_BYTES} letters, digits, dots, dashes or underscores"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// The address.
    #[error("node address {address:?} is not host:port of at most {MAX_ADDRESS_BYTES} bytes")]
    Address {
        /// What was given.
        address: String,
    },
    /// The id.
    #[error("member id 0 is nobody's")]
    NoId,
}

impl Member {
    /// A member whose name and address are possible.
    ///
    /// # Errors
    /// When they are not.
    pub fn new(id: MemberId, name: &str, address: &str) -> Result<Self, MemberError> {
        if id.0 == 0 {
            return Err(MemberError::NoId);
        }
        check_member_name(name)?;
        check_address(address)?;
        Ok(Self { id, name: name.into(), address: address.into() })
    }
}

/// Whether a node can have this name.
///
/// # Errors
/// When it is empty, too long, or has other characters than letters, digits, dots, dashes and underscores.
pub fn check_member_name(name: &str) -> Result<(), MemberError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if name.is_empty() || name.len() > MAX_MEMBER_NAME_BYTES || !name.bytes().all(fits) {
        return Err(MemberError::Name { name: name.into() });
    }
    Ok(())
}

/// Whether this can be the address of a node.
///
/// # Errors
/// When it is not a host and a port, or too long.
pub fn check_address(address: &str) -> Result<(), MemberError> {
    let wrong = || MemberError::Address { address: address.into() };
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    let port_fits = digits && port.parse::<u16>().is_ok();
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'=' | b'/' | b'@' | b'"');
    if host.is_empty() || address.len() > MAX_ADDRESS_BYTES || !port_fits || !host.bytes().all(plain) {
        return Err(wrong());
    }
    Ok(())
}

/// What a member does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberRole {
    /// Counts in every decision.
    Voter,
    /// Receives the log and decides nothing.
    Learner,
}

/// What can be asked of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterCommand {
    /// Adds a blank node as a learner.
    Add(Member),
    /// Makes a learner that has caught up a voter.
    Promote {
        /// Its name.
        name: String,
    },
    /// Removes a member for ever.
    Remove {
        /// Its name.
        name: String,
    },
    /// Hands leadership over.
    Transfer {
        /// To whom; to the voter that is furthest if nobody is named.
        to: Option<String>,
    },
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterReply {
    /// The members are others now, from this entry on.
    Changed {
        /// The entry.
        revision: Revision,
    },
    /// Somebody else leads, or is about to.
    Transferred {
        /// Who.
        to: MemberId,
    },
    /// Refused, with no effect.
    Refused(ClusterRefusal),
}

/// Why a cluster did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterRefusal {
    /// Nobody has that name.
    #[error("the cluster has no member {name:?}; `leasehold cluster status` lists them")]
    NoSuchMember {
        /// The name.
        name: String,
    },
    /// Somebody has that name, id or address already.
    #[error("{what} {value:?} belongs to member {name:?} already; remove that one first")]
    Taken {
        /// Which of the three.
        what: String,
        /// Its value.
        value: String,
        /// Whose it is.
        name: String,
    },
    /// That directory was a member once.
    #[error(
        "the data directory of {name:?} was removed from this cluster before; start it with an empty one"
    )]
    WasRemoved {
        /// The name.
        name: String,
    },
    /// As many members as there may be.
    #[error("the cluster has {limit} members, which is the limit; remove one first")]
    TooManyMembers {
        /// The limit.
        limit: usize,
    },
    /// Too far behind to count.
    #[error(
        "{name:?} is {behind} entries behind; ask again when it has caught up (`leasehold cluster status` shows how far it is)"
    )]
    NotCaughtUp {
        /// Who.
        name: String,
        /// By how many entries.
        behind: u64,
    },
    /// It votes already.
    #[error("{name:?} is a voter already")]
    IsVoter {
        /// Who.
        name: String,
    },
    /// A learner cannot lead.
    #[error("{name:?} is a learner and cannot lead; promote it first")]
    IsLearner {
        /// Who.
        name: String,
    },
    /// Nobody would be left.
    #[error(
        "{name:?} is the last voter; without it nothing could be decided any more: add another with `leasehold cluster add NAME=HOST:PORT --promote` \
         first, or just stop it"
    )]
    LastVoter {
        /// Who.
        name: String,
    },
    /// What would be left could not decide: too few of them can be reached.
    #[error("without {name:?} only {reachable} of {voters} voters could be reached, which is no majority")]
    NoMajorityLeft {
        /// Who was to go.
        name: String,
        /// Voters that were heard of lately, without it.
        reachable: usize,
        /// Voters that would be left.
        voters: usize,
    },
    /// One at a time.
    #[error("another change of the members is under way; ask again in a moment")]
    ChangeUnderWay,
    /// The one to be removed leads and is handing over.
    #[error("{name:?} leads and is handing over; ask again in a moment")]
    HandingOver {
        /// Who.
        name: String,
    },
    /// There is nobody to hand over to.
    #[error("no other voter is close enough to take over")]
    NobodyToTakeOver,
}

/// How a cluster stands, as its leader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// This life of its state.
    pub incarnation: Incarnation,
    /// How often it was restored.
    pub epoch: u16,
    /// The version of what may stand in its log.
    pub version: u32,
    /// Who leads.
    pub leader: MemberId,
    /// In which term.
    pub term: u64,
    /// The last entry that is on a majority of disks.
    pub committed: u64,
    /// The members, by name.
    pub members: Vec<MemberView>,
}

/// How a member stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// Who.
    pub member: Member,
    /// What it does.
    pub role: MemberRole,
    /// The last entry it is known to have.
    pub matched: u64,
    /// Whether it was heard of within the last election timeout.
    pub reachable: bool,
    /// Whether it is being sent a snapshot.
    pub receiving_snapshot: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_what_they_must_be() {
        for name in ["n1", "a.b-c_d", &"n".repeat(MAX_MEMBER_NAME_BYTES)] {
            assert_eq!(check_member_name(name), Ok(()), "{name}");
        }
        for name in ["", "n 1", "n=1", "n,1", "é", &"n".repeat(MAX_MEMBER_NAME_BYTES + 1)] {
            assert!(check_member_name(name).is_err(), "{name}");
        }
        for address in ["10.0.0.1:7070", "[::1]:7070", "db.example.org:1"] {
            assert_eq!(check_address(address), Ok(()), "{address}");
        }
        for address in
            ["", "host", ":7070", "host:0", "host:65536", "host:080", "host:+1", "host:x", "a b:1", "a,b:1"]
        {
            assert!(check_address(address).is_err(), "{address}");
        }
    }
}
