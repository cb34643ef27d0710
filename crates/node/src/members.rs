//! Who keeps the log: kept by every member, changed by entries of the log, and part of every snapshot.

use leasehold_core::protocol::{Incarnation, Member, MemberId, MemberRole};
use leasehold_core::table::FIRST_VERSION;
use prost::Message as _;
use raft::eraftpb;
use serde::{Deserialize, Serialize};

use crate::payload::PayloadError;

/// The version of what may stand in a log. A member that knows less than its cluster's is refused; new kinds of entries come with a
/// greater one, and are used when every member knows them.
///
/// Version 2 has drains that others can see, and word to a holder that its offer was accepted. Version 3 counts gaps.
/// Version 5 has numbered calls of plain sessions.
pub const CLUSTER_VERSION: u32 = 5;

/// Removed members that are remembered: one that comes back is refused. The oldest are forgotten, and are no members all the same.
const MAX_REMOVED: usize = 1_024;

/// Names, addresses and what else raft does not keep of members.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Roster {
    /// This life of the state.
    pub incarnation: Incarnation,
    /// The version of what may stand in the log.
    pub version: u32,
    /// The members, by name.
    pub members: Vec<Member>,
    /// Those that were removed, oldest first.
    pub removed: Vec<MemberId>,
}

/// What the outside of a node knows of its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// This node.
    pub me: MemberId,
    /// This life of the state; unknown while the node is blank.
    pub incarnation: Incarnation,
    /// How often the state was restored.
    pub epoch: u16,
    /// The version of what may stand in the log.
    pub version: u32,
    /// The members, by name.
    pub members: Vec<(Member, MemberRole)>,
    /// Those that were removed.
    pub removed: Vec<MemberId>,
}

impl Membership {
    /// Whether this node has been told who the members are.
    pub fn is_blank(&self) -> bool {
        self.members.is_empty()
    }

    /// The member with this id.
    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().map(|(member, _)| member).find(|member| member.id == id)
    }
}

/// What an entry that changes the members says beside raft's own change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RosterChange {
    Add(Member),
    Promote(MemberId),
    Remove(MemberId),
}

impl Roster {
    /// The founders. All of them make the same, whoever they are and whatever release they are of: the incarnation is a hash over what
    /// makes them different, and every log begins with the first version. The leader raises it when all have been heard of.
    pub fn founding(mut members: Vec<Member>) -> Self {
        members.sort_by(|a, b| a.name.cmp(&b.name));
        let mut hash = Fnv128::default();
        for member in &members {
            hash.add(&member.id.0.to_be_bytes());
            for text in [&member.name, &member.address] {
                hash.add(&(text.len() as u64).to_be_bytes());
                hash.add(text.as_bytes());
            }
        }
        Self { incarnation: hash.finish(), version: FIRST_VERSION, members, removed: Vec::new() }
    }

