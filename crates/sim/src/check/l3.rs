//! L3, as P4 states it: a dead holder's session ends after ttl with its drift factor and its hard limit. Late only by the time in
//! which the service was not running or its loop stood still, and by at most min(ttl/8, 1 s) per failover; never by a fresh ttl.
//!
//! The service was not running where no entry was committed for longer than a leader leaves between two; pauses, slow disks and cuts
//! are counted as recorded. Without such faults, and after them, this is exact but for a turn of the loop and a commit.

use super::excuse::Span;
use super::story::{Renewal, Session};
use super::{Id, Run, Violation};
use crate::record::{Committed, Fault, TrueTime};

const MILLI: u64 = 1_000_000;
/// A leader's loop wakes at least so often.
const TURN: u64 = 20 * MILLI;
/// A leader leaves at most so much between two entries, whatever the ttls.
const LONGEST_SILENCE_MS: u64 = 1_000;

/// Measures the end of every session whose client died.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (id, session) in &run.story.sessions {
        let Some(died) = session.died else { continue };
        let is_last_life = usize::from(session.log.0) + 1 == run.record.logs.len();
        let over = session.over.map(|step| run.story.time(step));
        if over.is_some_and(|over| over < died) || (over.is_none() && !is_last_life) {
            continue;
        }
        let over_or_end = over.unwrap_or(run.record.end());
        let Some(renewal) = session.renewals.last() else { continue };
        let (due, excused) = due(run, session, renewal, over_or_end);
        let late = over_or_end.since(due);
        if late > excused && run.excuses.covers_nodes(over_or_end) {
            let (millis, most) = (late / MILLI, excused / MILLI);
            let what = match over {
                Some(_) => format!(
                    "session {id} of a dead client ended {millis} ms late, {most} ms at most are excused"
                ),
                None => format!(
                    "session {id} of a dead client has not ended, {millis} ms late; {most} ms at most are excused"
                ),
            };
            found.push(Violation::new(Id::L3, over_or_end, what));
        }
    }
    found
}

/// When the session had to be over if nothing ever failed, and by how much it may be late.
fn due(run: Run<'_>, session: &Session, renewal: &Renewal, over: TrueTime) -> (TrueTime, u64) {
    let drift = run.record.config.drift;
    let length = drift.stretch(session.ttl).saturating_add(session.policies.hard).get();
    let slowest = u128::from(length) * u128::from(MILLI) * 1_000_000 / u128::from(1_000_000 - drift.ppm());
    let renewed = run.story.time(renewal.step);
    let due = renewed.plus(u64::try_from(slowest).unwrap_or(u64::MAX));
    let span = Span { from: renewed, to: over };
    let per_failover = (session.ttl.get() / 8).min(LONGEST_SILENCE_MS) * MILLI;
    let (silence, failovers) = silence(run, session, &span);
    let stood = [Fault::Paused, Fault::SlowDisk, Fault::FullDisk, Fault::Network]
        .into_iter()
        .map(|fault| run.excuses.on_nodes(fault, &span));
    // Stamps are rounded down, and so is the base of each leader's clock.
    let rounding = MILLI * (1 + failovers);
    (
        due,
        silence + failovers * per_failover + stood.sum::<u64>() + TURN + rounding + run.record.bounds.commit,
    )
}

/// Time without commits, beyond what a leader leaves between two, and how many terms began.
fn silence(run: Run<'_>, session: &Session, span: &Span) -> (u64, u64) {
    let shortest = run.story.sessions.values().map(|session| session.ttl.get()).min().unwrap_or(0);
    let usual = (shortest / 8).min(LONGEST_SILENCE_MS) * MILLI + TURN + run.record.bounds.commit;
    let entries = &run.record.logs[usize::from(session.log.0)].entries;
    let first = entries.partition_point(|entry| entry.applied < span.from);
    let after = entries.partition_point(|entry| entry.applied <= span.to);
    let during: &[Committed] = &entries[first..after];
    let gaps = during.windows(2).map(|pair| pair[1].applied.since(pair[0].applied));
    let terms = during.windows(2).filter(|pair| pair[0].term != pair[1].term).count() as u64;
    let last = during.last().map_or(0, |last| span.to.since(last.applied));
    (gaps.chain([last]).filter(|gap| *gap > usual).sum(), terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};
    use crate::record::{ClientId, Event};
    use leasehold_core::{Command, Due, LogTime};

    /// The client dies at once; log time goes on from `offset` behind true time at 500 ms on; the session is tidied away at `end`.
    fn death(offset: u64, end: u64, silent: bool, failover: bool) -> Vec<Violation> {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.push(Event::Died { client: ClientId(1) });
        for millis in (100..end).step_by(100) {
            let (behind, least) = if millis < 500 { (0, 1) } else { (offset, 400) };
            stage.term = if failover && millis >= 500 { 2 } else { 1 };
            if !(silent && (500..900).contains(&millis)) {
                stage.at(millis).commit_at(LogTime::new((millis - behind).max(least)), Vec::new());
            }
        }
        let at = LogTime::new(end - offset);
        stage.at(end).commit_at(at, vec![Command::Tidy(vec![Due::Session(session)])]);
        stage.check(check)
    }

    #[test]
    fn an_expiry_in_time_is_right() {
        assert_eq!(death(0, 1_100, false, false), []);
    }

    #[test]
    fn a_late_expiry_is_found() {
        caught(&death(0, 1_200, false, false), "ms late");
        caught(&death(150, 1_250, false, false), "ms late");
    }

    #[test]
    fn a_service_that_was_away_is_excused_by_that_time_only() {
        assert_eq!(death(400, 1_500, true, false), []);
        caught(&death(400, 1_700, true, false), "ms late");
    }

    #[test]
    fn a_failover_costs_an_eighth_of_the_ttl_and_not_a_fresh_one() {
        assert_eq!(death(120, 1_240, false, true), []);
        caught(&death(300, 1_440, false, true), "ms late");
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
