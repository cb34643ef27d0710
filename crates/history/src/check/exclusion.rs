//! Exclusion: the times in which two holders of one resource believe in their lease do not overlap, unless both share or have two
//! slots of it.
//!
//! Holds while every clock keeps its bound and nobody revoked a lease with `--now`; beyond that, the fence has the last word.

use crate::check::overlap::{self, Span};
use crate::check::{Check, Knowledge, Verdict, later, names};
use crate::story::{Story, Window};

/// What is checked.
pub const CHECK: Check =
    Check { name: "exclusion", about: "no two believe at once", unit: "windows", one: "window" };

/// Checks it.
pub fn check(story: &Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    for view in story.views(knowledge) {
        for grants in view.families() {
            let spans = grants.iter().flat_map(|grant| {
                let span = |Window { from, until, line }| Span { from, until, grant, line };
                grant.windows().map(span)
            });
            let overlaps = overlap::find(view, spans.collect());
            verdict.judged += overlaps.judged;
            for (first, second) in overlaps.pairs {
                let (before, grant) = (first.grant, second.grant);
                let words = || {
                    format!(
                        "{}: client {} believes in token {} until {}, and client {} in token {} from {} on: {} too long",
                        names(story, before, grant),
                        story.client(before.client),
                        before.token,
                        first.until,
                        story.client(grant.client),
                        grant.token,
                        second.from,
                        later(first.until, second.from)
                    )
                };
                verdict.add(words, &[Some(first.line), Some(second.line), Some(grant.granted().line)]);
            }
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted::{confirmed, giving_back, granted, of_clock, shared, story};
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
        // With each of the two.
        assert_eq!(found(&[&together[..], &[granted(20, 3, "r", 3)]].concat()), 2);
        assert_eq!(found(&[granted(0, 1, "r", 1), shared(10, 2, "r", 2, 2)]), 1);
    }

    #[test]
    fn slots_are_held_together_and_never_beside_the_whole() {
        assert_eq!(found(&[granted(0, 1, "r#0", 1), granted(10, 2, "r#1", 2)]), 0);
        assert_eq!(found(&[granted(0, 1, "r#0", 1), granted(10, 2, "r#0", 2)]), 1);
        assert_eq!(found(&[granted(0, 1, "r#0", 1), granted(10, 2, "r", 2)]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(10, 2, "r#0", 2), granted(20, 3, "r#1", 3)]), 2);
        assert_eq!(found(&[granted(0, 1, "r#0", 1), granted(10, 2, "s", 2)]), 0);
        let lines = [granted(0, 1, "r#0", 1), granted(10, 2, "r", 2)];
        let words = check(&story(&lines), Knowledge::default()).violations.remove(0).words;
        assert!(words.starts_with("r#0 and r: client 1 believes"), "{words}");
    }

    #[test]
    fn one_who_gave_back_and_believes_again_is_in_the_way() {
        let lines = [granted(0, 1, "r", 1), giving_back(100, 1, 1), granted(200, 2, "r", 2)];
        assert_eq!(found(&lines), 0);
        assert_eq!(found(&[&lines[..], &[confirmed(150, 1, 1)]].concat()), 1);
    }

    #[test]
    fn between_clocks_nobody_hides_another() {
        let skew = Knowledge { skew: Some(Duration::from_millis(10)) };
        // The second of those who share reaches furthest and may not overlap at all: it began within the skew.
        let until = |line: String, at: u64| {
            line.replace("until_ns\":", &format!("until_ns\":{}, \"x\":", at * 1_000_000))
        };
        let lines = [
            of_clock("a", &until(shared(0, 1, "r", 1, 1), 500)),
            of_clock("a", &until(shared(99, 2, "r", 2, 1), 1000)),
            of_clock("b", &until(granted(100, 3, "r", 3), 105)),
        ];
        assert_eq!(check(&story(&lines), skew).found, 1);
        // One of the own clock reaches furthest.
        let lines = [
            of_clock("a", &granted(0, 1, "r", 1)),
            of_clock("b", &granted(50, 2, "r", 2)),
            of_clock("b", &granted(100, 3, "r", 3)),
        ];
        assert_eq!(check(&story(&lines), skew).found, 3, "two between clocks, one within");
    }

    #[test]
    fn clocks_are_compared_only_as_far_as_they_can_be() {
        let lines = [of_clock("a", &granted(0, 1, "r", 1)), of_clock("b", &granted(800, 2, "r", 2))];
        let found = |skew| {
            let verdict = check(&story(&lines), Knowledge { skew });
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
        let knowledge = Knowledge { skew: Some(Duration::from_secs(9)) };
        assert_eq!(check(&story(&lines), knowledge).found, 1);
    }
}
