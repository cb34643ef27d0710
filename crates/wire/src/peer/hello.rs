//! Who dials, who listens, and whether the two talk.
//!
//! What this does not do: it judges nobody. Whoever listens knows the members and makes the verdict; here it only gets its words.

use leasehold_core::TextError;
use leasehold_core::protocol::{Incarnation, Member, MemberId, MemberRole};
use prost::bytes::Bytes;

use super::proto as pb;
use crate::convert::{
    Checked, Wire, address, from_incarnation, incarnation, member_id, member_name, present, to_u16, to_u32,
};
use crate::error::FieldError;
use crate::hello::check_text;
use crate::proto as session;
use pb::peer_refusal::Refusal as RefusalMessage;
use pb::peer_welcome::Verdict as VerdictMessage;

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

impl PeerHello {
    /// The message that says this, if the other side would take it.
    pub(super) fn to_wire(&self) -> Checked<pb::PeerHello> {
        let message = pb::PeerHello {
            version: self.version.into(),
            cluster_version: self.cluster_version.into(),
            purpose: self.purpose.to_wire(),
            from: self.from.0,
            name: self.name.clone(),
            address: self.address.clone(),
            to: self.to.map(|to| to.0),
            incarnation: to_bytes(self.incarnation),
            initial_cluster: self.initial_cluster.clone(),
            max_ttl_ms: self.max_ttl_ms,
            drift_ppm: self.drift_ppm.into(),
            program: self.program.clone(),
            epoch: self.epoch.map(u64::from),
        };
        Self::from_wire(message.clone())?;
        Ok(message)
    }

    pub(super) fn from_wire(m: pb::PeerHello) -> Checked<Self> {
        let version = to_u32("peer_hello.version", m.version)?;
        if version == 0 {
            return Err(FieldError::Absent { field: "peer_hello.version" });
        }
        check_founders(&m.initial_cluster)?;
        check_text("peer_hello.program", &m.program)?;
        Ok(Self {
            version,
            cluster_version: to_u32("peer_hello.cluster_version", m.cluster_version)?,
            purpose: PeerPurpose::from_wire(m.purpose)?,
            from: member_id("peer_hello.from", m.from)?,
            name: member_name("peer_hello.name", m.name)?,
            address: address("peer_hello.address", m.address)?,
            to: m.to.map(|to| member_id("peer_hello.to", to)).transpose()?,
            incarnation: incarnation("peer_hello.incarnation", &m.incarnation)?,
            initial_cluster: m.initial_cluster,
            max_ttl_ms: m.max_ttl_ms,
            drift_ppm: to_u32("peer_hello.drift_ppm", m.drift_ppm)?,
            program: m.program,
            epoch: m.epoch.map(|epoch| to_u16("peer_hello.epoch", epoch)).transpose()?,
        })
    }
}

impl PeerPurpose {
    fn to_wire(self) -> i32 {
        match self {
            Self::Ask => pb::PeerPurpose::Ask,
            Self::Messages => pb::PeerPurpose::Messages,
            Self::Snapshot => pb::PeerPurpose::Snapshot,
        }
        .into()
    }

    fn from_wire(value: i32) -> Checked<Self> {
        let field = "peer_hello.purpose";
        match pb::PeerPurpose::try_from(value) {
            Ok(pb::PeerPurpose::Ask) => Ok(Self::Ask),
            Ok(pb::PeerPurpose::Messages) => Ok(Self::Messages),
            Ok(pb::PeerPurpose::Snapshot) => Ok(Self::Snapshot),
            Ok(pb::PeerPurpose::Unspecified) => Err(FieldError::Unspecified { field }),
            Err(_) => Err(FieldError::UnknownValue { field, value }),
        }
    }
}

