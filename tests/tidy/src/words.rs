//! Words that belong to one machine or one person and not into the tree.

use crate::{Complaint, Tree};

/// Pieces of text, in lower case, and what is wrong with them.
const BANNED: [(&str, &str); 8] = [
    ("co-authored", "the project speaks of itself alone"),
    ("/work/", "a path of one machine"),
    ("/root/", "a path of one machine"),
    ("/home/", "a path of one machine"),
    ("/tmp/target", "a path of one machine"),
    ("shared/design", "a document that is not in the tree"),
    ("sparse+http", "a registry of one machine"),
    ("replace-with", "a registry of one machine"),
];

/// The only source of dependencies.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Banned words, and dependencies from elsewhere than the public registry.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    // The rules themselves have to spell out what they look for.
    for file in tree.files().filter(|file| !file.path.starts_with("tests/tidy/")) {
        for (number, line) in file.lines() {
            let lower = line.to_lowercase();
            for (word, why) in BANNED.iter().filter(|(word, _)| lower.contains(word)) {
                complaints.push(format!("{}:{number}: {word:?}: {why}", file.path));
            }
            if file.path == "Cargo.lock"
                && let Some(source) = line.strip_prefix("source = ")
                && source.trim_matches('"') != REGISTRY
            {
                complaints.push(format!("Cargo.lock:{number}: {source} is not the public registry"));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_banned_word_is_found_in_any_case() {
        for (word, _) in BANNED {
            let text = format!("see {}here\n", word.to_uppercase());
            assert_eq!(check(&Tree::of(&[("docs/a.md", text.as_str())])).len(), 1, "{word}");
        }
    }

    #[test]
    fn a_dependency_from_elsewhere_is_found() {
        let lock = |source: &str| format!("name = \"a\"\nsource = \"{source}\"\n");
        let (good, bad) = (lock(REGISTRY), lock("registry+https://crates.example.org/index"));
        assert!(check(&Tree::of(&[("Cargo.lock", good.as_str())])).is_empty());
        assert_eq!(check(&Tree::of(&[("Cargo.lock", bad.as_str())])).len(), 1);
    }
}
