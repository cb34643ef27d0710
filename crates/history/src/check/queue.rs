//! First come, first served: who was told that it stands in the queue before another even asked is granted first.
//!
//! A waiter whose session is overdue is passed over and keeps its place, and a history does not say which sessions were. So a
//! waiter counts only if it waited for less than its ttl: one that was alive when it was queued cannot be overdue before that.

use std::time::Duration;

use crate::check::{Check, Knowledge, Verdict, line};
use crate::story::{Grant, Moment, Story};

/// What is checked.
pub const CHECK: Check =
    Check { name: "queue", about: "first come, first served", unit: "grants", one: "grant" };

/// Checks it.
pub fn check(story: &Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    for view in story.views(knowledge) {
        for grants in view.resources() {
            let mut waited: Vec<(Moment, &Grant)> =
                grants.iter().filter_map(|grant| Some((counts(grant, knowledge.ttl)?, *grant))).collect();
            waited.sort_by_key(|(queued, _)| queued.at);
            let mut asked: Vec<(Moment, &Grant)> =
                grants.iter().filter_map(|grant| Some((grant.asked()?, *grant))).collect();
            asked.sort_by_key(|(asked, _)| asked.at);
            // Both orders are walked together; of those queued before, the one with the greatest token decides.
            let mut waited = waited.into_iter().peekable();
            let mut latest: Option<(Moment, &Grant)> = None;
            for (asked, grant) in asked {
                while let Some(before) = waited.next_if(|(queued, _)| view.is_before(queued.at, asked.at)) {
                    if latest.is_none_or(|(_, latest)| latest.token < before.1.token) {
                        latest = Some(before);
                    }
                }
                let Some((queued, before)) =
                    latest.filter(|(_, before)| view.judges(before.clock, grant.clock))
                else {
                    continue;
                };
                verdict.judged += 1;
                if before.token > grant.token {
                    let words = || {
                        format!(
                            "{}: client {} stood in the queue at {} and got token {}, and client {} asked at {} and got token {}",
                            story.resource(grant.resource),
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

/// When it was queued, if it cannot have been overdue before it was granted.
fn counts(grant: &Grant, shortest: Duration) -> Option<Moment> {
    let ttl = grant.ttl_ms().map_or(shortest, |ttl| Duration::from_millis(ttl.into()));
    grant.queued().filter(|queued| grant.granted().at.since(queued.at) < ttl)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{TTL, asked, granted, queued, story};

    fn found(lines: &[String]) -> u64 {
        let knowledge = Knowledge { ttl: Duration::from_millis(TTL), ..Knowledge::default() };
        check(&story(lines), knowledge).found
    }

    #[test]
    fn a_waiter_that_was_passed_by_a_later_one_is_found() {
        let passed = [
            asked(0, 1, "r"),
            queued(5, 1),
            asked(10, 2, "r"),
            granted(20, 2, "r", 3),
            granted(30, 1, "r", 4),
        ];
        assert_eq!(found(&passed), 1);
    }

    #[test]
    fn a_waiter_that_may_have_been_overdue_is_not_compared() {
        let passed = |first: String| {
            [first, queued(5, 1), asked(10, 2, "r"), granted(20, 2, "r", 3), granted(5 + TTL, 1, "r", 4)]
        };
        assert_eq!(found(&passed(asked(0, 1, "r"))), 0);
        // Its own ttl is longer than the shortest of the run.
        let longer = asked(0, 1, "r").replace('}', &format!(",\"ttl_ms\":{}}}", TTL + 1));
        assert_eq!(found(&passed(longer)), 1);
    }

    #[test]
    fn waiters_in_their_order_are_good_and_who_asked_together_has_none() {
        let in_order = [
            asked(0, 1, "r"),
            queued(5, 1),
            asked(10, 2, "r"),
            granted(20, 1, "r", 3),
            granted(30, 2, "r", 4),
        ];
        assert_eq!(found(&in_order), 0);
        let together = [
            asked(0, 1, "r"),
            asked(3, 2, "r"),
            queued(5, 1),
            granted(20, 2, "r", 3),
            granted(30, 1, "r", 4),
        ];
        assert_eq!(found(&together), 0);
    }
}
