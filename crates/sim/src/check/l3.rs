//! L3, as P4 states it: a dead holder's session ends after ttl with its drift factor and its hard limit. Late only by the time in
//! which the service was not running or its loop or disk stood still, and by at most min(ttl/8, 1 s) per failover; never by a fresh
//! ttl.
//!
//! Nothing here is a guess about the network: [`Running`] knows when each entry was stamped, so a slow commit excuses itself and
//! nothing else. What is judged is the stamp of the entry that ends the session.

use super::excuse::Span;
use super::l7::is_full;
use super::running::{Running, Stamp, TURN};
use super::story::{Renewal, Session};
use super::{Id, Run, Violation};
use crate::record::TrueTime;
use crate::trace::MILLI;

/// A leader leaves at most so much between two entries, whatever the ttls.
const LONGEST_SILENCE_MS: u64 = 1_000;

/// Measures the end of every session whose client died.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let dead = run.story.sessions.iter().filter(|(_, session)| session.died.is_some());
    let mut dead = dead.peekable();
    if dead.peek().is_none() {
        return Vec::new();
    }
    let running = Running::of(run);
    let mut found = Vec::new();
    for (id, session) in dead {
        let Some(renewal) = session.renewals.last() else { continue };
        let is_last_life = usize::from(session.log.0) + 1 == run.record.logs.len();
        let over = session.over.map(|step| run.story.time(step));
        let before_its_death = over.is_some_and(|over| session.died.is_some_and(|died| over < died));
        if before_its_death || (over.is_none() && !is_last_life) {
            continue;
        }
        let span = Span { from: run.story.time(renewal.step), to: over.unwrap_or(run.record.end()) };
        if !run.excuses.covers_nodes_during(&span) {
            continue;
        }
        let Some((stamped, limit)) = stamped_and_limit(run, &running, session, renewal) else { continue };
        if stamped > limit {
            let (millis, lost) = (
                stamped.since(limit) / MILLI,
                most_lost(run, &running, session, renewal).unwrap_or_default(),
            );
            let has = if over.is_some() { "ended" } else { "has not ended," };
            let what = format!("session {id} of a dead client {has} {millis} ms later than is excused{lost}");
            found.push(Violation::new(Id::L3, span.to, what));
        }
    }
    found
}

/// When the entry was stamped that ended the session (or the run was over), and when it had to be at the latest.
fn stamped_and_limit(
    run: Run<'_>,
    running: &Running,
    session: &Session,
    renewal: &Renewal,
) -> Option<(TrueTime, TrueTime)> {
    let drift = run.record.config.drift;
    let length = drift.stretch(session.ttl).saturating_add(session.policies.hard).get();
    let slowest = |nanos: u64| {
        let nanos = u128::from(nanos) * 1_000_000 / u128::from(1_000_000 - drift.ppm());
        u64::try_from(nanos).unwrap_or(u64::MAX)
    };
    let step = slowest((session.ttl.get() / 8).min(LONGEST_SILENCE_MS) * MILLI);
    let last_index = run.record.logs[usize::from(session.log.0)].last();
    let ended = session.over.map(|over| run.story.steps[over].index);
    let first_index = run.story.steps[renewal.step].index;
    let stamps = running.stamps(session.log, first_index, ended.unwrap_or(last_index));
    let first = stamps.first().filter(|first| first.index == first_index)?;
    // Stamps are rounded down, as is the base of each leader's clock, and "past" is a millisecond later.
    let mut limit = first.at.plus(slowest((length + 2) * MILLI));
    for pair in stamps.windows(2) {
        limit = limit.plus(slowest(running.excused(session.log, &pair[0], &pair[1], step)));
        if pair[0].term != pair[1].term {
            limit = limit.plus(MILLI);
        }
    }
    if ended.is_some() {
        // Entries that were full came before it: L7 sees to those.
        let full =
            |stamp: &Stamp| run.story.step_of(session.log, stamp.index).is_some_and(|nth| is_full(run, nth));
        let before = stamps.len().checked_sub(1)?;
        let before = stamps[..before].iter().rposition(|stamp| !full(stamp))?;
        let [before, last] = [stamps.get(before)?, stamps.get(before + 1)?];
        return Some((last.at, in_time(running, limit, before, Some(last), last.at)));
    }
    let (before, end) = (stamps.last()?, run.record.end());
    let limit = limit.plus(running.stood(before.node, before.at, end));
    Some((end, in_time(running, limit, before, None, end)))
}

