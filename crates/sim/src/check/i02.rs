//! I2, token order: tokens strictly increase in the order of grants, and a lease that was confirmed before another was asked for
//! has the smaller token; across failovers, snapshots and restores. All resources share one counter, so all grants are compared.

use std::collections::HashMap;

use leasehold_core::{Event as TableEvent, SessionId, Token};

use super::{Id, Run, Violation};
use crate::record::{Event, LogId, Told, TrueTime};

/// One grant as its client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When it was asked for.
    pub asked: TrueTime,
    /// When the client heard of it.
    pub told: TrueTime,
    /// Its token.
    pub token: Token,
    /// Whose it is: one grant may be told twice.
    pub session: SessionId,
}

/// Checks the logs, and what clients saw.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = in_logs(run);
    let set_back = run.excuses.files.into_iter().chain(run.excuses.told_wrongly).min();
    let seen: Vec<Seen> =
        seen(run).into_iter().filter(|seen| set_back.is_none_or(|from| seen.told < from)).collect();
    found.extend(in_real_time(&seen));
    found
}

fn in_logs(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut newest: Option<(LogId, Token)> = None;
    for step in &run.story.steps {
        for event in &step.outcome.events {
            let TableEvent::Granted { grant, .. } = event else { continue };
            let before =
                newest.filter(|(log, _)| *log == step.log || run.excuses.covers_tokens(step.applied));
            if let Some((_, before)) = before.filter(|(_, before)| grant.token <= *before) {
                let what = format!("entry {} grants token {} behind token {before}", step.index, grant.token);
                found.push(Violation::new(Id::I2, step.applied, what));
            }
            newest = Some((step.log, grant.token.max(newest.map_or(grant.token, |(_, token)| token))));
        }
    }
    found
}

/// What clients saw of their grants.
fn seen(run: Run<'_>) -> Vec<Seen> {
    let mut asked: HashMap<(SessionId, u64), TrueTime> = HashMap::new();
    let mut seen = Vec::new();
    for (now, event) in &run.record.events {
        match event {
            Event::Asked { session, command, .. } => {
                asked.entry((*session, *command)).or_insert(*now);
            }
            Event::Told { session, command, what: Told::Granted { token, .. } } => {
                if let Some(asked) = asked.get(&(*session, *command)) {
                    seen.push(Seen { asked: *asked, told: *now, token: *token, session: *session });
                }
            }
            _ => {}
        }
    }
    seen
}

/// The token checker: n log n, for millions of grants.
pub fn in_real_time(seen: &[Seen]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut by_token: Vec<&Seen> = seen.iter().collect();
    by_token.sort_unstable_by_key(|seen| (seen.token, seen.told));
    for pair in by_token.windows(2) {
        if pair[0].token == pair[1].token && pair[0].session != pair[1].session {
            let (one, other) = (pair[0].session, pair[1].session);
            let what = format!("sessions {one} and {other} both got token {}", pair[0].token);
            found.push(Violation::new(Id::I2, pair[1].told, what));
        }
    }
    let mut by_told: Vec<&Seen> = seen.iter().collect();
    by_told.sort_unstable_by_key(|seen| seen.told);
    let mut by_asked: Vec<&Seen> = seen.iter().collect();
    by_asked.sort_unstable_by_key(|seen| seen.asked);
    let mut told = by_told.into_iter().peekable();
    let mut greatest: Option<&Seen> = None;
    for later in by_asked {
        while let Some(earlier) = told.next_if(|earlier| earlier.told < later.asked) {
            if greatest.is_none_or(|greatest| greatest.token < earlier.token) {
                greatest = Some(earlier);
            }
        }
        if let Some(earlier) = greatest.filter(|greatest| greatest.token >= later.token) {
            let what = format!(
                "token {} of session {} was asked for after token {} of session {} was told",
                later.token, later.session, earlier.token, earlier.session
            );
            found.push(Violation::new(Id::I2, later.told, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};

    fn at(asked: u64, told: u64, token: u64) -> Seen {
        let session = SessionId::from_u64(asked);
        Seen { asked: TrueTime(asked), told: TrueTime(told), token: Token::from_u64(token), session }
    }

    #[test]
    fn grants_at_the_same_time_may_come_in_any_order() {
        assert_eq!(in_real_time(&[at(1, 10, 7), at(5, 9, 6), at(10, 12, 8)]), []);
    }

    #[test]
    fn a_token_that_does_not_rise_is_found() {
        caught(&in_real_time(&[at(1, 9, 7), at(10, 12, 6)]), "token 6 of session 10");
        caught(&in_real_time(&[at(1, 10, 7), at(10, 12, 7)]), "both got token 7");
        // Of no use to compare with the last one only.
        caught(&in_real_time(&[at(1, 2, 9), at(3, 4, 10), at(1, 5, 1), at(6, 7, 8)]), "token 8 of session 6");
    }

    #[test]
    fn two_grants_of_one_entry_with_one_token_are_found() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        assert_eq!(stage.check(check), []);
        let twice = |story: &mut crate::check::story::Story<'_>| {
            let step = story.steps.last_mut().unwrap();
            let event = step.outcome.events[0].clone();
            step.outcome.events.push(event);
        };
        caught(&stage.tampered(twice, check), "behind token");
    }

    fn restored(epoch: u16, truthful: bool) -> Stage {
        use leasehold_core::{Command, Config, Epoch, LeaseTable, Millis, System};
        let mut stage = Stage::new();
        let session = stage.open(1);
        let behind = stage.index;
        let token = stage.acquire(session).unwrap();
        stage.release(session, token);
        stage.acquire(session).unwrap();
        let log = stage.record.begin_log(stage.log, behind);
        stage.push(Event::Restored { log, epoch, truthful });
        (stage.log, stage.index) = (log, behind);
        stage.table = LeaseTable::new(Config::default());
        for entry in &stage.record.logs[0].entries[..2] {
            stage.table.apply(entry.entry.as_ref().unwrap());
        }
        let epoch = Epoch::new(epoch).unwrap();
        stage.at(1).commit(vec![Command::System(System::Restored { epoch, wait: Millis::ZERO })]);
        stage.at(100);
        let session = stage.open(2);
        stage.acquire(session).unwrap();
        stage
    }

    #[test]
    fn a_restore_without_a_greater_epoch_is_found_unless_the_operator_was_wrong() {
        assert_eq!(restored(1, true).check(check), []);
        // Of the two lost numbers the first is drawn again for the new session, the second for its grant.
        caught(&restored(0, true).check(check), "both got token 3");
        assert_eq!(restored(0, false).check(check), []);
    }

    #[test]
    fn two_million_grants_take_seconds() {
        let count = if cfg!(debug_assertions) { 50_000 } else { 2_000_000 };
        let mut seen: Vec<Seen> = (0..count).map(|n| at(10 * n, 10 * n + 25, n)).collect();
        assert_eq!(in_real_time(&seen), []);
        let last = seen.len() - 1;
        seen[last].token = Token::from_u64(count - 4);
        assert_eq!(in_real_time(&seen).len(), 2, "used twice, and behind a greater one");
    }
}
