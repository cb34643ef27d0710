//! A plan for people.

use std::fmt::Write as _;

use leasehold::core::Millis;
use leasehold::core::numbers::{Ask, Inequality, NumbersError, Schedule};
use leasehold::core::plan::{Changed, FEWEST_PARTS, PauseEffect, Plan, Preset, Sides, Traffic};

use super::{again, exact, timeline};
use crate::args::Percent;
use crate::console::Console;
use crate::words;

/// The whole of it: the verdict first, because that is what was asked.
pub(super) fn report(
    console: &Console,
    plan: &Plan,
    nearest: Option<&(Ask, Vec<Changed>)>,
    leases: u64,
    preset: Option<&Preset>,
) -> String {
    let mut text = verdict(plan, nearest);
    for warning in &plan.warnings {
        let (name, condition, reason) = (warning.name(), warning.condition(), warning.reason());
        put(&mut text, &format!("warning: {name}: {condition}; {reason}"));
    }
    if let Some(peer) = preset.filter(|preset| !preset.ours) {
        let (name, gap) = (peer.name, exact(peer.unplanned_gap()));
        let judged = "judged as leases of this system; by its own rules nobody holds a name for up to";
        put(&mut text, &format!("note: these are numbers of {name}, {judged} {gap} after a holder died"));
    }
    let sections = [
        ("numbers", numbers(plan)),
        ("inequalities", inequalities(plan)),
        ("what follows", follows(plan, leases)),
        ("one ttl", timeline::draw(plan, console.is_terminal())),
    ];
    for (head, lines) in sections {
        put(&mut text, &format!("\n{}", console.heading(head)));
        lines.iter().for_each(|line| put(&mut text, &format!("  {line}")));
    }
    text
}

fn put(text: &mut String, line: &str) {
    let _ = writeln!(text, "{}", line.trim_end());
}

pub(super) fn verdict(plan: &Plan, nearest: Option<&(Ask, Vec<Changed>)>) -> String {
    let Err(error) = plan.verdict else { return "accepted\n".to_owned() };
    let mut text = match error.inequality() {
        Some(which) => format!("refused: {} does not hold: {error}\n", which.word()),
        None => format!("refused: {error}\n"),
    };
    match nearest {
        Some((ask, changed)) => {
            put(&mut text, &format!("nearest: {}", again::changes(changed)));
            put(&mut text, &format!("  {}", again::command(ask, &plan.policies)));
            let every = ask.renew_every.unwrap_or(ask.ttl);
            if every.get().saturating_mul(FEWEST_PARTS) < ask.ttl.get() {
                let longest = exact(ask.max_ttl);
                let why = format!("because no ttl up to {longest} leaves room for fewer");
                let next = "lower the bounds, or choose a longer ttl where the store takes one (--max-ttl)";
                let what = format!("  warning: more than {FEWEST_PARTS} renewals in a ttl, {why}: {next}");
                put(&mut text, &what);
            }
        }
        None => put(&mut text, &no_nearest(plan, error)),
    }
    text
}

fn no_nearest(plan: &Plan, error: NumbersError) -> String {
    let bounds = if error.inequality() == Some(Inequality::Pause) { "the pause" } else { "the bounds" };
    format!("nearest: none; no ttl up to {} leaves room for {bounds}", exact(plan.ask.max_ttl))
}

/// A name, a figure and a remark.
fn row(name: &str, figure: &str, remark: &str) -> String {
    format!("{name:<15}{figure:<9} {remark}").trim_end().to_owned()
}

fn length(name: &str, length: Millis, remark: &str) -> String {
    row(name, &exact(length), remark)
}

fn numbers(plan: &Plan) -> Vec<String> {
    let ask = &plan.ask;
    let left_open = |open: bool, how: &str| if open { format!("by default: {how}") } else { String::new() };
    let third = match plan.schedule {
        Schedule::Even => "a third of the ttl; each time up to a fifth sooner",
        Schedule::Fixed => "a third of the ttl",
        Schedule::Halves => "half of the ttl, then seven eighths; each time up to a fifth sooner",
    };
    let tenth = "a tenth of the ttl, and no less than the guard";
    let of_drift = format!("drift of {} in one ttl", Percent(ask.drift));
    vec![
        length("ttl", plan.ttl, ""),
        length("renew every", plan.renew_every, &left_open(ask.renew_every.is_none(), third)),
        length("clock bound", plan.clock_bound, &left_open(ask.clock_bound.is_none(), &of_drift)),
        length("round trip", plan.round_trip, &left_open(ask.round_trip.is_none(), "a slow data centre")),
        length("margin", plan.margin, &left_open(ask.margin.is_none(), tenth)),
    ]
}

fn inequalities(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for sides in [Some(plan.safety), Some(plan.availability), plan.paused].into_iter().flatten() {
        lines.push(row(sides.which.word(), words_of(plan, sides.which), ""));
        lines.push(row("", &format!("{}: {}", filled_in(plan, &sides), holds(&sides)), ""));
    }
    lines
}

