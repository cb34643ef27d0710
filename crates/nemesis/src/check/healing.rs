//! After everything is healed every client is served within a bound: it is granted what it asks for, or a renewal of what it
//! holds is confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::check::Verdict;
use crate::history::{At, Event, Line};

/// Checks it. A history in which nothing was healed cannot have kept it.
pub fn check(lines: &[Line<'_>], bound: Duration) -> Verdict {
    let name = "everybody is served after the healing";
    let healed = lines.iter().rev().find(|line| line.event == Event::AllHealed).map(|line| line.at);
    let Some(healed) = healed else {
        let violations = vec!["the history does not say that everything was healed".to_owned()];
        return Verdict { name, compared: 0, violations };
    };
    let mut clients: BTreeSet<&str> = BTreeSet::new();
    let mut served: BTreeMap<&str, At> = BTreeMap::new();
    for line in lines {
        match &line.event {
            Event::Asked { client, .. } => {
                clients.insert(client);
            }
            Event::Granted { client, .. } | Event::Confirmed { client, .. } if line.at >= healed => {
                served.entry(client).or_insert(line.at);
            }
            _ => {}
        }
    }
    let mut violations = Vec::new();
    for client in &clients {
        match served.get(client) {
            None => violations.push(format!("client {client} was never served after {healed}")),
            Some(first) if first.since(healed) > bound => {
                let after = first.since(healed);
                violations.push(format!(
                    "client {client} was served {after:?} after {healed}, later than {bound:?}"
                ));
            }
            Some(_) => {}
        }
    }
    Verdict { name, compared: clients.len(), violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{all_healed, asked, confirmed, granted};

    fn found(lines: &[Line<'_>]) -> usize {
        check(lines, Duration::from_millis(100)).violations.len()
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
