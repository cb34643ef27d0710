//! Programs that are run to their end.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// What a program prints, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{command:?}: {}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(said)
}
