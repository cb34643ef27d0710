//! The test programs of the workspace: built by cargo, and run by us.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{apart, cargo, in_words, root, target_directory};
use crate::steps::timed;

/// A program with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The file it is compiled from, seen from the root: `crates/cli/tests/all.rs`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Its package, which is where cargo runs it.
    pub(crate) package: PathBuf,
}

/// Everything that was built.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) programs: Vec<Program>,
    /// The programs of the product and of the proof, by their names.
    pub(crate) binaries: BTreeMap<String, PathBuf>,
}

impl Program {
    /// A command that runs it as `cargo test` does. What cargo told this process of its own package does not go further.
    pub(crate) fn command(&self) -> Command {
        let mut command = apart(&self.path);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package).stdin(Stdio::null());
        command
    }

    /// Whether it has the unit tests of a library or a program, which wait for nothing.
    pub(crate) fn is_unit(&self) -> bool {
        !self.name.contains("/tests/") || self.name.contains("/src/")
    }
}

/// Builds what `cargo test` with these words would run.
pub(crate) fn build(what: &str, words: &[String]) -> Result<Built> {
    let mut build = cargo();
    build.arg("test").args(words).arg("--no-run");
    built(what, build)
}

/// Builds the command without features, for the tests of the documentation: apart from the one with all features, which other tests use. What
/// is compiled is shared.
pub(crate) fn default_program() -> Result<PathBuf> {
    let (what, target) = ("building the command without features", target_directory());
    let mut build = cargo();
    build.args(["build", "--package", "leasehold-cli", "--bin", "leasehold", "--target-dir"]);
    build.arg(target.join("tmp/without-features")).arg("--config").arg(format!("build.build-dir={target:?}"));
    let program = built(what, build)?.binaries.remove("leasehold");
    program.with_context(|| format!("{what}: cargo does not name it"))
}

fn built(what: &str, mut build: Command) -> Result<Built> {
    build.arg("--message-format=json-render-diagnostics");
    eprintln!("==> {what}: {}", in_words(&build));
    let output = timed(what, || build.stderr(Stdio::inherit()).output()).context("cargo does not start")?;
    if !output.status.success() {
        bail!("{what} failed: {}", output.status);
    }
    read(root(), &String::from_utf8_lossy(&output.stdout))
}

/// Reads the messages of cargo, one a line.
fn read(root: &Path, messages: &str) -> Result<Built> {
    let mut built = Built::default();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("cargo says something that is no JSON")?;
        let Some(path) = message["executable"].as_str().map(PathBuf::from) else { continue };
        let text =
            |value: &Value| value.as_str().map(str::to_owned).context("a message of cargo lacks a name");
        let target = &message["target"];
        if message["profile"]["test"] == true {
            let source = PathBuf::from(text(&target["src_path"])?);
            let name = source.strip_prefix(root).unwrap_or(&source).display().to_string();
            let manifest = PathBuf::from(text(&message["manifest_path"])?);
            let package = manifest.parent().context("a manifest lies in a directory")?.to_owned();
            built.programs.push(Program { name, path, package });
        } else if target["kind"][0] == "bin" {
            built.binaries.insert(text(&target["name"])?, path);
        }
    }
    Ok(built)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn programs_with_tests_are_told_from_other_programs_and_from_libraries() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"kind":["test"],"name":"all","src_path":"/r/crates/a/tests/all.rs"},"profile":{"test":true},"executable":"/t/deps/all-1"}
{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"kind":["lib"],"name":"a","src_path":"/r/crates/a/src/lib.rs"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"kind":["bin"],"name":"x","src_path":"/r/crates/a/src/main.rs"},"profile":{"test":false},"executable":"/t/x"}
{"reason":"build-finished","success":true}"#;
        let built = read(Path::new("/r"), messages).unwrap();
        let all = Program {
            name: "crates/a/tests/all.rs".into(),
            path: "/t/deps/all-1".into(),
            package: "/r/crates/a".into(),
        };
        assert_eq!(built.programs, [all]);
        assert_eq!(built.binaries.get("x"), Some(&PathBuf::from("/t/x")));
    }

    #[test]
    fn rules_of_the_tree_are_unit_tests_although_they_lie_below_tests() {
        let program =
            |name: &str| Program { name: name.into(), path: PathBuf::new(), package: PathBuf::new() };
        assert!(program("tests/tidy/src/lib.rs").is_unit() && program("crates/a/src/lib.rs").is_unit());
        assert!(
            !program("tests/tidy/tests/tidy.rs").is_unit() && !program("crates/a/tests/all.rs").is_unit()
        );
    }
}
