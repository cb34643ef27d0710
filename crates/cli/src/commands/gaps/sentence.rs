//! One gap in one sentence: what ended, what took how long, and who came after.

use std::time::Duration;

use leasehold::Ending;
use leasehold::core::Millis;
use leasehold::core::gap::{GapCause, GapPart, GapSide, GapView};

use super::told::Told;
use crate::words;

/// Two lengths that are told as one.
const NEARLY_THE_SAME: Duration = Duration::from_millis(200);

/// The whole of it.
pub(super) fn explain(name: &str, gap: &Told) -> String {
    let view = &gap.view;
    let lasts = gap.ended_ago.is_none();
    let verb = if lasts { "has been" } else { "was" };
    let length = length(view);
    let mut clauses: Vec<String> = Vec::new();
    let stretches = Stretch::all(&view.parts);
    for (number, stretch) in stretches.iter().enumerate() {
        let last = number + 1 == stretches.len();
        let told = stretch.cause.map(|cause| clause(view, cause, stretch.length, last, lasts));
        let outages = stretch.told_outages();
        // What lasts, and what the next holder needed, is where the sentence goes on: the outages in it come before.
        let comes_last = last && (lasts || comes_back(view) || stretch.cause == Some(GapCause::WarmUp));
        let order = if comes_last { [outages, told] } else { [told, outages] };
        clauses.extend(order.into_iter().flatten());
    }
    if let (Some(after), false) = (&view.after, lasts)
        && stretches.last().is_none_or(|stretch| stretch.cause != Some(GapCause::WarmUp))
        && after.token != view.before.token
    {
        clauses.push(format!("then {} had it", who(after)));
    }
    let began = began(view);
    let how = if clauses.is_empty() { began } else { format!("{began}; {}", clauses.join(", ")) };
    format!("{name} {verb} without a holder for {length}: {how}")
}

/// Both lengths; one where they are nearly the same. A time that no clock measured makes the greater no bound.
pub(super) fn length(view: &GapView) -> String {
    let (most, least) = (view.length().duration(), view.at_least().duration());
    let unknown = view.parts.iter().any(|part| part.cause == GapCause::Outage && part.length == Millis::ZERO);
    let told = words::three_digits;
    if unknown {
        format!("at least {}", told(least))
    } else if most - least <= NEARLY_THE_SAME {
        told(most)
    } else if least.is_zero() {
        format!("at most {}", told(most))
    } else {
        format!("at most {} and at least {}", told(most), told(least))
    }
}

/// One cause, with the outages in which it went on: cut into pieces by them it is still one thing that happened.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    /// Nothing where a gap begins with an outage.
    cause: Option<GapCause>,
    length: Millis,
    outages: usize,
    outage: Millis,
    /// Of some outage nobody knows how long it was.
    unknown: bool,
}

impl Stretch {
    fn all(parts: &[GapPart]) -> Vec<Self> {
        let mut stretches: Vec<Self> = Vec::new();
        for GapPart { cause, length } in parts.iter().copied() {
            let is_outage = cause == GapCause::Outage;
            let goes_on = stretches.last().is_some_and(|last| is_outage || last.cause == Some(cause));
            if !goes_on {
                stretches.push(Self { cause: (!is_outage).then_some(cause), ..Self::default() });
            }
            let Some(stretch) = stretches.last_mut() else { continue };
            if is_outage {
                stretch.outages += 1;
                stretch.outage = stretch.outage.saturating_add(length);
                stretch.unknown |= length == Millis::ZERO;
            } else {
                stretch.length = stretch.length.saturating_add(length);
            }
        }
        stretches
    }

    fn told_outages(&self) -> Option<String> {
        let length = words::three_digits(self.outage.duration());
        match (self.outages, self.unknown) {
            (0, _) => None,
            _ if self.outage == Millis::ZERO => Some("nobody knows how long the store was down".to_owned()),
            (_, true) => Some(format!("{length} at least in which the store was down")),
            (_, false) => Some(format!("{length} in which the store was down")),
        }
    }
}

