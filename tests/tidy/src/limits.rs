//! Limits: every named constant that bounds something stands in the documentation with its value.

use std::collections::BTreeMap;

use crate::{Complaint, File, Tree};

/// Where the limits that a client meets are explained.
const REFERENCE: &str = "docs/reference/limits.md";
/// Where the others are.
const INTERNALS: &str = "docs/internals/limits.md";
/// Packages whose limits people meet.
const PACKAGES: [&str; 9] = ["api", "client", "core", "fence", "host", "node", "server", "wal", "wire"];
/// How the names of limits begin.
const BEGINNINGS: [&str; 6] = ["DEFAULT_", "LONGEST_", "MAX_", "MIN_", "MOST_", "SHORTEST_"];

/// A value as far as it can be compared: microseconds, or a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    Micros(u64),
    Number(u64),
}

/// Where a constant stands, and its name.
type Key = (String, String);

/// Limits that are missing in the reference, that are not in the code, or that have another value there.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let constants: BTreeMap<Key, (bool, String)> = tree
        .ending(".rs")
        .filter(|file| !file.path.contains("/testing/"))
        .filter(|file| {
            let known = |package: &&str| file.path.starts_with(&format!("crates/{package}/src/"));
            PACKAGES.iter().any(known) || file.path.starts_with("contrib/")
        })
        .flat_map(constants)
        .collect();
    let mut explained = BTreeMap::new();
    let pages = [REFERENCE, INTERNALS].into_iter().filter_map(|page| tree.get(page));
    for (page, (number, line)) in pages.flat_map(|page| page.lines().map(|line| (&page.path, line))) {
        let Some((key, shown)) = row(line) else { continue };
        match constants.get(&key) {
            None => complaints.push(format!("{page}:{number}: {} is not in {}", key.1, key.0)),
            Some((_, expression)) => match (evaluate(expression), read_amount(&shown)) {
                (Some(real), Some(told)) if real == told => {}
                (real, told) => complaints.push(format!(
                    "{page}:{number}: {} is {expression} ({real:?}) in the code and {shown} ({told:?}) here",
                    key.1
                )),
            },
        }
        explained.insert(key, ());
    }
    let missing = constants.iter().filter(|(key, (limit, _))| *limit && !explained.contains_key(*key));
    complaints.extend(missing.map(|((path, name), _)| format!("{REFERENCE}: {name} of {path} is missing")));
    complaints
}

/// Constants of a file, whether each must be explained, and their expressions.
fn constants(file: &File) -> impl Iterator<Item = (Key, (bool, String))> {
    file.product_lines().filter_map(|(_, line)| {
        let words = line.trim_start();
        let words = ["pub ", "pub(crate) ", "pub(super) "]
            .iter()
            .find_map(|pub_| words.strip_prefix(pub_))
            .unwrap_or(words);
        let (name, rest) = words.strip_prefix("const ")?.split_once(": ")?;
        let (kind, expression) = rest.strip_suffix(';')?.split_once(" = ")?;
        let counts = ["Duration", "Millis", "i32", "u16", "u32", "u64", "u8", "usize"].contains(&kind);
        // What is computed follows from another limit, and a constant inside of a function is its own business.
        let plain = counts && evaluate(expression).is_some() && !line.starts_with(' ');
        let limit = plain && BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
        Some(((file.path.clone(), name.to_owned()), (limit, expression.to_owned())))
    })
}

/// A row `| [`NAME`](path) | value | reason |` of the reference.
fn row(line: &str) -> Option<(Key, String)> {
    let (name, rest) = line.strip_prefix("| [`")?.split_once("`](../../")?;
    let (path, rest) = rest.split_once(") | ")?;
    let (shown, _) = rest.split_once(" |")?;
    Some(((path.to_owned(), name.to_owned()), shown.to_owned()))
}

