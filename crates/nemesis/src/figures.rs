//! Figures of a run: how long there were no grants around each fault, and how long calls waited.

use std::collections::HashMap;
use std::time::Duration;

use crate::history::{At, ClientId, Event, Line};

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
pub fn gaps(lines: &[Line<'_>]) -> Lengths {
    let grants: Vec<At> =
        lines.iter().filter(|line| matches!(line.event, Event::Granted { .. })).map(|line| line.at).collect();
    let faults: Vec<At> =
        lines.iter().filter(|line| matches!(line.event, Event::Fault { .. })).map(|line| line.at).collect();
    // From then on there are no grants because nobody asks.
    let finishing = lines.iter().find(|line| line.event == Event::Finishing);
    let end = finishing.or(lines.last()).map_or(At(0), |line| line.at);
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

/// How long requests waited that nobody contends for: acquires of some clients, releases of all, and looks. A request counts whatever
/// came of it, and one that was never answered waited to the end.
pub fn requests(lines: &[Line<'_>], of: impl Fn(ClientId) -> bool) -> Lengths {
    let mut lengths = Vec::new();
    let (mut acquires, mut releases) = (HashMap::new(), HashMap::new());
    for Line { at, event, .. } in lines {
        match event {
            Event::Asked { client, call, .. } if of(ClientId::of(client)) => {
                acquires.insert((client, call), *at);
            }
            Event::Granted { client, call, .. }
            | Event::Refused { client, call, .. }
            | Event::Unknown { client, call, .. } => {
                lengths.extend(acquires.remove(&(client, call)).map(|asked| at.since(asked)));
            }
            Event::GivingBack { client, token } => {
                releases.insert((client, *token), *at);
            }
            Event::GaveBack { client, token, .. } => {
                lengths.extend(releases.remove(&(client, *token)).map(|asked| at.since(asked)));
            }
            Event::Looked { asked, .. } => lengths.push(at.since(*asked)),
            _ => {}
        }
    }
    let end = lines.last().map_or(At(0), |line| line.at);
    lengths.extend(acquires.values().chain(releases.values()).map(|asked| end.since(*asked)));
    Lengths::of(lengths)
}

/// The longest time without any grant between two points of time.
pub fn longest_gap(lines: &[Line<'_>], from: At, to: At) -> Duration {
    let grants = lines.iter().filter(|line| matches!(line.event, Event::Granted { .. })).map(|line| line.at);
    let (mut last, mut longest) = (from, Duration::ZERO);
    for at in grants.filter(|at| (from..=to).contains(at)).chain([to]) {
        longest = longest.max(at.since(last));
        last = at;
    }
    longest
}

/// How many lines of some kind there are.
pub fn count(lines: &[Line<'_>], kind: impl Fn(&Event<'_>) -> bool) -> usize {
    lines.iter().filter(|line| kind(&line.event)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{asked, giving_back, granted, looked, ms};

    #[test]
    fn shares_of_a_thousand() {
        let lengths = Lengths::of((1..=1000).rev().map(Duration::from_millis).collect());
        assert_eq!(lengths.per_mille(500), Duration::from_millis(500));
        assert_eq!(lengths.per_mille(990), Duration::from_millis(990));
        assert_eq!(lengths.longest(), Duration::from_secs(1));
        assert_eq!(Lengths::default().per_mille(990), Duration::ZERO);
    }

    #[test]
    fn requests_are_acquires_releases_and_looks() {
        let token = leasehold::Token::from_u64(1);
        let gave_back =
            Line::new(ms(80), Event::GaveBack { client: ClientId(1).name(), token, trouble: None });
        let lines = [
            asked(0, 1, "r"),
            granted(30, 1, "r", 1),
            giving_back(40, 1, 1),
            gave_back,
            looked(90, 95, "r", None),
        ];
        let lengths = |all: &[u64]| Lengths::of(all.iter().copied().map(Duration::from_millis).collect());
        assert_eq!(requests(&lines, |_| true), lengths(&[5, 30, 40]));
        assert_eq!(requests(&lines, |_| false), lengths(&[5, 40]));
        let never = [asked(0, 1, "r"), asked(10, 2, "s"), granted(20, 2, "s", 1), looked(90, 95, "r", None)];
        assert_eq!(requests(&never, |_| true), lengths(&[5, 10, 95]));
    }

    #[test]
    fn the_longest_gap_counts_both_ends() {
        let lines = [granted(0, 1, "r", 1), granted(310, 1, "r", 2), granted(400, 1, "r", 3)];
        assert_eq!(longest_gap(&lines, ms(10), ms(450)), Duration::from_millis(300));
        assert_eq!(longest_gap(&lines, ms(10), ms(1000)), Duration::from_millis(600));
    }

    #[test]
    fn the_gap_of_a_fault_is_the_longest_time_without_grants_after_it() {
        let fault = |at| Line::new(ms(at), Event::Fault { text: "".into() });
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
