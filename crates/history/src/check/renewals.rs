//! Renewals are honoured: after a renewal was confirmed, nobody else is granted the resource before its ttl has passed since it
//! was *sent*, unless the holder gave it back or an operator took it.
//!
//! Stricter than exclusion, and independent of the margin: this is what the service owes, whatever the holder makes of it.

use crate::check::{Check, Knowledge, Verdict};
use crate::story::{Grant, Story};

/// What is checked.
pub const CHECK: Check = Check {
    name: "renewals",
    about: "confirmed renewals are honoured for their ttl",
    unit: "grants",
    one: "grant",
};

/// Checks it.
pub fn check(story: &Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    for view in story.views(knowledge) {
        for grants in view.resources() {
            // To which of the leases before, of those that share and of the others, the service owes something for longest.
            let mut longest: [Option<&Grant>; 2] = [None, None];
            for grant in grants {
                let others = if grant.shared { &longest[..1] } else { &longest[..] };
                let before = others.iter().flatten().filter(|before| view.judges(before.clock, grant.clock));
                let before = before.max_by_key(|before| before.owed());
                verdict.judged += u64::from(before.is_some());
                // Of two clocks nobody knows which grant was the first; that both are owed something at once is wrong either way.
                if let Some(before) = before
                    && view.is_before(grant.granted().at, before.owed())
                    && view.is_before(before.granted().at, grant.owed())
                {
                    let words = || {
                        format!(
                            "{}: token {} of client {} is promised until {}, and client {} was told at {} that it holds token {}",
                            story.resource(grant.resource),
                            before.token,
                            story.client(before.client),
                            before.owed(),
                            story.client(grant.client),
                            grant.granted().at,
                            grant.token
                        )
                    };
                    verdict.add(words, &[Some(before.promised().line), Some(grant.granted().line)]);
                }
                let own = &mut longest[usize::from(grant.shared)];
                if own.is_none_or(|longest| longest.owed() < grant.owed()) {
                    *own = Some(grant);
                }
            }
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{confirmed, giving_back, granted, lost, of_clock, shared, story};
    use std::time::Duration;

    fn found(lines: &[String]) -> u64 {
        check(&story(lines), Knowledge::default()).found
    }

    #[test]
    fn a_grant_within_a_confirmed_ttl_is_found() {
        // Belief ended at 1500, so exclusion sees nothing wrong; the ttl ends at 1600.
        let lines = [granted(0, 1, "r", 1), confirmed(600, 1, 1), granted(1550, 2, "r", 2)];
        let verdict = check(&story(&lines), Knowledge::default());
        assert_eq!((verdict.judged, verdict.found), (1, 1));
        let named: Vec<u64> = verdict.violations[0].lines.iter().map(|line| line.get()).collect();
        assert_eq!(named, [2, 3]);
    }

    #[test]
    fn a_renewal_confirmed_after_another_has_the_resource_is_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(1001, 2, "r", 2), confirmed(1002, 1, 1)]), 1);
    }

    #[test]
    fn an_ending_that_the_service_alone_decided_excuses_nothing() {
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(500, 1, 1, false), granted(600, 2, "r", 2)]), 1);
    }

    #[test]
    fn what_was_given_back_or_revoked_is_free() {
        assert_eq!(found(&[granted(0, 1, "r", 1), giving_back(10, 1, 1), granted(20, 2, "r", 2)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(10, 1, 1, true), granted(20, 2, "r", 2)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(1000, 2, "r", 2)]), 0);
    }

    #[test]
    fn those_who_share_are_granted_it_together() {
        let together = [shared(0, 1, "r", 1, 1), shared(10, 2, "r", 2, 1)];
        assert_eq!(found(&together), 0);
        assert_eq!(found(&[&together[..], &[granted(950, 3, "r", 3)]].concat()), 1);
    }

    #[test]
    fn of_two_clocks_the_one_that_is_behind_is_not_accused() {
        // By its own clock the second came 5 ms after the first and gave it back 1 ms later; it may have come and gone before.
        let lines = [
            of_clock("a", &granted(100, 1, "r", 2)),
            of_clock("b", &granted(105, 2, "r", 1)),
            of_clock("b", &giving_back(106, 2, 1)),
        ];
        let found =
            |skew| check(&story(&lines), Knowledge { skew: Some(skew), ..Knowledge::default() }).found;
        assert_eq!(found(Duration::from_millis(10)), 0);
        assert_eq!(found(Duration::from_millis(5)), 1);
    }
}