/// Why nobody acts right now.
pub(super) fn right_now(gap: &Told) -> &'static str {
    match gap.view.parts.last().map(|part| part.cause) {
        Some(GapCause::Detection) => "its holder is silent, and its ttl is not over",
        Some(GapCause::Grace) => "its holder is overdue and may come back",
        Some(GapCause::Revoke) => "it was revoked, and its holder may not know yet",
        Some(GapCause::CoolDown) => "a cool-down keeps it from everybody",
        Some(GapCause::Restore) => "the state was restored, and nothing is granted yet",
        Some(GapCause::Alarm) => "an alarm keeps it from everybody: see `leasehold alarms`",
        Some(GapCause::WarmUp) => "its holder is warming up",
        Some(GapCause::Queue | GapCause::Outage) | None => "it is free, and nobody asks for it",
    }
}

fn began(view: &GapView) -> String {
    let before = &view.before;
    let who = who(before);
    match &before.how {
        _ if comes_back(view) => format!("{who} could not renew"),
        None => format!("{who} is gone, and how is forgotten"),
        Some(Ending::Released) => format!("{who} released it"),
        Some(Ending::Drained) => format!("{who} finished its work and released it"),
        Some(Ending::HandedOver { .. }) => format!("{who} handed it over"),
        Some(Ending::Expired) => format!("{who} fell silent and expired"),
        Some(Ending::Taken { by }) => {
            format!("{who} fell silent, and token {by} took it while it was overdue")
        }
        Some(Ending::Revoked { by, reason }) => format!("{who} was revoked by {by} ({reason})"),
        Some(Ending::SessionClosed) => format!("{who} closed its session"),
        Some(Ending::Rebooted) => format!("{who} ended with a start of its machine"),
        Some(Ending::Restored) => format!("{who} ended because the store was restored"),
    }
}

/// The holder before is the one after as well.
fn comes_back(view: &GapView) -> bool {
    view.after.as_ref().is_some_and(|after| after.token == view.before.token)
}

fn clause(view: &GapView, cause: GapCause, length: Millis, last: bool, lasts: bool) -> String {
    let length = words::three_digits(length.duration());
    let now = last && lasts;
    match cause {
        GapCause::Detection => match &view.before.how {
            _ if comes_back(view) => format!("{length} until it renewed again"),
            Some(Ending::Expired | Ending::Taken { .. }) => format!("{length} until that was noticed"),
            None if lasts => format!("last heard of {length} ago"),
            _ => format!("last heard of {length} before"),
        },
        GapCause::Grace => format!("{length} of grace"),
        GapCause::Revoke if now => format!("for {length} it may not know yet"),
        GapCause::Revoke => format!("{length} until it could not act any more"),
        GapCause::CoolDown => format!("{length} of cool-down"),
        GapCause::Restore => format!("{length} of waiting after the restore"),
        GapCause::Alarm => format!("{length} stopped by an alarm"),
        GapCause::Queue if now => format!("nobody has asked for it for {length}"),
        // Whether somebody was waiting is not told: a waiter is granted a moment after it could be, and counts here too.
        GapCause::Queue => format!("free for {length}"),
        GapCause::WarmUp => warm_up(view, &length, last, lasts),
        GapCause::Outage => format!("{length} in which the store was down"),
    }
}

/// Only the last warm-up is of the holder that is known.
fn warm_up(view: &GapView, length: &str, last: bool, lasts: bool) -> String {
    match (&view.after, last, lasts) {
        (Some(after), true, true) => format!("{} has been warming up for {length}", who(after)),
        (Some(after), true, false) => format!("then {} needed {length} to be ready", who(after)),
        _ => format!("{length} of a warm-up that came to nothing"),
    }
}

fn who(side: &GapSide) -> String {
    let label = side.label.as_ref().map_or("somebody", words::somebody);
    format!("{label} (token {})", side.token)
}
