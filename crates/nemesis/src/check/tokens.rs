//! Tokens: no two grants have the same, and a grant that was asked for after another was answered has the greater one.
//!
//! The counter is one for all resources, so the order is checked over all of them together.

use std::collections::HashMap;

use crate::check::Verdict;
use crate::check::story::{Grant, Story, show};

/// Checks it.
pub fn check(story: &Story) -> Verdict {
    let mut violations = Vec::new();
    let mut seen: HashMap<_, &Grant> = HashMap::new();
    for grant in &story.grants {
        if let Some(first) = seen.insert(grant.token, grant) {
            violations.push(format!(
                "token {} was given twice: {} to client {} at {}, {} to client {} at {}",
                grant.token,
                first.resource,
                first.client.0,
                show(first.granted),
                grant.resource,
                grant.client.0,
                show(grant.granted)
            ));
        }
    }
    // Both orders are walked together: before a grant is looked at, all that were answered before it was asked for are counted.
    let mut asked: Vec<&Grant> = story.grants.iter().collect();
    asked.sort_by_key(|grant| grant.asked);
    let mut answered = story.grants.iter().peekable();
    let mut greatest: Option<&Grant> = None;
    for grant in asked {
        while let Some(before) = answered.next_if(|before| before.granted < grant.asked) {
            if greatest.is_none_or(|greatest| greatest.token < before.token) {
                greatest = Some(before);
            }
        }
        if let Some(before) = greatest
            && before.token >= grant.token
        {
            violations.push(format!(
                "token {} of {} was answered at {}, and a grant of {} asked for at {} got {}",
                before.token,
                before.resource,
                show(before.granted),
                grant.resource,
                show(grant.asked),
                grant.token
            ));
        }
    }
    Verdict { name: "tokens rise and are never given twice", compared: story.grants.len(), violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{asked, granted};

    fn found(lines: &[crate::history::Line]) -> usize {
        check(&Story::of(lines)).violations.len()
    }

    #[test]
    fn a_token_given_twice_is_found() {
        let twice = [asked(0, 1, "a"), asked(1, 2, "b"), granted(10, 1, "a", 5), granted(11, 2, "b", 5)];
        assert_eq!(found(&twice), 1);
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
}
