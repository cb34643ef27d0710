//! What happened, as a hash that two runs of one seed must agree on, and in words for whoever wants to read it.

use leasehold_core::client::Event;
use leasehold_core::holder::{Reading, Standing};

use crate::random::mix;
use crate::record::{Fault, Machine};

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;
/// Nanoseconds of a millisecond.
pub const MILLI: u64 = 1_000_000;
/// Nanoseconds of a microsecond.
pub const MICRO: u64 = 1_000;

/// A hash over everything, and optionally lines.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    events: u64,
    prints: bool,
    /// Lines are printed only within this stretch of true time.
    from: u64,
    to: u64,
}

impl Trace {
    /// Counts and hashes; prints if asked to, within a stretch of true time.
    pub const fn new(prints: bool, from: u64, to: u64) -> Self {
        Self { hash: 0, events: 0, prints, from, to }
    }

    /// Takes in one event.
    pub const fn note(&mut self, at: u64, what: u64, detail: u64) {
        self.events += 1;
        self.hash = mix(self.hash.wrapping_add(at) ^ mix(what ^ detail.rotate_left(17)));
    }

    /// Prints a line, if lines are wanted now.
    pub fn say(&self, at: u64, line: impl FnOnce() -> String) {
        if self.prints && at >= self.from && at <= self.to {
            println!("{:>14.6} {}", seconds(at), line());
        }
    }

    /// What it all comes to.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// How many events there were.
    pub const fn events(&self) -> u64 {
        self.events
    }
}

/// Seconds for people.
pub fn seconds(nanos: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let nanos = nanos as f64;
    nanos / 1e9
}

/// A member by the place of its node and its own number: a node that was replaced has another number in the same place.
pub fn member_name(id: u64) -> String {
    match id {
        0 => "nobody".to_owned(),
        id => format!("n{} (member {id:x})", id & 0xff),
    }
}

/// What befell whom.
pub fn fault(machine: Machine, what: Fault) -> String {
    let whom = match machine {
        Machine::Node(node) => member_name(node.0),
        Machine::Client(client) => format!("c{}", client.0),
        Machine::World => "everything".to_owned(),
    };
    let what = match what {
        Fault::Paused => "stands still",
        Fault::Clock => "has wrong clocks",
        Fault::Network => "has a bad network",
        Fault::SlowDisk => "has a slow disk",
        Fault::FullDisk => "has a full disk",
        Fault::Damage => "has damaged files",
        Fault::RolledBack => "has earlier files",
        Fault::Wiped => "has lost its files",
    };
    format!("{whom} {what}")
}

/// What an application hears. Points on its clocks are told as the time that is left or has passed.
pub fn heard(event: &Event, now: Reading) -> String {
    let left =
        |until: Reading| until.boot.saturating_sub(now.boot).min(until.raw.saturating_sub(now.raw)) / MILLI;
    let passed = |since: Reading| now.since(since).greater().as_millis();
    match event {
        Event::Standing(Standing::Held { until }) => format!("held for {} ms more", left(*until)),
        Event::Standing(Standing::Retrying { since, until }) => {
            format!("retrying for {} ms, held for {} ms more", passed(*since), left(*until))
        }
        Event::Standing(Standing::Uncertain { since }) => format!("uncertain for {} ms", passed(*since)),
        Event::Standing(Standing::Lapsed { since }) => format!("lapsed for {} ms", passed(*since)),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::NodeId;

    #[test]
    fn a_standing_is_a_word_and_the_time_by_the_clock_that_is_further() {
        let at = |boot, raw| Reading { boot: boot * MILLI, raw: raw * MILLI };
        let held = Event::Standing(Standing::Held { until: at(900, 700) });
        assert_eq!(heard(&held, at(200, 100)), "held for 600 ms more");
        assert_eq!(heard(&held, at(200, 800)), "held for 0 ms more");
        let lapsed = Event::Standing(Standing::Lapsed { since: at(100, 100) });
        assert_eq!(heard(&lapsed, at(350, 150)), "lapsed for 250 ms");
    }

    #[test]
    fn whom_a_fault_befalls_is_named() {
        assert_eq!(fault(Machine::Node(NodeId(0x203)), Fault::SlowDisk), "n3 (member 203) has a slow disk");
        assert_eq!(member_name(0), "nobody");
    }
}
