//! What is asked of the nodes that keep the log, and what they answer.

use leasehold_core::Revision;
use leasehold_core::protocol::{
    ClusterCommand, ClusterRefusal, ClusterReply, ClusterView, Member, MemberRole, MemberView,
};

use super::{
    Checked, Wire, address, from_incarnation, from_usize, incarnation, list, member_id, member_name,
    named_values, needed, nothing, present, to_list, to_u16, to_u32, to_usize,
};
use crate::proto as pb;
use pb::cluster_command::Command as CommandMessage;
use pb::cluster_refusal::Refusal as RefusalMessage;
use pb::cluster_reply::Reply as ReplyMessage;

impl Wire for ClusterCommand {
    type Message = pb::ClusterCommand;

    fn to_wire(&self) -> pb::ClusterCommand {
        let command = match self {
            Self::Add(member) => CommandMessage::Add(member.to_wire()),
            Self::Promote { name } => CommandMessage::Promote(name.clone()),
            Self::Remove { name } => CommandMessage::Remove(name.clone()),
            Self::Transfer { to } => CommandMessage::Transfer(pb::TransferLeadership { to: to.clone() }),
        };
        pb::ClusterCommand { command: Some(command) }
    }

    fn from_wire(m: pb::ClusterCommand) -> Checked<Self> {
        Ok(match present("cluster", m.command)? {
            CommandMessage::Add(member) => Self::Add(Member::from_wire(member)?),
            CommandMessage::Promote(name) => Self::Promote { name: member_name("promote", name)? },
            CommandMessage::Remove(name) => Self::Remove { name: member_name("remove", name)? },
            CommandMessage::Transfer(m) => {
                Self::Transfer { to: m.to.map(|to| member_name("transfer.to", to)).transpose()? }
            }
        })
    }
}

impl Wire for ClusterReply {
    type Message = pb::ClusterReply;

    fn to_wire(&self) -> pb::ClusterReply {
        let reply = match self {
            Self::Changed { revision } => ReplyMessage::Changed(revision.get()),
            Self::Transferred { to } => ReplyMessage::TransferredTo(to.0),
            Self::Refused(refusal) => ReplyMessage::Refused(refusal.to_wire()),
        };
        pb::ClusterReply { reply: Some(reply) }
    }

    fn from_wire(m: pb::ClusterReply) -> Checked<Self> {
        Ok(match present("cluster", m.reply)? {
            ReplyMessage::Changed(revision) => Self::Changed { revision: Revision::new(revision) },
            ReplyMessage::TransferredTo(to) => {
                Self::Transferred { to: member_id("cluster.transferred_to", to)? }
            }
            ReplyMessage::Refused(refusal) => Self::Refused(ClusterRefusal::from_wire(refusal)?),
        })
    }
}

impl Wire for ClusterRefusal {
    type Message = pb::ClusterRefusal;

    fn to_wire(&self) -> pb::ClusterRefusal {
        let refusal = match self {
            Self::NoSuchMember { name } => RefusalMessage::NoSuchMember(name.clone()),
            Self::Taken { what, value, name } => RefusalMessage::Taken(pb::MemberTaken {
                what: what.clone(),
                value: value.clone(),
                name: name.clone(),
            }),
            Self::WasRemoved { name } => RefusalMessage::WasRemoved(name.clone()),
            Self::TooManyMembers { limit } => RefusalMessage::TooManyMembersLimit(from_usize(*limit)),
            Self::NotCaughtUp { name, behind } => {
                RefusalMessage::NotCaughtUp(pb::MemberBehind { name: name.clone(), behind: *behind })
            }
            Self::IsVoter { name } => RefusalMessage::IsVoter(name.clone()),
            Self::IsLearner { name } => RefusalMessage::IsLearner(name.clone()),
            Self::LastVoter { name } => RefusalMessage::LastVoter(name.clone()),
            Self::NoMajorityLeft { name, reachable, voters } => {
                RefusalMessage::NoMajorityLeft(pb::NoMajorityLeft {
                    name: name.clone(),
                    reachable: from_usize(*reachable),
                    voters: from_usize(*voters),
                })
            }
            Self::ChangeUnderWay => RefusalMessage::ChangeUnderWay(nothing()),
            Self::HandingOver { name } => RefusalMessage::HandingOver(name.clone()),
            Self::NobodyToTakeOver => RefusalMessage::NobodyToTakeOver(nothing()),
        };
        pb::ClusterRefusal { refusal: Some(refusal) }
    }

