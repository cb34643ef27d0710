//! The command that is tested.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Tells tests where the program is that was built with them. Without it, it is built.
const VARIABLE: &str = "LEASEHOLD_PROGRAM";

/// Where `leasehold` is, as it was built for the tests.
///
/// # Errors
/// When it has to be built first and cannot be.
pub fn leasehold() -> Result<PathBuf> {
    if let Some(told) = std::env::var_os(VARIABLE) {
        return Ok(PathBuf::from(told));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.current_dir(root.context("this package lies two directories below the root")?);
    build.args(["build", "--quiet", "--package", "leasehold-cli", "--bin", "leasehold"]);
    let built =
        build.arg("--message-format=json-render-diagnostics").output().context("cargo does not start")?;
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8_lossy(&built.stdout);
    let program = messages.lines().filter_map(|line| line.split_once("\"executable\":\"")).next_back();
    let (program, _) =
        program.and_then(|(_, rest)| rest.split_once('"')).context("cargo names no program")?;
    Ok(PathBuf::from(program))
}
