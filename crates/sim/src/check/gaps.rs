//! Gaps: what the table tells of the times in which nobody acted is what the world knows of them.
//!
//! A gap is looked at when it ends: at the moment at which the entry that ended it was stamped. Nobody can act under the new lease before.
//!
//! - *At least* so long nobody acted: it reaches no further back than to the end of the old holder's belief.
//! - *At most* counts from the last sign of life that was taken in: from no earlier one than the last renewal or the grant, and from no
//!   later one than the last of any kind. When a sign was taken in is known by true time, so time in which log time stood still
//!   must have been put in where it was.
//! - The holder before is the last that was granted the only place.
//!
//! What no service can know is not judged: how much of a change of leaders a member misses that has only begun, that a holder stopped when it sent a release that was long on its way, or acted no more because
//! the answers to its renewals were lost.

use std::collections::HashMap;

use leasehold_core::gap::{GapCause, GapView};
use leasehold_core::{Command, SessionId, Token};

use super::excuse::Span;
use super::running::Running;
use super::story::{Lease, Step, Told};
use super::windows::{Window, windows};
use super::{Id, Run, Violation};
use crate::record::TrueTime;

const MILLI: u64 = 1_000_000;
/// Stamps are rounded down, on both sides.
const ROUNDING: u64 = 5 * MILLI;
/// A loop that stood still for less is slow: log time lost a little then, and no entry tells of it.
const UNTOLD: u64 = 200 * MILLI;

/// A node compares the entries of so long with each other.
const PACE: u64 = 10_000 * MILLI;

/// Holds every gap that ended against what the world knows.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let running = Running::of(run);
    let mut believed: HashMap<Token, Vec<Window>> = HashMap::new();
    for window in windows(run.record) {
        believed.entry(window.token).or_default().push(window);
    }
    let judge = Judge { run, running, believed };
    (0..run.story.gaps.len()).filter_map(|place| judge.judge(place)).collect()
}

struct Judge<'a> {
    run: Run<'a>,
    running: Running,
    believed: HashMap<Token, Vec<Window>>,
}

