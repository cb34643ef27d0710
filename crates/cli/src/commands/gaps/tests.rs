use std::time::Duration;

use leasehold::core::gap::{GapCause, GapPart, GapSide, GapView, NameGaps};
use leasehold::core::{Millis, Token};
use leasehold::{Ending, Label, ResourceName};

use super::told::{Named, Told};
use super::{Asked, draw, sentence, text};
use crate::console::Console;

const SECOND: Duration = Duration::from_secs(1);

fn side(token: u64, label: &str, how: Option<Ending>) -> GapSide {
    GapSide { token: Token::from_u64(token), label: Some(Label::new(label).unwrap()), how }
}

fn part(cause: GapCause, length: u64) -> GapPart {
    GapPart { cause, length: Millis::new(length) }
}

/// The gap of the incident, which ended so long ago, or lasts.
fn incident(ended_ago: Option<u64>) -> GapView {
    let parts = [(GapCause::Detection, 3_000), (GapCause::Queue, 700), (GapCause::WarmUp, 8_000)];
    GapView {
        began_ago: Millis::new(11_700 + ended_ago.unwrap_or_default()),
        ended_ago: ended_ago.map(Millis::new),
        parts: parts.map(|(cause, length)| part(cause, length)).to_vec(),
        leeway: Some(Millis::new(3_000)),
        before: side(7, "web-1", Some(Ending::Expired)),
        after: Some(side(9, "web-2", None)),
    }
}

fn idle(ended_ago: Option<u64>, length: u64) -> GapView {
    GapView {
        began_ago: Millis::new(length + ended_ago.unwrap_or_default()),
        parts: vec![part(GapCause::Queue, length)],
        leeway: Some(Millis::ZERO),
        before: side(3, "cron", Some(Ending::Released)),
        after: None,
        ..incident(ended_ago)
    }
}

fn named(name: &str, gaps: Vec<GapView>, window: Duration) -> Named {
    let resource = ResourceName::new(name).unwrap();
    Named::new(NameGaps { resource, gaps, known_for: Millis::new(100_000) }, window)
}

fn explained(view: GapView) -> String {
    sentence::explain("app", &Told::new(view))
}

#[test]
fn a_gap_is_one_sentence() {
    assert_eq!(
        explained(incident(Some(5_000))),
        "app was without a holder for at most 11.7s and at least 8.7s: web-1 (token 7) fell silent and expired; 3s until that was noticed, \
         free for 700ms, then web-2 (token 9) needed 8s to be ready"
    );
    let mut lasts = incident(None);
    assert_eq!(
        explained(lasts.clone()),
        "app has been without a holder for at most 11.7s and at least 8.7s: web-1 (token 7) fell silent and expired; 3s until that was noticed, \
         free for 700ms, web-2 (token 9) has been warming up for 8s"
    );
    lasts.parts.pop();
    lasts.after = None;
    assert!(explained(lasts).ends_with("nobody has asked for it for 700ms"));
    let mut drained = idle(Some(0), 250);
    drained.before.how = Some(Ending::Drained);
    drained.after = Some(side(9, "web-2", None));
    assert_eq!(
        explained(drained),
        "app was without a holder for 250ms: cron (token 3) finished its work and released it; free for 250ms, \
         then web-2 (token 9) had it"
    );
}

/// There to find: each piece between two outages told as if it were a thing of its own.
#[test]
fn a_cause_that_is_cut_by_outages_is_told_once() {
    let mut gap = incident(Some(0));
    gap.parts = vec![
        part(GapCause::Detection, 1_000),
        part(GapCause::Outage, 20_000),
        part(GapCause::Detection, 2_000),
        part(GapCause::Queue, 1),
        part(GapCause::Outage, 3_000),
        part(GapCause::Queue, 1),
        part(GapCause::Outage, 4_000),
        part(GapCause::Queue, 1),
    ];
    assert_eq!(
        explained(gap.clone()),
        "app was without a holder for at most 30s and at least 27s: web-1 (token 7) fell silent and expired; 3s until that was noticed, 20s in which \
         the store was down, free for 3ms, 7s in which the store was down, then web-2 (token 9) had it"
    );
    gap.ended_ago = None;
    gap.after = None;
    let lasts = explained(gap.clone());
    assert!(lasts.ends_with(", 7s in which the store was down, nobody has asked for it for 3ms"), "{lasts}");
    gap.parts[4].length = Millis::ZERO;
    let unknown = explained(gap);
    assert!(
        unknown.ends_with(", 4s at least in which the store was down, nobody has asked for it for 3ms"),
        "{unknown}"
    );
}

