//! How steadily the loop runs, and how the clocks of this machine do: for metrics, and for a line in the log when what is measured does not
//! go with the shortest ttl in use. Nothing is decided by it.

use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::limits::LONGEST_MAX_TTL;
use leasehold_core::measure::{Broken, ClockRates, Measured, Pauses, Rates, Said, judge};
use leasehold_core::numbers::{Ask, Numbers};
use leasehold_core::{Drift, Millis};
use leasehold_node::{Buckets, Node};

use crate::caller::Steadiness;

/// What is warned of is of the last one to two times this.
const GENERATION: Duration = Duration::from_secs(60);
/// How often the clocks are compared and the figures judged.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Microseconds by which a turn of the loop came too late.
const PAUSE_BOUNDS: &[u64] = &[
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
    10_000_000, 60_000_000,
];

/// A turn that takes so long is worth a line: two more, and followers would look for another leader.
const LONG_TURN: Duration = Duration::from_millis(250);

/// Says so when a turn took long: what was taken in, and what the node had to say when.
pub(super) fn warn_of_a_long_turn(began: Reading, inputs: usize, (outputs, turned): (usize, Reading)) {
    let ended = leasehold_clock::read();
    if ended.since(began).greater() >= LONG_TURN {
        let node_ms = turned.since(began).greater().as_millis();
        let rest_ms = ended.since(turned).greater().as_millis();
        tracing::warn!(inputs, outputs, node_ms, rest_ms, "a turn of this node's loop took long");
    }
}

/// What was seen of the loop and the clocks.
#[derive(Debug)]
pub(super) struct Pulse {
    /// The last turn, and how long the loop meant to sleep after it.
    turned: Reading,
    asked: Duration,
    looked: Reading,
    late_micros: Buckets,
    pauses: Pauses,
    clocks: ClockRates,
    said: [Said; Broken::NAMES.len()],
}

impl Pulse {
    pub(super) fn new() -> Self {
        let clocks = leasehold_clock::measure();
        let now = clocks.reading;
        Self {
            turned: now,
            asked: Duration::ZERO,
            looked: now,
            late_micros: Buckets::new(PAUSE_BOUNDS),
            pauses: Pauses::new(GENERATION, now),
            clocks: ClockRates::new(clocks),
            said: Default::default(),
        }
    }

    /// The loop goes to sleep for so long, if nothing arrives before.
    pub(super) fn sleeps(&mut self, length: Duration) {
        self.asked = length;
    }

    /// The next turn begins: whatever passed since the last beyond the sleep is late, be it that the process stood still or that the turn was long.
    pub(super) fn turns(&mut self, now: Reading) {
        let late = self.pauses.slept(self.asked, now.since(self.turned).greater(), now);
        self.late_micros.add(u64::try_from(late.as_micros()).unwrap_or(u64::MAX));
        self.turned = now;
    }

    /// Once a second: compares the clocks, and says what breaks an inequality now and did not before.
    pub(super) fn look(&mut self, node: &mut Node, now: Reading) {
        if now.since(self.looked).greater() < LOOK_EVERY {
            return;
        }
        self.looked = now;
        self.clocks.look(leasehold_clock::measure());
        self.pauses.age(now);
        let commit_time = node.recent_commit_time(now);
        let table = node.table();
        // Only whoever leads keeps clients waiting.
        let ttl = table.smallest_ttl().filter(|_| node.is_serving());
        let measured = Measured {
            round_trip: commit_time,
            pause: Some(self.pauses.longest()),
            rate_ppm: self.clocks.rates().map(|rates| rates.monotonic_ppm.unsigned_abs()),
        };
        let broken = broken(ttl, table.config().drift, &measured);
        for (said, broken) in self.said.iter_mut().zip(broken) {
            if said.look(broken.is_some(), now)
                && let Some(broken) = broken
            {
                let inequality = broken.name();
                tracing::warn!(
                    inequality,
                    "what this node measures does not go with the shortest ttl in use and the default numbers (a round trip here is the \
                     time of a commit): {broken}"
                );
            }
        }
    }

    pub(super) fn show(&self) -> Steadiness {
        Steadiness {
            late_micros: self.late_micros.clone(),
            longest_pause: self.pauses.longest(),
            clock_disagreement_ppm: self.clocks.rates().map_or(0, Rates::disagreement_ppm),
            wall_steps: self.clocks.steps(),
            wall_stepped: self.clocks.stepped(),
        }
    }
}

/// What these figures break for sessions of this ttl that leave the rest to the defaults, by kind.
fn broken(ttl: Option<Millis>, drift: Drift, measured: &Measured) -> [Option<Broken>; Broken::NAMES.len()] {
    let mut broken = [None; Broken::NAMES.len()];
    let ask = ttl.map(|ttl| Ask { drift, max_ttl: LONGEST_MAX_TTL, ..Ask::for_ttl(ttl) });
    // Whoever asks for a ttl that cannot be held with the defaults has other numbers, which nobody here knows.
    if let Some(Ok(numbers)) = ask.map(Numbers::check) {
        for found in judge(&numbers, measured) {
            broken[found.kind()] = Some(found);
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(ttl: Option<u64>, round_trip: u64, pause: u64) -> Vec<&'static str> {
        let millis = |length| Some(Duration::from_millis(length));
        let measured = Measured { round_trip: millis(round_trip), pause: millis(pause), rate_ppm: Some(20) };
        let broken = broken(ttl.map(Millis::new), Drift::DEFAULT, &measured);
        broken.iter().flatten().map(Broken::name).collect()
    }

    /// There to find: judged by the default ttl and not by the one in use.
    #[test]
    fn figures_are_judged_by_the_shortest_ttl_in_use() {
        assert_eq!(named(Some(10_000), 50, 400), [""; 0]);
        assert_eq!(named(Some(500), 50, 400), ["pause"]);
        assert_eq!(named(Some(500), 120, 10), ["round-trip"]);
        assert_eq!(named(Some(500), 120, 400), ["round-trip", "pause"]);
        assert_eq!(named(None, 9_000, 9_000), [""; 0]);
    }

    /// There to find: a turn that came in time for a message, counted as late; a pause that is counted from the wrong turn.
    #[test]
    fn what_passes_beyond_the_sleep_is_late() {
        let mut pulse = Pulse::new();
        let begun = pulse.turned;
        let at = |ms| begun.plus(Duration::from_millis(ms));
        for (sleep, turn) in [(20, 15), (20, 35), (20, 1_055), (0, 1_057)] {
            pulse.sleeps(Duration::from_millis(sleep));
            pulse.turns(at(turn));
        }
        let shown = pulse.show();
        assert_eq!(shown.longest_pause, Duration::from_secs(1));
        let counts: Vec<_> = shown.late_micros.counts().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counts, [(1_000, 2), (2_000, 1), (1_000_000, 1)]);
    }
}