impl Judge<'_> {
    fn judge(&self, place: usize) -> Option<Violation> {
        let run = self.run;
        let Told { step, view } = &run.story.gaps[place];
        let after = run.story.lease(view.after.as_ref()?.token)?;
        let before = run.story.lease(view.before.token)?;
        let ended = self.stamped(*step)?;
        let wrong = |what: String| Some(Violation::new(Id::Gaps, ended, what));
        // A life that begins from a backup knows nothing of what came behind it.
        if run.story.steps[before.step].log != run.story.steps[*step].log {
            return None;
        }
        if let Some(other) = left_out(run, before, after) {
            return wrong(format!(
                "a gap before token {} is told of {}, not of {other}",
                after.token, before.token
            ));
        }
        let comes_back = before.token == after.token;
        let last = self.belief_ended(before, ended, comes_back)?;
        let (surest, latest) =
            (self.surest(before, *step, comes_back)?, self.latest(place, before, comes_back)?);
        let span = Span { from: last.min(surest), to: ended };
        if !run.excuses.covers(None, ended) || !run.excuses.covers_nodes_during(&span) {
            return None;
        }
        let (at_least, at_most) = (nanos(view.at_least()), nanos(view.length()));
        let drift =
            |length: u64| length / 1_000_000 * 2 * u64::from(run.record.config.drift.ppm()) + ROUNDING;
        let stood = ended.since(last);
        // How long log time stood still before a leadership is measured with what it lost in small stalls before that.
        let lost = self.running.small_stalls(TrueTime(last.0.saturating_sub(PACE)), ended, UNTOLD);
        let changed = self.running.led_anew(TrueTime(span.from.0.saturating_sub(PACE)), ended);
        let lost = lost + if changed { UNTOLD } else { 0 };
        if at_least > stood + drift(stood) + lost {
            return wrong(told_wrongly(view, "at least", at_least, "nobody believed in it for", stood));
        }
        // The time of small stalls is in no entry.
        let small = UNTOLD + self.running.small_stalls(span.from, ended, UNTOLD);
        let (shortest, longest) = (ended.since(latest), ended.since(surest));
        let unknown = view.parts.iter().any(|part| part.cause == GapCause::Outage && nanos(part.length) == 0);
        // How long it was until the next one led is measured by members that may have begun only then.
        if at_most + drift(at_most) + small < shortest && !unknown && !changed {
            return wrong(told_wrongly(
                view,
                "at most",
                at_most,
                "its last sign of life of any kind was before",
                shortest,
            ));
        }
        if at_most > longest + drift(longest) + small && !self.lapsed(before.token) {
            return wrong(told_wrongly(
                view,
                "at most",
                at_most,
                "it was renewed or granted before",
                longest,
            ));
        }
        None
    }

    /// When the entry of a step was stamped.
    fn stamped(&self, step: usize) -> Option<TrueTime> {
        let step = &self.run.story.steps[step];
        self.running.stamps(step.log, step.index, step.index).first().map(|stamp| stamp.at)
    }

    /// When the old holder believed last. One that comes back is judged by what it believed before.
    fn belief_ended(&self, before: &Lease, ended: TrueTime, comes_back: bool) -> Option<TrueTime> {
        let over = |window: &&Window| window.span.from < ended && (!comes_back || window.span.to <= ended);
        let windows = self.believed.get(&before.token)?.iter().filter(over);
        Some(windows.map(|window| window.span.to).max()?.min(ended))
    }

    /// The last step whose signs of life belong to a lease.
    fn last_own(&self, before: &Lease, gap_ended: usize, comes_back: bool) -> usize {
        match &before.end {
            Some(end) if !comes_back => end.step.min(gap_ended),
            _ => gap_ended.saturating_sub(1),
        }
    }

    /// When the last renewal of a lease was taken in, or its grant.
    fn surest(&self, before: &Lease, gap_ended: usize, comes_back: bool) -> Option<TrueTime> {
        // A holder that comes back and gives its lease up with the same breath leaves one gap: the renewal is in that entry.
        let last = self.last_own(before, gap_ended, comes_back).saturating_sub(1);
        let renewed =
            self.run.story.renewal_by(before.session, last).map_or(before.step, |renewal| renewal.step);
        self.stamped(renewed.max(before.step))
    }

    /// When its session was heard of last at all, or the gap before this one was over.
    fn latest(&self, place: usize, before: &Lease, comes_back: bool) -> Option<TrueTime> {
        let story = self.run.story;
        let last = self.last_own(before, story.gaps[place].step, comes_back);
        let mentions = |step: &&usize| mentions(&story.steps[**step], before.session);
        let heard = (before.step..=last).rev().collect::<Vec<usize>>();
        let heard = heard.iter().find(mentions).copied().unwrap_or(before.step);
        let told = story.gaps[..place].iter().rev().find(|told| {
            let after = told.view.after.as_ref().and_then(|after| story.lease(after.token));
            after.is_some_and(|after| after.place.resource == before.place.resource)
        });
        let told = told.and_then(|told| self.stamped(told.step));
        Some(self.stamped(heard)?.max(told.unwrap_or_default()))
    }

    /// Whether a gap of a holder that came back was told of it: what comes right behind it goes on with that.
    fn lapsed(&self, token: Token) -> bool {
        let back = |view: &GapView| view.after.as_ref().is_some_and(|after| after.token == view.before.token);
        self.run.story.gaps.iter().any(|told| told.view.before.token == token && back(&told.view))
    }
}

/// Whether an entry has anything of a session.
fn mentions(step: &Step<'_>, id: SessionId) -> bool {
    step.entry.commands.iter().any(|command| match command {
        Command::Renew { session, .. }
        | Command::RenewPlain { session }
        | Command::NoRoom { session, .. }
        | Command::Detached { session, .. } => *session == id,
        Command::Attach(attach) => attach.session == id,
        Command::Session(command) => command.session == id,
        Command::Open(_) | Command::Operator(_) | Command::Tidy(_) | Command::System(_) => false,
    })
}

fn told_wrongly(view: &GapView, how: &str, told: u64, knows: &str, length: u64) -> String {
    let (told, length, before) = (told / MILLI, length / MILLI, view.before.token);
    format!("a gap behind token {before} is told as {how} {told} ms, and {knows} {length} ms: {view:?}")
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
            view.leeway = Some(view.length());
        };
        caught(&tampered(|view| view.leeway = Some(Millis::ZERO)), "at least");
        caught(&tampered(|view| view.parts.truncate(0)), "at most");
        caught(&tampered(|view| longer(view, 2_000)), "renewed or granted");
    }
}
