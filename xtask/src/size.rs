//! How large the project is: lines by crate, words of documentation, packages, the binary.
//!
//! Lines are counted as they stand, without blank ones: comments are lines that begin with `//`; tests are `tests` directories, files
//! called `tests.rs`, and everything below `#[cfg(test)]` and a `mod`, because unit tests stand last in a file.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::run::{cargo, root, target_directory};

/// Lines per crate, words of documentation, packages, size of the binary.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The figures as JSON
    #[arg(long)]
    json: bool,
}

/// Crates that show that the product is right or how fast it is. What is left of `crates` is the product.
const PROOF: [&str; 8] = ["sim", "oracle", "kit", "nemesis", "bench", "model", "tidy", "xtask"];

/// A kind of documentation, and the files and directories that it is.
const DOCUMENTATION: [(&str, &[&str]); 3] = [
    (
        "user documentation",
        &[
            "README.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "docs/start.md",
            "docs/concepts",
            "docs/guides",
            "docs/reference",
        ],
    ),
    ("internals", &["docs/internals"]),
    ("decisions", &["docs/decisions"]),
];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    code: usize,
    tests: usize,
    comments: usize,
    /// Words in comments.
    words: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.tests += other.tests;
        self.comments += other.comments;
        self.words += other.words;
    }
}

/// Counts and prints.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let (mut rows, mut totals) =
        (Vec::new(), [("product", 0), ("proof", 0), ("aside", 0)].map(|(name, _)| (name, Counts::default())));
    for place in packages(root())? {
        let name = place.strip_prefix(root())?.display().to_string();
        let counts = count_package(&place)?;
        totals[group(&name)].1 += counts;
        rows.push((name, counts));
    }
    let mut figures = Vec::new();
    for (kind, places) in DOCUMENTATION {
        let mut words = 0;
        for file in
            places.iter().map(|place| files(&root().join(place), "md")).collect::<Result<Vec<_>>>()?.concat()
        {
            words += read(&file)?.split_whitespace().count();
        }
        figures.push((format!("words of {kind}"), words));
    }
    let lock = read(&root().join("Cargo.lock"))?;
    figures
        .push(("packages in Cargo.lock".into(), lock.lines().filter(|line| *line == "[[package]]").count()));
    figures.push(("packages of the binary".into(), packages_of_binary()?));
    if let Ok(binary) = std::fs::metadata(target_directory().join("release/leasehold")) {
        figures
            .push(("kilobytes of target/release/leasehold".into(), usize::try_from(binary.len() / 1_000)?));
    }
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    if args.json {
        println!("{}", as_json(&rows, &totals, &figures));
        return Ok(true);
    }
    println!("{:<24} {:>8} {:>8} {:>8} {:>8}", "lines", "code", "tests", "comments", "words");
    let totals = totals.into_iter().map(|(name, counts)| (format!("= {name}"), counts));
    for (name, Counts { code, tests, comments, words }) in rows.into_iter().chain(totals) {
        println!("{name:<24} {code:>8} {tests:>8} {comments:>8} {words:>8}");
    }
    for (name, figure) in figures {
        println!("{name:<40} {figure:>10}");
    }
    Ok(true)
}

fn as_json(rows: &[(String, Counts)], totals: &[(&str, Counts)], figures: &[(String, usize)]) -> Value {
    let row = |counts: &Counts| json!({ "code": counts.code, "tests": counts.tests, "comments": counts.comments, "words": counts.words });
    let crates: Map<String, Value> = rows.iter().map(|(name, counts)| (name.clone(), row(counts))).collect();
    let totals: Map<String, Value> =
        totals.iter().map(|(name, counts)| ((*name).to_owned(), row(counts))).collect();
    let figures: Map<String, Value> =
        figures.iter().map(|(name, figure)| (name.clone(), json!(figure))).collect();
    json!({ "crates": crates, "totals": totals, "figures": figures })
}

/// The place of a package's total among the totals.
fn group(path: &str) -> usize {
    let name = path.rsplit('/').next().unwrap_or(path);
    if PROOF.contains(&name) {
        1
    } else if path.starts_with("crates/") {
        0
    } else {
        2
    }
}

fn count_package(place: &Path) -> Result<Counts> {
    let mut counts = Counts::default();
    for file in files(place, "rs")? {
        let path = file.strip_prefix(place)?;
        let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
        counts += count(&read(&file)?, is_test);
    }
    Ok(counts)
}

fn count(text: &str, mut is_test: bool) -> Counts {
    let mut counts = Counts::default();
    let mut before = "";
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        is_test |= before == "#[cfg(test)]" && line.starts_with("mod ") && line.ends_with('{');
        if let Some(comment) = line.strip_prefix("//") {
            counts.comments += 1;
            counts.words += comment.trim_start_matches(['/', '!']).split_whitespace().count();
        } else if is_test {
            counts.tests += 1;
        } else {
            counts.code += 1;
        }
        before = line;
    }
    counts
}

/// Directories with a package in them.
fn packages(root: &Path) -> Result<Vec<PathBuf>> {
    let manifests = files(root, "toml")?.into_iter().filter(|file| file.ends_with("Cargo.toml"));
    Ok(manifests
        .filter_map(|file| file.parent().map(Path::to_path_buf))
        .filter(|place| place != root)
        .collect())
}

/// Files with this ending: the path itself, or what is below it and neither built nor hidden.
fn files(path: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(if path.extension().is_some_and(|own| own == ending) {
            vec![path.into()]
        } else {
            Vec::new()
        });
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("{} cannot be read", path.display()))? {
        let entry = entry?.path();
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if !(name == "target" || name.starts_with('.') || entry.is_symlink()) {
            found.extend(files(&entry, ending)?);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

/// What is compiled for the command as it is built by default: its dependencies and those of build scripts, on Linux.
fn packages_of_binary() -> Result<usize> {
    let mut tree = cargo();
    tree.args(["tree", "--package", "leasehold-cli", "--edges", "normal,build", "--prefix", "none"]);
    let output =
        tree.args(["--target", "x86_64-unknown-linux-gnu"]).output().context("cargo tree does not start")?;
    ensure!(output.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).context("cargo tree does not print text")?;
    let package = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    Ok(text.lines().map(package).filter(|package| !package.is_empty()).collect::<BTreeSet<_>>().len())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn code_tests_and_comments_are_told_apart() {
        let text = "//! One two.\n\nfn code() {} // three\n#[cfg(test)]\nmod unit {\n    fn test() {}\n    /// Four.\n}\n";
        assert_eq!(count(text, false), Counts { code: 2, tests: 3, comments: 2, words: 3 });
        assert_eq!(count(text, true), Counts { code: 0, tests: 5, comments: 2, words: 3 });
    }

    #[test]
    fn a_crate_is_product_proof_or_aside() {
        let of = |path| ["product", "proof", "aside"][group(path)];
        assert_eq!(
            ["crates/core", "crates/sim", "tests/tidy", "xtask", "examples/rust", "fuzz"].map(of),
            ["product", "proof", "proof", "proof", "aside", "aside"]
        );
    }
}
