//! Everything that is checked without running the product: formatting, lints, documentation, dependencies.

use anyhow::Result;

use crate::deny;
use crate::run::{cargo, step, target_directory};

/// Runs all checks; the first that fails ends it.
pub(crate) fn run() -> Result<()> {
    step("formatting", cargo().args(["fmt", "--all", "--", "--check"]))?;
    // A workspace of its own.
    step("formatting of fuzz", cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--", "--check"]))?;
    let mut lints = cargo();
    lints.args(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]);
    step("lints", &mut lints)?;
    let mut lints = cargo();
    lints.args(["clippy", "--manifest-path", "fuzz/Cargo.toml", "--all-targets", "--target-dir"]);
    step("lints of fuzz", lints.arg(target_directory()).args(["--", "-D", "warnings"]))?;
    // Libraries only: the command's pages would lie where those of the library of the same name do.
    let mut documentation = cargo();
    documentation.args(["doc", "--workspace", "--no-deps", "--all-features", "--lib"]);
    step("documentation", documentation.env("RUSTDOCFLAGS", "-D warnings"))?;
    deny::run()
}
