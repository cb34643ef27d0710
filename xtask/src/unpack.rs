//! Debian packages that would start a service of the system when they are installed: they are only unpacked.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::packages::is_root;
use crate::run::{exists, step};

/// Unpacks packages into a directory. What they depend on is not looked at.
pub(crate) fn unpack(names: &[&str], place: &Path) -> Result<()> {
    let list = names.join(" ");
    if !(exists("apt-get") && exists("dpkg-deb")) {
        bail!("the tests need packages that are missing and cannot be fetched from here; install: {list}");
    }
    if is_root() {
        step("list of packages", Command::new("apt-get").args(["update", "--quiet"]))?;
    }
    std::fs::create_dir_all(place).with_context(|| format!("{} cannot be made", place.display()))?;
    remove_packages(place)?;
    let mut download = Command::new("apt-get");
    step(&list, download.args(["download", "--quiet"]).args(names).current_dir(place))?;
    for package in packages(place)? {
        let mut extract = Command::new("dpkg-deb");
        step(&format!("{list}: unpacking"), extract.arg("--extract").arg(package).arg(place))?;
    }
    remove_packages(place)
}

fn packages(place: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(place).with_context(|| format!("{} cannot be read", place.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|ending| ending == "deb")).collect())
}

fn remove_packages(place: &Path) -> Result<()> {
    for package in packages(place)? {
        std::fs::remove_file(&package).with_context(|| format!("{} cannot be removed", package.display()))?;
    }
    Ok(())
}
