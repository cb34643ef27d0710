//! The service under load, as its own process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to start and to stop.
const PATIENCE_STEPS: u32 = 400;
const STEP: Duration = Duration::from_millis(50);

/// A service that runs.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
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
        let log = std::fs::File::create(directory.path().join("log.json")).context("no log file")?;
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(directory.path().join("data"))
            .arg("--port-file")
            .arg(&port_file)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        for _ in 0..PATIENCE_STEPS {
            std::thread::sleep(STEP);
            if let Ok(address) = std::fs::read_to_string(&port_file) {
                return Ok(Self { child, address: address.trim().to_owned(), directory });
            }
            if let Some(status) = child.try_wait()? {
                bail!("the service ended at once: {status}");
            }
        }
        let _ = child.kill();
        bail!("the service does not come up")
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its log goes.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("log.json")
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Stops it as a supervisor would, and says its exit code.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(&mut self) -> Result<i32> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).context("cannot signal the service")?;
        for _ in 0..PATIENCE_STEPS {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code().unwrap_or(-1));
            }
            std::thread::sleep(STEP);
        }
        let _ = self.child.kill();
        bail!("the service does not stop")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
