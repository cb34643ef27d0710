//! Gaps for people: an explanation first, figures beside it.

use std::fmt::Write as _;
use std::time::Duration;

use leasehold::core::gap::{GapCause, OutageView};

use super::told::{Named, Sums, Told};
use super::{Asked, draw, sentence};
use crate::console::Console;
use crate::words;

/// Columns of a page that is not a terminal.
const PAGE: usize = 80;
/// Drawings are not wider than this: a wider one says no more.
const WIDEST: usize = 100;
/// Columns in front of what belongs to a name.
const INDENT: usize = 2;
/// Names shown unless all are asked for: the worst.
const SHOWN: usize = 20;

/// The whole of it.
pub(super) fn report(console: &Console, asked: &Asked, names: &[Named], outages: &[OutageView]) -> String {
    let mut page = Page { console, width: console.columns().unwrap_or(PAGE), text: String::new() };
    let matters = |name: &&Named| asked.whole || name.that_matter(asked.min).next().is_some();
    let shown: Vec<&Named> = names.iter().filter(matters).collect();
    if !asked.one {
        page.overview(asked, names, &shown);
    }
    let most = if asked.whole { shown.len() } else { SHOWN.min(shown.len()) };
    for (number, name) in shown[..most].iter().enumerate() {
        if number > 0 || !asked.one {
            page.blank();
        }
        page.name(asked, name);
    }
    if shown.iter().any(|name| !name.gaps.is_empty()) {
        page.blank();
        let cell = asked.last / u32::try_from(page.drawing_width()).unwrap_or(u32::MAX);
        let legend = draw::legend(console, &shown[..most]);
        page.flow(INDENT, legend.iter().map(String::as_str), "  ");
        let (window, cell) = (words::three_digits(asked.last), words::three_digits(cell));
        page.prose(&format!("The line below each name is the last {window}, {cell} a character."));
    }
    page.rest(asked, names, shown.len() - most);
    page.outages(outages);
    page.text
}

