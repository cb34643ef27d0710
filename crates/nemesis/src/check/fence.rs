//! The fence: a register takes no write under a token after a greater one of the same resource was granted.
//!
//! Holds whatever clocks do: it is what is left when belief overlaps.

use std::collections::HashMap;

use crate::check::Verdict;
use crate::check::story::{Grant, Story, Write, show};

/// How a refusal begins that the token is the reason of.
const NOT_CURRENT: &str = "not-current";

/// Checks it.
pub fn check(story: &Story) -> Verdict {
    let mut violations = Vec::new();
    for (write, newer) in stale(story) {
        if write.refused.is_none() {
            violations.push(format!(
                "{}: client {} was told at {} that it holds token {}, and a write of client {} under token {}, asked for at {}, was taken",
                write.resource,
                newer.client.0,
                show(newer.granted),
                newer.token,
                write.client.0,
                write.token,
                show(write.asked)
            ));
        }
    }
    Verdict { name: "no stale write is taken", compared: story.writes.len(), violations }
}

/// How many writes were asked for under a token after a greater one was granted, and refused because of the token: one that is refused
/// because its session has ended never reached the fence.
pub fn fenced_off(story: &Story) -> usize {
    let refused = |write: &Write| write.refused.as_ref().is_some_and(|why| why.starts_with(NOT_CURRENT));
    stale(story).iter().filter(|(write, _)| refused(write)).count()
}

/// Such writes, each with a greater token that was granted before.
fn stale(story: &Story) -> Vec<(&Write, &Grant)> {
    let grants: HashMap<&str, Vec<&Grant>> = story.by_resource().into_iter().collect();
    let mut found = Vec::new();
    for write in &story.writes {
        let Some(grants) = grants.get(write.resource.as_str()) else { continue };
        let known = grants.partition_point(|grant| grant.granted < write.asked);
        found.extend(
            grants[..known].iter().rev().find(|grant| grant.token > write.token).map(|newer| (write, *newer)),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{granted, wrote};

    fn found(lines: &[crate::history::Line]) -> usize {
        check(&Story::of(lines)).violations.len()
    }

    #[test]
    fn a_stale_write_that_was_taken_is_found() {
        let lines = [granted(0, 1, "r", 1), granted(10, 2, "r", 2)];
        assert_eq!(found(&[&lines[..], &[wrote(11, 12, 1, "r", 1, true)]].concat()), 1);
        let refused = [&lines[..], &[wrote(11, 12, 1, "r", 1, false)]].concat();
        assert_eq!(found(&refused), 0);
        assert_eq!(fenced_off(&Story::of(&refused)), 1);
    }

    #[test]
    fn a_write_under_the_newest_token_or_asked_for_before_is_good() {
        let lines = [granted(0, 1, "r", 1), granted(10, 2, "r", 2)];
        assert_eq!(found(&[&lines[..], &[wrote(11, 12, 2, "r", 2, true)]].concat()), 0);
        assert_eq!(found(&[&lines[..], &[wrote(9, 12, 1, "r", 1, true)]].concat()), 0);
        assert_eq!(found(&[&lines[..], &[wrote(11, 12, 1, "s", 1, true)]].concat()), 0);
    }
}
