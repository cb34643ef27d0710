//! L7, as far as a world shows it in which nothing costs computing: what is due at once is ended in as few entries as it takes, one right
//! behind the other.
//!
//! A hundred thousand sessions within five seconds are a hundred full entries of fifty milliseconds each. How long a full entry takes is a
//! matter of real machines. Here it is seen that every entry of a leader ends all sessions that are due by its stamp, or is full; and that a
//! leader that left something behind sends the next entry in the turn in which it has applied the last. What clients ask meanwhile goes
//! into the same entries, so nobody waits for more than the one on its way. In some seeds an entry is full with a few leases.

use std::collections::HashMap;

use leasehold_core::{Command, Due, Ending, SessionId};

use super::running::{Running, Stamp};
use super::story::{Lease, Session};
use super::{Id, Run, Violation};
use crate::record::{Event, LogId, NodeId, TrueTime};

/// Between two turns of a loop that knows it is late there is a millisecond of its clock.
const AT_ONCE: u64 = 2_000_000;

/// When nodes applied entries, for those that are asked about.
type Applied = HashMap<(LogId, NodeId, u64), TrueTime>;

/// Looks at every session that an entry left behind.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut left: Vec<(SessionId, LogId, usize)> = Vec::new();
    for (id, session) in &run.story.sessions {
        left.extend(steps_behind(run, *id, session).map(|step| (*id, session.log, step)));
    }
    if left.is_empty() {
        return Vec::new();
    }
    let (running, applied) = (Running::of(run), applied(run));
    let mut found = Vec::new();
    for (id, log, nth) in left {
        let step = &run.story.steps[nth];
        let stamps = running.stamps(log, step.index, u64::MAX);
        // Before the first entry of a leadership is applied its leader does not know what is due.
        let Some(own) = stamps.first().filter(|own| own.index == step.index && !own.opening) else {
            continue;
        };
        if !is_full(run, nth) {
            let what =
                format!("entry {} is not full and leaves session {id} behind, which was due", own.index);
            found.push(Violation::new(Id::L7, step.applied, what));
        } else if let Some(late) = late(&running, &applied, log, own, stamps.get(1)) {
            let what =
                format!("entry {} left session {id} behind, and the next came {late} us later", own.index);
            found.push(Violation::new(Id::L7, step.applied, what));
        }
    }
    found
}

/// How often a session was left behind by an entry that was full.
pub fn left_behind(run: Run<'_>) -> u64 {
    let behind = run.story.sessions.iter().flat_map(|(id, session)| steps_behind(run, *id, session));
    behind.filter(|nth| is_full(run, *nth)).count() as u64
}

/// Entries that were stamped when the session was due, and did not end it.
fn steps_behind(run: Run<'_>, id: SessionId, session: &Session) -> impl Iterator<Item = usize> {
    let steps = &run.story.steps;
    let end = || steps.partition_point(|step| step.log <= session.log);
    let over = session.over.unwrap_or_else(end);
    let renewed = session.renewals.last().map_or(over, |renewal| renewal.step);
    let due = run.story.overdue_after(id, over).map(|overdue| overdue.plus(session.policies.hard));
    let is_whole = steps.get(over.saturating_sub(1)).is_some_and(|last| last.log == session.log);
    let behind = match due {
        Some(due) if renewed < over && is_whole => {
            renewed + steps[renewed..over].partition_point(|step| step.entry.at <= due)..over
        }
        _ => 0..0,
    };
    behind.into_iter()
}

/// Whether an entry has ended as much as one may. What it names in vain does not count: that would be named for ever.
pub(super) fn is_full(run: Run<'_>, nth: usize) -> bool {
    let due = run.story.steps[nth].entry.commands.iter().filter_map(|command| match command {
        Command::Tidy(due) => Some(due),
        _ => None,
    });
    // Revoked ones count until their holder has let go, which may be long.
    let occupies = |lease: &&Lease| {
        let end = lease.end.as_ref();
        end.is_none_or(|end| end.step >= nth || matches!(end.how, Ending::Revoked { .. }))
    };
    let of = |id: SessionId| {
        run.story.leases.iter().filter(move |lease| lease.session == id && lease.step < nth).filter(occupies)
    };
    // A session with more leases than there is room for ends in several entries.
    let goes_on = |lease: &Lease| lease.end.as_ref().is_some_and(|end| end.step <= nth);
    let is_done = |id: SessionId| {
        let session = run.story.sessions.get(&id);
        let done = |session: &Session| {
            session.over.is_some_and(|over| over <= nth)
                || session.renewals.iter().any(|renewal| renewal.step == nth)
        };
        session.is_none_or(done) || of(id).any(goes_on)
    };
    let work: usize = due
        .flatten()
        .map(|due| match due {
            Due::Session(id) if is_done(*id) => of(*id).count().max(1),
            Due::Session(_) => 0,
            Due::Resource(_) => 1,
        })
        .sum();
    work >= run.record.config.limits.tidy_leases
}

