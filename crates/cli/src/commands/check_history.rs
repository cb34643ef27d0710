//! `check-history`: whether what clients saw in a real run is what was promised.

mod input;
mod report;

use std::collections::BTreeSet;

use leasehold_history::check::{self, Knowledge};
use leasehold_history::{LineNumber, ReadError, Story, read};

use self::input::Input;
use self::report::Report;
use crate::args::CheckHistoryArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::trouble::Trouble;
use crate::words;

/// Violations of one check that are shown unless all are asked for.
const SHOWN: usize = 5;
/// A line of progress is drawn so often, counted in lines.
const DRAW_EVERY: u64 = 50_000;

pub(super) fn run(console: &Console, args: &CheckHistoryArgs) -> Result<Exit, Trouble> {
    if let [next, ..] = args.more.as_slice() {
        let (file, next) = (args.file.display(), next.display());
        return Err(Trouble::Misuse(format!(
            "one history is judged at a time; several as one with `cat {file} {next} | leasehold check-history -`"
        )));
    }
    let shown_name = match input::is_standard(&args.file) {
        true => "standard input".to_owned(),
        false => args.file.display().to_string(),
    };
    let unusable =
        |error: &dyn std::fmt::Display| Trouble::History(report::visible(&format!("{shown_name}: {error}")));
    let mut input = Input::open(&args.file).map_err(|error| unusable(&error))?;
    let mut story = Story::default();
    let told = take_in(console, &mut input, &mut story);
    console.clear_progress();
    told.map_err(|error| unusable(&error))?;
    let knowledge = Knowledge { skew: args.skew };
    let verdicts = check::all(&story, knowledge);
    let most = if args.all { usize::MAX } else { SHOWN };
    let wanted: BTreeSet<LineNumber> = verdicts
        .iter()
        .flat_map(|verdict| verdict.violations.iter().take(most))
        .flat_map(|violation| violation.lines.iter().copied())
        .collect();
    let texts = input.texts(&wanted).map_err(|error| unusable(&error))?;
    let report = Report { story: &story, verdicts: &verdicts, skew: args.skew, texts, most };
    report.print(console)?;
    notes(console, &story, args);
    Ok(if verdicts.iter().any(|verdict| !verdict.is_good()) {
        Exit::VIOLATED
    } else if !report.judged_enough() {
        let message = if verdicts.iter().all(|verdict| verdict.judged == 0) {
            "nothing in it could be judged: this is no proof of anything"
        } else {
            "whether two held at once could not be judged: this is no proof of it"
        };
        console.remark("nothing-to-judge", message);
        Exit::UNJUDGED
    } else {
        Exit::OK
    })
}

fn take_in(console: &Console, input: &mut Input, story: &mut Story) -> Result<(), ReadError> {
    let size = input.size();
    let (from, so_far) = input.reader()?;
    read(from, |number, line| {
        story.take(number, line)?;
        if number.get().is_multiple_of(DRAW_EVERY) && console.can_animate() {
            let (lines, grants, bytes) = (number.get(), story.grants.len(), so_far.get());
            let share = size.filter(|size| *size > 0).map(|size| format!("{} %, ", bytes * 100 / size));
            let share = share.unwrap_or_default();
            console.progress(format_args!("reading: {share}{lines} lines, {grants} grants"));
        }
        Ok(())
    })
}

/// What was not judged although it is there.
fn notes(console: &Console, story: &Story, args: &CheckHistoryArgs) {
    if story.clocks() > 1 && args.skew.is_none() {
        let message = format!(
            "times of {} clocks; nothing was compared between two of them: say with --skew how far they are apart at most",
            story.clocks()
        );
        console.remark("clocks-not-compared", &message);
    }
    if let Some(first) = story.first_stray {
        let (lines, speak) =
            (words::count(story.strays, "line"), if story.strays == 1 { "speaks" } else { "speak" });
        let message = format!(
            "{lines} {speak} of a grant that is not in the history, or was given back before; not judged; the first is line {first}",
            first = first.get()
        );
        console.remark("lines-not-judged", &message);
    }
}
