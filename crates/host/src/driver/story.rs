//! What the log of a service says of its cluster: who came and who went, and for how long nobody has led.

use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Member, MemberRole};

/// An election takes much less.
const NO_LEADER_FOR: Duration = Duration::from_secs(5);

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Story {
    members: Vec<(Member, MemberRole)>,
    leaderless: Option<Leaderless>,
}

#[derive(Debug)]
struct Leaderless {
    since: Reading,
    told: bool,
}

/// Something about leadership that is new.
#[derive(Debug, PartialEq, Eq)]
enum News {
    NobodyLeads,
    LedAgain,
}

impl Story {
    /// The members were these before anything is told.
    pub(super) fn of(members: &[(Member, MemberRole)]) -> Self {
        Self { members: members.to_vec(), leaderless: None }
    }

    /// The members are these. What is `news` happens now; a log that is read again tells of what happened long ago.
    pub(super) fn members(&mut self, now: &[(Member, MemberRole)], news: bool) {
        let before = std::mem::replace(&mut self.members, now.to_vec());
        if before.is_empty() && !now.is_empty() {
            let names: Vec<&str> = now.iter().map(|(member, _)| member.name.as_str()).collect();
            tracing::info!(members = names.join(", "), "this node belongs to a cluster now");
        } else if news {
            for (member, what) in changes(&before, now) {
                tracing::info!(member = member.name, address = member.address, "{what}");
            }
        }
    }

    /// Whether anybody leads.
    pub(super) fn leads(&mut self, somebody: bool, now: Reading) {
        match self.news(somebody, now) {
            Some(News::NobodyLeads) => tracing::warn!(
                "nobody has led the cluster for {} s: nothing is granted or renewed while no majority of its voters runs and reaches each \
                 other; see `leasehold cluster status`",
                NO_LEADER_FOR.as_secs()
            ),
            Some(News::LedAgain) => tracing::info!("the cluster is led again"),
            None => {}
        }
    }

    fn news(&mut self, somebody: bool, now: Reading) -> Option<News> {
        if somebody || self.members.len() < 2 {
            let told = self.leaderless.take().is_some_and(|leaderless| leaderless.told);
            return told.then_some(News::LedAgain);
        }
        let leaderless = self.leaderless.get_or_insert(Leaderless { since: now, told: false });
        let is_new = !leaderless.told && now.since(leaderless.since).greater() >= NO_LEADER_FOR;
        leaderless.told |= is_new;
        is_new.then_some(News::NobodyLeads)
    }
}

/// Who is another than before, and how.
fn changes<'a>(
    before: &'a [(Member, MemberRole)],
    now: &'a [(Member, MemberRole)],
) -> Vec<(&'a Member, &'static str)> {
    let find = |list: &'a [(Member, MemberRole)], member: &Member| {
        list.iter().find(|(other, _)| other.id == member.id)
    };
    let mut changes = Vec::new();
    for (member, role) in now {
        match (find(before, member), role) {
            (None, MemberRole::Learner) => changes.push((member, "a member was added, as a learner")),
            (None, MemberRole::Voter) => changes.push((member, "a member was added, as a voter")),
            (Some((_, MemberRole::Learner)), MemberRole::Voter) => {
                changes.push((member, "a learner was promoted: it is a voter now"));
            }
            (Some(_), _) => {}
        }
    }
    let gone = before.iter().filter(|(member, _)| find(now, member).is_none());
    changes.extend(gone.map(|(member, _)| (member, "a member was removed")));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::protocol::MemberId;

    fn member(id: u64, role: MemberRole) -> (Member, MemberRole) {
        (Member::new(MemberId(id), &format!("n{id}"), "h:1").unwrap(), role)
    }

    fn at(seconds: u64) -> Reading {
        let nanos = seconds * 1_000_000_000;
        Reading { boot: nanos, raw: nanos }
    }

    #[test]
    fn who_came_who_was_promoted_and_who_went_is_told() {
        use MemberRole::{Learner, Voter};
        let before = [member(1, Voter), member(2, Learner), member(3, Voter)];
        let now = [member(1, Voter), member(2, Voter), member(4, Learner), member(5, Voter)];
        let told: Vec<(String, &str)> =
            changes(&before, &now).into_iter().map(|(member, what)| (member.name.clone(), what)).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        for (name, word) in [("n2", "promoted"), ("n4", "learner"), ("n5", "voter"), ("n3", "removed")] {
            assert!(told.iter().any(|(told, what)| told == name && what.contains(word)), "{name}: {told:?}");
        }
        assert_eq!(changes(&now, &now), []);
    }

    #[test]
    fn a_long_time_without_a_leader_is_told_once_and_so_is_its_end() {
        let mut story = Story::of(&[member(1, MemberRole::Voter), member(2, MemberRole::Voter)]);
        assert_eq!((story.news(false, at(0)), story.news(false, at(4))), (None, None));
        assert_eq!((story.news(true, at(4)), story.news(false, at(5))), (None, None), "an election");
        assert_eq!(story.news(false, at(9)), None);
        assert_eq!(story.news(false, at(10)), Some(News::NobodyLeads));
        assert_eq!(story.news(false, at(99)), None);
        assert_eq!((story.news(true, at(99)), story.news(true, at(100))), (Some(News::LedAgain), None));
    }

    #[test]
    fn a_node_alone_has_no_majority_to_lose() {
        let mut story = Story::default();
        assert_eq!((story.news(false, at(0)), story.news(false, at(99))), (None, None), "blank");
        story.members(&[member(1, MemberRole::Voter)], false);
        assert_eq!((story.news(false, at(100)), story.news(false, at(199))), (None, None));
    }
}
