//! Tidying: what has become due, named by the leader, is brought up to the present point of the log.

use alloc::vec::Vec;

use super::LeaseTable;
use crate::answer::{Applied, Ending, Reply};
use crate::command::Due;
use crate::planted::{Bug, planted};
use crate::time::{LogTime, Millis};

impl LeaseTable {
    pub(super) fn tidy(&mut self, out: &mut Applied, due: &[Due]) -> Reply {
        let mut budget = self.config.limits.tidy_leases.max(1);
        for due in due {
            match due {
                Due::Session(id) => {
                    let over = self.living(*id).is_err() || planted(Bug::ExpiryUnguarded);
                    if budget > 0 && self.sessions.contains_key(id) && over {
                        self.end_session(out, *id, &Ending::Expired, &mut budget);
                    }
                }
                Due::Resource(name) => self.settle(out, name),
            }
        }
        Reply::Done
    }

    /// The next point past which something may be due. Hints: asking for them may show that nothing was.
    pub fn next_due(&self) -> Option<LogTime> {
        let session = self.index.sessions_due.first().map(|(due, _)| *due);
        let resource = self.index.resources_due.first().map(|(due, _)| *due);
        match (session, resource) {
            (Some(session), Some(resource)) => Some(session.min(resource)),
            (one, other) => one.or(other),
        }
    }

    /// What is due at `at`, bounded in work, for the leader to put into a tidying command. What it names stays due until that
    /// command was applied.
    pub fn due(&mut self, at: LogTime) -> Vec<Due> {
        let limit = self.config.limits.tidy_leases.max(1);
        let mut due = Vec::new();
        let mut work = 0;
        self.freshen_sessions(at);
        self.freshen_resources(at, limit);
        for (point, id) in &self.index.sessions_due {
            if *point >= at || work >= limit {
                break;
            }
            work += self.sessions.get(id).map_or(1, |session| session.leases.len().max(1));
            due.push(Due::Session(*id));
        }
        for (point, name) in &self.index.resources_due {
            if *point >= at || work >= limit {
                break;
            }
            work += 1;
            due.push(Due::Resource(name.clone()));
        }
        due
    }

    /// Moves the hints of sessions that were renewed since, and drops those of sessions that are gone.
    fn freshen_sessions(&mut self, at: LogTime) {
        let drift = self.config.drift;
        let stale: Vec<_> =
            self.index.sessions_due.range(..(at, crate::id::SessionId::from_u64(0))).copied().collect();
        for (point, id) in stale {
            match self.sessions.get(&id).map(|session| session.ended_after(drift)) {
                Some(ended) if ended == point => {}
                moved => {
                    self.index.sessions_due.remove(&(point, id));
                    if let Some(ended) = moved {
                        self.index.sessions_due.insert((ended, id));
                    }
                }
            }
        }
    }

    /// Moves the hints of resources on which nothing has ended yet, a bounded number at a time.
    fn freshen_resources(&mut self, at: LogTime, limit: usize) {
        let passed = self.index.resources_due.iter().take_while(|(point, _)| *point < at).take(limit);
        let names: Vec<_> = passed.map(|(_, name)| name.clone()).collect();
        for name in &names {
            if planted(Bug::TidyingDropsHint) {
                self.resources.get_mut(name).into_iter().for_each(|resource| resource.looked_at = at);
            }
            self.refresh_due(name);
        }
    }

    /// The shortest ttl of a session; nothing without sessions.
    pub fn smallest_ttl(&self) -> Option<Millis> {
        self.index.smallest_ttl()
    }

    /// How long log time may stand still at most while something depends on it: an eighth of the smallest ttl, at most a
    /// second. Nothing when nobody would notice.
    pub fn time_step(&self) -> Option<Millis> {
        let second = Millis::new(1_000);
        match self.index.smallest_ttl() {
            Some(ttl) => Some(Millis::new(ttl.get() / 8).min(second)),
            // Without a session only a cool-down or the wait after a restore is left to end.
            None if !self.index.resources_due.is_empty()
                || self.granting_after.is_some_and(|after| self.last_at <= after) =>
            {
                Some(second)
            }
            None => None,
        }
    }
}
