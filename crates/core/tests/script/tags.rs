//! What scripts are counted for, and the table of them in the documentation.

use std::collections::BTreeMap;

use super::file::Script;

/// Every tag there is. Each must be shown by at least [`TIMES`] scripts.
pub(crate) const TAGS: &[&str] = &[
    // Promises, as far as the table alone can show them.
    "P1",
    "P2",
    "P3",
    "P4",
    "P5",
    "P6",
    "P7",
    "P8",
    "P9",
    "P10",
    // Policies of a session.
    "defaults",
    "grace",
    "hard",
    "delay",
    // Modes.
    "exclusive",
    "shared",
    "slots",
    "unit",
    // Endings.
    "released",
    "handed-over",
    "drained",
    "expired",
    "taken",
    "revoked",
    "session-closed",
    "rebooted",
    "restored",
    // Parts of the table.
    "queue",
    "stream",
    "renewal",
    "plain",
    "handover",
    "revoke",
    "registers",
    "limits",
    "tidy",
    "operator",
    "alarm",
    "draining",
    "gaps",
    "version",
];

/// How often each tag must occur: one script can be wrong in the same way as the code.
pub(crate) const TIMES: usize = 2;

const BEGIN: &str = "<!-- scripts: begin -->\n";
const END: &str = "<!-- scripts: end -->\n";

/// Complaints about tags: unknown ones, and those that too few scripts show.
pub(crate) fn complaints(scripts: &[Script]) -> Vec<String> {
    let mut shown: BTreeMap<&str, usize> = TAGS.iter().map(|tag| (*tag, 0)).collect();
    let mut complaints = Vec::new();
    for script in scripts {
        for tag in &script.tags {
            match shown.get_mut(tag.as_str()) {
                Some(count) => *count += 1,
                None => complaints.push(format!("{}: {tag:?} is not a tag", script.name)),
            }
        }
    }
    let missing = shown.iter().filter(|(_, count)| **count < TIMES);
    complaints
        .extend(missing.map(|(tag, count)| format!("{tag} is shown by {count} scripts; {TIMES} are wanted")));
    complaints
}

/// The page with its table of scripts made anew.
pub(crate) fn with_table(page: &str, scripts: &[Script]) -> Result<String, String> {
    let marks = page.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = marks.ok_or_else(|| format!("the page lacks the lines {BEGIN:?} and {END:?}"))?;
    let mut table = "| script | what it shows | tags |\n|---|---|---|\n".to_owned();
    for script in scripts {
        let (name, sentence, tags) =
            (&script.name, script.sentence.replace('|', "\\|"), script.tags.join(", "));
        table.push_str(&format!(
            "| [{name}](../../crates/core/tests/scripts/{name}.txt) | {sentence} | {tags} |\n"
        ));
    }
    Ok(format!("{head}{BEGIN}{table}{END}{tail}"))
}
