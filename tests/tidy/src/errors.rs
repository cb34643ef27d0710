//! Errors: every variant that a caller can meet stands in the reference, under its name in lower case with dashes.

use std::collections::BTreeSet;

use crate::{Complaint, Tree};

/// Where the errors are explained.
const REFERENCE: &str = "docs/reference/errors.md";

/// Public errors: the file and the enum.
const ENUMS: [(&str, &str); 4] = [
    ("crates/client/src/error.rs", "Error"),
    ("crates/client/src/error.rs", "Unreachable"),
    ("crates/core/src/answer.rs", "Refusal"),
    ("crates/core/src/protocol.rs", "Failure"),
];

/// Errors that are not explained, and explanations of errors that do not exist.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(reference) = tree.get(REFERENCE) else { return vec![format!("{REFERENCE} is missing")] };
    let mut complaints = Vec::new();
    let mut known = BTreeSet::new();
    for (path, name) in ENUMS {
        let variants = tree.get(path).map(|file| variants(&file.text, name)).unwrap_or_default();
        if variants.is_empty() {
            complaints.push(format!("{path}: there is no enum {name} with variants"));
        }
        for variant in variants {
            let code = code(&variant);
            if !reference.text.contains(&format!("`{code}`")) {
                complaints
                    .push(format!("{REFERENCE}: `{code}` ({name}::{variant} of {path}) is not explained"));
            }
            known.insert(code);
        }
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
fn variants(text: &str, name: &str) -> Vec<String> {
    let heading = format!("pub enum {name} {{");
    let body = text.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| *line != "}");
    let indented = body.filter_map(|line| line.strip_prefix("    "));
    let named = indented.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    named.map(|line| line.chars().take_while(|c| c.is_ascii_alphanumeric()).collect()).collect()
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

fn is_code(cell: &str) -> bool {
    cell.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERRORS: &str = "/// Words.\npub enum Error {\n    /// One.\n    #[error(\n        \"Text {x}\"\n    )]
    NotFree {\n        /// Which.\n        Resource: u8,\n    },\n    /// Two.\n    Cancelled,\n    Text(#[from] A),\n}\n";

    fn tree(reference: &str) -> Tree {
        Tree::of(&[
            ("crates/client/src/error.rs", &format!("{ERRORS}pub enum Unreachable {{\n    Gone,\n}}\n")),
            ("crates/core/src/answer.rs", "pub enum Refusal {\n    SessionEnded,\n}\n"),
            ("crates/core/src/protocol.rs", "pub enum Failure {\n    OutcomeUnknown,\n}\n"),
            (REFERENCE, reference),
        ])
    }

    const FULL: &str = "| code | x |\n|---|---|\n| `not-free` | a |\n| `cancelled` | b |\n| `text` | c |
| `gone` | d |\n| `session-ended` | e |\n| `outcome-unknown` | f |\n";

    #[test]
    fn variants_are_read_from_formatted_code() {
        assert_eq!(variants(ERRORS, "Error"), ["NotFree", "Cancelled", "Text"]);
    }

    #[test]
    fn a_full_reference_is_good() {
        assert_eq!(check(&tree(FULL)), Vec::<String>::new());
    }

    #[test]
    fn an_error_that_is_not_explained_is_found() {
        let found = check(&tree(&FULL.replace("`cancelled`", "`canceled`")));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn an_enum_that_moved_is_found() {
        let found = check(&Tree::of(&[(REFERENCE, FULL)]));
        assert!(found.iter().any(|complaint| complaint.contains("no enum Refusal")), "{found:?}");
    }
}
