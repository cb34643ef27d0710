//! Exclusion: the times in which two holders of one resource believe in their lease do not overlap, unless both share.
//!
//! Holds while every clock keeps its bound and nobody revoked a lease with `--now`; beyond that, the fence has the last word.

use crate::check::{Check, Knowledge, Verdict, later};
use crate::story::{Grant, Story, Window};

/// What is checked.
pub const CHECK: Check =
    Check { name: "exclusion", about: "no two believe at once", unit: "windows", one: "window" };

/// Checks it.
pub fn check(story: &Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    for view in story.views(knowledge) {
        for grants in view.resources() {
            let mut windows: Vec<(Window, &Grant)> =
                grants.iter().flat_map(|grant| grant.windows().map(move |window| (window, *grant))).collect();
            windows.sort_by_key(|(window, _)| window.from);
            // The windows that reach furthest so far, of leases that share and of others; all before them are over, or were reported.
            let mut furthest: [Option<(Window, &Grant)>; 2] = [None, None];
            for (window, grant) in windows {
                let others = if grant.shared { &furthest[..1] } else { &furthest[..] };
                let before = others.iter().flatten().filter(|(_, before)| {
                    !std::ptr::eq(*before, grant) && view.judges(before.clock, grant.clock)
                });
                let before = before.max_by_key(|(before, _)| before.until);
                verdict.judged += u64::from(before.is_some());
                if let Some((earlier, before)) = before
                    && view.is_before(window.from, earlier.until)
                    && view.is_before(earlier.from, window.until)
                {
                    let words = || {
                        format!(
                            "{}: client {} believes in token {} until {}, and client {} in token {} from {} on: {} too long",
                            story.resource(grant.resource),
                            story.client(before.client),
                            before.token,
                            earlier.until,
                            story.client(grant.client),
                            grant.token,
                            window.from,
                            later(earlier.until, window.from)
                        )
                    };
                    verdict.add(words, &[Some(earlier.line), Some(window.line), Some(grant.granted().line)]);
                }
                let own = &mut furthest[usize::from(grant.shared)];
                if own.is_none_or(|(furthest, _)| furthest.until < window.until) {
                    *own = Some((window, grant));
                }
            }
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{confirmed, giving_back, granted, of_clock, shared, story};
    use std::time::Duration;

    fn found(lines: &[String]) -> u64 {
        check(&story(lines), Knowledge::default()).found
    }

    #[test]
    fn windows_that_overlap_are_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(800, 2, "r", 2)]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), confirmed(600, 1, 1), granted(1100, 2, "r", 2)]), 1);
    }

    #[test]
    fn the_lines_that_say_so_are_named() {
        let lines = [granted(0, 1, "r", 1), confirmed(600, 1, 1), granted(1100, 2, "r", 2)];
        let verdict = check(&story(&lines), Knowledge::default());
        let named: Vec<u64> = verdict.violations[0].lines.iter().map(|line| line.get()).collect();
        assert_eq!(named, [2, 3]);
        assert_eq!(
            verdict.violations[0].words,
            "r: client 1 believes in token 1 until 1500.000 ms, and client 2 in token 2 from 1100.000 ms on: 400ms too long"
        );
    }

    #[test]
    fn belief_that_comes_back_into_another_s_is_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(1000, 2, "r", 2), confirmed(1100, 1, 1)]), 1);
    }

    #[test]
    fn belief_given_up_or_run_out_is_in_nobody_s_way() {
        assert_eq!(found(&[granted(0, 1, "r", 1), giving_back(700, 1, 1), granted(800, 2, "r", 2)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(900, 2, "r", 2)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(1, 2, "s", 2)]), 0);
    }

    #[test]
    fn a_lone_holder_is_no_proof() {
        assert_eq!(check(&story(&[granted(0, 1, "r", 1)]), Knowledge::default()).judged, 0);
    }

    #[test]
    fn those_who_share_may_overlap_with_each_other_alone() {
        let together = [shared(0, 1, "r", 1, 1), shared(10, 2, "r", 2, 1)];
        assert_eq!(found(&together), 0);
        assert_eq!(found(&[&together[..], &[granted(20, 3, "r", 3)]].concat()), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), shared(10, 2, "r", 2, 2)]), 1);
    }

    #[test]
    fn clocks_are_compared_only_as_far_as_they_can_be() {
        let lines = [of_clock("a", &granted(0, 1, "r", 1)), of_clock("b", &granted(800, 2, "r", 2))];
        let found = |skew| {
            let verdict = check(&story(&lines), Knowledge { skew, ..Knowledge::default() });
            (verdict.judged, verdict.found)
        };
        assert_eq!(found(None), (0, 0));
        // They overlap by 100 ms: certain if clocks are apart by less.
        assert_eq!(found(Some(Duration::from_millis(99))), (1, 1));
        assert_eq!(found(Some(Duration::from_millis(100))), (1, 0));
    }

    #[test]
    fn a_pair_of_one_clock_is_judged_exactly_whatever_the_skew() {
        let lines = [
            of_clock("a", &granted(0, 1, "r", 1)),
            of_clock("a", &granted(899, 2, "r", 2)),
            of_clock("b", &granted(5000, 3, "r", 3)),
        ];
        let knowledge = Knowledge { skew: Some(Duration::from_secs(9)), ..Knowledge::default() };
        assert_eq!(check(&story(&lines), knowledge).found, 1);
    }
}