struct Page<'a> {
    console: &'a Console,
    width: usize,
    text: String,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}", line.trim_end());
    }

    fn blank(&mut self) {
        self.line("");
    }

    /// A drawing, or something else that is not broken.
    fn indented(&mut self, line: &str) {
        self.line(&format!("{:INDENT$}{line}", ""));
    }

    /// Prose below a name.
    fn prose(&mut self, text: &str) {
        self.flow(INDENT, text.split(' '), " ");
    }

    /// Prose that stands at the edge.
    fn headline(&mut self, text: &str) {
        self.flow(0, text.split(' '), " ");
    }

    /// Pieces one after the other, broken between them where they do not fit a terminal. Elsewhere they are one line, for those who look for it.
    fn flow<'a>(&mut self, indent: usize, pieces: impl Iterator<Item = &'a str>, between: &str) {
        let width = if self.console.is_terminal() { self.width } else { usize::MAX };
        let mut line = format!("{:indent$}", "");
        let mut used = indent;
        for (number, piece) in pieces.enumerate() {
            let more = visible(piece);
            if number > 0 && used + between.len() + more > width {
                self.line(&line);
                line = format!("{:INDENT$}", "");
                used = INDENT;
            } else if number > 0 {
                line.push_str(between);
                used += between.len();
            }
            line.push_str(piece);
            used += more;
        }
        self.line(&line);
    }

    fn drawing_width(&self) -> usize {
        self.width.saturating_sub(INDENT).clamp(20, WIDEST)
    }

    fn overview(&mut self, asked: &Asked, names: &[Named], shown: &[&Named]) {
        let window = words::three_digits(asked.last);
        let left = if asked.whole { String::new() } else { left(names) };
        if shown.is_empty() {
            return self.headline(&format!("no gaps in the last {window}{left}"));
        }
        let needed: Duration = shown.iter().map(|name| total(asked, &name.sums)).sum();
        let now = shown.iter().filter(|name| name.is_missed()).count();
        let now = (now > 0).then(|| format!("; {} without one right now", words::count(now, "name")));
        let (now, length) = (now.unwrap_or_default(), words::three_digits(needed));
        let names = words::count(shown.len(), "name");
        self.headline(&format!("the last {window}: {names} without a holder for {length} in all{now}{left}"));
    }

    fn name(&mut self, asked: &Asked, name: &Named) {
        let title = self.console.heading(name.resource.as_str());
        let window = words::three_digits(asked.last);
        if name.gaps.is_empty() {
            self.headline(&format!("{title}: no gap in the last {window}"));
        } else {
            let sums = &name.sums;
            let count = name.gaps.iter().filter(|gap| asked.whole || !gap.idle).count();
            let longest = words::three_digits(longest(asked, name));
            let longest = if count > 1 { format!(", the longest {longest}") } else { String::new() };
            let of = match name.known < asked.last {
                true => format!("the {} since it was first held", words::three_digits(name.known)),
                false => format!("the last {window}"),
            };
            let total = total(asked, sums);
            let (length, share) = (words::three_digits(total), percent(name.share(total)));
            let gaps = words::count(count, "gap");
            self.headline(&format!(
                "{title}: without a holder for {length}, {share} of {of}; {gaps}{longest}"
            ));
        }
        self.indented(&draw::strip(self.console, name, asked.last, self.drawing_width()));
        self.causes(asked, name);
        if asked.whole {
            let shown: Vec<&Told> = name.gaps.iter().filter(|gap| gap.length() >= asked.min).collect();
            for gap in &shown {
                self.blank();
                self.gap(name, gap);
            }
            let short = name.gaps.len() - shown.len();
            if short > 0 {
                self.blank();
                let min = words::three_digits(asked.min);
                self.indented(&format!("{} shorter than {min}", words::count(short, "more gap")));
            }
        } else {
            self.worst(asked, name);
        }
    }

    /// What the time went into, most of it first.
    fn causes(&mut self, asked: &Asked, name: &Named) {
        let matter: Vec<Told> = name.gaps.iter().filter(|gap| asked.whole || !gap.idle).cloned().collect();
        let sums = Sums::of(&matter, asked.last);
        let cause = |(cause, length): (GapCause, Duration)| {
            format!("{} {}", cause.word(), words::three_digits(length))
        };
        let causes: Vec<String> = sums.by_cause().into_iter().map(cause).collect();
        let idle = words::three_digits(name.sums.idle);
        let note = match (name.sums.idle.is_zero(), asked.whole) {
            (true, _) => String::new(),
            (false, true) => format!(" ({idle} of it idle)"),
            (false, false) => format!(" (and idle for {idle})"),
        };
        if !causes.is_empty() {
            self.prose(&format!("{}{note}", causes.join(", ")));
        }
    }

    /// The gap that lasts, and the longest of the others.
    fn worst(&mut self, asked: &Asked, name: &Named) {
        let matter = || name.that_matter(asked.min);
        let lasting = matter().find(|gap| gap.ended_ago.is_none());
        let longest = matter().filter(|gap| gap.ended_ago.is_some()).max_by_key(|gap| gap.length());
        for gap in lasting.into_iter().chain(longest) {
            self.prose(&format!("{}: {}", since(gap), sentence::explain(name.resource.as_str(), gap)));
        }
    }

    fn gap(&mut self, name: &Named, gap: &Told) {
        let length = sentence::length(&gap.view);
        let head = match gap.ended_ago {
            Some(_) => format!("{}, for {length}", since(gap)),
            None => format!("{}, and lasts: {}", since(gap), sentence::right_now(gap)),
        };
        self.prose(&head);
        let parts = gap.view.parts.iter().map(|part| {
            let (word, length) = (part.cause.word(), words::three_digits(part.length.duration()));
            if part.length.get() == 0 { format!("{word} unknown") } else { format!("{word} {length}") }
        });
        let parts: Vec<String> = parts.collect();
        self.indented(&draw::bar(self.console, gap, self.drawing_width()));
        self.prose(&parts.join(", "));
        self.prose(&sentence::explain(name.resource.as_str(), gap));
    }

    /// What was counted and not shown.
    fn rest(&mut self, asked: &Asked, names: &[Named], cut: usize) {
        if asked.whole {
            return;
        }
        if cut > 0 {
            self.blank();
            let names = words::count(cut, "more name");
            self.headline(&format!("{names} were without a holder for less; --all shows them"));
        }
        let idle: Vec<&Named> = names.iter().filter(|name| name.is_idle()).collect();
        let idle_for: Duration = idle.iter().map(|name| name.sums.leaderless()).sum();
        let is_short = |name: &&Named| !name.is_idle() && name.that_matter(asked.min).next().is_none();
        let short = names.iter().filter(is_short).count();
        if short > 0 {
            self.blank();
            let min = words::three_digits(asked.min);
            self.headline(&format!("{} only with gaps shorter than {min}", words::count(short, "more name")));
        }
        if !idle.is_empty() {
            self.blank();
            let (names, them) = (words::count(idle.len(), "name"), them(idle.len()));
            let length = words::three_digits(idle_for);
            self.headline(&format!(
                "{names} only released, with nobody asking: {length} in all; --all lists {them}"
            ));
        }
    }

    fn outages(&mut self, outages: &[OutageView]) {
        if outages.is_empty() {
            return;
        }
        self.blank();
        self.headline(&format!("the store was down {}:", words::count(outages.len(), "time")));
        for outage in outages {
            let ago = outage.ended_ago.duration();
            let length = match outage.length {
                Some(length) => format!("for {} at least", words::three_digits(length.duration())),
                None => "nobody knows for how long".to_owned(),
            };
            let (moment, ago) = (words::moment_ago(ago), words::three_digits(ago));
            self.indented(&format!("until {moment}, {ago} ago, {length}"));
        }
    }
}