/// For whoever looks for the cause: where log time fell behind most without an excuse.
fn most_lost(run: Run<'_>, running: &Running, session: &Session, renewal: &Renewal) -> Option<String> {
    let log = &run.record.logs[usize::from(session.log.0)];
    let first = run.story.steps[renewal.step].index;
    let last = session.over.map_or(log.last(), |over| run.story.steps[over].index);
    let at = |stamp: &Stamp| log.entry(stamp.index)?.entry.as_ref().map(|entry| entry.at.get());
    let step = (session.ttl.get() / 8).min(LONGEST_SILENCE_MS) * MILLI;
    let pairs = running.stamps(session.log, first, last).windows(2);
    let lost = pairs.filter_map(|pair| {
        let (true_time, log_time) = (pair[1].at.since(pair[0].at), at(&pair[1])?.checked_sub(at(&pair[0])?)?);
        let excused = running.excused(session.log, &pair[0], &pair[1], step);
        Some((true_time.saturating_sub(log_time * MILLI).saturating_sub(excused), pair))
    });
    let (lost, pair) = lost.max_by_key(|(lost, _)| *lost)?;
    let (one, two) = (&pair[0], &pair[1]);
    Some(format!(
        "; most is missing between entry {} of term {} at {:.3} s and entry {} of term {} at {:.3} s: {} ms",
        one.index,
        one.term,
        one.at.0 as f64 / 1e9,
        two.index,
        two.term,
        two.at.0 as f64 / 1e9,
        lost / MILLI
    ))
}

