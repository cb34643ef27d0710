//! Servers that run on Java: `cargo xtask receivers` copies all that each needs into one directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::programs;

/// Enough for tests, and little enough for several at once.
const HEAP: [&str; 2] = ["-Xms64m", "-Xmx384m"];
/// A short life with little work: starting fast counts for more than running fast.
const QUICK: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// Java, and where the code of one server is.
pub(crate) struct Java {
    pub(crate) program: PathBuf,
    pub(crate) place: PathBuf,
}

impl Java {
    /// Looks for Java and the code of a server, which has a file called `library-VERSION.jar`.
    pub(crate) fn with(server: &str, library: &str) -> Result<Self> {
        let program = programs::program("java", "java")?;
        let jar = programs::library(server, library)?;
        let place = jar.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { program, place })
    }

    /// The command line of a class, with options for Java before it.
    pub(crate) fn arguments(&self, options: &[OsString], class: &str) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = HEAP.iter().chain(&QUICK).map(Into::into).collect();
        arguments.extend_from_slice(options);
        arguments.extend(["-cp".into(), self.place.join("*").into(), class.into()]);
        arguments
    }
}