#[test]
fn a_holder_that_only_lapsed_in_an_outage_is_not_its_own_successor() {
    let lapse = GapView {
        parts: vec![
            part(GapCause::Detection, 1_000),
            part(GapCause::Outage, 20_000),
            part(GapCause::Detection, 500),
        ],
        leeway: Some(Millis::new(4_000)),
        before: side(7, "web-1", None),
        after: Some(side(7, "web-1", None)),
        ..incident(Some(0))
    };
    assert_eq!(
        explained(lapse),
        "app was without a holder for at most 21.5s and at least 17.5s: web-1 (token 7) could not renew; \
         20s in which the store was down, 1.5s until it renewed again"
    );
}

#[test]
fn every_part_of_a_bar_has_a_cell_and_the_bar_has_its_width() {
    let console = Console::new(false);
    let bar = |view, width| draw::bar(&console, &Told::new(view), width);
    assert_eq!(bar(incident(None), 24), format!("{}{}{}", "d".repeat(6), "qq", "w".repeat(16)));
    let mut short = incident(None);
    short.parts[1].length = Millis::new(1);
    short.parts.push(part(GapCause::Outage, 0));
    let bar = bar(short, 40);
    assert_eq!((bar.len(), bar.matches('q').count(), bar.matches('o').count()), (40, 1, 1), "{bar}");
}

#[test]
fn a_strip_shows_what_was_held_what_was_not_and_what_is_not_known() {
    let window = SECOND * 200;
    let name = named("app", vec![incident(Some(50_000)), idle(Some(80_000), 5_000)], window);
    let strip = draw::strip(&Console::new(false), &name, window, 40);
    assert_eq!(strip, format!("{}===-===dww{}", ".".repeat(20), "=".repeat(10)));
}

#[test]
fn only_what_lies_in_the_window_is_added_up() {
    let name = named("app", vec![incident(Some(5_000))], SECOND * 15);
    assert_eq!(name.sums.leaderless(), SECOND * 10);
    let causes = name.sums.by_cause();
    assert_eq!(causes[0], (GapCause::WarmUp, SECOND * 8));
    assert_eq!(causes[1], (GapCause::Detection, Duration::from_millis(1_300)));
}

#[test]
fn names_that_are_idle_on_purpose_are_one_line() {
    let window = SECOND * 100;
    let names = [
        named("app", vec![incident(Some(5_000))], window),
        named("cron/a", vec![idle(None, 30_000)], window),
        named("cron/b", vec![idle(Some(1_000), 10_000)], window),
    ];
    let asked = |whole| Asked { last: window, min: Duration::ZERO, whole, one: false };
    let text = |whole| text::report(&Console::new(false), &asked(whole), &names, &[]);
    let first = |text: &str| text.lines().next().unwrap().to_owned();
    assert_eq!(
        first(&text(false)),
        "the last 1m 40s: 1 name without a holder for 11.7s in all; 1 name was released and nobody has taken it: --all lists it"
    );
    assert!(
        text(false).ends_with("\n2 names only released, with nobody asking: 40s in all; --all lists them\n")
    );
    assert!(!text(false).contains("cron/a"));
    assert!(!first(&text(true)).contains("--all"), "{}", text(true));
    let idle = [("cron/a", None), ("cron/b", None), ("cron/c", Some(1_000))]
        .map(|(name, ended_ago)| named(name, vec![idle(ended_ago, 30_000)], window));
    assert_eq!(
        first(&text::report(&Console::new(false), &asked(false), &idle, &[])),
        "no gaps in the last 1m 40s; 2 names were released and nobody has taken them: --all lists them"
    );
    assert!(text(true).contains("cron/a: without a holder for 30s, 30% of the last 1m 40s; 1 gap\n"));
}
