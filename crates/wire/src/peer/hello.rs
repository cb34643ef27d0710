//! Who dials, who listens, and whether the two talk.
//!
//! What this does not do: it judges nobody. Whoever listens knows the members and makes the verdict; here it only gets its words.

use leasehold_core::protocol::{Incarnation, Member, MemberId, MemberRole};

use super::proto as pb;
use crate::convert::{
    Checked, Field, Wire, bounded, member_name, named_values, needed, node_address, protocol_version, record,
    variants,
};
use crate::hello::hello_text;

/// Version of the protocol between nodes.
pub const PEER_VERSION: u32 = 1;
/// Longest list of founders: as many as there may be, each with the longest name and address, fit it.
pub const MAX_INITIAL_CLUSTER_BYTES: usize = 3 * 1024;

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerHello {
    /// Version of the protocol between nodes that the sender speaks.
    pub version: u32,
    /// The greatest version of what may stand in a log that the sender knows.
    pub cluster_version: u32,
    /// What the connection is for.
    pub purpose: PeerPurpose,
    /// Who speaks.
    pub from: MemberId,
    /// What people call it.
    pub name: String,
    /// Where it is reached, as `host:port`.
    pub address: String,
    /// Who is expected to listen, if the sender knows.
    pub to: Option<MemberId>,
    /// The life of the state that the sender keeps; unknown while it is blank.
    pub incarnation: Incarnation,
    /// The founders that the sender was started with, as `n1=A1,n2=A2` in the order of their names; empty if there are none.
    pub initial_cluster: String,
    /// The longest ttl that the sender grants, in milliseconds.
    pub max_ttl_ms: u64,
    /// The error of clocks that the sender allows for, in millionths.
    pub drift_ppm: u32,
    /// Release of the program.
    pub program: String,
    /// How often the state that the sender keeps was restored or recovered; none while it is blank, and from releases that did not say it.
    pub epoch: Option<u16>,
}

/// What a connection between nodes is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerPurpose {
    /// To learn who listens: the welcome is the answer, and nothing follows.
    Ask,
    /// Messages of all kinds except snapshots.
    Messages,
    /// One snapshot.
    Snapshot,
}

/// The answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerWelcome {
    /// Who listens.
    pub hello: PeerHello,
    /// Whether the connection goes on.
    pub verdict: PeerVerdict,
    /// The members, if whoever listens knows them.
    pub members: Vec<(Member, MemberRole)>,
}

/// Whether a connection between nodes goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerVerdict {
    /// It does.
    Accepted,
    /// It is closed.
    Refused(PeerRefusal),
}

/// Why a node was not let in by the one it dialled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerRefusal {
    /// Somebody else listens at that address.
    #[error("member {wanted} was expected at this address, and {found} is there")]
    WrongMember {
        /// Who was expected.
        wanted: MemberId,
        /// Who is there.
        found: MemberId,
    },
    /// The two keep different lives of a state.
    #[error(
        "the node that dialled is of incarnation {theirs}, and the one that listens of {ours}: they are not of one cluster"
    )]
    OtherIncarnation {
        /// That of the node that dialled.
        theirs: Incarnation,
        /// That of the node that listens.
        ours: Incarnation,
    },
    /// The node that dialled was removed.
    #[error(
        "the node that dialled was removed from the cluster; with an empty data directory it can be added again"
    )]
    Removed,
    /// The node that dialled was never a member.
    #[error("the node that dialled is no member of the cluster; `leasehold cluster add` makes it one")]
    NotAMember,
    /// The node that dialled does not know enough.
    #[error(
        "the node that dialled knows cluster version {speaks} at most, and the cluster needs {needs}: upgrade it"
    )]
    TooOld {
        /// The greatest version it knows.
        speaks: u32,
        /// The version of the cluster.
        needs: u32,
    },
}

record! {
    PeerHello => PeerHello at "peer_hello";
    version checked protocol_version, cluster_version, purpose, from, name checked member_name,
    address checked node_address, to, incarnation, initial_cluster checked founders, max_ttl_ms, drift_ppm,
    program checked hello_text, epoch,
}

named_values!(PeerPurpose => PeerPurpose, "peer_hello.purpose", Ask, Messages, Snapshot);

record!(PeerWelcome => PeerWelcome at "peer_welcome"; hello, verdict, members);

variants! {
    PeerVerdict => peer_welcome::Verdict;
    Accepted => Accepted,
    Refused(refusal) => Refused,
}

variants! {
    PeerRefusal => PeerRefusal { refusal: peer_refusal::Refusal } at "peer_refusal";
    WrongMember { wanted, found } => WrongMember(WrongMember) at "wrong_member",
    OtherIncarnation { theirs, ours } => OtherIncarnation(OtherIncarnation) at "other_incarnation",
    Removed => Removed,
    NotAMember => NotAMember,
    TooOld { speaks, needs } => TooOld(TooOld) at "too_old",
}

impl Wire for (Member, MemberRole) {
    type Message = pb::PeerMember;

    fn to_wire(&self) -> pb::PeerMember {
        pb::PeerMember { member: self.0.to_field(), role: self.1.to_field() }
    }

    fn from_wire(pb::PeerMember { member, role }: pb::PeerMember) -> Checked<Self> {
        Ok((Field::from_field("peer_welcome.member", member)?, Field::from_field("peer_welcome.role", role)?))
    }
}

needed!(PeerHello, PeerVerdict);

/// Only its length is judged: whoever compares two of these needs no more.
fn founders(at: &'static str, text: String) -> Checked<String> {
    bounded(at, "list of founders", text, MAX_INITIAL_CLUSTER_BYTES)
}
