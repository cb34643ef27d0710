//! First come, first served: who was told that it stands in the queue before another even asked is granted first.
//!
//! A waiter whose session is overdue is passed over and keeps its place, and a history does not say which sessions were. So a
//! waiter counts only if it waited for less than a ttl: one that was alive when it was queued cannot be overdue before that.

use std::time::Duration;

use crate::check::Verdict;
use crate::check::story::{Grant, Story, show};

/// Checks it.
pub fn check(story: &Story, ttl: Duration) -> Verdict {
    let (mut compared, mut violations) = (0, Vec::new());
    for (resource, grants) in story.by_resource() {
        let counts = |grant: &&Grant| grant.queued.is_some_and(|queued| grant.granted.since(queued) < ttl);
        let mut waited: Vec<&Grant> = grants.iter().copied().filter(counts).collect();
        waited.sort_by_key(|grant| grant.queued);
        let mut asked: Vec<&Grant> = grants.clone();
        asked.sort_by_key(|grant| grant.asked);
        // Both orders are walked together; of those queued before, the one with the greatest token decides.
        let mut waited = waited.into_iter().peekable();
        let mut latest: Option<&Grant> = None;
        for grant in asked {
            while let Some(before) = waited.next_if(|before| before.queued < Some(grant.asked)) {
                if latest.is_none_or(|latest| latest.token < before.token) {
                    latest = Some(before);
                }
            }
            let Some(before) = latest else { continue };
            compared += 1;
            if before.token > grant.token {
                violations.push(format!(
                    "{resource}: client {} stood in the queue at {} and got token {}, and client {} asked at {} and got token {}",
                    before.client.0,
                    show(before.queued.unwrap_or(before.asked)),
                    before.token,
                    grant.client.0,
                    show(grant.asked),
                    grant.token
                ));
            }
        }
    }
    Verdict { name: "first come, first served", compared, violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{TTL, asked, granted, queued};

    fn found(lines: &[crate::history::Line]) -> usize {
        check(&Story::of(lines), Duration::from_millis(TTL)).violations.len()
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
        let passed = [
            asked(0, 1, "r"),
            queued(5, 1),
            asked(10, 2, "r"),
            granted(20, 2, "r", 3),
            granted(5 + TTL, 1, "r", 4),
        ];
        assert_eq!(found(&passed), 0);
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