fn words_of(plan: &Plan, which: Inequality) -> &'static str {
    match (which, plan.schedule) {
        (Inequality::Safety, _) => "margin >= clock bound + in-flight",
        (Inequality::Availability, Schedule::Halves) => "7/8 of the ttl + round trip < ttl - margin",
        (Inequality::Availability, _) => "2 x renew every + round trip < ttl - margin",
        (Inequality::Pause, _) => "renew every + pause + round trip < ttl - margin",
    }
}

/// An inequality in figures.
pub(super) fn filled_in(plan: &Plan, sides: &Sides) -> String {
    let (left, right) = (exact(sides.left), exact(sides.right));
    let (every, trip) = (exact(plan.renew_every), exact(plan.round_trip));
    let usable =
        format!("{} - {} = {}", exact(plan.ttl), exact(plan.margin), difference(plan.ttl, plan.margin));
    match (sides.which, plan.schedule) {
        (Inequality::Safety, _) => {
            format!("{left} >= {} + {} = {right}", exact(plan.clock_bound), exact(plan.in_flight))
        }
        (Inequality::Availability, Schedule::Halves) => {
            format!("{} + {trip} = {left} < {usable}", exact(plan.second_attempt))
        }
        (Inequality::Availability, _) => format!("2 x {every} + {trip} = {left} < {usable}"),
        (Inequality::Pause, _) => {
            let pause = exact(plan.ask.pause.unwrap_or_default());
            format!("{every} + {pause} + {trip} = {left} < {usable}")
        }
    }
}

/// Below nothing too, so that the subtraction can be followed.
fn difference(from: Millis, less: Millis) -> String {
    let length = exact(Millis::new(from.get().abs_diff(less.get())));
    if less > from { format!("-{length}") } else { length }
}

pub(super) fn holds(sides: &Sides) -> String {
    match (sides.holds, sides.spare().get()) {
        (false, _) => "does not hold".to_owned(),
        (true, 0) => "holds, with nothing to spare".to_owned(),
        (true, _) => format!("holds, {} to spare", exact(sides.spare())),
    }
}

fn follows(plan: &Plan, leases: u64) -> Vec<String> {
    let gap = |polling| {
        format!("at worst; {} for those who only poll, every {}", exact(polling), exact(plan.renew_every))
    };
    let gaps = &plan.gaps;
    let parts = format!("clock bound {} + in-flight {}", exact(plan.clock_bound), exact(plan.in_flight));
    let acts = "how long a holder may act after sending a renewal that is confirmed";
    let mut lines = vec![
        length("guard", plan.guard, &parts),
        length("effective", plan.effective, acts),
        length("overdue", plan.overdue, "when the service gives up a holder that is silent"),
        length("planned gap", gaps.planned, &gap(gaps.planned_polling)),
        length("unplanned gap", gaps.unplanned, &gap(gaps.unplanned_polling)),
    ];
    lines.extend(pauses(plan));
    let sessions = words::count(plan.coalesced.sessions, "session");
    let together = format!("{} in {sessions}", words::count(leases, "lease"));
    lines.push(traffic("renewals", &plan.coalesced, &together));
    lines.push(traffic("", &plan.separate, "with a session for each lease"));
    lines
}

fn pauses(plan: &Plan) -> Vec<String> {
    let pauses = &plan.pauses;
    let mut lines = Vec::new();
    if let Some((pause, effect)) = pauses.asked {
        let what = match effect {
            PauseEffect::Unnoticed => "goes unnoticed, also when a renewal was due",
            PauseEffect::Lapses => {
                "stops the holder if a renewal was due; the lease is still its own afterwards"
            }
            PauseEffect::Lost => {
                "loses the lease if a renewal was due: another may hold it, and only tokens keep the old one out"
            }
        };
        lines.push(length("this pause", pause, what));
    }
    let unnoticed = pauses.unnoticed.map_or("none".to_owned(), exact);
    lines.push(row("pauses", &unnoticed, "the longest that goes unnoticed, also when a renewal was due"));
    if let Some(returns) = pauses.returns {
        lines.push(length("", returns, "the longest after which the lease is surely still there"));
    }
    lines
}

fn traffic(name: &str, traffic: &Traffic, remark: &str) -> String {
    let rate = format!("{}/s", rate(traffic.renewals_per_1000_s()));
    row(name, &rate, &format!("{} a day: {remark}", bytes(traffic.bytes_per_day)))
}

/// A rate that is kept in thousandths, with no more places than tell something.
pub(super) fn rate(thousandths: u64) -> String {
    let (whole, rest) = (thousandths / 1_000, thousandths % 1_000);
    match whole {
        0 => format!("0.{rest:03}"),
        1..100 => format!("{whole}.{}", rest / 100),
        _ => whole.to_string(),
    }
}

/// Bytes with a decimal prefix, rounded down to a tenth.
pub(super) fn bytes(bytes: u64) -> String {
    let (mut unit, mut size) = (1, "B");
    for (next, name) in [(1_000, "kB"), (1_000_000, "MB"), (1_000_000_000, "GB"), (1_000_000_000_000, "TB")] {
        if bytes >= next {
            (unit, size) = (next, name);
        }
    }
    match bytes / unit {
        whole @ 0..100 if unit > 1 => format!("{whole}.{} {size}", bytes % unit * 10 / unit),
        whole => format!("{whole} {size}"),
    }
}
