//! Renewals are honoured: after a renewal was confirmed, nobody else is granted the resource before its ttl has passed since it
//! was *sent*, unless the holder gave it back or an operator took it. A restore is no excuse: it waits for whoever may still believe.
//!
//! Stricter than exclusion, and independent of the margin: this is what the service owes, whatever the holder makes of it.

use crate::check::overlap::{self, Span};
use crate::check::{Check, Knowledge, Verdict, names};
use crate::story::{Grant, Story};

/// What is checked.
pub const CHECK: Check = Check {
    name: "renewals",
    about: "confirmed renewals are honoured for their ttl",
    unit: "grants",
    one: "grant",
};

/// Checks it.
pub fn check<'a>(story: &'a Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    for view in story.views(knowledge) {
        for grants in view.families() {
            let owed = |grant: &&'a Grant| {
                let line = grant.promised().line;
                Span { from: grant.granted().at, until: grant.owed(), grant, line }
            };
            let overlaps = overlap::find(view, grants.iter().map(owed).collect());
            verdict.judged += overlaps.judged;
            // Of two clocks nobody knows which grant was the first; that both are owed something at once is wrong either way.
            for (first, second) in overlaps.pairs {
                let (before, grant) = (first.grant, second.grant);
                let words = || {
                    format!(
                        "{}: token {} of client {} is promised until {}, and client {} was told at {} that it holds token {}",
                        names(story, before, grant),
                        before.token,
                        story.client(before.client),
                        first.until,
                        story.client(grant.client),
                        grant.granted().at,
                        grant.token
                    )
                };
                verdict.add(words, &[Some(first.line), Some(grant.granted().line)]);
            }
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted::{confirmed, giving_back, granted, lost, of_clock, restored, shared, story};
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
    fn a_restore_that_does_not_wait_is_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), restored(500, 1, 1), granted(600, 2, "r", 2)]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), restored(500, 1, 1), granted(1000, 2, "r", 2)]), 0);
    }

    #[test]
    fn slots_are_owed_beside_each_other_and_not_beside_the_whole() {
        assert_eq!(found(&[granted(0, 1, "r#0", 1), granted(950, 2, "r#1", 2)]), 0);
        assert_eq!(found(&[granted(0, 1, "r#0", 1), granted(950, 2, "r", 2)]), 1);
    }

    #[test]
    fn between_clocks_nobody_hides_another() {
        let found = |lines: &[String]| {
            check(&story(lines), Knowledge { skew: Some(Duration::from_millis(10)) }).found
        };
        // The second of those who share is promised most and may have come after the third had gone.
        let shares = [
            of_clock("a", &shared(0, 1, "r", 1, 1)),
            of_clock("a", &shared(99, 2, "r", 2, 1)),
            of_clock("b", &granted(100, 3, "r", 3)),
            of_clock("b", &giving_back(105, 3, 3)),
        ];
        assert_eq!(found(&shares), 1);
        // One of the own clock is promised most.
        let own = [
            of_clock("a", &granted(0, 1, "r", 1)),
            of_clock("b", &granted(50, 2, "r", 2)),
            of_clock("b", &granted(100, 3, "r", 3)),
        ];
        assert_eq!(found(&own), 3, "two between clocks, one within");
    }

    #[test]
    fn those_who_share_are_granted_it_together() {
        let together = [shared(0, 1, "r", 1, 1), shared(10, 2, "r", 2, 1)];
        assert_eq!(found(&together), 0);
        // Both are owed it.
        assert_eq!(found(&[&together[..], &[granted(950, 3, "r", 3)]].concat()), 2);
    }

    #[test]
    fn of_two_clocks_the_one_that_is_behind_is_not_accused() {
        // By its own clock the second came 5 ms after the first and gave it back 1 ms later; it may have come and gone before.
        let lines = [
            of_clock("a", &granted(100, 1, "r", 2)),
            of_clock("b", &granted(105, 2, "r", 1)),
            of_clock("b", &giving_back(106, 2, 1)),
        ];
        let found = |skew| check(&story(&lines), Knowledge { skew: Some(skew) }).found;
        assert_eq!(found(Duration::from_millis(10)), 0);
        assert_eq!(found(Duration::from_millis(5)), 1);
    }
}
