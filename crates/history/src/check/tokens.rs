//! Tokens: no two grants have the same, and a grant that was asked for after another was answered has the greater one.
//!
//! The counter is one for all resources, so the order is checked over all of them together. That no two are the same needs no clock.

use crate::check::top::Top;
use crate::check::{Check, Knowledge, Verdict, line};
use crate::story::{Grant, Story};

/// What is checked.
pub const CHECK: Check = Check {
    name: "token-order",
    about: "tokens rise and are never given twice",
    unit: "grants",
    one: "grant",
};

/// Checks it.
pub fn check(story: &Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    twice(story, &mut verdict);
    for view in story.views(knowledge) {
        let answered = view.grants();
        let mut asked: Vec<(_, &Grant)> =
            answered.iter().filter_map(|grant| grant.asked().map(|asked| (asked, *grant))).collect();
        asked.sort_by_key(|(asked, _)| asked.at);
        // Both orders are walked together: before a grant is looked at, all that were answered before it was asked for are counted.
        let mut answered = answered.into_iter().peekable();
        let mut greatest = Top::default();
        for (asked, grant) in asked {
            while let Some(before) = answered.next_if(|before| view.is_before(before.granted().at, asked.at))
            {
                greatest.take(before.token, view.owner_of(before), before);
            }
            // Two that are the same were found before, whenever they were asked for.
            if let Some((token, before)) = greatest.beside(view.owner_of(grant))
                && token > grant.token
            {
                let words = || {
                    format!(
                        "token {} of {} was answered at {}, and a grant of {} asked for at {} got {}",
                        before.token,
                        story.resource(before.resource),
                        before.granted().at,
                        story.resource(grant.resource),
                        asked.at,
                        grant.token
                    )
                };
                verdict.add(
                    words,
                    &[Some(before.granted().line), line(grant.asked()), Some(grant.granted().line)],
                );
            }
        }
    }
    verdict
}

fn twice(story: &Story, verdict: &mut Verdict) {
    let mut grants: Vec<&Grant> = story.grants.iter().collect();
    grants.sort_by_key(|grant| (grant.token, grant.granted().line));
    for pair in grants.windows(2) {
        verdict.judged += 1;
        let [first, second] = pair else { continue };
        if first.token == second.token {
            let words = || {
                format!(
                    "token {} was given twice: {} to client {} at {}, {} to client {} at {}",
                    first.token,
                    story.resource(first.resource),
                    story.client(first.client),
                    first.granted().at,
                    story.resource(second.resource),
                    story.client(second.client),
                    second.granted().at
                )
            };
            verdict.add(words, &[Some(first.granted().line), Some(second.granted().line)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted::{asked, granted, of_clock, story};
    use std::time::Duration;

    fn found(lines: &[String]) -> u64 {
        check(&story(lines), Knowledge::default()).found
    }

    #[test]
    fn a_token_given_twice_is_found() {
        let twice = [asked(0, 1, "a"), asked(1, 2, "b"), granted(10, 1, "a", 5), granted(11, 2, "b", 5)];
        assert_eq!(found(&twice), 1);
        let later = [asked(0, 1, "a"), granted(10, 1, "a", 5), asked(20, 1, "a"), granted(30, 1, "a", 5)];
        assert_eq!(found(&later), 1);
    }

    #[test]
    fn a_token_given_twice_is_found_whatever_the_clocks() {
        assert_eq!(found(&[of_clock("a", &granted(0, 1, "a", 5)), of_clock("b", &granted(9, 2, "a", 5))]), 1);
    }

    #[test]
    fn a_token_that_falls_is_found_also_on_another_resource() {
        let falls = [asked(0, 1, "a"), granted(10, 1, "a", 7), asked(20, 2, "b"), granted(30, 2, "b", 6)];
        assert_eq!(found(&falls), 1);
    }

    #[test]
    fn grants_that_were_under_way_together_may_come_in_any_order() {
        let together = [asked(0, 1, "a"), asked(1, 2, "b"), granted(10, 1, "a", 7), granted(30, 2, "b", 6)];
        assert_eq!(found(&together), 0);
    }

    #[test]
    fn a_grant_that_nobody_says_when_was_asked_for_has_no_order() {
        assert_eq!(found(&[granted(10, 1, "a", 7), granted(30, 2, "b", 6)]), 0);
    }

    #[test]
    fn a_greater_one_of_the_own_clock_hides_nothing() {
        let falls = [
            of_clock("a", &granted(10, 1, "a", 7)),
            of_clock("b", &granted(11, 3, "c", 9)),
            of_clock("b", &asked(30, 2, "b")),
            of_clock("b", &granted(40, 2, "b", 6)),
        ];
        let knowledge = Knowledge { skew: Some(Duration::from_millis(10)) };
        assert_eq!(check(&story(&falls), knowledge).found, 2, "one between clocks, one within");
    }

    #[test]
    fn the_order_over_clocks_needs_more_than_their_skew() {
        let falls = [
            of_clock("a", &asked(0, 1, "a")),
            of_clock("a", &granted(10, 1, "a", 7)),
            of_clock("b", &asked(20, 2, "b")),
            of_clock("b", &granted(30, 2, "b", 6)),
        ];
        let found = |skew| check(&story(&falls), Knowledge { skew }).found;
        assert_eq!(found(None), 0);
        assert_eq!(found(Some(Duration::from_millis(9))), 1);
        assert_eq!(found(Some(Duration::from_millis(10))), 0);
    }
}
