//! Guarantees: every test and script that the page of promises names is there.

use crate::{Complaint, Tree};

/// Where promises are explained.
const PAGE: &str = "docs/concepts/guarantees.md";
/// Where its scripts are.
const SCRIPTS: &str = "crates/core/tests/scripts/";

/// Names on the page that stand for nothing.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(page) = tree.get(PAGE) else { return vec![format!("{PAGE} is missing")] };
    let mut complaints = Vec::new();
    for (number, line) in page.lines() {
        for name in line.split('`').skip(1).step_by(2) {
            let there = match kind(name) {
                Kind::Script => tree.get(&format!("{SCRIPTS}{name}")).is_some(),
                Kind::Test => is_function(tree, name),
                Kind::Other => true,
            };
            if !there {
                complaints.push(format!("{PAGE}:{number}: there is no test {name}"));
            }
        }
    }
    complaints
}

enum Kind {
    Script,
    Test,
    Other,
}

/// Tests are sentences: no other name here has so many words.
fn kind(name: &str) -> Kind {
    if name.ends_with(".txt") && !name.contains('/') {
        Kind::Script
    } else if name.matches('_').count() >= 2 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
        Kind::Test
    } else {
        Kind::Other
    }
}

fn is_function(tree: &Tree, name: &str) -> bool {
    let head = format!("fn {name}(");
    tree.ending(".rs").any(|file| file.text.contains(&head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> usize {
        let script = format!("{SCRIPTS}slots.txt");
        check(&Tree::of(&[(PAGE, page), (&script, ""), ("a.rs", "fn it_is_so() {}\nfn it_is(x: u8) {}\n")]))
            .len()
    }

    #[test]
    fn tests_and_scripts_that_are_there_are_good() {
        assert_eq!(found("`it_is_so` and `slots.txt`, `exclusion`, `crates/a/b_c_d.rs`, `max_ttl`\n"), 0);
    }

    #[test]
    fn names_that_stand_for_nothing_are_found() {
        assert_eq!(found("`it_was_so`, `it_is_so`\n"), 1);
        assert_eq!(found("`slot.txt`\n"), 1);
        assert_eq!(found("`is_so_`\n"), 1);
    }
}
