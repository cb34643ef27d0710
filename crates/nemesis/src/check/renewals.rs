//! Renewals are honoured: after a renewal was confirmed, nobody else is granted the resource before its ttl has passed since it
//! was *sent*, unless the holder gave it back or an operator took it.
//!
//! Stricter than exclusion, and independent of the margin: this is what the service owes, whatever the holder makes of it.

use crate::check::Verdict;
use crate::check::story::{Grant, Story, show};

/// Checks it.
pub fn check(story: &Story) -> Verdict {
    let (mut compared, mut violations) = (0, Vec::new());
    for (resource, grants) in story.by_resource() {
        // Leases that the service still owed something to when the last grant was answered.
        let mut owed: Vec<&Grant> = Vec::new();
        for grant in grants {
            compared += 1;
            owed.retain(|before| before.promised > grant.granted && !before.was_ended_before(grant.granted));
            for before in &owed {
                violations.push(format!(
                    "{resource}: token {} of client {} is promised until {}, and client {} was told at {} that it holds token {}",
                    before.token,
                    before.client.0,
                    show(before.promised),
                    grant.client.0,
                    show(grant.granted),
                    grant.token
                ));
            }
            owed.push(grant);
        }
    }
    Verdict { name: "confirmed renewals are honoured", compared, violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{confirmed, giving_back, granted, lost};

    fn found(lines: &[crate::history::Line]) -> usize {
        check(&Story::of(lines)).violations.len()
    }

    #[test]
    fn a_grant_within_a_confirmed_ttl_is_found() {
        // Belief ended at 1500, so exclusion sees nothing wrong; the ttl ends at 1600.
        assert_eq!(found(&[granted(0, 1, "r", 1), confirmed(600, 1, 1), granted(1550, 2, "r", 2)]), 1);
    }

    #[test]
    fn a_renewal_confirmed_after_another_has_the_resource_is_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(1001, 2, "r", 2), confirmed(1002, 1, 1)]), 1);
    }

    #[test]
    fn an_ending_that_the_service_alone_decided_excuses_nothing() {
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(500, 1, 1, false), granted(600, 2, "r", 2)]), 1);
    }

    #[test]
    fn what_was_given_back_or_revoked_is_free() {
        assert_eq!(found(&[granted(0, 1, "r", 1), giving_back(10, 1, 1), granted(20, 2, "r", 2)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(10, 1, 1, true), granted(20, 2, "r", 2)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), granted(1000, 2, "r", 2)]), 0);
    }
}