/// A leader proposes one entry after the other, in turns of its loop: what is due while one is on its way comes with the next.
fn in_time(
    running: &Running,
    due: TrueTime,
    before: &Stamp,
    last: Option<&Stamp>,
    stamped: TrueTime,
) -> TrueTime {
    let turn = last.map_or(TURN, |last| last.idle.max(TURN));
    if before.at > due.plus(TURN) && !before.opening {
        // It was due when that one was stamped.
        return due.plus(turn);
    }
    let free = last.map_or(before.applied, |last| last.free.max(before.applied));
    let handing_over = running.handing_over(before.at, stamped);
    due.max(free).plus(turn).plus(handing_over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{NODES, Stage, caught};
    use crate::record::{ClientId, Event, Stopped};
    use leasehold_core::{Command, Due, LogTime};

    /// How a life without its client goes on.
    #[derive(Clone, Copy, Default)]
    struct Death {
        /// From 500 ms on log time is so far behind true time.
        behind: u64,
        /// No entries are made between these milliseconds.
        silent: (u64, u64),
        /// The leader says that it stood still in that time, and lost so much.
        stood: Option<u64>,
        /// Another node leads behind the silence; the first one is gone from this millisecond on.
        failover: Option<u64>,
        /// Leadership is to be handed over from this millisecond on.
        handover: Option<u64>,
    }

    impl Death {
        /// The session is tidied away at `end`.
        fn ends(self, end: u64) -> Vec<Violation> {
            let mut stage = Stage::new();
            let session = stage.open(1);
            stage.push(Event::Died { client: ClientId(1) });
            let (from, to) = self.silent;
            if let Some(began) = self.handover {
                stage.record.events.push((TrueTime(began * MILLI), Event::HandingOver));
            }
            for millis in (50..end).step_by(50).filter(|millis| !(from..to).contains(millis)) {
                if let (Some(gone), true) = (self.failover, millis >= to && stage.term == 1) {
                    stage.at(gone).push(Event::Stopped { node: NODES[0], why: Stopped::Crashed });
                    (stage.term, stage.leader) = (2, NODES[1]);
                }
                if let (Some(lost), true) = (self.stood, millis == to) {
                    let since = TrueTime(from * MILLI);
                    stage.at(to).push(Event::Stood { node: NODES[0], since, lost: lost * MILLI });
                }
                let at = if millis < 500 { millis } else { (millis - self.behind).max(450) };
                stage.at(millis).commit_at(LogTime::new(at), Vec::new());
            }
            let at = LogTime::new(end - self.behind);
            stage.at(end).commit_at(at, vec![Command::Tidy(vec![Due::Session(session)])]);
            stage.check(check)
        }
    }

    #[test]
    fn an_expiry_in_time_is_right_and_a_late_one_is_found() {
        assert_eq!(Death::default().ends(1_005), []);
        assert_eq!(Death::default().ends(1_025), []);
        caught(&Death::default().ends(1_035), "later than is excused");
        // The entry before was stamped when it was due, and did not end it.
        caught(&Death::default().ends(1_051), "later than is excused");
    }

    #[test]
    fn time_that_nothing_explains_is_found() {
        caught(&Death { behind: 50, ..Death::default() }.ends(1_060), "later than is excused");
    }

    #[test]
    fn a_leader_that_stood_still_is_excused_by_that_time_only() {
        let death = Death { behind: 300, silent: (500, 900), stood: Some(300), ..Death::default() };
        assert_eq!(death.ends(1_310), []);
        caught(&death.ends(1_340), "later than is excused");
        caught(&Death { stood: None, ..death }.ends(1_310), "later than is excused");
    }

    #[test]
    fn a_failover_costs_the_time_without_a_leader_and_an_eighth_of_the_ttl() {
        let death = Death { behind: 450, silent: (500, 950), failover: Some(560), ..Death::default() };
        assert_eq!(death.ends(1_455), []);
        // 500 ms without an entry are all excused: 390 without a leader, and 110 that it had left unwritten.
        assert_eq!(death.ends(1_525), []);
        caught(&death.ends(1_535), "later than is excused");
        // The first leader ran on and wrote nothing.
        let death = Death { failover: Some(800), ..death };
        caught(&death.ends(1_455), "later than is excused");
        // Before its last entry it was asked to hand over, and wrote nothing more for that reason.
        assert_eq!(Death { handover: Some(400), ..death }.ends(1_455), []);
    }

    #[test]
    fn a_fresh_ttl_per_failover_is_found() {
        let death = Death { behind: 50, silent: (500, 550), failover: Some(510), ..Death::default() };
        assert_eq!(death.ends(1_060), []);
        caught(&death.ends(1_560), "later than is excused");
    }

    #[test]
    fn behind_a_full_entry_the_next_one_is_in_time() {
        for (room, found) in [(1, 0), (2, 1)] {
            let mut stage = Stage::new();
            stage.record.config.limits.tidy_leases = room;
            stage.commit(Vec::new());
            let sessions = [1, 2].map(|client| {
                let session = stage.open(client);
                stage.push(Event::Died { client: ClientId(client) });
                session
            });
            for millis in (50..=1_000).step_by(50) {
                stage.at(millis).commit(Vec::new());
            }
            for (millis, session) in [1_010, 1_045].into_iter().zip(sessions) {
                stage.at(millis).commit(vec![Command::Tidy(vec![Due::Session(session)])]);
            }
            assert_eq!(stage.check(check).len(), found, "with room for {room}");
        }
    }

    #[test]
    fn a_session_that_never_ends_is_found() {
        let mut stage = Stage::new();
        stage.open(1);
        stage.push(Event::Died { client: ClientId(1) });
        for millis in (100..3_000).step_by(100) {
            stage.at(millis).commit_at(LogTime::new(millis / 4 + 1), Vec::new());
        }
        caught(&stage.check(check), "has not ended");
    }
}