    /// Takes in what an entry that changes the members says, as it stands in the log.
    ///
    /// # Errors
    /// When these are not the bytes of such an entry.
    pub fn apply_change(&mut self, entry: &[u8]) -> Result<(), PayloadError> {
        let damaged = |()| PayloadError::Damaged { what: "entry that changes the members" };
        if let (_, Some(change)) = from_log(entry).map_err(damaged)? {
            self.apply(change);
        }
        Ok(())
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    pub(crate) fn apply(&mut self, change: RosterChange) {
        match change {
            RosterChange::Add(member) => {
                self.members.retain(|known| known.id != member.id);
                self.members.push(member);
                self.members.sort_by(|a, b| a.name.cmp(&b.name));
            }
            RosterChange::Promote(_) => {}
            RosterChange::Remove(id) => {
                self.members.retain(|known| known.id != id);
                self.removed.push(id);
                if self.removed.len() > MAX_REMOVED {
                    self.removed.remove(0);
                }
            }
        }
    }
}

/// Raft's change with ours beside it.
pub(crate) fn to_raft(change: &RosterChange) -> eraftpb::ConfChangeV2 {
    let (kind, id) = match change {
        RosterChange::Add(member) => (eraftpb::ConfChangeType::AddLearnerNode, member.id),
        RosterChange::Promote(id) => (eraftpb::ConfChangeType::AddNode, *id),
        RosterChange::Remove(id) => (eraftpb::ConfChangeType::RemoveNode, *id),
    };
    let mut single = eraftpb::ConfChangeSingle { node_id: id.0, ..eraftpb::ConfChangeSingle::default() };
    single.set_change_type(kind);
    let context = postcard::to_allocvec(change).expect("a vector grows as needed");
    eraftpb::ConfChangeV2 {
        changes: vec![single].into(),
        context: context.into(),
        ..eraftpb::ConfChangeV2::default()
    }
}

/// Reads the bytes of a change as they stand in the log. Raft's own decoder is not for bytes that came over a network.
pub(crate) fn from_log(bytes: &[u8]) -> Result<(eraftpb::ConfChangeV2, Option<RosterChange>), ()> {
    let read = ChangeMessage::decode(bytes).map_err(|_| ())?;
    let change = if read.context.is_empty() {
        None
    } else {
        Some(postcard::from_bytes(&read.context).map_err(|_| ())?)
    };
    let mut raft = eraftpb::ConfChangeV2 { context: read.context.into(), ..eraftpb::ConfChangeV2::default() };
    raft.set_transition(match read.transition {
        0 => eraftpb::ConfChangeTransition::Auto,
        1 => eraftpb::ConfChangeTransition::Implicit,
        2 => eraftpb::ConfChangeTransition::Explicit,
        _ => return Err(()),
    });
    let mut changes = Vec::new();
    for single in read.changes {
        let mut change = eraftpb::ConfChangeSingle { node_id: single.node_id, ..Default::default() };
        change.set_change_type(match single.change_type {
            0 => eraftpb::ConfChangeType::AddNode,
            1 => eraftpb::ConfChangeType::RemoveNode,
            2 => eraftpb::ConfChangeType::AddLearnerNode,
            _ => return Err(()),
        });
        changes.push(change);
    }
    raft.set_changes(changes.into());
    Ok((raft, change))
}

#[derive(Clone, PartialEq, prost::Message)]
struct ChangeMessage {
    #[prost(int32, tag = "1")]
    transition: i32,
    #[prost(message, repeated, tag = "2")]
    changes: Vec<SingleMessage>,
    #[prost(bytes = "vec", tag = "3")]
    context: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SingleMessage {
    #[prost(int32, tag = "1")]
    change_type: i32,
    #[prost(uint64, tag = "2")]
    node_id: u64,
}

/// FNV-1a of 128 bits: stable for ever, and nobody has a reason to look for collisions among ids that were drawn.
struct Fnv128(u128);

impl Default for Fnv128 {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv128 {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn finish(self) -> Incarnation {
        // Zero means unknown.
        Incarnation(self.0.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protobuf::Message as _;

    fn member(id: u64, name: &str) -> Member {
        Member::new(MemberId(id), name, "127.0.0.1:7070").unwrap()
    }

    #[test]
    fn founders_make_the_same_whatever_the_order_and_another_id_makes_another() {
        let one = Roster::founding(vec![member(1, "a"), member(2, "b")]);
        let same = Roster::founding(vec![member(2, "b"), member(1, "a")]);
        let wiped = Roster::founding(vec![member(1, "a"), member(3, "b")]);
        assert_eq!(one, same);
        assert_ne!(one.incarnation, wiped.incarnation);
    }

    #[test]
    fn changes_are_read_as_raft_wrote_them() {
        for change in [
            RosterChange::Add(member(7, "c")),
            RosterChange::Promote(MemberId(7)),
            RosterChange::Remove(MemberId(u64::MAX)),
        ] {
            let raft = to_raft(&change);
            let bytes = raft.write_to_bytes().unwrap();
            assert_eq!(from_log(&bytes), Ok((raft, Some(change))));
        }
        assert_eq!(from_log(&[]), Ok((eraftpb::ConfChangeV2::default(), None)));
    }

    #[test]
    fn bytes_that_are_no_change_are_refused() {
        for bytes in [&[0xff, 0xff][..], &[8, 9], &[26, 1, 9]] {
            assert_eq!(from_log(bytes), Err(()));
        }
    }

    #[test]
    fn a_removed_member_is_remembered() {
        let mut roster = Roster::founding(vec![member(1, "a"), member(2, "b")]);
        roster.apply(RosterChange::Remove(MemberId(2)));
        assert_eq!((roster.members.len(), &roster.removed[..]), (1, &[MemberId(2)][..]));
        roster.apply(RosterChange::Add(member(3, "b")));
        assert_eq!(roster.by_name("b").map(|member| member.id), Some(MemberId(3)));
    }

    #[test]
    fn a_roster_takes_in_what_the_log_says() {
        let mut roster = Roster::founding(vec![member(1, "a"), member(2, "b")]);
        for change in [RosterChange::Add(member(3, "c")), RosterChange::Remove(MemberId(2))] {
            roster.apply_change(&to_raft(&change).write_to_bytes().unwrap()).unwrap();
        }
        roster.apply_change(&[]).unwrap();
        assert_eq!(roster.members, [member(1, "a"), member(3, "c")]);
        assert!(roster.apply_change(&[0xff, 0xff]).is_err());
    }
}
