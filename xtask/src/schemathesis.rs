//! Schemathesis, which tries the HTTP interface against its own description: a Python program, installed into the target directory.

use std::path::PathBuf;

use anyhow::Result;

use crate::python;
use crate::run::target_directory;

/// The versions that are installed, all of them pinned.
const REQUIREMENTS: &str = "tests/schemathesis/requirements.txt";
/// Tells the test where the program is.
pub(crate) const VARIABLE: &str = "LEASEHOLD_SCHEMATHESIS";

/// Installs the program, unless these very versions were installed before. Gives back where it is.
pub(crate) fn install() -> Result<PathBuf> {
    let place = target_directory().join("tools").join("schemathesis");
    python::install("schemathesis", REQUIREMENTS, &place)?;
    Ok(place.join("bin").join("schemathesis"))
}
