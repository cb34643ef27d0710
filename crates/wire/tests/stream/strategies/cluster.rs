//! What is asked of the nodes, and what they answer.

use leasehold_core::protocol::{
    ClusterCommand, ClusterRefusal, ClusterReply, ClusterView, Incarnation, Member, MemberId, MemberRole,
    MemberView,
};
use proptest::option;
use proptest::prelude::*;

use super::{few, number, revision, size, small};

pub(crate) fn member_id() -> BoxedStrategy<MemberId> {
    number().prop_map(|id| MemberId(id.max(1))).boxed()
}

pub(crate) fn incarnation() -> BoxedStrategy<Incarnation> {
    prop_oneof![Just(0), Just(1), Just(u128::MAX), any::<u128>()].prop_map(Incarnation).boxed()
}

pub(crate) fn member_name() -> BoxedStrategy<String> {
    "[a-zA-Z0-9._-]{1,12}".boxed()
}

pub(crate) fn address() -> BoxedStrategy<String> {
    prop_oneof![
        ("[a-z0-9.-]{1,12}", 1..=u16::MAX).prop_map(|(host, port)| format!("{host}:{port}")),
        Just("[::1]:7420".to_owned()),
    ]
    .boxed()
}

pub(crate) fn member() -> BoxedStrategy<Member> {
    (member_id(), member_name(), address())
        .prop_map(|(id, name, address)| Member { id, name, address })
        .boxed()
}

pub(crate) fn role() -> BoxedStrategy<MemberRole> {
    prop_oneof![Just(MemberRole::Voter), Just(MemberRole::Learner)].boxed()
}

pub(crate) fn command() -> BoxedStrategy<ClusterCommand> {
    prop_oneof![
        member().prop_map(ClusterCommand::Add),
        member_name().prop_map(|name| ClusterCommand::Promote { name }),
        member_name().prop_map(|name| ClusterCommand::Remove { name }),
        option::of(member_name()).prop_map(|to| ClusterCommand::Transfer { to }),
    ]
    .boxed()
}

pub(crate) fn reply() -> BoxedStrategy<ClusterReply> {
    prop_oneof![
        revision().prop_map(|revision| ClusterReply::Changed { revision }),
        member_id().prop_map(|to| ClusterReply::Transferred { to }),
        refusal().prop_map(ClusterReply::Refused),
    ]
    .boxed()
}

pub(crate) fn refusal() -> BoxedStrategy<ClusterRefusal> {
    let named = |refusal: fn(String) -> ClusterRefusal| member_name().prop_map(refusal);
    prop_oneof![
        named(|name| ClusterRefusal::NoSuchMember { name }),
        (".{0,12}", ".{0,12}", member_name()).prop_map(|(what, value, name)| ClusterRefusal::Taken {
            what,
            value,
            name
        }),
        named(|name| ClusterRefusal::WasRemoved { name }),
        size().prop_map(|limit| ClusterRefusal::TooManyMembers { limit }),
        (member_name(), number()).prop_map(|(name, behind)| ClusterRefusal::NotCaughtUp { name, behind }),
        named(|name| ClusterRefusal::IsVoter { name }),
        named(|name| ClusterRefusal::IsLearner { name }),
        named(|name| ClusterRefusal::LastVoter { name }),
        (member_name(), size(), size()).prop_map(|(name, reachable, voters)| {
            ClusterRefusal::NoMajorityLeft { name, reachable, voters }
        }),
        Just(ClusterRefusal::ChangeUnderWay),
        named(|name| ClusterRefusal::HandingOver { name }),
        Just(ClusterRefusal::NobodyToTakeOver),
    ]
    .boxed()
}

pub(crate) fn view() -> BoxedStrategy<ClusterView> {
    (incarnation(), any::<u16>(), small(), member_id(), number(), number(), few(member_view()))
        .prop_map(|(incarnation, epoch, version, leader, term, committed, members)| ClusterView {
            incarnation,
            epoch,
            version,
            leader,
            term,
            committed,
            members,
        })
        .boxed()
}

fn member_view() -> BoxedStrategy<MemberView> {
    (member(), role(), number(), any::<bool>(), any::<bool>())
        .prop_map(|(member, role, matched, reachable, receiving_snapshot)| MemberView {
            member,
            role,
            matched,
            reachable,
            receiving_snapshot,
        })
        .boxed()
}
