//! Claims: no client believes for longer than the service promised it.
//!
//! This judges clients, not the service: one that counts its ttl from when an answer *came* fails here first. It needs no second clock
//! and no second client.

use crate::check::{Check, Verdict};
use crate::story::{Beyond, Story};

/// What is checked.
pub const CHECK: Check = Check {
    name: "claims",
    about: "nobody believes for longer than was promised",
    unit: "grants",
    one: "grant",
};

/// Checks it. Only the first wrong claim of a grant is told.
pub fn check(story: &Story) -> Verdict {
    let mut verdict = Verdict::new(CHECK);
    for grant in story.grants.iter().filter(|grant| grant.is_promised()) {
        verdict.judged += 1;
        if let Some(Beyond { until, promised, line }) = grant.beyond() {
            let words = || {
                format!(
                    "{}: client {} believes in token {} until {}, and it was promised until {}",
                    story.resource(grant.resource),
                    story.client(grant.client),
                    grant.token,
                    until,
                    promised
                )
            };
            verdict.add(words, &[Some(line)]);
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted::{claimed, confirmed, granted, story};

    #[test]
    fn a_claim_beyond_the_promise_is_found() {
        let found = |lines: &[String]| check(&story(lines)).found;
        assert_eq!(found(&[granted(0, 1, "r", 1), claimed(10, 1, 1, 1011, 1010)]), 1);
        assert_eq!(found(&[granted(0, 1, "r", 1), claimed(10, 1, 1, 1010, 1010), confirmed(20, 1, 1)]), 0);
    }

    #[test]
    fn a_claim_without_a_promise_is_not_judged() {
        let line = r#"{"at_ns":1,"what":"granted","client":1,"resource":"r","token":"5","until_ns":9}"#;
        assert_eq!(check(&story(&[line.to_owned()])).judged, 0);
        assert_eq!(check(&story(&[granted(0, 1, "r", 1)])).judged, 1);
    }
}
