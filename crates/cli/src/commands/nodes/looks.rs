//! What each node knows by itself, without asking anybody, and which of them to ask first.
//!
//! A list may name nodes of an earlier life of the state, nodes that have lost the others, and nodes that are far behind. They all answer. The latest life is
//! that of the greatest epoch; of two lives with the same epoch the one of the node that stands first in the list is meant.

use leasehold_api::view::{LocalCluster, LocalMember};

/// What one node said, or why it said nothing.
#[derive(Debug)]
pub(in crate::commands) struct Look {
    /// The address that was asked.
    pub(in crate::commands) asked: String,
    pub(in crate::commands) found: Result<LocalCluster, String>,
}

/// Whether it is in touch with a leader, or leads.
pub(in crate::commands) fn has_leader(local: &LocalCluster) -> bool {
    local.ready || local.leader.is_some()
}

/// All looks of one round.
#[derive(Debug)]
pub(in crate::commands) struct Looks(pub(in crate::commands) Vec<Look>);

impl Looks {
    /// The nodes that answered and are of the latest life, the best to ask first: in touch with a leader, then by how far they are.
    pub(in crate::commands) fn best_first(&self) -> Vec<(&str, &LocalCluster)> {
        let latest = self.states().map(|(_, local)| local.epoch).max();
        let life = self.states().find(|(_, local)| Some(local.epoch) == latest);
        let Some((_, life)) = life else { return Vec::new() };
        let mut best: Vec<_> =
            self.states().filter(|(_, local)| local.incarnation == life.incarnation).collect();
        best.sort_by_key(|(_, local)| std::cmp::Reverse((has_leader(local), local.applied.0)));
        best
    }

    /// Those of another life than the latest, in words.
    pub(in crate::commands) fn other_lives(&self) -> Vec<String> {
        let best = self.best_first();
        let Some((_, latest)) = best.first() else { return Vec::new() };
        let others = self.states().filter(|(_, local)| local.incarnation != latest.incarnation);
        others
            .map(|(asked, local)| {
                let (life, epoch) = (&local.incarnation, local.epoch);
                format!("{asked} has another life of the state ({life}, epoch {epoch}) and was not asked")
            })
            .collect()
    }

    /// Where members are that the answers name and that were not asked.
    pub(in crate::commands) fn unasked(&self) -> Vec<String> {
        let mut unasked = Vec::new();
        for (_, local) in self.answers() {
            for LocalMember { id, address, .. } in &local.members {
                let is_asked = self.0.iter().any(|look| look.asked == *address);
                if !is_asked && !self.has_answered(id) && !unasked.contains(address) {
                    unasked.push(address.clone());
                }
            }
        }
        unasked
    }

    /// Adds a second round, without nodes that have answered in the first one by another address.
    pub(in crate::commands) fn and(mut self, second: Self) -> Self {
        for look in second.0 {
            if !look.found.as_ref().is_ok_and(|local| self.has_answered(&local.id)) {
                self.0.push(look);
            }
        }
        self
    }

    fn has_answered(&self, id: &str) -> bool {
        self.answers().any(|(_, local)| local.id == id)
    }

    /// Those who answered, and what they said.
    fn answers(&self) -> impl Iterator<Item = (&str, &LocalCluster)> {
        self.0.iter().filter_map(|look| Some((look.asked.as_str(), look.found.as_ref().ok()?)))
    }

    /// The same of those who have a state: one that waits to be added has none.
    fn states(&self) -> impl Iterator<Item = (&str, &LocalCluster)> {
        self.answers().filter(|(_, local)| !local.members.is_empty())
    }

    /// Anybody who answered, whatever it is.
    pub(in crate::commands) fn anybody(&self) -> Option<&str> {
        self.answers().next().map(|(asked, _)| asked)
    }

    /// Why those did not answer that did not.
    pub(in crate::commands) fn troubles(&self) -> String {
        let silent = self.0.iter().filter_map(|look| Some((&look.asked, look.found.as_ref().err()?)));
        silent.map(|(asked, why)| format!("{asked}: {why}")).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(asked: &str, life: &str, epoch: u16, leads: bool, applied: u64) -> Look {
        let member =
            LocalMember { name: "n1".into(), id: "1".into(), address: asked.into(), role: "voter".into() };
        let found = Ok(LocalCluster {
            name: None,
            id: "1".into(),
            advertised: asked.into(),
            incarnation: life.into(),
            epoch,
            leader: leads.then(|| "n1".to_owned()),
            ready: leads,
            applied: applied.into(),
            restore_wait_ms: None,
            members: vec![member],
        });
        Look { asked: asked.into(), found }
    }

    fn order(looks: &Looks) -> Vec<&str> {
        looks.best_first().into_iter().map(|(asked, _)| asked).collect()
    }

    #[test]
    fn members_that_the_list_does_not_name_are_asked_once_and_no_node_twice() {
        let named = |id: &str, address: &str| LocalMember {
            name: format!("n{id}"),
            id: id.into(),
            address: address.into(),
            role: "voter".into(),
        };
        let answer = |asked: &str, id: &str| {
            let mut look = look(asked, "x", 0, false, 1);
            let local = look.found.as_mut().unwrap();
            local.id = id.into();
            local.members = vec![named("1", "a"), named("2", "b"), named("3", "c"), named("4", "d")];
            look
        };
        let silent = |asked: &str| Look { asked: asked.into(), found: Err("no".into()) };
        // The second one answers by another address than the members know.
        let first = Looks(vec![answer("a", "1"), answer("alias", "2"), silent("c")]);
        assert_eq!(first.unasked(), ["d"]);
        let both = first.and(Looks(vec![answer("other", "1"), answer("d", "4"), silent("e")]));
        let asked: Vec<&str> = both.0.iter().map(|look| look.asked.as_str()).collect();
        assert_eq!(asked, ["a", "alias", "c", "d", "e"]);
    }

    #[test]
    fn the_latest_life_is_asked_and_of_it_whoever_is_in_touch_and_furthest() {
        let silent = Look { asked: "d".into(), found: Err("no".into()) };
        let looks = Looks(vec![
            look("old", "x", 0, true, 900),
            look("b", "y", 1, false, 70),
            look("c", "y", 1, true, 7),
            look("e", "y", 1, true, 9),
            silent,
        ]);
        assert_eq!(order(&looks), ["e", "c", "b"]);
        let others = looks.other_lives();
        assert_eq!(others, ["old has another life of the state (x, epoch 0) and was not asked"]);
        assert_eq!(looks.troubles(), "d: no");
    }

    #[test]
    fn of_two_lives_with_one_epoch_the_first_in_the_list_is_meant() {
        let looks = Looks(vec![look("a", "x", 1, false, 1), look("b", "y", 1, true, 9)]);
        assert_eq!(order(&looks), ["a"]);
    }

    #[test]
    fn a_node_without_a_state_is_nobody_to_ask() {
        let mut blank = look("a", "0", 0, false, 0);
        blank.found.as_mut().unwrap().members.clear();
        let looks = Looks(vec![blank]);
        assert_eq!((order(&looks), looks.anybody()), (vec![], Some("a")));
    }
}
