//! Modules: a file belongs to one package. Compiled into two it has two meanings, and what it needs has to be pretended in the second.

use crate::links::resolve;
use crate::{Complaint, Tree};

/// Modules with a `#[path]` that leads out of their package.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.ending(".rs") {
        for (number, line) in file.lines() {
            let path = line.trim_start().strip_prefix("#[path = \"").and_then(|rest| rest.split_once('"'));
            let Some((path, _)) = path else { continue };
            let target = resolve(&file.path, path);
            if target.is_none_or(|target| package(tree, &target) != package(tree, &file.path)) {
                complaints.push(format!("{}:{number}: {path} is a file of another package", file.path));
            }
        }
    }
    complaints
}

/// The directory of the package that a file belongs to.
fn package<'a>(tree: &'a Tree, path: &str) -> Option<&'a str> {
    let directories = tree.ending("/Cargo.toml").map(|file| file.path.trim_end_matches("Cargo.toml"));
    directories.filter(|directory| path.starts_with(directory)).max_by_key(|directory| directory.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str) -> usize {
        let text = format!("    #[path = \"{path}\"]\n    mod x;\n");
        let packages = [("a/Cargo.toml", ""), ("a/in/Cargo.toml", ""), ("b/Cargo.toml", "")];
        check(&Tree::of(&[&packages[..], &[("a/src/lib.rs", &text)]].concat())).len()
    }

    #[test]
    fn a_file_of_another_package_or_of_none_is_found() {
        for path in ["../../b/src/x.rs", "../in/src/x.rs", "../../x.rs", "../../../x.rs"] {
            assert_eq!(found(path), 1, "{path}");
        }
    }

    #[test]
    fn a_file_of_the_same_package_is_good() {
        assert_eq!(["x/y.rs", "../tests/x.rs"].map(found), [0, 0]);
    }
}