impl PeerWelcome {
    /// The message that says this, if the other side would take it.
    pub(super) fn to_wire(&self) -> Checked<pb::PeerWelcome> {
        let verdict = match &self.verdict {
            PeerVerdict::Accepted => VerdictMessage::Accepted(session::Nothing {}),
            PeerVerdict::Refused(refusal) => VerdictMessage::Refused(refusal.to_wire()),
        };
        let member = |(member, role): &(Member, MemberRole)| pb::PeerMember {
            member: Some(member.to_wire()),
            role: role.to_wire(),
        };
        let message = pb::PeerWelcome {
            hello: Some(self.hello.to_wire()?),
            verdict: Some(verdict),
            members: self.members.iter().map(member).collect(),
        };
        Self::from_wire(message.clone())?;
        Ok(message)
    }

    pub(super) fn from_wire(m: pb::PeerWelcome) -> Checked<Self> {
        let member = |m: pb::PeerMember| {
            let member = Member::from_wire(present("peer_welcome.member", m.member)?)?;
            Ok((member, MemberRole::from_wire(m.role)?))
        };
        Ok(Self {
            hello: PeerHello::from_wire(present("peer_welcome.hello", m.hello)?)?,
            verdict: match present("peer_welcome.verdict", m.verdict)? {
                VerdictMessage::Accepted(session::Nothing {}) => PeerVerdict::Accepted,
                VerdictMessage::Refused(refusal) => PeerVerdict::Refused(PeerRefusal::from_wire(refusal)?),
            },
            members: m.members.into_iter().map(member).collect::<Checked<_>>()?,
        })
    }
}

impl PeerRefusal {
    fn to_wire(&self) -> pb::PeerRefusal {
        let refusal = match self {
            Self::WrongMember { wanted, found } => {
                RefusalMessage::WrongMember(pb::WrongMember { wanted: wanted.0, found: found.0 })
            }
            Self::OtherIncarnation { theirs, ours } => {
                RefusalMessage::OtherIncarnation(pb::OtherIncarnation {
                    theirs: to_bytes(*theirs),
                    ours: to_bytes(*ours),
                })
            }
            Self::Removed => RefusalMessage::Removed(session::Nothing {}),
            Self::NotAMember => RefusalMessage::NotAMember(session::Nothing {}),
            Self::TooOld { speaks, needs } => {
                RefusalMessage::TooOld(pb::TooOld { speaks: (*speaks).into(), needs: (*needs).into() })
            }
        };
        pb::PeerRefusal { refusal: Some(refusal) }
    }

    fn from_wire(m: pb::PeerRefusal) -> Checked<Self> {
        Ok(match present("peer_refusal", m.refusal)? {
            RefusalMessage::WrongMember(m) => Self::WrongMember {
                wanted: member_id("wrong_member.wanted", m.wanted)?,
                found: member_id("wrong_member.found", m.found)?,
            },
            RefusalMessage::OtherIncarnation(m) => Self::OtherIncarnation {
                theirs: incarnation("other_incarnation.theirs", &m.theirs)?,
                ours: incarnation("other_incarnation.ours", &m.ours)?,
            },
            RefusalMessage::Removed(session::Nothing {}) => Self::Removed,
            RefusalMessage::NotAMember(session::Nothing {}) => Self::NotAMember,
            RefusalMessage::TooOld(m) => Self::TooOld {
                speaks: to_u32("too_old.speaks", m.speaks)?,
                needs: to_u32("too_old.needs", m.needs)?,
            },
        })
    }
}

fn to_bytes(incarnation: Incarnation) -> Bytes {
    from_incarnation(incarnation).into()
}

/// Only its length is judged: whoever compares two of these needs no more.
fn check_founders(text: &str) -> Checked<()> {
    let (what, limit) = ("list of founders", MAX_INITIAL_CLUSTER_BYTES);
    if text.len() > limit {
        let why = TextError::TooLong { what, bytes: text.len(), limit };
        return Err(FieldError::text("peer_hello.initial_cluster", text, why));
    }
    Ok(())
}
