//! The service under load, as its own process.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::peers::process::{Process, tied};

/// A service that runs.
#[derive(Debug)]
pub struct Server {
    /// Its process.
    pub process: Process,
    /// Where it listens.
    pub address: String,
    directory: tempfile::TempDir,
}

impl Server {
    /// Starts one in a directory of its own, on a port of its own.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(program: &Path) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let port_file = directory.path().join("port");
        let mut serve = tied(std::path::absolute(program)?);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(directory.path().join("data"));
        serve.arg("--port-file").arg(&port_file);
        let mut process = Process::start("the service", serve, directory.path().join("log.json"))?;
        let address = process.until(|| Ok(std::fs::read_to_string(&port_file)?))?.trim().to_owned();
        Ok(Self { process, address, directory })
    }

    /// Where its log goes.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("log.json")
    }
}
