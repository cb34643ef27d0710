//! After everything is healed every client is served within a bound: it is granted what it asks for, or a renewal of what it
//! holds is confirmed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::check::Verdict;
use crate::check::story::{Story, show};
use crate::history::{At, ClientId};

/// Checks it. A history in which nothing was healed cannot have kept it.
pub fn check(story: &Story, bound: Duration) -> Verdict {
    let name = "everybody is served after the healing";
    let Some(healed) = story.healed else {
        let violations = vec!["the history does not say that everything was healed".to_owned()];
        return Verdict { name, compared: 0, violations };
    };
    let mut served: BTreeMap<ClientId, At> = BTreeMap::new();
    for grant in &story.grants {
        // The grant itself is the first of its confirmations.
        if let Some((at, _)) = grant.confirmations.iter().find(|(at, _)| *at >= healed) {
            let first = served.entry(grant.client).or_insert(*at);
            *first = (*first).min(*at);
        }
    }
    let mut violations = Vec::new();
    for client in story.clients.keys() {
        match served.get(client) {
            None => violations.push(format!("client {} was never served after {}", client.0, show(healed))),
            Some(first) if first.since(healed) > bound => violations.push(format!(
                "client {} was served {:?} after {}, later than {bound:?}",
                client.0,
                first.since(healed),
                show(healed)
            )),
            Some(_) => {}
        }
    }
    Verdict { name, compared: story.clients.len(), violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{all_healed, asked, confirmed, granted};

    fn found(lines: &[crate::history::Line]) -> usize {
        check(&Story::of(lines), Duration::from_millis(100)).violations.len()
    }

    #[test]
    fn a_client_that_is_served_late_or_never_is_found() {
        let lines = [asked(0, 1, "r"), all_healed(10), granted(60, 1, "r", 1)];
        assert_eq!(found(&lines), 0);
        let late = [asked(0, 1, "r"), all_healed(10), granted(120, 1, "r", 1)];
        assert_eq!(found(&late), 1);
        let never = [asked(0, 1, "r"), asked(0, 2, "s"), all_healed(10), granted(60, 1, "r", 1)];
        assert_eq!(found(&never), 1);
    }

    #[test]
    fn a_confirmed_renewal_serves_a_client_that_holds() {
        let holds = [asked(0, 1, "r"), granted(5, 1, "r", 1), all_healed(10)];
        assert_eq!(found(&holds), 1);
        assert_eq!(found(&[&holds[..], &[confirmed(60, 1, 1)]].concat()), 0);
    }

    #[test]
    fn a_history_without_a_healing_is_not_good() {
        assert_eq!(found(&[asked(0, 1, "r"), granted(60, 1, "r", 1)]), 1);
    }
}
