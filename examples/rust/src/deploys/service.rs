//! The service that all of them use, as its own process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to start and to stop.
const PATIENCE_STEPS: u32 = 1200;
const STEP: Duration = Duration::from_millis(50);

/// A service that runs.
#[derive(Debug)]
pub struct Service {
    child: Child,
    address: String,
    directory: tempfile::TempDir,
}

impl Service {
    /// Starts one in a directory of its own, on a port of its own.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(program: &Path) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let port_file = directory.path().join("port");
        let log = std::fs::File::create(directory.path().join("log.json")).context("no log file")?;
        let child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(directory.path().join("data"))
            .arg("--port-file")
            .arg(&port_file)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        // From here on it is ended whatever happens.
        let mut service = Self { child, address: String::new(), directory };
        for _ in 0..PATIENCE_STEPS {
            std::thread::sleep(STEP);
            if let Ok(address) = std::fs::read_to_string(&port_file) {
                service.address = address.trim().to_owned();
                return Ok(service);
            }
            if let Some(status) = service.child.try_wait()? {
                bail!("the service ended at once: {status}");
            }
        }
        bail!("the service does not come up")
    }

    /// How a program is told of it.
    pub fn url(&self) -> String {
        format!("leasehold://{}", self.address)
    }

    /// A file beside its directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Stops it as a supervisor would.
    ///
    /// # Errors
    /// When it does not end well.
    pub fn stop(&mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("cannot signal the service")?;
        for _ in 0..PATIENCE_STEPS {
            if let Some(status) = self.child.try_wait()? {
                if status.success() {
                    return Ok(());
                }
                bail!("the service ended with {status}");
            }
            std::thread::sleep(STEP);
        }
        bail!("the service does not stop")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
