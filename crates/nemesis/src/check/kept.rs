//! No acknowledged grant is lost: the service does not end a lease before its confirmed ttl has passed, and whoever looks while a
//! holder believes sees that holder.

use std::collections::HashMap;

use crate::check::Verdict;
use crate::check::story::{End, Grant, Story, show};

/// Checks it.
pub fn check(story: &Story) -> Verdict {
    let mut violations = Vec::new();
    for grant in &story.grants {
        if let Some(End::Lost(at)) = grant.end
            && at < grant.promised
        {
            violations.push(format!(
                "{}: token {} of client {} is promised until {} and was lost at {}",
                grant.resource,
                grant.token,
                grant.client.0,
                show(grant.promised),
                show(at)
            ));
        }
    }
    violations.extend(unseen(story));
    Verdict {
        name: "no acknowledged grant is lost",
        compared: story.grants.len() + story.looks.len(),
        violations,
    }
}

/// Looks that lie within the belief of a holder and do not show it.
fn unseen(story: &Story) -> Vec<String> {
    let mut violations = Vec::new();
    let grants: HashMap<&str, Vec<&Grant>> = story.by_resource().into_iter().collect();
    for look in &story.looks {
        let Some(grants) = grants.get(look.resource.as_str()) else { continue };
        // Only grants that were answered before the look began can have to be seen; the last few of them are enough, because
        // belief does not overlap.
        let known = grants.partition_point(|grant| grant.granted < look.asked);
        for grant in &grants[known.saturating_sub(3)..known] {
            let within = |&(from, until): &(_, _)| from < look.asked && look.answered < until;
            if look.token != Some(grant.token) && grant.windows().iter().any(within) {
                let seen = look.token.map_or("nobody".to_owned(), |token| format!("token {token}"));
                violations.push(format!(
                    "{}: client {} believed in token {} from {} on, and a look asked at {} and answered at {} saw {seen}",
                    grant.resource,
                    grant.client.0,
                    grant.token,
                    show(grant.granted),
                    show(look.asked),
                    show(look.answered)
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{granted, looked, lost};

    fn found(lines: &[crate::history::Line]) -> usize {
        check(&Story::of(lines)).violations.len()
    }

    #[test]
    fn a_lease_ended_within_its_ttl_is_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(999, 1, 1, false)]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(1000, 1, 1, false)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(10, 1, 1, true)]), 0);
    }

    #[test]
    fn a_look_that_does_not_see_the_holder_is_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), looked(10, 20, "r", None)]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), looked(10, 20, "r", Some(9))]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), looked(10, 20, "r", Some(1))]), 0);
        // Answered after belief was over, or asked before it began: anything may have happened.
        assert_eq!(found(&[granted(0, 1, "r", 1), looked(10, 950, "r", None)]), 0);
        assert_eq!(found(&[granted(15, 1, "r", 1), looked(10, 20, "r", None)]), 0);
    }
}
