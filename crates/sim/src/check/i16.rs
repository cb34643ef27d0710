//! I16, wall clocks: two runs of one seed that differ in nothing but what wall clocks showed have the same logs and the same answers.
//!
//! One run cannot show this; [`compare`] takes two.

use super::{Id, Violation};
use crate::record::Record;

/// Compares two runs.
pub fn compare(one: &Record, other: &Record) -> Vec<Violation> {
    let mut found = Vec::new();
    for (log, (first, second)) in one.logs.iter().zip(&other.logs).enumerate() {
        let differs =
            first.entries.iter().zip(&second.entries).find(|(a, b)| {
                (a.index, a.term, a.bytes, a.applied) != (b.index, b.term, b.bytes, b.applied)
            });
        if let Some((entry, _)) = differs {
            let what = format!("entry {} of log {log} depends on a wall clock", entry.index);
            found.push(Violation::new(Id::I16, entry.applied, what));
        } else if first.entries.len() != second.entries.len() {
            found.push(Violation::new(Id::I16, one.end(), format!("log {log} depends on a wall clock")));
        }
    }
    if one.logs.len() != other.logs.len() || one.events.len() != other.events.len() {
        found.push(Violation::new(Id::I16, one.end(), "what happened depends on a wall clock"));
    }
    let replies = one.replies.iter().zip(&other.replies);
    for (first, second) in replies.filter(|(a, b)| (a.at, &a.reply) != (b.at, &b.reply)) {
        let what = format!("{:?} became {:?} with another wall clock", first.reply, second.reply);
        found.push(Violation::new(Id::I16, first.at, what));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};
    use leasehold_core::Reply;

    fn record() -> Record {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        stage.record
    }

    #[test]
    fn the_same_twice_is_right_and_a_difference_is_found() {
        assert_eq!(compare(&record(), &record()), []);
        let mut other = record();
        other.logs[0].entries[1].bytes += 1;
        caught(&compare(&record(), &other), "entry 3 of log 0");
        let mut other = record();
        other.logs[0].entries.pop();
        caught(&compare(&record(), &other), "log 0 depends");
        let mut other = record();
        other.events.pop();
        caught(&compare(&record(), &other), "what happened");
        let mut other = record();
        other.replies[0].reply = Reply::Done;
        caught(&compare(&record(), &other), "became Done");
    }
}
