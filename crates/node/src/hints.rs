//! Wishes for the next renewal, so that renewals which came together do not go on coming together.
//!
//! After a failover every client attaches and renews at about the same moment, and a schedule with a little jitter keeps them
//! together for many rounds. Renewals that come in a bunch are answered with a wish for the next one, spread over a third of the session's
//! ttl. Nothing depends on a wish: it is not in the log, it may be lost, and the client hears it only as far as its own schedule
//! stays safe.

use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::{Millis, RenewalNumber, SessionId};

/// Renewals are counted over this long: a few turns with a slow disk, and so short that a bunch stands out.
const WINDOW: Duration = Duration::from_millis(100);
/// Renewals that come this many times as densely as an even spread would give are a bunch. A third above the even number is common
/// by chance already with a hundred in a window; at three times chance is out of the question.
const BUNCH: u128 = 3;
/// A session renews about this often in a ttl if its client uses the defaults.
const RENEWALS_PER_TTL: u128 = 3;
/// So few renewals in a window are no burden in whatever order they come, and a wish for each would be one.
pub(crate) const RENEWALS_AT_ONCE: usize = 32;

/// Counts renewals, and spreads them.
#[derive(Debug)]
pub(crate) struct Hints {
    at_once: usize,
    /// When the present window began, and the renewals in it so far.
    window: Option<(Reading, usize)>,
}

impl Hints {
    pub(crate) const fn new(at_once: usize) -> Self {
        Self { at_once, window: None }
    }

    /// So many renewals were applied in one entry.
    pub(crate) fn count(&mut self, renewals: usize, now: Reading) {
        if renewals == 0 {
            return;
        }
        let (began, before) =
            self.window.filter(|(began, _)| now.since(*began).greater() < WINDOW).unwrap_or((now, 0));
        self.window = Some((began, before + renewals));
    }

    /// Whether there are so many in the present window that they may be a bunch.
    pub(crate) fn is_many(&self) -> bool {
        self.window.is_some_and(|(_, renewals)| renewals > self.at_once)
    }

    /// In how long the next renewal of this session is wished for; nothing if the present ones are not a bunch. With so many
    /// sessions of this ttl an even spread would give their part of a window. Where ttls differ this is a guess, and a wish too many or too
    /// few does no harm.
    pub(crate) fn wish(
        &self,
        sessions: usize,
        session: SessionId,
        number: RenewalNumber,
        ttl: Millis,
    ) -> Option<Millis> {
        let (_, renewals) = self.window?;
        let even = sessions as u128 * RENEWALS_PER_TTL * WINDOW.as_millis();
        let is_bunch = renewals > self.at_once && renewals as u128 * u128::from(ttl.get()) > BUNCH * even;
        // From a sixth of the ttl to a half: around the third at which it would come anyway.
        let spread = (u128::from(ttl.get() / 3) * u128::from(mixed(session, number))) >> 64;
        is_bunch.then(|| Millis::new(ttl.get() / 6 + u64::try_from(spread).unwrap_or(0)))
    }
}

/// A number that looks random, the same on every machine: the finalizer of splitmix64 over both.
fn mixed(session: SessionId, number: RenewalNumber) -> u64 {
    let mut bits = session.get() ^ number.get().rotate_left(32);
    for multiplier in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(multiplier);
        bits ^= bits >> 27;
    }
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Millis = Millis::new(10_000);

    fn at(millis: u64) -> Reading {
        Reading { boot: 1_000_000_000, raw: 7 }.plus(Duration::from_millis(millis))
    }

    fn wish(hints: &Hints, sessions: usize, session: u64) -> Option<Millis> {
        hints.wish(sessions, SessionId::from_u64(session), RenewalNumber::NONE.next(), TTL)
    }

    #[test]
    fn an_even_spread_and_a_few_renewals_get_no_wish() {
        let mut hints = Hints::new(RENEWALS_AT_ONCE);
        assert_eq!(wish(&hints, 1, 1), None, "nothing was counted");
        // A lone session, and as many at once as are never too many.
        hints.count(RENEWALS_AT_ONCE, at(0));
        assert_eq!(wish(&hints, 1, 1), None);
        // Two thousand sessions renew 60 times in a window; 180 are three times that.
        hints.count(180 - RENEWALS_AT_ONCE, at(99));
        assert_eq!(wish(&hints, 2_000, 1), None);
        hints.count(1, at(99));
        assert!(wish(&hints, 2_000, 1).is_some());
    }

    #[test]
    fn a_bunch_is_over_with_its_window() {
        let mut hints = Hints::new(RENEWALS_AT_ONCE);
        hints.count(2_000, at(0));
        assert!(wish(&hints, 2_000, 1).is_some());
        hints.count(0, at(99));
        hints.count(60, at(100));
        assert_eq!(wish(&hints, 2_000, 1), None);
    }

    #[test]
    fn wishes_are_spread_evenly_from_a_sixth_of_the_ttl_to_a_half() {
        let mut hints = Hints::new(RENEWALS_AT_ONCE);
        hints.count(10_000, at(0));
        let mut tenths = [0_u32; 10];
        for session in 0..10_000 {
            let wish = wish(&hints, 10_000, session).expect("they came at once").get();
            assert!((1_666..5_000).contains(&wish), "{wish} ms");
            tenths[usize::try_from((wish - 1_666) * 10 / 3_334).unwrap()] += 1;
        }
        assert!(tenths.iter().all(|count| (900..1_100).contains(count)), "{tenths:?}");
    }

    #[test]
    fn the_same_session_gets_another_wish_for_its_next_renewal() {
        let mut hints = Hints::new(RENEWALS_AT_ONCE);
        hints.count(1_000, at(0));
        let session = SessionId::from_u64(5);
        let first = RenewalNumber::NONE.next();
        assert_ne!(hints.wish(9, session, first, TTL), hints.wish(9, session, first.next(), TTL));
    }
}
