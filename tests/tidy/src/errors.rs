//! Errors: every code that a program can be shown stands in the reference, and every public error has a code.

use std::collections::BTreeSet;

use crate::{Complaint, File, Tree};

/// Where the errors are explained.
const REFERENCE: &str = "docs/reference/errors.md";

/// Where public errors get their codes.
const CODES: &str = "crates/cli/src/codes.rs";
/// Where the command's own troubles get theirs.
const TROUBLES: &str = "crates/cli/src/trouble.rs";

/// Where errors over HTTP and gRPC have theirs, each in one row of a list.
const FAULTS: [&str; 2] = ["crates/api/src/code.rs", "crates/fence/src/http/problem.rs"];

/// Where refusals get theirs.
const REFUSALS: &str = "crates/api/src/error.rs";

/// Public errors that must be given a code by name: the file, the enum, and where it is given.
const NAMED: [(&str, &str, &str); 3] = [
    ("crates/client/src/error.rs", "Error", CODES),
    ("crates/client/src/error.rs", "Unreachable", CODES),
    ("crates/core/src/refusal.rs", "Refusal", REFUSALS),
];

/// What only crosses the wire: its code is its name in lower case with dashes.
const ON_THE_WIRE: (&str, &str) = ("crates/core/src/protocol.rs", "Failure");

/// Errors without a code, codes that are not explained, and explanations of codes that do not exist.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(reference) = tree.get(REFERENCE) else { return vec![format!("{REFERENCE} is missing")] };
    let mut complaints = Vec::new();
    for (path, name, place) in NAMED {
        let given = tree.get(place).map_or("", |file| &file.text);
        for variant in variants(tree, path, name, &mut complaints) {
            if !given.contains(&format!("{name}::{variant}")) {
                complaints.push(format!("{place}: {name}::{variant} of {path} has no code"));
            }
        }
    }
    let (path, name) = ON_THE_WIRE;
    let mut known: BTreeSet<String> =
        variants(tree, path, name, &mut complaints).iter().map(|variant| code(variant)).collect();
    known.extend([CODES, REFUSALS, TROUBLES].into_iter().filter_map(|path| tree.get(path)).flat_map(codes));
    known.extend(FAULTS.into_iter().filter_map(|path| tree.get(path)).flat_map(listed));
    for code in known.iter().filter(|code| !reference.text.contains(&format!("`{code}`"))) {
        complaints.push(format!("{REFERENCE}: `{code}` is not explained"));
    }
    // The first cell of a row that is a code and nothing else.
    for (number, line) in reference.lines() {
        let cell = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")).map(|(cell, _)| cell);
        if let Some(cell) = cell.filter(|cell| is_code(cell) && !known.contains(*cell)) {
            complaints.push(format!("{REFERENCE}:{number}: `{cell}` is no error of the code"));
        }
    }
    complaints
}

/// The names of an enum's variants, from code that was formatted.
fn variants(tree: &Tree, path: &str, name: &str, complaints: &mut Vec<Complaint>) -> Vec<String> {
    let heading = format!("pub enum {name} {{");
    let lines = tree.get(path).map_or("", |file| &file.text).lines();
    let body = lines.skip_while(|line| *line != heading).skip(1).take_while(|line| *line != "}");
    let indented = body.filter_map(|line| line.strip_prefix("    "));
    let named = indented.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    let found: Vec<String> =
        named.map(|line| line.chars().take_while(char::is_ascii_alphanumeric).collect()).collect();
    if found.is_empty() {
        complaints.push(format!("{path}: there is no enum {name} with variants"));
    }
    found
}

/// Codes that a file gives: the first text behind an arrow. What is left for errors to come is no code of anything yet.
fn codes(file: &File) -> BTreeSet<String> {
    let arms = file.product_lines().filter_map(|(_, line)| line.split_once("=> "));
    let arms = arms.filter(|(error, _)| error.trim() != "_");
    let texts =
        arms.filter_map(|(_, given)| given.trim_start_matches('(').strip_prefix('"')?.split_once('"'));
    texts.map(|(text, _)| text.to_owned()).filter(|text| is_code(text)).collect()
}

