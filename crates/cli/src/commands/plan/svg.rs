//! The timeline of one ttl as a drawing: a lane for the holder, one for the service, and what goes between them.
//!
//! The first renewal is drawn as lost, because that is what the second attempt is there for. The file needs nothing but itself.

use std::fmt::Write as _;

use leasehold::core::Millis;
use leasehold::core::plan::Plan;

use super::timeline::{Mark, attempts, ends};
use super::{exact, text};

const WIDTH: f64 = 800.0;
/// Where time zero is, and where the end; behind it a label still fits.
const LEFT: f64 = 92.0;
const RIGHT: f64 = 648.0;
/// The lanes, and how high their bars are.
const HOLDER: f64 = 144.0;
const SERVICE: f64 = 228.0;
const BAR: f64 = 18.0;
/// Between two rows of labels.
const ROW: f64 = 20.0;
/// How wide a character is at most, in the size that labels have, and what is left free beside one.
const CHARACTER: f64 = 7.4;
const GAP: f64 = 10.0;

const INK: &str = "#1f2933";
const QUIET: &str = "#616e7c";
const ACTS: &str = "#2a8c82";
const MARGIN: &str = "#f0b429";
const GUARD: &str = "#ba2525";
const LIVES: &str = "#9aa5b1";
const DRIFT: &str = "#d9dfe5";

