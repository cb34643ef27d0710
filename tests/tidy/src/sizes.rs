//! Sizes: past five hundred lines there is usually a second idea in a file.

use crate::{Complaint, Tree};

/// More lines than this are worth a look.
pub const COMFORTABLE: usize = 350;
/// More lines than this are refused.
pub const MOST: usize = 500;

/// Source files that are too long.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    longer_than(tree, MOST)
        .map(|(path, lines)| format!("{path}: {lines} lines, at most {MOST}: what is the second idea in it?"))
        .chain(tree.ending("/mod.rs").map(|file| format!("{}: call it by the module's name", file.path)))
        .collect()
}

/// Source files that are long, but not too long.
pub fn long(tree: &Tree) -> Vec<String> {
    let long = longer_than(tree, COMFORTABLE).filter(|(_, lines)| *lines <= MOST);
    long.map(|(path, lines)| format!("{path}: {lines} lines")).collect()
}

fn longer_than(tree: &Tree, most: usize) -> impl Iterator<Item = (&str, usize)> {
    let sizes = tree.ending(".rs").map(|file| (file.path.as_str(), file.text.lines().count()));
    sizes.filter(move |(_, lines)| *lines > most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_past_the_limit_is_found_and_one_at_the_limit_is_not() {
        let (at, past) = ("x\n".repeat(500), "x\n".repeat(501));
        let tree = Tree::of(&[("a.rs", at.as_str()), ("b.rs", past.as_str()), ("c.txt", past.as_str())]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("b.rs: 501 lines"), "{found:?}");
        assert_eq!(long(&tree), ["a.rs: 500 lines"]);
    }

    #[test]
    fn a_module_that_is_called_mod_is_found() {
        assert_eq!(check(&Tree::of(&[("src/table/mod.rs", "")])).len(), 1);
    }
}
