//! Exclusion: the times in which two holders of one resource believe in their lease do not overlap.
//!
//! Holds while every clock keeps its bound; a run that breaks the bound on purpose leaves this checker out, and its fence has the
//! last word.

use crate::check::Verdict;
use crate::check::story::{Grant, Story, show};
use crate::history::At;

/// Checks it.
pub fn check(story: &Story) -> Verdict {
    let (mut compared, mut violations) = (0, Vec::new());
    for (resource, grants) in story.by_resource() {
        let mut windows: Vec<(At, At, &Grant)> = grants
            .iter()
            .flat_map(|grant| grant.windows().into_iter().map(move |(from, until)| (from, until, *grant)))
            .collect();
        windows.sort_by_key(|(from, ..)| *from);
        // The window that reaches furthest so far; all before it that belong to others are over, or were reported.
        let mut furthest: Option<(At, &Grant)> = None;
        for (from, until, grant) in windows {
            compared += 1;
            if let Some((end, before)) = furthest
                && before.token != grant.token
                && from < end
            {
                violations.push(format!(
                    "{resource}: client {} believes in token {} until {}, and client {} in token {} from {} on: {:?} too long",
                    before.client.0,
                    before.token,
                    show(end),
                    grant.client.0,
                    grant.token,
                    show(from),
                    end.since(from)
                ));
            }
            if furthest.is_none_or(|(end, _)| end < until) {
                furthest = Some((until, grant));
            }
        }
    }
    Verdict { name: "no two believe at once", compared, violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{confirmed, giving_back, granted};

    fn found(lines: &[crate::history::Line]) -> usize {
        check(&Story::of(lines)).violations.len()
    }

    #[test]
    fn windows_that_overlap_are_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(800, 2, "r", 2)]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), confirmed(600, 1, 1), granted(1100, 2, "r", 2)]), 1);
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
}
