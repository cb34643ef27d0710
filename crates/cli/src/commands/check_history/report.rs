//! The verdict: a table of what each check judged, and the lines that it holds against the run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use leasehold_history::check::{Verdict, Violation, exclusion};
use leasehold_history::{LineNumber, Story};
use serde::Serialize;

use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::trouble::Trouble;
use crate::words;

/// More of a line is not shown to people.
const LONGEST_TEXT: usize = 300;

/// All that is said of a history.
pub(super) struct Report<'a> {
    pub(super) story: &'a Story,
    pub(super) verdicts: &'a [Verdict],
    pub(super) skew: Option<Duration>,
    pub(super) texts: BTreeMap<LineNumber, String>,
    /// Violations of one check that are shown.
    pub(super) most: usize,
}

impl Report<'_> {
    pub(super) fn print(&self, console: &Console) -> Result<Exit, Trouble> {
        let row = |verdict: &Verdict| {
            let (word, judged) = match word(verdict) {
                "violated" => (format!("VIOLATED {}", times(verdict.found)), counted(verdict)),
                "held" => ("held".to_owned(), counted(verdict)),
                _ => ("nothing to judge".to_owned(), "-".to_owned()),
            };
            [verdict.check.name.into(), word, judged, verdict.check.about.into()]
        };
        let table = Table::new(["CHECK", "VERDICT", "JUDGED", "WHAT HOLDS"], self.verdicts.iter().map(row));
        let (lines, grants) = (self.story.lines, self.story.grants.len());
        let head = format!("{}, {}", words::count(lines, "line"), words::count(grants, "grant"));
        console.framed_table(&head, &table, &self.violations(), &self.json())
    }

    /// What is wrong, below the table.
    fn violations(&self) -> String {
        let mut text = String::new();
        for verdict in self.verdicts.iter().filter(|verdict| !verdict.is_good()) {
            let _ = writeln!(text, "\n{}:", verdict.check.name);
            for violation in verdict.violations.iter().take(self.most) {
                let _ = writeln!(text, "  {}", visible(&violation.words));
                for (line, shown) in self.lines(violation) {
                    let _ = writeln!(text, "    line {}: {}", line.get(), visible(&cut(shown)));
                }
            }
            let shown = verdict.violations.len().min(self.most);
            let more = verdict.found - u64::try_from(shown).unwrap_or(u64::MAX);
            let how = if shown < verdict.violations.len() { "; --all shows them" } else { "" };
            if more > 0 {
                let _ = writeln!(text, "  and {more} more{how}");
            }
        }
        text
    }

    fn lines<'a>(&'a self, violation: &'a Violation) -> impl Iterator<Item = (LineNumber, &'a str)> {
        let text = |line: &LineNumber| self.texts.get(line).map_or("", String::as_str);
        violation.lines.iter().map(move |line| (*line, text(line)))
    }

    fn violation<'a>(&'a self, found: &'a Violation) -> impl Serialize {
        let lines = self.lines(found).map(|(line, text)| object! { line: line.get(), text });
        object! { message: &found.words, lines: lines.collect::<Vec<_>>() }
    }

    fn json(&self) -> impl Serialize {
        let checks = self.verdicts.iter().map(|verdict| {
            let shown = verdict.violations.iter().take(self.most);
            object! {
                check: verdict.check.name,
                about: verdict.check.about,
                verdict: word(verdict),
                judged: verdict.judged,
                unit: verdict.check.unit,
                violated: verdict.found,
                violations: shown.map(|found| self.violation(found)).collect::<Vec<_>>(),
            }
        });
        object! {
            held: self.verdicts.iter().all(Verdict::is_good) && self.judged_enough(),
            lines: self.story.lines,
            grants: self.story.grants.len(),
            clocks: self.story.clocks(),
            skew_ms: self.skew.map(|skew| skew.as_secs_f64() * 1e3),
            lines_not_judged: self.story.strays,
            checks: checks.collect::<Vec<_>>(),
        }
    }

    /// Whether it was judged that two held at once, which is what people ask: all the rest together is no answer to it.
    pub(super) fn judged_enough(&self) -> bool {
        let exclusion = |verdict: &&Verdict| verdict.check.name == exclusion::CHECK.name;
        self.verdicts.iter().find(exclusion).is_some_and(|verdict| verdict.judged > 0)
    }
}

const fn word(verdict: &Verdict) -> &'static str {
    match (verdict.is_good(), verdict.judged) {
        (false, _) => "violated",
        (true, 0) => "nothing-to-judge",
        (true, _) => "held",
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn counted(verdict: &Verdict) -> String {
    let unit = if verdict.judged == 1 { verdict.check.one } else { verdict.check.unit };
    format!("{} {unit}", verdict.judged)
}

/// What a history says is shown to people, and not obeyed by their terminals.
pub(super) fn visible(text: &str) -> String {
    let turns_text = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if c.is_control() || turns_text(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    })
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}
