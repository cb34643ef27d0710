//! Gaps: what the table tells of the times in which nobody acted is what a stopwatch beside the clients would have shown.
//!
//! A gap is looked at when it ends, and held against the beliefs of the two holders. Its end is the moment at which the entry that ended
//! it was stamped: nobody can act under the new lease before. What it tells before the old holder's belief was over, it must not tell
//! as *at least*; and *at most* must reach back to there.

use std::collections::HashMap;

use leasehold_core::Token;
use leasehold_core::gap::{GapCause, GapView};

use super::excuse::Span;
use super::running::Running;
use super::story::{Lease, Told};
use super::windows::{Window, windows};
use super::{Id, Run, Violation};

const MILLI: u64 = 1_000_000;
/// Stamps are rounded down, on both sides.
const ROUNDING: u64 = 5 * MILLI;
/// A loop that stood still for less is slow: log time lost a little then, and no entry tells of it.
const UNTOLD: u64 = 200 * MILLI;

/// Holds every gap that ended against what its holders believed.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let running = Running::of(run);
    let mut believed: HashMap<Token, Vec<Window>> = HashMap::new();
    for window in windows(run.record) {
        believed.entry(window.token).or_default().push(window);
    }
    run.story.gaps.iter().filter_map(|told| judge(run, &running, &believed, told)).collect()
}

fn judge(
    run: Run<'_>,
    running: &Running,
    believed: &HashMap<Token, Vec<Window>>,
    told: &Told,
) -> Option<Violation> {
    let Told { step, view, .. } = told;
    let step = &run.story.steps[*step];
    let after = run.story.lease(view.after.as_ref()?.token)?;
    let ended = running.stamps(step.log, step.index, step.index).first()?.at;
    let wrong = |what: String| Some(Violation::new(Id::Gaps, ended, what));
    let (at_least, at_most) = (nanos(view.at_least()), nanos(view.length()));
    let before = run.story.lease(view.before.token)?;
    if let Some(other) = left_out(run, before, after) {
        return wrong(format!(
            "a gap before token {} is told of {}, not of {other}",
            after.token, before.token
        ));
    }
    // Who comes back is judged by what it believed before.
    let over = |window: &&Window| {
        window.span.from < ended && (before.token != after.token || window.span.to <= ended)
    };
    let last =
        believed.get(&before.token)?.iter().filter(over).map(|window| window.span.to).max()?.min(ended);
    let span = Span { from: last, to: ended };
    let unknown = view.parts.iter().any(|part| part.cause == GapCause::Outage && nanos(part.length) == 0);
    let same_life = run.story.steps[before.step].log == step.log;
    if !same_life || !run.excuses.covers(None, ended) || !run.excuses.covers_nodes_during(&span) {
        return None;
    }
    let stood = ended.since(last);
    let drift = stood / 1_000_000 * 2 * u64::from(run.record.config.drift.ppm());
    if at_least > stood + drift + ROUNDING {
        return wrong(told_wrongly(view, "at least", at_least, stood));
    }
    // The time of small stalls is in no entry.
    let small = running.small_stalls(last, ended, UNTOLD);
    if at_most + drift + ROUNDING + UNTOLD + small < stood && !unknown {
        return wrong(told_wrongly(view, "at most", at_most, stood));
    }
    let ttl = nanos(run.story.sessions.get(&before.session)?.ttl);
    if at_most > stood + ttl + ttl / 1_000 + drift + ROUNDING + UNTOLD {
        return wrong(told_wrongly(view, "up to a ttl more than", at_most, stood));
    }
    None
}

fn told_wrongly(view: &GapView, how: &str, told: u64, stood: u64) -> String {
    let (told, stood, before) = (told / MILLI, stood / MILLI, view.before.token);
    format!(
        "a gap behind token {before} is told as {how} {told} ms, and nobody believed in it for {stood} ms: {view:?}"
    )
}

fn nanos(length: leasehold_core::Millis) -> u64 {
    length.get().saturating_mul(MILLI)
}

/// A lease of the only place that was granted between the two that a gap is told of.
fn left_out(run: Run<'_>, before: &Lease, after: &Lease) -> Option<Token> {
    let between = |lease: &&Lease| {
        let others = [before.token, after.token];
        lease.place == after.place && !lease.shared && !others.contains(&lease.token)
    };
    let single = !after.shared && after.place.slot.is_none() && before.place == after.place;
    let mut between = run.story.leases.iter().filter(between);
    let inside = |lease: &Lease| before.token < lease.token && lease.token < after.token;
    single.then(|| between.find(|lease| inside(lease)).map(|lease| lease.token)).flatten()
}

#[cfg(test)]
mod tests {
    use leasehold_core::{Command, Due, Millis, System};

    use super::*;
    use crate::check::stage::{Stage, caught, name};
    use crate::check::story::Story;

    /// A holder is renewed last at 500 ms and falls silent; the next is granted at 2 s.
    fn fell_silent() -> Stage {
        let mut stage = Stage::new();
        let version = leasehold_core::table::GAPS_HAVE_TWO_LENGTHS;
        stage.commit(vec![Command::System(System::ClusterVersion { version })]);
        let first = stage.open(1);
        let token = stage.acquire(first).expect("it is free");
        stage.at(500).renew(first, &[token]);
        stage.at(1_900);
        let second = stage.open(2);
        stage.commit(vec![Command::Tidy(vec![Due::Resource(name(0))])]);
        stage.at(2_000).acquire(second).expect("the first is overdue");
        stage
    }

    fn tampered(change: impl Fn(&mut GapView)) -> Vec<Violation> {
        let tamper = |story: &mut Story<'_>| change(&mut story.gaps.last_mut().expect("one gap ended").view);
        fell_silent().tampered(tamper, check)
    }

    #[test]
    fn a_gap_as_a_stopwatch_has_it_is_right() {
        assert_eq!(fell_silent().check(check), []);
    }

    #[test]
    fn a_gap_that_is_too_short_or_too_sure_or_too_long_is_found() {
        let longer = |view: &mut GapView, by: u64| {
            view.parts[0].length = Millis::new(view.parts[0].length.get() + by);
            view.leeway = view.length();
        };
        caught(&tampered(|view| view.leeway = Millis::ZERO), "at least");
        caught(&tampered(|view| view.parts.truncate(0)), "at most");
        caught(&tampered(|view| longer(view, 2_000)), "up to a ttl more");
    }
}
