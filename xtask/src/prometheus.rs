//! Prometheus and its promtool, which the shipped rules and the dashboard are tried with.
//!
//! The Debian package starts a service of the system when it is installed, so it is only unpacked, into the target directory.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::run::target_directory;
use crate::unpack::unpack;

const PACKAGE: &str = "prometheus";
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];
/// Tells the test in which directory the programs are.
pub(crate) const VARIABLE: &str = "LEASEHOLD_PROMETHEUS";

/// Gives back the directory with both programs: that of somebody who has installed them, or one that they are unpacked into.
pub(crate) fn install() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let place = target_directory().join("tools").join(PACKAGE);
    let unpacked = place.join("usr").join("bin");
    if let Some(directory) =
        std::env::split_paths(&path).chain([unpacked.clone()]).find(|place| has_both(place))
    {
        println!("==> prometheus is here");
        return Ok(directory);
    }
    unpack(&[PACKAGE], &place)?;
    if !has_both(&unpacked) {
        bail!("the package {PACKAGE} has no {} in it; install both programs", PROGRAMS.join(" and no "));
    }
    Ok(unpacked)
}

fn has_both(directory: &Path) -> bool {
    PROGRAMS.iter().all(|program| directory.join(program).is_file())
}
