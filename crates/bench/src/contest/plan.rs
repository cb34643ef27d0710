//! What is measured, in which order.

use crate::peers::Peer;
use crate::workloads::{Connections, Work};

/// What is measured.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Which systems, ourselves among them.
    pub peers: Vec<Peer>,
    /// Letters of workloads; none means all.
    pub letters: Vec<char>,
    /// With how many nodes; none means one and three.
    pub nodes: Vec<usize>,
    /// How often.
    pub repeats: usize,
    /// Small sizes and short windows: a test of the harness, no measurement.
    pub quick: bool,
}

/// Works that one start of one system does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// Which system.
    pub peer: Peer,
    /// With how many nodes.
    pub nodes: usize,
    /// Which repeat, from zero.
    pub repeat: usize,
    /// In this order.
    pub works: Vec<Work>,
}

impl Plan {
    /// All rounds, in order: systems alternate, and every second repeat turns their order.
    pub fn rounds(&self) -> Vec<Round> {
        let mut rounds = Vec::new();
        for works in self.groups() {
            for nodes in
                [1, 3].into_iter().filter(|nodes| self.nodes.is_empty() || self.nodes.contains(nodes))
            {
                for repeat in 0..self.repeats {
                    let mut peers = self.peers.clone();
                    if repeat % 2 == 1 {
                        peers.reverse();
                    }
                    for peer in peers {
                        let works =
                            works.iter().copied().filter(|work| peer.does(*work, nodes)).collect::<Vec<_>>();
                        if !works.is_empty() {
                            rounds.push(Round { peer, nodes, repeat, works });
                        }
                    }
                }
            }
        }
        rounds
    }

    /// Works that are done by one start of a system. What leaves much behind, or a node dead, has a start of its own.
    fn groups(&self) -> Vec<Vec<Work>> {
        let sized = |quick: usize, full: usize| if self.quick { quick } else { full };
        let ttl_ms = if self.quick { 3_000 } else { 5_000 };
        let leases = sized(200, 10_000);
        let mut all = vec![self.cycles(), self.renewals()];
        all.push(vec![Work::Handover { handovers: sized(50, 1_000) }]);
        all.push(vec![
            Work::Expiry { ttl_ms, kill_leader: false },
            Work::Expiry { ttl_ms, kill_leader: true },
        ]);
        all.push(vec![Work::MassExpiry { leases, ttl_ms }]);
        all.push(vec![Work::MassExpiry {
            leases: leases * 10,
            ttl_ms: if self.quick { ttl_ms } else { 30_000 },
        }]);
        all.push(vec![Work::Many { leases: sized(500, 100_000), session_each: false }]);
        all.push(vec![Work::Many { leases: sized(500, 100_000), session_each: true }]);
        let leases = sized(1_000, 1_000_000);
        all.push(vec![Work::Many { leases, session_each: false }, Work::Restart { leases }]);
        all.push(vec![Work::FanOut { watchers: sized(20, 1_000), changes: sized(5, 100) }]);
        let wanted = |work: &Work| self.letters.is_empty() || self.letters.contains(&work.letter());
        // What comes before something in its group is what that is measured with: a restart with very many leases needs them.
        for works in &mut all {
            let kept = works.iter().rposition(wanted).map_or(0, |last| last + 1);
            works.truncate(kept);
        }
        all.retain(|works| !works.is_empty());
        all
    }

    fn cycles(&self) -> Vec<Work> {
        let sizes: &[usize] = if self.quick { &[1, 8] } else { &[1, 16, 64, 256] };
        let own = sizes.iter().map(|&clients| Work::Cycles { clients, connections: Connections::Own });
        // One client over several connections is one client.
        let shared =
            sizes[1..].iter().map(|&clients| Work::Cycles { clients, connections: Connections::Shared });
        own.chain(shared).collect()
    }

    fn renewals(&self) -> Vec<Work> {
        let sizes: &[usize] = if self.quick { &[1, 64] } else { &[1, 64, 1000, 100_000] };
        sizes.iter().map(|&sessions| Work::Renewals { sessions }).collect()
    }

    /// Warm-up and window in milliseconds.
    pub fn times(&self) -> (u64, u64) {
        if self.quick { (50, 250) } else { (1_000, 2_000) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_never_measured_without_the_leases_that_it_is_measured_with() {
        let works = |letters: &[char]| {
            Plan { letters: letters.to_vec(), repeats: 1, ..Plan::default() }.groups().concat()
        };
        let (leases, session_each) = (1_000_000, false);
        assert_eq!(works(&['I']), [Work::Many { leases, session_each }, Work::Restart { leases }]);
        assert!(works(&['F']).iter().all(|work| work.letter() == 'F'));
        assert_eq!(works(&['F']).len(), 3);
    }
}
