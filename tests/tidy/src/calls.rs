//! Calls and attributes that are not made, beyond what clippy sees.

use crate::{Complaint, File, Tree};

/// Files that read the machine's clocks. Everybody else is told the time.
const CLOCK_FILES: [&str; 4] = [
    "crates/bench/src/clock.rs",
    "crates/cli/src/guardian/clock.rs",
    "crates/clock/src/lib.rs",
    "xtask/src/clock.rs",
];

/// Files that show a moment to people. Nothing else is done with it.
const WALL_CLOCK_FILES: [&str; 1] = ["crates/cli/src/words.rs"];

/// Wrong wherever it stands, and why.
const NOWHERE: [(&str, &str); 8] = [
    ("Instant::now", "stops in suspend and is slewed: take the time as an argument"),
    ("SystemTime::now", "no outcome depends on a wall clock"),
    ("todo!(", "nothing is left undone"),
    ("unimplemented!(", "nothing is left undone"),
    ("dbg!(", "left over from a search"),
    ("#[ignore", "no test is skipped"),
    ("#[allow(", "use expect, with a reason"),
    ("#![allow(", "use expect, with a reason"),
];

/// Banned calls in the tree.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    // The rules themselves have to spell out what they look for.
    let files = tree.ending(".rs").filter(|file| !file.path.starts_with("tests/tidy/"));
    files.flat_map(|file| nowhere(file).chain(in_product(file))).collect()
}

fn nowhere(file: &File) -> impl Iterator<Item = Complaint> {
    let lines = file.lines().filter(|(_, line)| !line.trim_start().starts_with("//"));
    lines.flat_map(move |(number, line)| {
        let shown_time = WALL_CLOCK_FILES.contains(&file.path.as_str());
        let allowed = move |call: &str| call == "SystemTime::now" && shown_time;
        let found = NOWHERE.iter().filter(move |(call, _)| line.contains(call) && !allowed(call));
        found.map(move |(call, why)| format!("{}:{number}: {call}: {why}", file.path))
    })
}

fn in_product(file: &File) -> impl Iterator<Item = Complaint> {
    file.product_lines().filter_map(|(number, line)| {
        if line.contains(".unwrap()") {
            return Some(format!("{}:{number}: unwrap: use expect and name the invariant", file.path));
        }
        let reads_clock = line.contains("clock_gettime(") && !CLOCK_FILES.contains(&file.path.as_str());
        reads_clock.then(|| format!("{}:{number}: reads a clock: only crates/clock does", file.path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn every_banned_call_is_found_once_in_code_and_tests() {
        for (call, _) in NOWHERE {
            let text = format!("fn f() {{\n    {call}\n}}\n");
            assert_eq!(found("crates/a/src/lib.rs", &text), 1, "{call}");
            assert_eq!(found("crates/a/tests/b.rs", &text), 1, "{call}");
        }
    }

    #[test]
    fn an_unwrap_is_found_in_the_product_and_allowed_in_tests() {
        assert_eq!(found("crates/a/src/lib.rs", "let a = b.unwrap();\n"), 1);
        assert_eq!(found("crates/a/tests/b.rs", "let a = b.unwrap();\n"), 0);
        assert_eq!(found("crates/a/src/lib.rs", "#[cfg(test)]\nmod tests {\n    b.unwrap();\n}\n"), 0);
        assert_eq!(found("crates/a/src/lib.rs", "let a = b.unwrap_or(0);\n"), 0);
    }

    #[test]
    fn a_clock_is_read_in_its_own_files_only() {
        assert_eq!(found("crates/a/src/lib.rs", "clock_gettime(clock);\n"), 1);
        assert_eq!(found(CLOCK_FILES[2], "clock_gettime(clock);\n"), 0);
    }

    #[test]
    fn the_time_of_day_is_read_only_to_be_shown() {
        assert_eq!(found(WALL_CLOCK_FILES[0], "SystemTime::now();\n"), 0);
        assert_eq!(found(WALL_CLOCK_FILES[0], "Instant::now();\n"), 1);
    }

    #[test]
    fn comments_may_speak_of_what_is_banned() {
        assert_eq!(found("crates/a/src/lib.rs", "/// `Instant::now` is neither, see .unwrap()\n"), 0);
    }
}
