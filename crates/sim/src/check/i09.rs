//! I9, the fence: a fenced receiver never accepts a smaller token after a greater one, and an equal one only from the same holder or
//! from another of the same shared group. Nor does it refuse a holder whose token is the greatest ever granted.

use std::collections::{BTreeMap, HashSet};

use leasehold_core::{SessionId, Token};

use super::{Id, Run, Violation};
use crate::record::{Event, Place, TrueTime};

/// Follows every fenced receiver.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let shared = run.story.leases.iter().filter(|lease| lease.shared);
    let groups: HashSet<(Token, SessionId)> = shared.map(|lease| (lease.fence, lease.session)).collect();
    let mut granted: BTreeMap<Place, Vec<(TrueTime, Token)>> = BTreeMap::new();
    for lease in &run.story.leases {
        granted.entry(lease.place).or_default().push((run.story.time(lease.step), lease.fence));
    }
    let mut fences: BTreeMap<Place, (Token, SessionId)> = BTreeMap::new();
    let mut found = Vec::new();
    for (now, event) in &run.record.events {
        let (Event::Write { place, fenced: true, token, session, accepted, .. }
        | Event::Sealed { place, token, session, accepted }) = *event
        else {
            continue;
        };
        let mut wrong = |what: String| found.push(Violation::new(Id::I9, *now, what));
        if !accepted {
            let greater = granted.get(&place).is_some_and(|granted| {
                granted.iter().any(|(applied, fence)| *fence > token && applied <= now)
            });
            if !greater && run.excuses.covers_tokens(*now) {
                wrong(format!(
                    "token {token} of session {session} was refused, and none greater was granted"
                ));
            }
            continue;
        }
        if let Some((fence, holder)) = fences.get(&place).copied() {
            let one_group = groups.contains(&(token, session)) && groups.contains(&(token, holder));
            if token < fence {
                wrong(format!("token {token} of session {session} was accepted behind token {fence}"));
            } else if token == fence && session != holder && !one_group && run.excuses.covers_tokens(*now) {
                wrong(format!("sessions {holder} and {session} both wrote with token {token}"));
            }
        }
        let fence = fences.entry(place).or_insert((token, session));
        if token > fence.0 {
            *fence = (token, session);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught, name};
    use crate::record::ResourceId;
    use leasehold_core::{Acquire, Mode, Op, Request, Value};

    const PLACE: Place = Place { resource: ResourceId(0), slot: None };

    fn write(stage: &mut Stage, session: SessionId, token: Token, accepted: bool) {
        let sent = stage.now;
        stage.push(Event::Write { place: PLACE, fenced: true, token, session, sent, accepted });
    }

    fn two_holders() -> (Stage, [(SessionId, Token); 2]) {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let old = stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        let new = stage.release(first, old).unwrap();
        stage.push(Event::Sealed { place: PLACE, token: new, session: second, accepted: true });
        (stage, [(first, old), (second, new)])
    }

    #[test]
    fn a_stale_write_behind_a_seal_is_refused_or_found() {
        let (mut stage, [(first, old), (second, new)]) = two_holders();
        write(&mut stage, first, old, false);
        write(&mut stage, second, new, true);
        assert_eq!(stage.check(check), []);
        write(&mut stage, first, old, true);
        caught(&stage.check(check), "was accepted behind token");
    }

    #[test]
    fn another_holder_with_an_equal_token_is_found() {
        let (mut stage, [(first, _), (_, new)]) = two_holders();
        write(&mut stage, first, new, true);
        caught(&stage.check(check), "both wrote with token");
    }

    #[test]
    fn a_holder_that_is_refused_for_nothing_is_found() {
        let (mut stage, [_, (second, new)]) = two_holders();
        write(&mut stage, second, new, false);
        caught(&stage.check(check), "none greater was granted");
    }

    #[test]
    fn a_shared_group_writes_with_one_token() {
        let mut stage = Stage::new();
        let mut fences = Vec::new();
        for client in [1, 2] {
            let session = stage.open(client);
            let requests = vec![Request { resource: name(0), mode: Mode::Shared }];
            let acquire = Acquire { requests, value: Value::default(), wait: None };
            let (_, command) = stage.command(session, Op::Acquire(acquire));
            stage.commit(vec![command]);
            let story = crate::check::story::Story::of(&stage.record);
            fences.push((session, story.leases.last().unwrap().fence));
        }
        assert_eq!(fences[0].1, fences[1].1);
        for (session, fence) in fences {
            write(&mut stage, session, fence, true);
        }
        assert_eq!(stage.check(check), []);
    }
}
