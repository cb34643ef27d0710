//! Schemathesis, which tries the HTTP interface against its own description: a Python program, installed into the target directory.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::packages;
use crate::run::{root, step, target_directory};

/// The versions that are installed, all of them pinned.
const REQUIREMENTS: &str = "tests/schemathesis/requirements.txt";
/// Tells the test where the program is.
pub(crate) const VARIABLE: &str = "LEASEHOLD_SCHEMATHESIS";

/// Installs the program, unless these very versions were installed before. Gives back where it is.
pub(crate) fn install() -> Result<PathBuf> {
    let place = target_directory().join("tools").join("schemathesis");
    let (program, stamp) = (place.join("bin").join("schemathesis"), place.join("installed.txt"));
    let wanted = std::fs::read_to_string(root().join(REQUIREMENTS))
        .with_context(|| format!("{REQUIREMENTS} cannot be read"))?;
    if program.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        println!("==> schemathesis is here");
        return Ok(program);
    }
    if !python_has_ensurepip() {
        packages::install(&["python3-venv"])?;
    }
    step("schemathesis: environment", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place))?;
    let mut install = Command::new(place.join("bin").join("pip"));
    install.current_dir(root()).args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        REQUIREMENTS,
    ]);
    step("schemathesis", &mut install)?;
    std::fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))?;
    Ok(program)
}

/// Debian ships Python without the part that a virtual environment needs.
fn python_has_ensurepip() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import ensurepip"]).stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}