/// Codes in a list: `code("not-free", 409, ...)`.
fn listed(file: &File) -> BTreeSet<String> {
    let rows = file.product_lines().filter_map(|(_, line)| line.trim().strip_prefix("code(\""));
    rows.filter_map(|row| row.split_once('"')).map(|(code, _)| code.to_owned()).collect()
}

/// `SessionEnded` is `session-ended`.
fn code(variant: &str) -> String {
    let mut code = String::new();
    for letter in variant.chars() {
        if letter.is_ascii_uppercase() && !code.is_empty() {
            code.push('-');
        }
        code.push(letter.to_ascii_lowercase());
    }
    code
}

fn is_code(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERRORS: &str = "/// Words.\npub enum Error {\n    /// One.\n    #[error(\n        \"Text {x}\"\n    )]
    NotFree {\n        /// Which.\n        Resource: u8,\n    },\n    /// Two.\n    Cancelled,\n    Text(#[from] A),\n}
pub enum Unreachable {\n    Gone,\n}\n";
    const GIVEN: &str = "match error {\n    Error::NotFree { .. } => (\"not-free\", Kind::Refused),
    Error::Cancelled => (\"cancelled\", Kind::Failed),\n    Error::Text(_) => (\"bad-text\", Kind::Failed),
    Unreachable::Gone => \"gone\",\n    _ => (\"failed\", Kind::Failed),\n}\n";
    const REFUSED: &str = "match refusal {\n    Refusal::SessionEnded => \"session-ended\",\n}\n";
    const FULL: &str = "| code | x |\n|---|---|\n| `not-free` | a |\n| `cancelled` | b |\n| `bad-text` | c |
| `gone` | d |\n| `session-ended` | e |\n| `outcome-unknown` | f |\n";

    fn found(given: &str, reference: &str) -> Vec<Complaint> {
        check(&Tree::of(&[
            ("crates/client/src/error.rs", ERRORS),
            ("crates/core/src/refusal.rs", "pub enum Refusal {\n    SessionEnded,\n}\n"),
            ("crates/core/src/protocol.rs", "pub enum Failure {\n    OutcomeUnknown,\n}\n"),
            (CODES, given),
            (REFUSALS, REFUSED),
            (REFERENCE, reference),
        ]))
    }

    #[test]
    fn a_full_reference_is_good() {
        assert_eq!(found(GIVEN, FULL), Vec::<String>::new());
    }

    #[test]
    fn variants_are_read_from_formatted_code() {
        let tree = Tree::of(&[("a.rs", ERRORS)]);
        assert_eq!(variants(&tree, "a.rs", "Error", &mut Vec::new()), ["NotFree", "Cancelled", "Text"]);
    }

    #[test]
    fn an_error_without_a_code_is_found() {
        let found = found(&GIVEN.replace("Error::Cancelled", "Error::Other"), FULL);
        assert_eq!(found, [format!("{CODES}: Error::Cancelled of crates/client/src/error.rs has no code")]);
    }

    #[test]
    fn a_code_that_is_not_explained_and_one_that_does_not_exist_are_found() {
        assert_eq!(found(GIVEN, &FULL.replace("`cancelled`", "`canceled`")).len(), 2);
        assert_eq!(found(GIVEN, &FULL.replace("| `outcome-unknown` | f |\n", "")).len(), 1);
    }

    #[test]
    fn a_code_of_the_doors_is_to_be_explained_too() {
        let faults =
            (FAULTS[0], "const CODES: [Code; 1] = [\n    code(\"bad-json\", 400, GrpcCode::Other),\n];\n");
        let found = check(&Tree::of(&[(REFERENCE, FULL), (CODES, GIVEN), (REFUSALS, REFUSED), faults]));
        assert!(found.iter().any(|complaint| complaint.contains("`bad-json` is not explained")), "{found:?}");
    }

    #[test]
    fn an_enum_that_moved_is_found() {
        let found = check(&Tree::of(&[(REFERENCE, FULL), (CODES, GIVEN)]));
        assert!(found.iter().any(|complaint| complaint.contains("no enum Refusal")), "{found:?}");
    }
}
