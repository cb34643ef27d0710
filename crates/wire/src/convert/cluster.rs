//! What is asked of the nodes that keep the log, and what they answer.

use leasehold_core::protocol::{
    ClusterCommand, ClusterRefusal, ClusterReply, ClusterView, Member, MemberRole, MemberView,
};

use super::field::some_member_name;
use super::{member_name, named_values, needed, node_address, record, variants};
use crate::proto as pb;

variants! {
    ClusterCommand => ClusterCommand { command: cluster_command::Command } at "cluster";
    Add(member) => Add,
    Promote { name checked member_name } => Promote at "promote",
    Remove { name checked member_name } => Remove at "remove",
    Transfer { to checked some_member_name } => Transfer(TransferLeadership) at "transfer",
}

variants! {
    ClusterReply => ClusterReply { reply: cluster_reply::Reply } at "cluster";
    Changed { revision } => Changed,
    Transferred { to } => TransferredTo at "cluster.transferred_to",
    Refused(refusal) => Refused,
}

variants! {
    ClusterRefusal => ClusterRefusal { refusal: cluster_refusal::Refusal } at "cluster.refused";
    NoSuchMember { name checked member_name } => NoSuchMember at "cluster.refused.name",
    Taken { what, value, name checked member_name } => Taken(MemberTaken) at "cluster.refused",
    WasRemoved { name checked member_name } => WasRemoved at "cluster.refused.name",
    TooManyMembers { limit } => TooManyMembersLimit at "too_many_members.limit",
    NotCaughtUp { name checked member_name, behind } => NotCaughtUp(MemberBehind) at "cluster.refused",
    IsVoter { name checked member_name } => IsVoter at "cluster.refused.name",
    IsLearner { name checked member_name } => IsLearner at "cluster.refused.name",
    LastVoter { name checked member_name } => LastVoter at "cluster.refused.name",
    NoMajorityLeft { name at "cluster.refused.name" checked member_name, reachable, voters }
        => NoMajorityLeft(NoMajorityLeft) at "no_majority_left",
    ChangeUnderWay => ChangeUnderWay,
    HandingOver { name checked member_name } => HandingOver at "cluster.refused.name",
    NobodyToTakeOver => NobodyToTakeOver,
}

record!(ClusterView => ClusterView at "cluster"; incarnation, epoch, version, leader, term, committed, members);

record!(MemberView => MemberView at "member"; member at "member", role, matched, reachable, receiving_snapshot);

record!(Member => Member at "member"; id, name checked member_name, address checked node_address);

named_values!(MemberRole => MemberRole, "member.role", Voter, Learner);

needed!(Member);
