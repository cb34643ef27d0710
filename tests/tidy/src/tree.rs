//! The files of the project as text.

use std::fs;
use std::io;
use std::path::Path;

/// A file.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path from the root, with `/` between its parts.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// All files that are text.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    files: Vec<File>,
}

impl Tree {
    /// Reads everything below a directory, except what is built or belongs to version control.
    ///
    /// # Errors
    /// When a file or directory cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_directory(root, "")?;
        tree.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    /// A made-up tree of paths and texts.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        Self { files: files.iter().map(file).collect() }
    }

    /// Every file, in order of its path.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// Files whose names end so.
    pub fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    /// One file.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether there is a file, or a directory with files in it, of this path.
    pub fn has(&self, path: &str) -> bool {
        let below = |file: &File| file.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        path.is_empty() || self.files.iter().any(|file| file.path == path || below(file))
    }

    fn read_directory(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            // A directory, or in a second working tree a file that says where it is.
            if name == ".git" {
                continue;
            }
            if kind.is_dir() {
                let built = name == "target" || name.starts_with("target-");
                if !built {
                    self.read_directory(&entry.path(), &format!("{path}/"))?;
                }
            } else if kind.is_file() {
                // What is not text is nobody's business here, but links may lead to it.
                let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
                self.files.push(File { path, text });
            }
        }
        Ok(())
    }
}

impl File {
    /// Its lines with their numbers.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Whether all of it is for tests, examples or measurements.
    pub fn is_test(&self) -> bool {
        let directory = |name: &str| self.path.split('/').rev().skip(1).any(|part| part == name);
        // The rules of the tree lie in a directory called tests themselves.
        let own = self.path.starts_with("tests/tidy/src/");
        !own && (["tests", "examples", "benches", "fuzz"].into_iter().any(directory)
            || self.path.ends_with("/tests.rs"))
    }

    /// Lines of code that is part of the product: no comments, no tests. Unit tests stand last in a file.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = if self.is_test() { 0 } else { self.tests_begin() };
        self.lines().take(end).filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// How many lines come before the unit tests.
    fn tests_begin(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        let starts = |pair: &[&str]| {
            pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        };
        lines.windows(2).position(starts).unwrap_or(lines.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_unit_tests_are_not_the_product() {
        let text = "// one\nlet two = 2;\n#[cfg(test)]\nmod tests {\n    let three = 3;\n}\n";
        let tree = Tree::of(&[("crates/a/src/lib.rs", text)]);
        let lines: Vec<_> = tree.files().flat_map(File::product_lines).collect();
        assert_eq!(lines, [(2, "let two = 2;")]);
    }

    #[test]
    fn files_of_tests_are_told_by_their_place() {
        let place = |path: &str| File { path: path.into(), text: String::new() }.is_test();
        assert!(place("crates/a/tests/b.rs"));
        assert!(place("crates/a/src/client/tests/c.rs"));
        assert!(place("crates/a/src/holder/tests.rs"));
        assert!(!place("crates/a/src/latests.rs"));
        assert!(!place("xtask/src/main.rs"));
    }

    #[test]
    fn a_directory_is_there_if_a_file_is_in_it() {
        let tree = Tree::of(&[("docs/start.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/start.md") && tree.has(""));
        assert!(!tree.has("doc") && !tree.has("docs/start"));
    }
}
