//! Programs in Java: everything that one needs, copied into a directory of its own below the target directory.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::packages;
use crate::run::{root, step};

/// What copies, with its version.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.10.0:copy-dependencies";
/// The program that copies and the one that runs what was copied, with their packages.
const PROGRAMS: [(&str, &str); 2] = [("java", "default-jre-headless"), ("mvn", "maven")];

/// Copies into `place` what a project asks for, unless just that was copied before.
pub(crate) fn install(what: &str, project: &str, place: &Path) -> Result<()> {
    packages::install_for(&PROGRAMS)?;
    let stamp = place.join("installed.xml");
    let wanted =
        std::fs::read_to_string(root().join(project)).with_context(|| format!("{project} cannot be read"))?;
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        println!("==> {what} is here");
        return Ok(());
    }
    // What an older version needed would be found first.
    if place.exists() {
        std::fs::remove_dir_all(place).with_context(|| format!("{} cannot be removed", place.display()))?;
    }
    let mut copy = Command::new("mvn");
    copy.current_dir(root()).args(["--batch-mode", "--quiet", "--file", project, GOAL]);
    copy.arg("-DincludeScope=runtime").arg(format!("-DoutputDirectory={}", place.display()));
    step(what, &mut copy)?;
    std::fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
}