/// The drawing.
pub(super) fn draw(plan: &Plan) -> String {
    let scale = Scale { whole: plan.overdue.get().max(1) as f64 };
    let mut body = String::new();
    heading(&mut body, plan);
    bars(&mut body, plan, &scale);
    for (index, mark) in attempts(plan).iter().enumerate() {
        exchange(&mut body, plan, &scale, mark, index == 1);
    }
    let [sent, renewal, second] = attempts(plan);
    let renewal = Mark { name: "renewal, lost", ..renewal };
    let mut sent = vec![sent, renewal, second];
    sent.retain(|mark| mark.at <= plan.overdue);
    labels(&mut body, &scale, &sent, HOLDER, -1.0);
    let lowest = labels(&mut body, &scale, &ends(plan), SERVICE + BAR, 1.0);
    let height = caption(&mut body, plan, lowest + 36.0);
    let title = format!("{}, {}", numbers(plan), verdict(plan));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"{INK}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// From lengths to places.
struct Scale {
    whole: f64,
}

impl Scale {
    fn x(&self, at: Millis) -> f64 {
        LEFT + (RIGHT - LEFT) * at.get() as f64 / self.whole
    }
}

fn numbers(plan: &Plan) -> String {
    let [ttl, every, margin] = [plan.ttl, plan.renew_every, plan.margin].map(exact);
    format!("ttl {ttl}, renewed every {every}, margin {margin}")
}

fn verdict(plan: &Plan) -> String {
    match plan.verdict.map_err(|error| error.inequality()) {
        Ok(()) => "accepted".to_owned(),
        Err(Some(which)) => format!("refused: {} does not hold", which.word()),
        Err(None) => "refused".to_owned(),
    }
}

fn heading(body: &mut String, plan: &Plan) {
    let colour = if plan.is_accepted() { ACTS } else { GUARD };
    let (numbers, verdict) = (numbers(plan), verdict(plan));
    let _ = writeln!(body, r#"<text x="24" y="36" font-size="17" font-weight="600">{numbers}</text>"#);
    let _ = writeln!(body, r#"<text x="24" y="58" fill="{colour}" font-weight="600">{verdict}</text>"#);
    for (name, y) in [("holder", HOLDER), ("service", SERVICE)] {
        let (x, y) = (LEFT - 14.0, y + 14.0);
        let _ = writeln!(body, r#"<text x="{x}" y="{y}" text-anchor="end" fill="{QUIET}">{name}</text>"#);
    }
}

fn bars(body: &mut String, plan: &Plan, scale: &Scale) {
    // The deadline is the holder's, and its label hangs below the service.
    let deadline = scale.x(plan.effective);
    let _ = writeln!(
        body,
        "<path d=\"M{deadline:.1} {HOLDER}V{SERVICE}\" stroke=\"{QUIET}\" stroke-width=\"1\" stroke-dasharray=\"2 3\"/>"
    );
    let mut bar = |from: Millis, to: Millis, y: f64, height: f64, colour: &str| {
        let (x, width) = (scale.x(from), scale.x(to) - scale.x(from));
        if width > 0.0 {
            let _ = writeln!(
                body,
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
            );
        }
    };
    bar(Millis::ZERO, plan.effective, HOLDER, BAR, ACTS);
    bar(plan.effective, plan.ttl, HOLDER, BAR, MARGIN);
    let guard = Millis::new(plan.ttl.get().saturating_sub(plan.guard.get()));
    bar(guard, plan.ttl, HOLDER + BAR - 5.0, 5.0, GUARD);
    bar(Millis::ZERO, plan.ttl, SERVICE, BAR, LIVES);
    bar(plan.ttl, plan.overdue, SERVICE, BAR, DRIFT);
}

/// A renewal on its way to the service, and its answer on the way back, unless it is lost.
fn exchange(body: &mut String, plan: &Plan, scale: &Scale, mark: &Mark, lost: bool) {
    if mark.at > plan.overdue {
        return;
    }
    let half = Millis::new(plan.round_trip.get() / 2);
    let (sent, there) = (scale.x(mark.at), scale.x(mark.at.saturating_add(half)));
    let back = scale.x(mark.at.saturating_add(plan.round_trip));
    let (from, to, middle) = (HOLDER + BAR, SERVICE, HOLDER + BAR / 2.0);
    let _ = writeln!(body, r#"<circle cx="{sent:.1}" cy="{middle}" r="4.5" fill="{INK}"/>"#);
    let line = |x1: f64, y1: f64, x2: f64, y2: f64, dashes: &str| {
        format!(
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{INK}\" stroke-width=\"1.4\" fill=\"none\"{dashes}/>\n"
        )
    };
    if lost {
        let (x, y) = ((sent + there) / 2.0, (from + to) / 2.0);
        body.push_str(&line(sent, from, x, y, " stroke-dasharray=\"4 3\""));
        body.push_str(&line(x - 5.0, y - 5.0, x + 5.0, y + 5.0, ""));
        body.push_str(&line(x + 5.0, y - 5.0, x - 5.0, y + 5.0, ""));
        return;
    }
    body.push_str(&line(sent, from, there, to, ""));
    body.push_str(&line(there, to, back, from, ""));
}

/// Labels in rows away from a lane, each to the right of its line. Those further right come first and stay nearer, so that no line crosses a
/// label. Gives back the place of the last row.
fn labels(body: &mut String, scale: &Scale, marks: &[Mark], lane: f64, direction: f64) -> f64 {
    let mut placed: Vec<(f64, u32)> = Vec::new();
    let mut furthest = lane;
    for mark in marks.iter().rev() {
        let (at, name, x) = (exact(mark.at), mark.name, scale.x(mark.at));
        let beside = x + 6.0;
        let end = beside + format!("{at} {name}").chars().count() as f64 * CHARACTER + GAP;
        let crossed = placed.iter().filter(|(other, _)| *other < end).map(|(_, row)| row + 1);
        let row = crossed.max().unwrap_or(0);
        placed.push((x, row));
        let y = lane + direction * (24.0 + ROW * f64::from(row));
        // The figures of upper labels stand on their line's end, those of lower ones hang from it.
        let base = if direction > 0.0 { y } else { y + 4.0 };
        let _ = writeln!(
            body,
            "<path d=\"M{x:.1} {lane}L{x:.1} {y:.1}\" stroke=\"{QUIET}\" stroke-width=\"1\"/>\n\
             <text x=\"{beside:.1}\" y=\"{base:.1}\"><tspan font-weight=\"600\">{at}</tspan> {name}</text>"
        );
        furthest = if direction > 0.0 { furthest.max(y) } else { furthest.min(y) };
    }
    furthest
}

/// What the colours mean, and the inequalities. Gives back how high the drawing is.
fn caption(body: &mut String, plan: &Plan, top: f64) -> f64 {
    let mut x = 24.0;
    let drift = Millis::new(plan.overdue.get().saturating_sub(plan.ttl.get()));
    for (colour, name, length) in [
        (ACTS, "holder acts", plan.effective),
        (MARGIN, "margin", plan.margin),
        (GUARD, "guard", plan.guard),
        (LIVES, "session lives", plan.ttl),
        (DRIFT, "allowed drift", drift),
    ] {
        let (label, above, beside) = (format!("{name} {}", exact(length)), top - 11.0, x + 18.0);
        let _ = writeln!(
            body,
            "<rect x=\"{x:.1}\" y=\"{above}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n\
             <text x=\"{beside:.1}\" y=\"{top}\">{label}</text>"
        );
        x = beside + label.chars().count() as f64 * CHARACTER + 2.0 * GAP;
    }
    let mut y = top + 14.0;
    for sides in [Some(plan.safety), Some(plan.availability), plan.paused].into_iter().flatten() {
        y += ROW;
        let colour = if sides.holds { QUIET } else { GUARD };
        let figures = text::filled_in(plan, &sides).replace('<', "&lt;").replace('>', "&gt;");
        let (word, holds) = (sides.which.word(), text::holds(&sides));
        let _ = writeln!(
            body,
            "<text x=\"24\" y=\"{y}\" font-weight=\"600\">{word}</text><text x=\"120\" y=\"{y}\" fill=\"{colour}\">{figures}: {holds}</text>"
        );
    }
    y + 24.0
}
