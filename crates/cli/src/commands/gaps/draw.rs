//! Gaps drawn with characters: the same letters everywhere, so that a drawing can be put into a ticket; on a terminal with colours behind them.

use std::time::Duration;

use leasehold::core::gap::GapCause;

use super::told::{Named, Told};
use crate::console::{Console, Paint};

/// Somebody acts.
const HELD: char = '=';
/// It was let go of, and nobody asks.
const IDLE: char = '-';
/// Nothing is known of that time.
const UNKNOWN: char = '.';

/// How a cause is drawn, and on a terminal in which colours.
const fn look(cause: GapCause) -> (char, Paint) {
    match cause {
        GapCause::Detection => ('d', Paint("97;41")),
        GapCause::Grace => ('g', Paint("97;45")),
        GapCause::Revoke => ('r', Paint("30;105")),
        GapCause::CoolDown => ('c', Paint("30;46")),
        GapCause::Restore => ('s', Paint("30;47")),
        GapCause::Alarm => ('a', Paint("30;101")),
        GapCause::Queue => ('q', Paint("97;44")),
        GapCause::WarmUp => ('w', Paint("30;43")),
        GapCause::Outage => ('o', Paint("97;100")),
    }
}

const fn letter(cause: GapCause) -> char {
    look(cause).0
}

/// One cell.
fn cell(console: &Console, character: char) -> String {
    let cause = GapCause::ALL.map(look).into_iter().find(|(letter, _)| *letter == character);
    let paint = match (cause, character) {
        (Some((_, paint)), _) => paint,
        (None, HELD) => Paint("32"),
        (None, _) => Paint("2"),
    };
    console.painted(paint, &character.to_string())
}

fn cells(console: &Console, characters: &str) -> String {
    characters.chars().map(|character| cell(console, character)).collect()
}

/// One gap from its beginning to its end.
pub(super) fn bar(console: &Console, gap: &Told, width: usize) -> String {
    cells(console, &letters(gap, width))
}

/// The whole window of one name, its end at the right.
pub(super) fn strip(console: &Console, name: &Named, window: Duration, width: usize) -> String {
    cells(console, &along(name, window, width))
}

/// What the characters mean that were used.
pub(super) fn legend(console: &Console, drawn: &[&Named]) -> Vec<String> {
    let gaps = || drawn.iter().flat_map(|name| &name.gaps);
    let used = GapCause::ALL
        .into_iter()
        .filter(|cause| gaps().any(|gap| gap.view.parts.iter().any(|part| part.cause == *cause)));
    let mut entries: Vec<(char, &str)> = used.map(|cause| (letter(cause), cause.word())).collect();
    entries.push((HELD, "held"));
    if gaps().any(|gap| gap.idle) {
        entries.push((IDLE, "released, nobody asked"));
    }
    entries.push((UNKNOWN, "not known"));
    let entry = |(character, word)| format!("{} {word}", cell(console, character));
    entries.into_iter().map(entry).collect()
}

/// As many cells for each part as it takes of the gap, and one at least.
fn letters(gap: &Told, width: usize) -> String {
    let pieces = gap.pieces();
    let whole = gap.length().as_millis().max(1);
    let width_left = width.saturating_sub(pieces.len()) as u128;
    let mut drawn = String::new();
    // What is rounded off one part is drawn with a later one, so that the bar has its width.
    let mut passed = 0;
    for piece in pieces {
        let before = passed * width_left / whole;
        passed += (piece.from - piece.to).as_millis();
        let count = 1 + usize::try_from(passed * width_left / whole - before).unwrap_or(width);
        drawn.extend(std::iter::repeat_n(letter(piece.cause), count));
    }
    drawn
}

/// What most of the leaderless time in each cell is; a gap of a moment is seen.
fn along(name: &Named, window: Duration, width: usize) -> String {
    let at = |cell: usize| {
        let left = u128::try_from(width - cell).unwrap_or(0);
        let nanos = window.as_nanos() * left / width.max(1) as u128;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    };
    (0..width).map(|number| in_cell(name, at(number), at(number + 1))).collect()
}

fn in_cell(name: &Named, from: Duration, to: Duration) -> char {
    let mut most: Option<(Duration, char)> = None;
    let mut idle = false;
    for gap in &name.gaps {
        for piece in gap.pieces() {
            // What lasts no time lies in one cell all the same.
            let touches = piece.from >= to && piece.to <= from && piece.from > piece.to;
            let inside = piece.from.min(from).saturating_sub(piece.to.max(to));
            if !touches || inside.is_zero() {
                continue;
            }
            if gap.idle {
                idle = true;
            } else if most.is_none_or(|(length, _)| inside > length) {
                most = Some((inside, letter(piece.cause)));
            }
        }
    }
    match most {
        Some((_, letter)) => letter,
        None if idle => IDLE,
        None if to >= name.known => UNKNOWN,
        None => HELD,
    }
}
