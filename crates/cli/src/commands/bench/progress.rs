//! The line that moves, on a terminal alone. It is never wider than the terminal: a line that wraps is not replaced by the next one.

use std::io;
use std::time::Duration;

use leasehold::Quantiles;

use super::report::{fine, per_second, thousands};
use crate::words;

/// How often the line moves.
pub(super) const FRAME: Duration = Duration::from_millis(100);
/// A bar is not longer than this, and where not even the lesser fits there is none.
const BAR: usize = 24;
const LEAST_BAR: usize = 4;
/// Of a terminal that does not say how wide it is.
const USUAL_COLUMNS: usize = 80;

/// How wide the terminal is on which the line moves.
pub(super) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS)
}

/// While sessions are opened.
pub(super) fn opening(open: usize, all: usize, columns: usize) -> String {
    cut(&format!("opening sessions {open}/{all}"), columns)
}

/// While load is put.
pub(super) fn measuring(
    what: &str,
    passed: Duration,
    length: Duration,
    so_far: &Quantiles,
    columns: usize,
) -> String {
    let shown = |text: String| if so_far.count > 0 { text } else { "-".to_owned() };
    let rate = shown(thousands(per_second(so_far.count, passed)));
    let figures = format!("{rate}/s, p50 {}, p99 {}", shown(fine(so_far.p50)), shown(fine(so_far.p99)));
    // A space on either side of the bar, and the last column stays free: some terminals wrap when it is written to.
    let taken = what.chars().count() + figures.chars().count() + 3;
    let bar = columns.saturating_sub(taken).min(BAR);
    if bar < LEAST_BAR {
        return cut(&format!("{what} {figures}"), columns);
    }
    format!("{what} {} {figures}", words::bar(passed, length, bar))
}

fn cut(text: &str, columns: usize) -> String {
    text.chars().take(columns.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn some() -> Quantiles {
        let mut trips = leasehold::core::measure::RoundTrips::new(SECOND, leasehold_clock::read());
        for _ in 0..12_345 {
            trips.add(Duration::from_micros(1_200), leasehold_clock::read());
        }
        Quantiles::of(&trips)
    }

    #[test]
    fn the_line_fills_up() {
        let drawn = |passed| measuring("cycles", SECOND * passed, SECOND * 10, &Quantiles::default(), 80);
        assert!(drawn(0).starts_with("cycles ░") && drawn(10).contains("█ -/s"), "{}", drawn(10));
        assert_eq!(drawn(5).matches('█').count(), BAR / 2);
    }

    #[test]
    fn nothing_has_no_figures() {
        let drawn = measuring("cycles", Duration::ZERO, SECOND, &Quantiles::default(), 80);
        assert!(drawn.ends_with(" -/s, p50 -, p99 -"), "{drawn}");
    }

    #[test]
    fn the_line_is_narrower_than_any_terminal() {
        let so_far = some();
        for columns in 1..120 {
            let drawn = measuring("renewals", SECOND / 2, SECOND, &so_far, columns);
            assert!(drawn.chars().count() < columns, "{columns}: {drawn}");
            assert!(opening(812, 4_096, columns).len() < columns);
        }
        let drawn = measuring("renewals", SECOND / 2, SECOND, &so_far, 60);
        assert!(drawn.ends_with("p50 1.20 ms, p99 1.20 ms") && drawn.contains("█░"), "{drawn}");
        assert_eq!(opening(812, 4_096, 80), "opening sessions 812/4096");
    }
}