/// Names that were let go of and that nobody holds now. A leader that was released and has no successor is one of them, beside the jobs that are idle
/// on purpose: whoever was called is told first.
fn left(names: &[Named]) -> String {
    let left = names.iter().filter(|name| name.lasting().is_some_and(|gap| gap.idle)).count();
    if left == 0 {
        return String::new();
    }
    let (were, them) = (if left == 1 { "was" } else { "were" }, them(left));
    let names = words::count(left, "name");
    format!("; {names} {were} released and nobody has taken {them}: --all lists {them}")
}

const fn them(count: usize) -> &'static str {
    if count == 1 { "it" } else { "them" }
}

/// How many columns a text takes: codes for colours take none.
fn visible(text: &str) -> usize {
    let mut in_code = false;
    let shown = text.chars().filter(|character| {
        let was_in_code = in_code;
        in_code = if in_code { *character != 'm' } else { *character == '\x1b' };
        !was_in_code && !in_code
    });
    shown.count()
}

fn since(gap: &Told) -> String {
    format!("{}, {} ago", words::moment_ago(gap.began_ago), words::three_digits(gap.began_ago))
}

/// What counts: all of it where everything is asked for, else what was not let go of.
fn total(asked: &Asked, sums: &Sums) -> Duration {
    if asked.whole { sums.leaderless() } else { sums.needed() }
}

fn longest(asked: &Asked, name: &Named) -> Duration {
    name.gaps.iter().filter(|gap| asked.whole || !gap.idle).map(Told::length).max().unwrap_or_default()
}

/// Millionths as a percentage with two digits that tell something.
fn percent(millionths: u64) -> String {
    match millionths {
        0..10 => "less than 0.001%".to_owned(),
        10..10_000 => format!("0.{:03}%", millionths / 10),
        10_000..100_000 => format!("{}.{}%", millionths / 10_000, millionths % 10_000 / 1_000),
        _ => format!("{}%", millionths / 10_000),
    }
}
