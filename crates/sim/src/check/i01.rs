//! I1, exclusion: the times in which two holders of one exclusive resource, or of one slot, believe in their lease never overlap.

use std::collections::BTreeMap;

use super::windows::{Window, windows};
use super::{Id, Run, Violation};
use crate::record::ResourceId;

/// Looks for overlaps that the promises cover.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut by_resource: BTreeMap<ResourceId, Vec<Window>> = BTreeMap::new();
    for window in windows(run.record) {
        by_resource.entry(window.place.resource).or_default().push(window);
    }
    let mut found = Vec::new();
    for mut windows in by_resource.into_values() {
        windows.sort_by_key(|window| (window.span.from, window.token));
        // Those that may still run when the next one begins: few, because exclusion mostly holds.
        let mut running: Vec<Window> = Vec::new();
        for window in windows {
            running.retain(|earlier| earlier.span.to > window.span.from);
            for earlier in &running {
                if conflicts(run, earlier, &window) {
                    found.push(overlap(run, earlier, &window));
                }
            }
            running.push(window);
        }
    }
    found
}

fn overlap(run: Run<'_>, earlier: &Window, later: &Window) -> Violation {
    let name = &run.record.names[later.place.resource.0 as usize];
    let shared = earlier.span.shared(&later.span);
    let what = format!(
        "{name}: session {} believed in token {} and session {} in token {} for {shared} ns at once",
        earlier.session, earlier.token, later.session, later.token
    );
    Violation::new(Id::I1, later.span.from, what)
}

fn conflicts(run: Run<'_>, one: &Window, other: &Window) -> bool {
    if one.session == other.session || one.token == other.token || one.place.is_apart(other.place) {
        return false;
    }
    let leases = (run.story.lease(one.token), run.story.lease(other.token));
    let both_share = matches!(leases, (Some(a), Some(b)) if a.shared && b.shared);
    let moment = one.span.from.max(other.span.from);
    // Who revokes at once has said that only the fence protects from whoever held it, for those that come after.
    let older = if one.token < other.token { leases.0 } else { leases.1 };
    let at_once = older.and_then(|lease| lease.end.as_ref()?.at_once);
    let given_up = at_once.is_some_and(|step| run.story.time(step) <= moment);
    let covered = [one, other].iter().all(|window| run.excuses.covers(window.client, moment));
    !both_share && !given_up && covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{MILLI, Stage, caught, name};
    use crate::record::{ClientId, Event, Fault, Machine, NodeId, TrueTime};
    use leasehold_core::{Command, Label, Operator, Reason, SessionId, Token};

    fn one_after_the_other() -> (Stage, [SessionId; 2], Token) {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let token = stage.acquire(first).unwrap();
        assert!(stage.acquire(second).is_err());
        stage.at(500).renew(second, &[]);
        (stage, [first, second], token)
    }

    #[test]
    fn a_handover_in_one_moment_is_no_overlap() {
        let (mut stage, [first, _], token) = one_after_the_other();
        stage.release(first, token).unwrap();
        stage.at(900).push(Event::Ended);
        assert_eq!(stage.check(check), []);
    }

    fn overlapping() -> Stage {
        let (mut stage, [first, _], token) = one_after_the_other();
        stage.release(first, token).unwrap();
        // Belief until the release is answered, a nanosecond later.
        stage.believe(first, token, Some(TrueTime(500 * MILLI + 1)));
        stage.at(900).push(Event::Ended);
        stage
    }

    #[test]
    fn an_overlap_of_a_nanosecond_is_found() {
        caught(&overlapping().check(check), "for 1 ns at once");
    }

    /// The overlap of [`overlapping`], and one of the two leases is revoked at once, at 800 ms.
    fn revoked(later: bool) -> Vec<Violation> {
        let (mut stage, [first, second], token) = one_after_the_other();
        let (by, reason) = (Label::new("op").unwrap(), Reason::new("why").unwrap());
        let revoke = |token| {
            let revoke = Operator::Revoke { resource: name(0), token, by, reason, now: true };
            vec![Command::Operator(revoke)]
        };
        if later {
            let next = stage.release(first, token).unwrap();
            stage.believe(first, token, Some(TrueTime(600 * MILLI)));
            stage.at(800).commit(revoke(next));
        } else {
            let applied = stage.at(800).commit(revoke(token));
            let next = stage.hand_out(&applied).unwrap();
            stage.believe(first, token, Some(TrueTime(900 * MILLI)));
            stage.believe(second, next, Some(TrueTime(900 * MILLI)));
        }
        stage.at(1_000).push(Event::Ended);
        stage.check(check)
    }

    #[test]
    fn a_revoke_at_once_excuses_belief_in_what_was_revoked_and_nothing_before() {
        assert_eq!(revoked(false), []);
        caught(&revoked(true), "at once");
    }

    fn with_fault(machine: Machine, within: bool) -> Vec<Violation> {
        let mut stage = overlapping();
        let fault = Event::Fault { machine, what: Fault::Clock, within, begins: true };
        stage.record.events.insert(0, (TrueTime::ZERO, fault));
        stage.check(check)
    }

    #[test]
    fn a_clock_within_the_bound_or_of_somebody_else_excuses_nothing() {
        caught(&with_fault(Machine::Client(ClientId(1)), true), "at once");
        caught(&with_fault(Machine::Node(NodeId(1)), true), "at once");
        caught(&with_fault(Machine::Client(ClientId(3)), false), "at once");
    }

    #[test]
    fn a_clock_beyond_the_bound_excuses() {
        assert_eq!(with_fault(Machine::Client(ClientId(1)), false), []);
        assert_eq!(with_fault(Machine::Node(NodeId(1)), false), []);
    }
}
