//! Everything that is checked without running the product: formatting, lints, documentation. What dependencies may be is a test of the tree.

use anyhow::Result;

use crate::run::{cargo, step, target_directory};
use crate::scope::Scope;

/// Runs all checks; the first that fails ends it.
pub(crate) fn run() -> Result<()> {
    step("formatting", cargo().args(["fmt", "--all", "--", "--check"]))?;
    // A workspace of its own.
    step("formatting of fuzz", cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--", "--check"]))?;
    let packages = &Scope::Short.checked();
    let mut lints = cargo();
    lints.arg("clippy").args(packages).args(["--all-targets", "--all-features", "--", "-D", "warnings"]);
    step("lints", &mut lints)?;
    // That is also how it is checked that the fuzzers compile.
    let mut lints = cargo();
    lints.args(["clippy", "--manifest-path", "fuzz/Cargo.toml", "--all-targets", "--target-dir"]);
    step("lints of fuzz", lints.arg(target_directory()).args(["--", "-D", "warnings"]))?;
    // Libraries only: the command's pages would lie where those of the library of the same name do.
    let mut documentation = cargo();
    documentation.arg("doc").args(packages).args(["--no-deps", "--all-features", "--lib"]);
    step("documentation", documentation.env("RUSTDOCFLAGS", "-D warnings"))
}
