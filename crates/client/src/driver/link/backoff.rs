//! How long to wait between two attempts to connect.

use std::time::Duration;

/// Pauses that grow by half from the shortest to the longest: an election takes half a second, and the pause that runs at its end is to
/// be a small part of that. Each is drawn between its half and its whole, so that clients that lost one server at the same moment
/// do not come back at the same moment.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    shortest: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) const fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, next: shortest }
    }

    /// The next pause. `draw` is a random part of 2^32.
    pub(super) fn pause(&mut self, draw: u32) -> Duration {
        let half = self.next / 2;
        self.next = (self.next * 3 / 2).min(self.longest);
        half + half.mul_f64(f64::from(draw) / f64::from(u32::MAX))
    }

    /// An attempt was good: the next trouble is a new one.
    pub(super) fn reset(&mut self) {
        self.next = self.shortest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(draw: u32) -> Vec<u128> {
        let mut backoff = Backoff::new(Duration::from_millis(16), Duration::from_millis(100));
        (0..7).map(|_| backoff.pause(draw).as_millis()).collect()
    }

    #[test]
    fn pauses_grow_up_to_the_longest() {
        assert_eq!(pauses(u32::MAX), [16, 24, 36, 54, 81, 100, 100]);
    }

    #[test]
    fn no_draw_makes_a_pause_shorter_than_its_half() {
        assert_eq!(pauses(0), [8, 12, 18, 27, 40, 50, 50]);
    }

    /// A thousand clients of a service that is gone for two seconds.
    #[test]
    fn attempts_of_many_that_were_cut_off_at_one_moment_are_spread() {
        let mut per_10_ms = [0_u32; 200];
        for client in 0..1_000_u32 {
            let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(500));
            let mut at = Duration::ZERO;
            for attempt in 0.. {
                // Spread evenly over all that can be drawn.
                at += backoff.pause((client * 31 + attempt).wrapping_mul(2_654_435_761));
                if at >= Duration::from_millis(2_000) {
                    break;
                }
                per_10_ms[usize::try_from(at.as_millis() / 10).expect("within two seconds")] += 1;
            }
        }
        // The first attempts come in waves, as short as the pauses are. After half a second no more than a tenth is left together.
        let most = per_10_ms[50..].iter().max();
        assert!(most.is_some_and(|most| *most < 120), "{most:?} of a thousand within 10 ms: {per_10_ms:?}");
    }

    #[test]
    fn an_election_ends_within_a_short_pause() {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(500));
        let (mut passed, mut pause) = (Duration::ZERO, Duration::ZERO);
        while passed < Duration::from_millis(600) {
            pause = backoff.pause(u32::MAX);
            passed += pause;
        }
        assert!(
            passed < Duration::from_millis(800) && pause < Duration::from_millis(260),
            "{passed:?}, {pause:?}"
        );
    }

    #[test]
    fn a_good_attempt_begins_again_with_the_shortest() {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(500));
        for _ in 0..5 {
            backoff.pause(0);
        }
        backoff.reset();
        assert_eq!(backoff.pause(u32::MAX), Duration::from_millis(10));
    }
}
