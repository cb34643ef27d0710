//! No acknowledged grant is lost: the service does not end a lease before its confirmed ttl has passed, and whoever looks while a
//! holder believes sees that holder.

use std::collections::HashMap;

use crate::check::{Check, Knowledge, Verdict};
use crate::story::{End, Grant, Story};

/// What is checked.
pub const CHECK: Check = Check {
    name: "kept",
    about: "no acknowledged grant is lost",
    unit: "losses and looks",
    one: "loss or look",
};

/// Grants before a look that are tried. Belief does not overlap, so that the last is enough unless times are the same.
const TRIED: usize = 3;

/// Checks it.
pub fn check(story: &Story, knowledge: Knowledge) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    for grant in &story.grants {
        // What a client gave back, an operator took or a restore left behind was not the service's to keep.
        let Some((End::Lost, end)) = grant.end() else { continue };
        verdict.judged += 1;
        let promised = grant.promised();
        if end.at < promised.at {
            let words = || {
                format!(
                    "{}: token {} of client {} is promised until {} and was lost at {}",
                    story.resource(grant.resource),
                    grant.token,
                    story.client(grant.client),
                    promised.at,
                    end.at
                )
            };
            verdict.add(words, &[Some(promised.line), Some(end.line)]);
        }
    }
    unseen(story, knowledge, &mut verdict);
    verdict
}

/// Looks that lie within the belief of a holder and do not show it. Of those who share, a look need not show every one.
fn unseen(story: &Story, knowledge: Knowledge, verdict: &mut Verdict) {
    if story.looks.is_empty() {
        return;
    }
    for view in story.views(knowledge) {
        let resources = view.resources();
        let grants: HashMap<_, &[&Grant]> =
            resources.iter().filter_map(|grants| Some((grants.first()?.resource, &grants[..]))).collect();
        for look in view.looks() {
            let Some(grants) = grants.get(&look.resource) else { continue };
            // Only grants that were answered before the look began can have to be seen.
            let known = grants.partition_point(|grant| view.is_before(grant.granted().at, look.asked));
            let tried = grants[known.saturating_sub(TRIED)..known].iter();
            for grant in tried.filter(|grant| !grant.shared && view.judges(grant.clock, look.clock)) {
                let mut windows = grant.windows().filter(|window| {
                    view.is_before(window.from, look.asked) && view.is_before(look.answered.at, window.until)
                });
                let Some(window) = windows.next() else { continue };
                verdict.judged += 1;
                if look.token == Some(grant.token) {
                    continue;
                }
                let words = || {
                    let seen = look.token.map_or("nobody".to_owned(), |token| format!("token {token}"));
                    format!(
                        "{}: client {} believed in token {} from {} to {}, and a look asked at {} and answered at {} saw {seen}",
                        story.resource(grant.resource),
                        story.client(grant.client),
                        grant.token,
                        window.from,
                        window.until,
                        look.asked,
                        look.answered.at
                    )
                };
                verdict
                    .add(words, &[Some(grant.granted().line), Some(window.line), Some(look.answered.line)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted::{giving_back, granted, looked, lost, of_clock, restored, story};
    use std::time::Duration;

    fn found(lines: &[String]) -> u64 {
        check(&story(lines), Knowledge::default()).found
    }

    #[test]
    fn a_lease_ended_within_its_ttl_is_found() {
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(999, 1, 1, false)]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(1000, 1, 1, false)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), lost(10, 1, 1, true)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), giving_back(10, 1, 1)]), 0);
        assert_eq!(found(&[granted(0, 1, "r", 1), restored(10, 1, 1)]), 0);
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

    #[test]
    fn a_look_by_another_clock_is_judged_only_well_within_belief() {
        let lines = [of_clock("a", &granted(0, 1, "r", 1)), of_clock("b", &looked(50, 60, "r", None))];
        let found = |skew| check(&story(&lines), Knowledge { skew }).found;
        assert_eq!(found(None), 0);
        assert_eq!(found(Some(Duration::from_millis(49))), 1);
        assert_eq!(found(Some(Duration::from_millis(50))), 0);
    }

    #[test]
    fn a_lease_that_was_not_lost_or_looked_at_was_not_judged() {
        let judged = |lines: &[String]| check(&story(lines), Knowledge::default()).judged;
        assert_eq!(judged(&[granted(0, 1, "r", 1)]), 0);
        // These cannot fail.
        assert_eq!(judged(&[granted(0, 1, "r", 1), giving_back(9, 1, 1)]), 0);
        assert_eq!(judged(&[granted(0, 1, "r", 1), lost(9, 1, 1, true)]), 0);
        assert_eq!(judged(&[granted(0, 1, "r", 1), restored(9, 1, 1)]), 0);
        assert_eq!(judged(&[granted(0, 1, "r", 1), lost(1009, 1, 1, false)]), 1);
    }
}
