//! How long a candidate that lost by its own lateness stays away: longer each time, so that one that cannot keep a lease under load
//! does not take it again and again.

use std::time::Duration;

use leasehold_core::holder::{Fraction, Reading};

/// A rest is at most this many ttls long.
const LONGEST_TTLS: u32 = 16;
/// Shortened at random by up to this part, so that candidates that were late together do not come back together.
const JITTER_PART: u32 = 5;
/// A term of so many ttls shows that the candidate can lead: what was before is forgotten.
const FORGOTTEN_AFTER_TTLS: u32 = 10;

/// What is remembered of the terms of one candidate.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// How often it was late since it last led for long.
    late: u32,
    /// Whether it has not rested since it was late the last time.
    owed: bool,
    /// When the present rest began and how long it is: a campaign that is given up and begun again does not begin it anew.
    begun: Option<(Reading, Duration)>,
}

impl Rest {
    /// A term is over.
    pub(super) fn after_term(&mut self, lasted: Duration, was_late: bool, ttl: Duration) {
        if lasted >= ttl * FORGOTTEN_AFTER_TTLS {
            self.late = 0;
            self.owed = false;
        }
        if was_late {
            self.late = self.late.saturating_add(1);
            self.owed = true;
            self.begun = None;
        }
    }

    /// Whether a rest is owed.
    pub(super) const fn is_owed(&self) -> bool {
        self.owed
    }

    /// The rest is over: none is owed before the next lateness.
    pub(super) fn taken(&mut self) {
        self.owed = false;
        self.begun = None;
    }

    /// How much of the rest that is owed is left.
    pub(super) fn left(&mut self, ttl: Duration, jitter: Fraction, now: Reading) -> Duration {
        let length = self.length(ttl, jitter);
        let (begun, length) = *self.begun.get_or_insert((now, length));
        length.saturating_sub(now.since(begun).greater())
    }

    /// How long to stay away now: nothing, unless the last term was lost by lateness.
    fn length(&self, ttl: Duration, jitter: Fraction) -> Duration {
        if !self.owed {
            return Duration::ZERO;
        }
        let ttls = 2_u32.saturating_pow(self.late.saturating_sub(1)).min(LONGEST_TTLS);
        let whole = ttl * ttls;
        whole - jitter.of(whole / JITTER_PART)
    }
}

/// A random part of one.
pub(crate) fn fraction() -> Fraction {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    Fraction::from_bits(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);
    const NONE: Fraction = Fraction::from_bits(0);

    #[test]
    fn a_candidate_that_was_never_late_does_not_rest() {
        let mut rest = Rest::default();
        rest.after_term(TTL, false, TTL);
        assert_eq!(rest.length(TTL, NONE), Duration::ZERO);
    }

    #[test]
    fn every_lateness_doubles_the_rest_up_to_its_limit() {
        let mut rest = Rest::default();
        let lengths: Vec<u64> = (0..7)
            .map(|_| {
                rest.after_term(TTL, true, TTL);
                rest.length(TTL, NONE).as_secs()
            })
            .collect();
        assert_eq!(lengths, [10, 20, 40, 80, 160, 160, 160]);
    }

    #[test]
    fn a_long_term_is_a_new_beginning_even_if_it_ends_late() {
        let mut rest = Rest::default();
        for _ in 0..4 {
            rest.after_term(TTL, true, TTL);
        }
        rest.taken();
        assert_eq!(rest.length(TTL, NONE), Duration::ZERO, "a rest is taken once");
        rest.after_term(TTL * 9, true, TTL);
        assert_eq!(rest.length(TTL, NONE), TTL * 16, "shorter terms forget nothing");
        rest.after_term(TTL * 10, true, TTL);
        assert_eq!(rest.length(TTL, NONE), TTL);
    }

    #[test]
    fn a_rest_that_is_owed_from_before_a_long_term_is_forgotten() {
        let mut rest = Rest::default();
        rest.after_term(TTL, true, TTL);
        rest.after_term(TTL * 10, false, TTL);
        assert_eq!(rest.length(TTL, NONE), Duration::ZERO);
    }

    #[test]
    fn a_rest_goes_on_where_it_was() {
        let at = |seconds: u64| Reading { boot: seconds * 1_000_000_000, raw: seconds * 1_000_000_000 };
        let mut rest = Rest::default();
        rest.after_term(TTL, true, TTL);
        assert_eq!(rest.left(TTL, NONE, at(100)), TTL);
        assert_eq!(rest.left(TTL, Fraction::from_bits(u32::MAX), at(104)), TTL - Duration::from_secs(4));
        rest.taken();
        rest.after_term(TTL, true, TTL);
        assert_eq!(rest.left(TTL, NONE, at(105)), TTL * 2, "another rest is another");
    }

    #[test]
    fn jitter_takes_at_most_a_fifth_off() {
        let mut rest = Rest::default();
        rest.after_term(TTL, true, TTL);
        let shortest = rest.length(TTL, Fraction::from_bits(u32::MAX));
        assert!(shortest >= TTL * 4 / 5 && shortest < TTL, "{shortest:?}");
    }
}
