//! The fence: no receiver takes a smaller token after it took a greater one, and a register of the service takes none after a greater
//! one of the same resource was granted.
//!
//! Holds whatever clocks do: it is what is left when belief overlaps.

use std::collections::HashMap;

use leasehold_core::Token;

use crate::check::top::Top;
use crate::check::view::{Owner, View};
use crate::check::{Check, Knowledge, Verdict};
use crate::names::Name;
use crate::story::{Grant, Outcome, Story, Write};

/// What is checked.
pub const CHECK: Check =
    Check { name: "writes", about: "no stale write is taken", unit: "writes", one: "write" };

/// Checks it.
pub fn check(story: &Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    if story.writes.is_empty() {
        return verdict;
    }
    for view in story.views(knowledge) {
        after_a_grant(story, view, &mut verdict);
        after_a_write(story, view, &mut verdict);
    }
    verdict
}

/// How many writes to registers were asked for under a token after a greater one was granted, and refused because of the token: one
/// that is refused because its session has ended never reached the fence.
pub fn fenced_off(story: &Story) -> usize {
    let views = story.views(Knowledge::default());
    let stale = views.iter().flat_map(|view| stale(*view));
    stale.filter(|(write, newer)| newer.is_some() && write.outcome == Outcome::NotCurrent).count()
}

fn after_a_grant(story: &Story, view: View<'_>, verdict: &mut Verdict) {
    for (write, newer) in stale(view) {
        verdict.judged += 1;
        let Some(newer) = newer.filter(|_| write.outcome == Outcome::Taken) else { continue };
        let words = || {
            format!(
                "{}: client {} was told at {} that it holds token {}, and a write of client {} under token {}, asked for at {}, was taken",
                story.resource(write.resource),
                story.client(newer.client),
                newer.granted().at,
                newer.token,
                story.client(write.client),
                write.token,
                write.asked
            )
        };
        verdict.add(words, &[Some(newer.granted().line), Some(write.answered.line)]);
    }
}

/// The grant with the greatest token so far.
type Greatest<'a> = Top<Token, Owner, &'a Grant>;

/// Writes to registers of whose resource something was granted before, each with a greater token if there was one.
fn stale(view: View<'_>) -> Vec<(&Write, Option<&Grant>)> {
    let resources = view.resources();
    // Of each resource the grants and, up to each of them, the one with the greatest token.
    let greatest: HashMap<Name, (&[&Grant], Vec<Greatest<'_>>)> = resources
        .iter()
        .map(|grants| {
            let mut greatest = Top::default();
            let rising = grants.iter().map(|grant| {
                greatest.take(grant.fence(), view.owner_of(grant), *grant);
                greatest
            });
            (grants[0].resource, (&grants[..], rising.collect()))
        })
        .collect();
    let mut found = Vec::new();
    for write in view.writes().into_iter().filter(|write| write.register) {
        let Some((grants, greatest)) = greatest.get(&write.resource) else { continue };
        let known = grants.partition_point(|grant| view.is_before(grant.granted().at, write.asked));
        let Some(last) = known.checked_sub(1) else { continue };
        if let Some((fence, newest)) = greatest[last].beside(view.owner(write.clock, write.answered.line)) {
            found.push((write, Some(newest).filter(|_| fence > write.token)));
        }
    }
    found
}

fn after_a_write(story: &Story, view: View<'_>, verdict: &mut Verdict) {
    let mut writes = view.writes();
    writes.retain(|write| write.outcome == Outcome::Taken);
    let receiver = |write: &Write| (write.resource, write.receiver, write.register);
    writes.sort_by_key(|write| (receiver(write), write.asked));
    for asked in writes.chunk_by(|one, other| receiver(one) == receiver(other)) {
        let mut answered = asked.to_vec();
        answered.sort_by_key(|write| write.answered.at);
        let mut answered = answered.into_iter().peekable();
        let owner = |write: &Write| view.owner(write.clock, write.answered.line);
        let mut greatest = Top::default();
        for write in asked {
            while let Some(before) =
                answered.next_if(|before| view.is_before(before.answered.at, write.asked))
            {
                greatest.take(before.token, owner(before), before);
            }
            let Some((_, before)) = greatest.beside(owner(write)) else { continue };
            verdict.judged += 1;
            if before.token > write.token {
                let words = || {
                    format!(
                        "{}: a write of client {} under token {} was taken by {}, and one of client {} under token {}, asked for at {}, was taken too",
                        story.resource(write.resource),
                        story.client(before.client),
                        before.token,
                        before.answered.at,
                        story.client(write.client),
                        write.token,
                        write.asked
                    )
                };
                verdict.add(words, &[Some(before.answered.line), Some(write.answered.line)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted::{granted, shared, story, to_register, wrote};

    fn found(lines: &[String]) -> u64 {
        check(&story(lines), Knowledge::default()).found
    }

    #[test]
    fn a_stale_write_that_a_register_took_is_found() {
        let lines = [granted(0, 1, "r", 1), granted(10, 2, "r", 2)];
        assert_eq!(found(&[&lines[..], &[to_register(&wrote(11, 12, 1, "r", 1, true))]].concat()), 1);
        let refused = [&lines[..], &[to_register(&wrote(11, 12, 1, "r", 1, false))]].concat();
        assert_eq!(found(&refused), 0);
        assert_eq!(fenced_off(&story(&refused)), 1);
    }

    #[test]
    fn a_write_under_the_newest_token_or_asked_for_before_is_good() {
        let lines = [granted(0, 1, "r", 1), granted(10, 2, "r", 2)];
        for good in
            [wrote(11, 12, 2, "r", 2, true), wrote(9, 12, 1, "r", 1, true), wrote(11, 12, 1, "s", 1, true)]
        {
            assert_eq!(found(&[&lines[..], &[to_register(&good)]].concat()), 0, "{good}");
        }
    }

    #[test]
    fn a_receiver_that_was_shown_nothing_yet_may_take_a_stale_write() {
        let lines = [granted(0, 1, "r", 1), granted(10, 2, "r", 2), wrote(11, 12, 1, "r", 1, true)];
        assert_eq!(found(&lines), 0);
    }

    #[test]
    fn a_receiver_that_took_a_smaller_token_after_a_greater_one_is_found() {
        let greater = wrote(1, 2, 2, "r", 2, true);
        assert_eq!(found(&[greater.clone(), wrote(3, 4, 1, "r", 1, true)]), 1);
        assert_eq!(found(&[greater.clone(), wrote(3, 4, 1, "r", 1, false)]), 0);
        assert_eq!(found(&[greater.clone(), wrote(2, 4, 1, "r", 1, true)]), 0);
        assert_eq!(found(&[greater.clone(), wrote(3, 4, 1, "s", 1, true)]), 0);
        // Another receiver keeps its own greatest token.
        let other = wrote(3, 4, 1, "r", 1, true).replace('}', ",\"receiver\":\"second\"}");
        assert_eq!(found(&[greater, other]), 0);
    }

    #[test]
    fn those_who_share_write_with_the_token_of_their_group() {
        let lines =
            [shared(0, 1, "r", 1, 1), shared(1, 2, "r", 2, 1), to_register(&wrote(3, 4, 2, "r", 1, true))];
        assert_eq!(found(&lines), 0);
    }
}
