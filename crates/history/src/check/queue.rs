//! First come, first served: who was told that it stands in the queue before another even asked is granted first.
//!
//! A waiter whose session is overdue is passed over and keeps its place, and to be queued renews nothing. So a waiter counts only if
//! it was granted before the end of what its last renewal promised: until then its session cannot have been overdue. All slots of a
//! resource have one queue. A successor that a holder named is served past the queue, if it says that it took up an offer.

use crate::check::top::Top;
use crate::check::{Check, Knowledge, Verdict, line, names};
use crate::story::{Grant, Moment, Story};

/// What is checked.
pub const CHECK: Check =
    Check { name: "queue", about: "first come, first served", unit: "grants", one: "grant" };

/// Checks it.
pub fn check(story: &Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    for view in story.views(knowledge) {
        for grants in view.families() {
            let mut waited: Vec<(Moment, &Grant)> =
                grants.iter().filter_map(|grant| Some((counts(grant)?, *grant))).collect();
            waited.sort_by_key(|(queued, _)| queued.at);
            let in_turn = grants.iter().filter(|grant| !grant.handed_over);
            let mut asked: Vec<(Moment, &Grant)> =
                in_turn.filter_map(|grant| Some((grant.asked()?, *grant))).collect();
            asked.sort_by_key(|(asked, _)| asked.at);
            // Both orders are walked together; of those queued before, the one with the greatest token decides.
            let mut waited = waited.into_iter().peekable();
            let mut latest = Top::default();
            for (asked, grant) in asked {
                while let Some(before) = waited.next_if(|(queued, _)| view.is_before(queued.at, asked.at)) {
                    latest.take(before.1.token, view.owner_of(before.1), before);
                }
                let Some((token, (queued, before))) = latest.beside(view.owner_of(grant)) else { continue };
                verdict.judged += 1;
                if token > grant.token {
                    let words = || {
                        format!(
                            "{}: client {} stood in the queue at {} and got token {}, and client {} asked at {} and got token {}",
                            names(story, before, grant),
                            story.client(before.client),
                            queued.at,
                            before.token,
                            story.client(grant.client),
                            asked.at,
                            grant.token
                        )
                    };
                    let (first, second) = (before.granted().line, grant.granted().line);
                    verdict.add(words, &[Some(queued.line), line(grant.asked()), Some(second), Some(first)]);
                }
            }
        }
    }
    verdict
}

/// When it was queued, if its session cannot have been overdue before it was granted.
fn counts(grant: &Grant) -> Option<Moment> {
    grant.queued().filter(|_| grant.granted().at < grant.queued_until())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted::{TTL, asked, granted, of_clock, promised, queued, story};
    use std::time::Duration;

    fn found(lines: &[String]) -> u64 {
        check(&story(lines), Knowledge::default()).found
    }

    /// Queued at 5 by something sent just then.
    fn waits(client: u32) -> String {
        promised(5 + TTL, &queued(5, client))
    }

    #[test]
    fn a_waiter_that_was_passed_by_a_later_one_is_found() {
        let passed = |first: &str, second: &str| {
            [
                asked(0, 1, "r"),
                waits(1),
                asked(10, 2, "r"),
                granted(20, 2, second, 3),
                granted(30, 1, first, 4),
            ]
        };
        assert_eq!(found(&passed("r", "r")), 1);
        // Whichever slots they got in the end: they stood in one queue.
        assert_eq!(found(&passed("r#0", "r#1")), 1);
        assert_eq!(found(&passed("r", "s")), 0);
    }

    #[test]
    fn a_named_successor_may_pass_the_queue_and_nobody_else() {
        let handed = |handed: bool| {
            let second = granted(20, 2, "r", 3);
            let second = if handed { second.replacen('{', r#"{"handed_over":true,"#, 1) } else { second };
            [asked(0, 1, "r"), waits(1), asked(10, 2, "r"), second, granted(30, 1, "r", 4)]
        };
        assert_eq!(found(&handed(false)), 1);
        assert_eq!(found(&handed(true)), 0);
    }

    #[test]
    fn a_waiter_that_may_have_been_overdue_is_not_compared() {
        let passed = |queued: &[String]| {
            let first = [asked(0, 1, "r")];
            let rest = [asked(10, 2, "r"), granted(20, 2, "r", 3), granted(11_000, 1, "r", 4)];
            [&first[..], queued, &rest[..]].concat()
        };
        let at = |at, until| promised(until, &queued(at, 1));
        assert_eq!(found(&passed(&[queued(5, 1)])), 0, "nobody said what was promised");
        // Renewed at 0 with a ttl of 10 s and queued at 9.9 s: rescued by a renewal behind its time, it was passed rightly.
        assert_eq!(found(&passed(&[at(5, 10_000)])), 0);
        assert_eq!(found(&passed(&[at(5, 11_001)])), 1);
        // It renewed while it waited, without a gap.
        assert_eq!(found(&passed(&[at(5, 5000), at(4000, 9000), at(8000, 13_000)])), 1);
        // With a gap: what was promised behind it says nothing of before.
        assert_eq!(found(&passed(&[at(5, 5000), at(6000, 13_000)])), 0);
    }

    #[test]
    fn waiters_in_their_order_are_good_and_who_asked_together_has_none() {
        let in_order =
            [asked(0, 1, "r"), waits(1), asked(10, 2, "r"), granted(20, 1, "r", 3), granted(30, 2, "r", 4)];
        assert_eq!(found(&in_order), 0);
        let together =
            [asked(0, 1, "r"), asked(3, 2, "r"), waits(1), granted(20, 2, "r", 3), granted(30, 1, "r", 4)];
        assert_eq!(found(&together), 0);
    }

    #[test]
    fn between_clocks_nobody_hides_another() {
        let of = |clock: &str, lines: &[String]| -> Vec<String> {
            lines.iter().map(|line| of_clock(clock, line)).collect()
        };
        let lines = [
            of("a", &[asked(0, 1, "r"), waits(1), granted(60, 1, "r", 4)]),
            of("b", &[asked(0, 2, "r"), waits(2), granted(70, 2, "r", 5)]),
            of("b", &[asked(30, 3, "r"), granted(40, 3, "r", 3)]),
        ];
        let knowledge = Knowledge { skew: Some(Duration::from_millis(10)) };
        assert_eq!(check(&story(&lines.concat()), knowledge).found, 2, "one between clocks, one within");
    }
}