/// By how many microseconds the next entry of the same leader came too late behind one that was full.
fn late(running: &Running, applied: &Applied, log: LogId, own: &Stamp, next: Option<&Stamp>) -> Option<u64> {
    let next = next.filter(|next| (next.term, next.node) == (own.term, own.node))?;
    let free = applied.get(&(log, own.node, own.index)).copied()?.max(next.free);
    let handing_over = running.handing_over(own.at, next.at);
    let late = next.at.since(free.plus(AT_ONCE).plus(handing_over));
    (late > 0).then_some(late / 1_000)
}

fn applied(run: Run<'_>) -> Applied {
    let mut applied = Applied::new();
    for (now, event) in &run.record.events {
        if let Event::Applied { log, node, index, .. } = *event {
            applied.entry((log, node, index)).or_insert(*now);
        }
    }
    applied
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};

    /// Three sessions are due, and each entry may end one.
    fn stage() -> (Stage, [SessionId; 3]) {
        let mut stage = Stage::new();
        stage.record.config.limits.tidy_leases = 1;
        stage.commit(Vec::new());
        let sessions = [1, 2, 3].map(|client| stage.open(client));
        stage.at(500).commit(Vec::new());
        stage.at(1_010);
        (stage, sessions)
    }

    fn ends(stage: &mut Stage, sessions: &[SessionId]) {
        let due = sessions.iter().copied().map(Due::Session).collect();
        stage.commit(vec![Command::Tidy(due)]);
    }

    #[test]
    fn full_entries_one_behind_the_other_are_right() {
        let (mut stage, sessions) = stage();
        for session in sessions {
            ends(&mut stage, &[session]);
        }
        assert_eq!(stage.check(check), []);
        // All at once is more than anybody asks for.
        let (mut stage, sessions) = self::stage();
        ends(&mut stage, &sessions);
        assert_eq!(stage.check(check), []);
    }

    #[test]
    fn an_entry_that_leaves_something_behind_though_it_has_room_is_found() {
        let (mut stage, [first, second, third]) = stage();
        stage.record.config.limits.tidy_leases = 2;
        ends(&mut stage, &[first]);
        ends(&mut stage, &[second, third]);
        caught(&stage.check(check), "is not full");
        let (mut stage, sessions) = self::stage();
        stage.commit(Vec::new());
        for session in sessions {
            ends(&mut stage, &[session]);
        }
        caught(&stage.check(check), "is not full");
    }

    #[test]
    fn who_names_the_same_session_for_ever_is_found() {
        let (mut stage, [first, second, third]) = stage();
        let rest = |story: &mut crate::check::story::Story<'_>| {
            // The first was named and did not end.
            let over = story.sessions[&second].over;
            story.sessions.get_mut(&first).unwrap().over = over;
        };
        ends(&mut stage, &[first]);
        ends(&mut stage, &[second]);
        ends(&mut stage, &[third]);
        caught(&stage.tampered(rest, check), "is not full");
    }

    #[test]
    fn a_pause_between_full_entries_is_found() {
        let (mut stage, [first, second, third]) = stage();
        ends(&mut stage, &[first]);
        stage.at(1_011);
        ends(&mut stage, &[second]);
        stage.at(1_013);
        ends(&mut stage, &[third]);
        assert_eq!(stage.check(check), []);
        let (mut stage, [first, second, third]) = self::stage();
        ends(&mut stage, &[first]);
        stage.at(1_030);
        ends(&mut stage, &[second]);
        ends(&mut stage, &[third]);
        caught(&stage.check(check), "the next came 18000 us later");
    }

    #[test]
    fn a_leases_weight_fills_an_entry() {
        let mut stage = Stage::new();
        stage.record.config.limits.tidy_leases = 2;
        stage.commit(Vec::new());
        let (one, two) = (stage.open(1), stage.open(2));
        stage.acquire(one).unwrap();
        stage.at(1_010);
        ends(&mut stage, &[one]);
        ends(&mut stage, &[two]);
        caught(&stage.check(check), "is not full");
        stage.record.config.limits.tidy_leases = 1;
        assert_eq!(stage.check(check), []);
    }

    #[test]
    fn what_a_new_leader_finds_due_it_ends_behind_its_first_entry() {
        let (mut stage, sessions) = stage();
        stage.term = 2;
        stage.commit(Vec::new());
        for session in sessions {
            ends(&mut stage, &[session]);
        }
        assert_eq!(stage.check(check), []);
    }
}