    fn from_wire(m: pb::ClusterRefusal) -> Checked<Self> {
        let checked = |name| member_name("cluster.refused.name", name);
        Ok(match present("cluster.refused", m.refusal)? {
            RefusalMessage::NoSuchMember(name) => Self::NoSuchMember { name: checked(name)? },
            RefusalMessage::Taken(m) => Self::Taken { what: m.what, value: m.value, name: checked(m.name)? },
            RefusalMessage::WasRemoved(name) => Self::WasRemoved { name: checked(name)? },
            RefusalMessage::TooManyMembersLimit(limit) => {
                Self::TooManyMembers { limit: to_usize("too_many_members.limit", limit)? }
            }
            RefusalMessage::NotCaughtUp(m) => Self::NotCaughtUp { name: checked(m.name)?, behind: m.behind },
            RefusalMessage::IsVoter(name) => Self::IsVoter { name: checked(name)? },
            RefusalMessage::IsLearner(name) => Self::IsLearner { name: checked(name)? },
            RefusalMessage::LastVoter(name) => Self::LastVoter { name: checked(name)? },
            RefusalMessage::NoMajorityLeft(m) => Self::NoMajorityLeft {
                name: checked(m.name)?,
                reachable: to_usize("no_majority_left.reachable", m.reachable)?,
                voters: to_usize("no_majority_left.voters", m.voters)?,
            },
            RefusalMessage::ChangeUnderWay(pb::Nothing {}) => Self::ChangeUnderWay,
            RefusalMessage::HandingOver(name) => Self::HandingOver { name: checked(name)? },
            RefusalMessage::NobodyToTakeOver(pb::Nothing {}) => Self::NobodyToTakeOver,
        })
    }
}

impl Wire for ClusterView {
    type Message = pb::ClusterView;

    fn to_wire(&self) -> pb::ClusterView {
        pb::ClusterView {
            incarnation: from_incarnation(self.incarnation),
            epoch: self.epoch.into(),
            version: self.version.into(),
            leader: self.leader.0,
            term: self.term,
            committed: self.committed,
            members: to_list(&self.members),
        }
    }

    fn from_wire(m: pb::ClusterView) -> Checked<Self> {
        Ok(Self {
            incarnation: incarnation("cluster.incarnation", &m.incarnation)?,
            epoch: to_u16("cluster.epoch", m.epoch)?,
            version: to_u32("cluster.version", m.version)?,
            leader: member_id("cluster.leader", m.leader)?,
            term: m.term,
            committed: m.committed,
            members: list(m.members)?,
        })
    }
}

impl Wire for MemberView {
    type Message = pb::MemberView;

    fn to_wire(&self) -> pb::MemberView {
        pb::MemberView {
            member: Some(self.member.to_wire()),
            role: self.role.to_wire(),
            matched: self.matched,
            reachable: self.reachable,
            receiving_snapshot: self.receiving_snapshot,
        }
    }

    fn from_wire(m: pb::MemberView) -> Checked<Self> {
        Ok(Self {
            member: needed("member", m.member)?,
            role: MemberRole::from_wire(m.role)?,
            matched: m.matched,
            reachable: m.reachable,
            receiving_snapshot: m.receiving_snapshot,
        })
    }
}

impl Wire for Member {
    type Message = pb::Member;

    fn to_wire(&self) -> pb::Member {
        pb::Member { id: self.id.0, name: self.name.clone(), address: self.address.clone() }
    }

    fn from_wire(m: pb::Member) -> Checked<Self> {
        Ok(Self {
            id: member_id("member.id", m.id)?,
            name: member_name("member.name", m.name)?,
            address: address("member.address", m.address)?,
        })
    }
}

named_values!(MemberRole => MemberRole, "member.role", Voter, Learner);
