//! Figures of a run: how long there were no grants around each fault, and how long calls waited.

use std::time::Duration;

use crate::history::{At, ClientId, Line, What};

/// Lengths of time, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lengths(Vec<Duration>);

impl Lengths {
    /// Of these.
    pub fn of(mut lengths: Vec<Duration>) -> Self {
        lengths.sort_unstable();
        Self(lengths)
    }

    /// How many.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// The length that so many of a thousand do not exceed; zero if there are none.
    pub fn per_mille(&self, share: usize) -> Duration {
        let place = (self.0.len() * share).div_ceil(1000).max(1) - 1;
        self.0.get(place).copied().unwrap_or_default()
    }

    /// The longest; zero if there are none.
    pub fn longest(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }

    /// In words.
    pub fn show(&self) -> String {
        let ms = |length: Duration| format!("{:.1}", length.as_secs_f64() * 1e3);
        format!(
            "p50 {} ms, p99 {} ms, p99.9 {} ms, max {} ms ({} of them)",
            ms(self.per_mille(500)),
            ms(self.per_mille(990)),
            ms(self.per_mille(999)),
            ms(self.longest()),
            self.count()
        )
    }
}

/// For each fault the longest time without any grant that touches the time between it and the next one.
pub fn gaps(lines: &[Line]) -> Lengths {
    let grants: Vec<At> =
        lines.iter().filter(|line| matches!(line.what, What::Granted { .. })).map(|line| line.at).collect();
    let faults: Vec<At> =
        lines.iter().filter(|line| matches!(line.what, What::Fault { .. })).map(|line| line.at).collect();
    let end = lines.last().map_or(At(0), |line| line.at);
    let mut gaps = Vec::new();
    for (place, fault) in faults.iter().enumerate() {
        let next = faults.get(place + 1).copied().unwrap_or(end);
        let first = grants.partition_point(|grant| grant <= fault);
        let before = first.checked_sub(1).map_or(*fault, |last| grants[last]);
        let within = grants[first..].iter().take_while(|grant| **grant <= next).copied();
        let after = grants[first..].iter().find(|grant| **grant > next).copied();
        // The gap before the first grant counts from the fault on: what was granted just before it is none of its business.
        let mut last = before.max(*fault);
        let mut longest = Duration::ZERO;
        for grant in within.chain(after.filter(|_| next < end)) {
            longest = longest.max(grant.since(last));
            last = grant;
        }
        if last < next {
            longest = longest.max(next.since(last));
        }
        gaps.push(longest);
    }
    Lengths::of(gaps)
}

/// How long calls of some clients waited for their grant.
pub fn waits(lines: &[Line], of: impl Fn(ClientId) -> bool) -> Lengths {
    let story = crate::check::story::Story::of(lines);
    let waits = story.grants.iter().filter(|grant| of(grant.client));
    Lengths::of(waits.map(|grant| grant.granted.since(grant.asked)).collect())
}

/// How many lines of some kind there are.
pub fn count(lines: &[Line], kind: impl Fn(&What) -> bool) -> usize {
    lines.iter().filter(|line| kind(&line.what)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{granted, ms};

    #[test]
    fn shares_of_a_thousand() {
        let lengths = Lengths::of((1..=1000).rev().map(Duration::from_millis).collect());
        assert_eq!(lengths.per_mille(500), Duration::from_millis(500));
        assert_eq!(lengths.per_mille(990), Duration::from_millis(990));
        assert_eq!(lengths.longest(), Duration::from_secs(1));
        assert_eq!(Lengths::default().per_mille(990), Duration::ZERO);
    }

    #[test]
    fn the_gap_of_a_fault_is_the_longest_time_without_grants_after_it() {
        let fault = |at| Line { at: ms(at), what: What::Fault { text: String::new() } };
        let lines = [
            granted(0, 1, "r", 1),
            fault(10),
            granted(310, 1, "r", 2),
            granted(400, 1, "r", 3),
            fault(1000),
            granted(1050, 1, "r", 4),
            granted(1200, 1, "r", 5),
        ];
        // The first fault's longest gap is the one from 400 to 1050: it touches its time.
        assert_eq!(gaps(&lines), Lengths::of(vec![Duration::from_millis(650), Duration::from_millis(150)]));
    }
}
