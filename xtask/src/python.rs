//! Programs in Python, each installed with everything it needs into a directory of its own below the target directory.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::packages;
use crate::run::{root, step};

/// Installs into `place` what a file of requirements lists, all of it pinned, unless these very versions were installed before.
pub(crate) fn install(what: &str, requirements: &str, place: &Path) -> Result<()> {
    let stamp = place.join("installed.txt");
    let wanted = std::fs::read_to_string(root().join(requirements))
        .with_context(|| format!("{requirements} cannot be read"))?;
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        println!("==> {what} is here");
        return Ok(());
    }
    if !has_ensurepip() {
        packages::install(&["python3-venv"])?;
    }
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv", "--clear"]).arg(place);
    step(&format!("{what}: environment"), &mut environment)?;
    let mut install = Command::new(place.join("bin").join("pip"));
    install.current_dir(root()).args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        requirements,
    ]);
    step(what, &mut install)?;
    std::fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
}

/// Debian ships Python without the part that a virtual environment needs.
fn has_ensurepip() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import ensurepip"]).stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}
