//! Where the programs of the servers are.
//!
//! `cargo xtask test` and `cargo xtask receivers` install what is missing and leave it where this looks: in the directory that
//! `LEASEHOLD_TEST_SERVERS` names, else in `tools/receivers` of the target directory. Programs of the system are found on the path
//! and where Debian keeps those that are not on it. Nothing is skipped: what is missing is an error.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Names the directory of installed tools.
const VARIABLE: &str = "LEASEHOLD_TEST_SERVERS";
/// On the path of root, but not on everybody's.
const FOR_ROOT: &str = "/usr/sbin";
/// Each version has a directory below.
const POSTGRESQL: &str = "/usr/lib/postgresql";

/// What installs everything.
const HOW: &str = "`cargo xtask test` installs it, and `cargo xtask receivers` does nothing else";

/// A program of the system, or of the tools in `directory`.
pub(crate) fn program(name: &str, directory: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = tools().join(directory);
    let places = [tools.join("bin"), tools.join("usr/bin")].into_iter();
    let places = places.chain(std::env::split_paths(&path)).chain([PathBuf::from(FOR_ROOT)]);
    first_with(places, name).with_context(|| missing(name))
}

/// A program of PostgreSQL: of the newest version, if several are installed.
pub(crate) fn of_postgresql(name: &str) -> Result<PathBuf> {
    let versions = std::fs::read_dir(POSTGRESQL).into_iter().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))
        })
        .collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = versions.into_iter().map(|(_, place)| place).chain(std::env::split_paths(&path));
    first_with(places, name).with_context(|| missing(name))
}

/// A file `name-VERSION.jar` of the tools in `directory`.
#[cfg(feature = "jvm")]
pub(crate) fn library(directory: &str, name: &str) -> Result<PathBuf> {
    let files = std::fs::read_dir(tools().join(directory)).into_iter().flatten();
    let mut files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str());
        let version = file.and_then(|file| file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".jar"));
        version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    };
    files.find(is_it).with_context(|| missing(&format!("{name}.jar")))
}

fn first_with(places: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    places.map(|place| place.join(name)).find(|program| program.is_file())
}

fn missing(name: &str) -> String {
    format!("{name} is missing: {HOW}")
}

fn tools() -> PathBuf {
    if let Some(said) = std::env::var_os(VARIABLE) {
        return PathBuf::from(said);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let root = root.expect("this package lies two directories below the root");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(target).join("tools").join("receivers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_what_installs_it() {
        let error = program("no-program-has-this-name", "nowhere").unwrap_err().to_string();
        assert!(error.starts_with("no-program-has-this-name is missing: `cargo xtask test`"), "{error}");
    }

    #[test]
    fn a_program_on_the_path_is_found() {
        assert!(program("sh", "nowhere").unwrap().ends_with("sh"));
    }
}
