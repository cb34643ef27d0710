//! Test programs: where a package lists its own, no file of tests is forgotten, and a program that is said to have no tests has none.

use toml::{Table, Value};

use crate::{Complaint, Tree};

/// Files of tests that no program of their package has, and tests in programs that are built without them.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for manifest in tree.ending("/Cargo.toml") {
        // One that is no TOML is found by another rule.
        let Ok(table) = manifest.text.parse::<Table>() else { continue };
        complaints.extend(tests_left_out(tree, manifest.path.trim_end_matches("Cargo.toml"), &table));
        let listed =
            table.get("package").and_then(|package| package.get("autotests")?.as_bool()) == Some(false);
        if !listed {
            continue;
        }
        let directory = format!("{}tests/", manifest.path.trim_end_matches("Cargo.toml"));
        let programs: Vec<&str> = programs(&table);
        let texts = programs.iter().filter_map(|name| tree.get(&format!("{directory}{name}.rs")));
        let parts: Vec<&str> = texts.flat_map(|file| file.text.lines().filter_map(part)).collect();
        for file in tree.ending(".rs") {
            let Some(path) = file.path.strip_prefix(&directory) else { continue };
            let name = path.trim_end_matches(".rs").trim_end_matches("/main");
            if !name.contains('/') && !programs.contains(&name) && !parts.contains(&name) {
                complaints.push(format!("{}: no test program has it: add it to tests/all.rs", file.path));
            }
        }
    }
    complaints
}

/// Tests in programs with `test = false`.
fn tests_left_out(tree: &Tree, package: &str, manifest: &Table) -> Vec<Complaint> {
    let programs = manifest.get("bin").and_then(Value::as_array).into_iter().flatten();
    let without = programs.filter(|program| program.get("test").and_then(Value::as_bool) == Some(false));
    let names: Vec<&str> = without.filter_map(|program| program.get("name")?.as_str()).collect();
    // Where there is a library, a program is one file; else it is all there is.
    let has_library = tree.get(&format!("{package}src/lib.rs")).is_some();
    let source = format!("{package}src/");
    let of_program = |path: &str| {
        let own = path.strip_prefix(&source).is_some_and(|path| {
            !has_library
                || path == "main.rs"
                || names.iter().any(|name| path.strip_prefix("bin/") == Some(&format!("{name}.rs")))
        });
        own && !names.is_empty()
    };
    let files = tree.ending(".rs").filter(|file| of_program(&file.path));
    let tests = files.filter(|file| file.text.lines().any(|line| line.trim_start().starts_with("#[test]")));
    tests.map(|file| format!("{}: its tests are not run: its program has test = false", file.path)).collect()
}

fn programs(manifest: &Table) -> Vec<&str> {
    let tests = manifest.get("test").and_then(Value::as_array).into_iter().flatten();
    tests.filter_map(|test| test.get("name")?.as_str()).collect()
}

/// The module that a line names.
fn part(line: &str) -> Option<&str> {
    line.strip_prefix("mod ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(manifest: &str, files: &[(&str, &str)]) -> Vec<Complaint> {
        let tree = [&[("a/Cargo.toml", manifest)], files].concat();
        check(&Tree::of(&tree))
    }

    #[test]
    fn a_file_that_no_program_has_is_found() {
        let manifest = "[package]\nautotests = false\n[[test]]\nname = \"all\"\n";
        let all = ("a/tests/all.rs", "mod one;\n#[path = \"two/main.rs\"]\nmod two;\n");
        let good = [all, ("a/tests/one.rs", ""), ("a/tests/two/main.rs", ""), ("a/tests/two/three.rs", "")];
        assert_eq!(found(manifest, &good), Vec::<Complaint>::new());
        let forgotten = [all, ("a/tests/four.rs", ""), ("a/tests/five/main.rs", "")];
        assert_eq!(found(manifest, &forgotten).len(), 2);
    }

    #[test]
    fn a_test_in_a_program_that_is_built_without_tests_is_found() {
        let manifest = "[package]\n[[bin]]\nname = \"x\"\ntest = false\n";
        let test = "mod tests {\n    #[test]\n    fn f() {}\n}\n";
        assert_eq!(found(manifest, &[("a/src/main.rs", ""), ("a/src/part.rs", test)]).len(), 1);
        let library = [("a/src/lib.rs", test), ("a/src/bin/x.rs", ""), ("a/src/bin/y.rs", test)];
        assert!(found(manifest, &library).is_empty());
        assert_eq!(found(manifest, &[("a/src/lib.rs", ""), ("a/src/bin/x.rs", test)]).len(), 1);
    }

    #[test]
    fn where_cargo_looks_for_tests_itself_nothing_is_forgotten() {
        assert!(found("[package]\n", &[("a/tests/one.rs", "")]).is_empty());
    }
}