/// The value of a constant's expression: numbers, products, shifts, and lengths of time made of them.
fn evaluate(expression: &str) -> Option<Amount> {
    for (maker, micros) in [
        ("Millis::new(", 1_000),
        ("Duration::from_micros(", 1),
        ("Duration::from_millis(", 1_000),
        ("Duration::from_secs(", 1_000_000),
    ] {
        if let Some(inner) = expression.strip_prefix(maker) {
            return number(inner.strip_suffix(')')?).map(|amount| Amount::Micros(amount * micros));
        }
    }
    number(expression).map(Amount::Number)
}

fn number(expression: &str) -> Option<u64> {
    if let Some((left, right)) = expression.split_once(" << ") {
        return Some(number(left)? << number(right)?);
    }
    expression.split(" * ").map(|factor| factor.replace('_', "").parse::<u64>().ok()).product()
}

/// An amount as people read it: `64 KiB`, `5 min`, `10,000`.
fn read_amount(shown: &str) -> Option<Amount> {
    let unit_at = shown.find(|c: char| c.is_alphabetic()).unwrap_or(shown.len());
    let (digits, unit) = shown.split_at(unit_at);
    let amount: u64 = digits.replace([' ', ','], "").parse().ok()?;
    Some(match unit {
        "us" => Amount::Micros(amount),
        "ms" => Amount::Micros(amount * 1_000),
        "s" => Amount::Micros(amount * 1_000_000),
        "min" => Amount::Micros(amount * 60_000_000),
        "h" => Amount::Micros(amount * 3_600_000_000),
        "KiB" => Amount::Number(amount << 10),
        "MiB" => Amount::Number(amount << 20),
        _ => Amount::Number(amount),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "/// Why.\npub const MAX_NAME: usize = 512;\nconst MIN_TTL: Millis = Millis::new(5 * 60 * 1000);
pub(crate) const MAX_FRAME: u64 = 4 << 20;\nconst LABEL: &str = \"x\";\nfn f() {\n    const MAX_TURNS: u32 = 2;\n}\n";

    fn found(name: &str, value: &str) -> Vec<Complaint> {
        let row =
            |name: &str, value: &str| format!("| [`{name}`](../../crates/core/src/a.rs) | {value} | why |\n");
        let rows = [row("MAX_NAME", "512 bytes"), row("MIN_TTL", "5 min"), row("MAX_FRAME", "4 MiB")];
        let mut text: String = rows.into_iter().filter(|row| !row.contains(name)).collect();
        text.push_str(&row(name, value));
        check(&Tree::of(&[("crates/core/src/a.rs", CODE), (REFERENCE, text.as_str())]))
    }

    #[test]
    fn values_are_compared_in_the_units_of_people() {
        assert_eq!(found("MAX_NAME", "512"), Vec::<String>::new());
        assert_eq!(found("MIN_TTL", "300 s"), Vec::<String>::new());
        assert_eq!(found("MAX_FRAME", "4,096 KiB"), Vec::<String>::new());
        assert_eq!(found("MAX_TURNS", "2"), Vec::<String>::new());
    }

    #[test]
    fn another_value_is_found() {
        assert_eq!(found("MAX_NAME", "513").len(), 1);
        assert_eq!(found("MIN_TTL", "300 000").len(), 1);
        assert_eq!(found("MAX_FRAME", "4").len(), 1);
    }

    #[test]
    fn a_limit_may_stand_on_the_page_of_internals() {
        let found = |value: &str| {
            let row = format!("| [`MAX_NAME`](../../crates/core/src/a.rs) | {value} | why |\n");
            check(&Tree::of(&[("crates/core/src/a.rs", CODE), (INTERNALS, row.as_str())]))
        };
        assert_eq!(found("512").len(), 2, "the two others are missing");
        assert!(found("513")[0].starts_with(INTERNALS));
    }

    #[test]
    fn a_limit_that_is_not_explained_is_found_and_one_that_does_not_exist_too() {
        let missing = check(&Tree::of(&[("crates/core/src/a.rs", CODE), (REFERENCE, "")]));
        assert_eq!(missing.len(), 3, "{missing:?}");
        assert_eq!(found("MAX_NOTHING", "1").len(), 1);
    }
}
