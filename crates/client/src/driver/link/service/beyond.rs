//! Beyond the list: members that the service has named, tried when no address of the list is good.
//!
//! All are tried at once and for a short time, because the list is to have its turn again. One that was silent is left alone for several times as
//! long as it cost: clients that cannot reach members by their own addresses must not notice that these were tried.

use std::time::Duration;

use leasehold_core::holder::Reading;
use tokio::task::JoinSet;

use super::{Round, Service};
use crate::driver::link::address::HostPort;
use crate::driver::link::learned::LearnedHost;
use crate::driver::link::reach::{Reach, Reached, Trouble};

/// A member answers within this time when it is tried for the first time.
const SHORTEST_TIME: Duration = Duration::from_millis(300);
/// One that was silent gets twice as long the next time, up to this: it may be far away.
const LONGEST_TIME: Duration = Duration::from_millis(1_200);
/// Silence that took so long is followed by a pause of so many times that length. Trying members in vain thus takes a fifth of the time at most.
const PAUSE_FACTOR: u32 = 4;

/// A member that did not answer in time.
#[derive(Debug, Clone)]
struct Silence {
    host: HostPort,
    since: Reading,
    /// How long was waited for it.
    cost: Duration,
}

/// Those that did not answer when they were tried last.
#[derive(Debug, Default)]
pub(super) struct Silences(Vec<Silence>);

impl Silences {
    /// Whether to leave it alone.
    fn has(&self, host: &HostPort, now: Reading) -> bool {
        self.of(host).is_some_and(|silence| {
            now.since(silence.since).greater() < silence.cost.saturating_mul(PAUSE_FACTOR)
        })
    }

    /// How long to wait for it.
    fn time(&self, host: &HostPort) -> Duration {
        self.of(host).map_or(SHORTEST_TIME, |silence| (silence.cost * 2).min(LONGEST_TIME))
    }

    fn note(&mut self, host: HostPort, since: Reading) {
        let cost = self.time(&host);
        self.forget(&host);
        self.0.push(Silence { host, since, cost });
    }

    fn forget(&mut self, host: &HostPort) {
        self.0.retain(|silence| silence.host != *host);
    }

    /// Those that are members no more need not be remembered.
    fn keep(&mut self, members: &[LearnedHost]) {
        self.0.retain(|silence| members.iter().any(|member| member.host == silence.host));
    }

    fn of(&self, host: &HostPort) -> Option<&Silence> {
        self.0.iter().find(|silence| silence.host == *host)
    }
}

impl Service {
    /// One attempt at all of these at the same time: the first that knows who leads.
    pub(super) async fn try_others(
        &mut self,
        others: Vec<LearnedHost>,
        round: &mut Round,
    ) -> Option<(HostPort, Reached)> {
        self.silences.keep(&others);
        let now = leasehold_clock::read();
        let mut attempts = JoinSet::new();
        for other in others.into_iter().filter(|other| !self.silences.has(&other.host, now)) {
            let time = self.silences.time(&other.host);
            // Only the time of the whole attempt counts, so that it is known who was silent.
            let (connect_time, hello_time, resolve_time) = (Duration::MAX, Duration::MAX, Duration::MAX);
            let lives = self.reach.lives.clone();
            let reach = Reach { lives, connect_time, hello_time, resolve_time, in_haste: false };
            attempts.spawn(async move {
                let attempt = tokio::time::timeout(time, reach.try_learned(&other)).await;
                (other.host, time, attempt)
            });
        }
        while let Some(attempt) = attempts.join_next().await {
            let Ok((host, time, attempt)) = attempt else { continue };
            let trouble = match attempt {
                Ok(Ok(reached)) => {
                    self.silences.forget(&host);
                    if reached.knows_leader() {
                        return Some((host, reached));
                    }
                    round.keep(host, reached);
                    continue;
                }
                Ok(Err(trouble)) => trouble,
                Err(_) => {
                    let why = Trouble::NoAnswer(format!("{host}: no answer within {time:?}"));
                    self.silences.note(host, leasehold_clock::read());
                    why
                }
            };
            round.silent.push(trouble.words());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostPort {
        HostPort { host: name.into(), port: 1 }
    }

    #[test]
    fn a_silent_member_gets_more_time_and_costs_a_fifth_of_all_time_at_most() {
        let (mut silences, mut now) = (Silences::default(), leasehold_clock::read());
        let (began, mut spent) = (now, Duration::ZERO);
        let mut times = Vec::new();
        for _ in 0..4 {
            let time = silences.time(&host("a"));
            now = now.plus(time);
            spent += time;
            silences.note(host("a"), now);
            assert!(silences.has(&host("a"), now) && !silences.has(&host("b"), now));
            while silences.has(&host("a"), now) {
                now = now.plus(Duration::from_millis(10));
            }
            times.push(time.as_millis());
        }
        assert_eq!(times, [300, 600, 1_200, 1_200]);
        assert!(now.since(began).greater() >= spent * 5, "{spent:?}");
        silences.forget(&host("a"));
        assert_eq!(silences.time(&host("a")), SHORTEST_TIME);
    }

    #[test]
    fn those_that_are_members_no_more_are_forgotten() {
        let (mut silences, now) = (Silences::default(), leasehold_clock::read());
        for name in ["a", "b"] {
            silences.note(host(name), now);
        }
        silences.keep(&[LearnedHost { host: host("b"), near: false }]);
        assert!(!silences.has(&host("a"), now) && silences.has(&host("b"), now));
    }
}
