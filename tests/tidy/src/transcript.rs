//! Transcripts in the documentation: blocks marked `console`, with commands behind `$ ` and below each what it prints.
//!
//! A command goes on in the next line behind `> `. In what it prints, a line `...` stands for any number of lines, and `...` inside
//! of a line for any text. The blocks of one document share one shell and one empty directory. A block that cannot be run says why
//! in a comment above it: `<!-- not run: REASON -->`.

use crate::{Complaint, File, Tree};

/// A command and what it is said to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The line of the command in its document.
    pub line: usize,
    /// The command, possibly of several lines.
    pub command: String,
    /// What it prints.
    pub expected: Vec<String>,
}

const NOT_RUN: &str = "<!-- not run: ";

/// The documents that may have transcripts.
pub fn documents(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.ending(".md").filter(|file| file.path == "README.md" || file.path.starts_with("docs/"))
}

/// Transcripts that cannot be read, and blocks of shell that nobody would run.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in documents(tree) {
        complaints.extend(exchanges(file).err());
        for (number, line) in file.lines() {
            if ["```sh", "```bash", "```shell"].contains(&line.trim()) && line.starts_with("```") {
                let why = "a block of shell is not run: make it a transcript (console) or a listing (text)";
                complaints.push(format!("{}:{number}: {why}", file.path));
            }
        }
    }
    complaints
}

/// The transcripts of a document, in order.
///
/// # Errors
/// When a block does not begin with a command, or a reason is missing.
pub fn exchanges(file: &File) -> Result<Vec<Exchange>, Complaint> {
    let mut found: Vec<Exchange> = Vec::new();
    let (mut inside, mut skipped) = (false, false);
    let mut fresh = false;
    for (line, text) in file.lines() {
        if text.starts_with("```") {
            inside = !inside && text == "```console" && !skipped;
            skipped = false;
            fresh = inside;
            continue;
        }
        if let Some(reason) = text.strip_prefix(NOT_RUN) {
            if reason.trim_end_matches("-->").trim().is_empty() {
                return Err(format!("{}:{line}: a transcript is not run without a reason", file.path));
            }
            skipped = true;
        }
        if !inside {
            continue;
        }
        match (text.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => {
                found.push(Exchange { line, command: command.to_owned(), expected: Vec::new() });
                fresh = false;
            }
            (None, Some(last)) if !fresh => match text.strip_prefix("> ") {
                Some(more) if last.expected.is_empty() => last.command.extend(["\n", more]),
                _ => last.expected.push(text.to_owned()),
            },
            _ => return Err(format!("{}:{line}: a transcript begins with a command behind `$ `", file.path)),
        }
    }
    Ok(found)
}

/// Whether what was printed is what was expected.
pub fn matches(expected: &[String], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.iter().all(|line| line.trim().is_empty()),
        Some((any, rest)) if any == "..." => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed.split_first().is_some_and(|(first, others)| {
            line_matches(line.trim_end(), first.trim_end()) && matches(rest, others)
        }),
    }
}

fn line_matches(expected: &str, printed: &str) -> bool {
    let Some((before, after)) = expected.split_once("...") else { return expected == printed };
    let Some(rest) = printed.strip_prefix(before) else { return false };
    let starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.into_iter().any(|at| line_matches(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Exchange>, Complaint> {
        exchanges(&File { path: "README.md".into(), text: text.into() })
    }

    #[test]
    fn commands_and_what_they_print_are_read() {
        let text = "x\n```console\n$ one \\\n> two\na\n\n> b\n$ three\n```\n```text\n$ four\n```\n";
        let found = read(text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].command, "one \\\ntwo");
        assert_eq!(found[0].expected, ["a", "", "> b"]);
        assert_eq!((found[1].line, found[1].command.as_str()), (8, "three"));
    }

    #[test]
    fn a_block_is_left_out_only_with_a_reason() {
        assert!(
            read("<!-- not run: needs a second machine -->\n```console\n$ one\n```\n").unwrap().is_empty()
        );
        assert!(read("<!-- not run:  -->\n```console\n$ one\n```\n").is_err());
        let next = "<!-- not run: why -->\n```console\n$ one\n```\n```console\n$ two\n```\n";
        assert_eq!(read(next).unwrap().len(), 1);
    }

    #[test]
    fn a_block_that_begins_with_no_command_is_found() {
        assert!(read("```console\n$ one\n```\n```console\ntwo\n```\n").is_err());
        let tree = Tree::of(&[("docs/a.md", "```console\none\n```\n"), ("docs/b.md", "```sh\none\n```\n")]);
        assert_eq!(check(&tree).len(), 2);
    }

    #[test]
    fn what_varies_may_be_left_open_and_nothing_else() {
        let says = |expected: &str, printed: &str| {
            let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
            matches(&expected, &printed.lines().collect::<Vec<_>>())
        };
        assert!(says("token 1", "token 1\n\n"));
        assert!(says("token ...", "token 17"));
        assert!(says("...\nb\n...", "a\na\nb"));
        assert!(says("by ... for ... ms", "by sh@host:3 for 20 ms"));
        assert!(!says("token 1", "token 2"));
        assert!(!says("token ... ms", "token 2"));
        assert!(!says("a", "a\nb"));
        assert!(!says("a\nb", "a"));
        assert!(!says("", "a"));
    }
}
