//! The timeline of one ttl, drawn with characters: one line for each thing, so that no two names meet.

use leasehold::core::Millis;
use leasehold::core::plan::Plan;

use super::exact;

/// Columns of the drawing, beside names and figures: together they fit 80.
const WIDTH: u64 = 48;

/// What lines are drawn with.
struct Pen {
    acts: &'static str,
    stopped: &'static str,
    attempt: char,
    answer: &'static str,
    end: char,
}

const ASCII: Pen = Pen { acts: "=", stopped: "#", attempt: '*', answer: "-", end: '|' };
const BLOCKS: Pen = Pen { acts: "━", stopped: "░", attempt: '●', answer: "─", end: '│' };

/// What happens at one moment of a ttl. Refused numbers may put it after the end.
pub(super) struct Mark {
    pub(super) name: &'static str,
    pub(super) at: Millis,
}

/// Sendings of renewals, counted from the last one that was confirmed.
pub(super) fn attempts(plan: &Plan) -> [Mark; 3] {
    [
        Mark { name: "sent", at: Millis::ZERO },
        Mark { name: "renewal", at: plan.renew_every },
        Mark { name: "2nd attempt", at: plan.second_attempt },
    ]
}

/// Where something ends.
pub(super) fn ends(plan: &Plan) -> [Mark; 3] {
    [
        Mark { name: "deadline", at: plan.effective },
        Mark { name: "ttl", at: plan.ttl },
        Mark { name: "overdue", at: plan.overdue },
    ]
}

/// One line each, in the order of time.
pub(super) fn draw(plan: &Plan, terminal: bool) -> Vec<String> {
    let pen = if terminal { BLOCKS } else { ASCII };
    let column = |at: Millis| {
        let whole = u128::from(plan.overdue.get().max(1));
        // Below the width by construction, unless it is after the end.
        usize::try_from(u128::from(at.get()) * u128::from(WIDTH) / whole).unwrap_or(usize::MAX)
    };
    let mut lines: Vec<(Millis, String)> = Vec::new();
    let mut put = |at: Millis, name: &str, figure: &str, drawn: String| {
        lines.push((at, format!("{name:<15}{figure:<9} {drawn}")));
    };
    let trip = column(plan.round_trip).min(WIDTH as usize);
    for mark in attempts(plan) {
        let drawn = match mark.at > plan.overdue {
            true => "after the end".to_owned(),
            false => format!("{}{}{}", space(column(mark.at)), pen.attempt, pen.answer.repeat(trip)),
        };
        put(mark.at, mark.name, &exact(mark.at), drawn);
    }
    let (deadline, end) = (column(plan.effective), column(plan.ttl));
    put(Millis::ZERO, "holder acts", &exact(plan.effective), pen.acts.repeat(deadline));
    let stopped = format!("{}{}", space(deadline), pen.stopped.repeat((end - deadline).max(1)));
    put(plan.effective, "margin", &exact(plan.margin), stopped);
    for mark in ends(plan) {
        put(mark.at, mark.name, &exact(mark.at), format!("{}{}", space(column(mark.at)), pen.end));
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(_, line)| line).collect()
}

fn space(columns: usize) -> String {
    " ".repeat(columns)
}
