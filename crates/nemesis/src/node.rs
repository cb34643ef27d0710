//! One node: the shipped program as a process in its namespace, with its directory and its clocks.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::cleanup::{self, Undo};
use crate::clock_shim::{Shim, Wall};
use crate::history::{At, Now};

/// How a node begins when its directory is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beginning {
    /// A cluster of one.
    Alone,
    /// Together with these, as `name=address,...`.
    Together(String),
    /// Waits until it is added.
    Joins,
}

/// What is wrong with the clocks of a node.
#[derive(Debug, Default)]
pub struct Clocks {
    /// Seconds added to the clocks since boot, by a time namespace.
    pub offset: u64,
    /// The rate, if it is not right.
    pub rate: Option<f64>,
    /// The time of day, if it is to be stepped.
    pub wall: Option<Wall>,
}

/// A node.
#[derive(Debug)]
pub struct Node {
    /// What it is called.
    pub name: String,
    /// Where it listens, as `host:port`.
    pub address: String,
    /// Its directory.
    pub data: PathBuf,
    /// Its clocks; they count from the next start on.
    pub clocks: Clocks,
    /// How it begins if its directory is empty.
    pub beginning: Beginning,
    /// Not to be started with the others.
    pub idle: bool,
    /// More options of `serve`.
    pub options: Vec<String>,
    program: PathBuf,
    namespace: String,
    log: PathBuf,
    /// How long the log was when it was last started.
    log_before: u64,
    shim: Option<Shim>,
    child: Option<Child>,
    /// Ends whose kind the scenario did not ask for.
    deaths: Vec<String>,
}

impl Node {
    /// A node that does not run yet. Its directory and log are below `home`.
    pub fn new(program: &Path, home: &Path, name: &str, namespace: String, address: String) -> Self {
        Self {
            name: name.to_owned(),
            address,
            data: home.join(name).join("data"),
            clocks: Clocks::default(),
            beginning: Beginning::Alone,
            idle: false,
            options: Vec::new(),
            program: program.to_owned(),
            namespace,
            log: home.join(format!("{name}.log")),
            log_before: 0,
            shim: None,
            child: None,
            deaths: Vec::new(),
        }
    }

    /// Lets its clocks go at a rate and its time of day be stepped, from the next start on.
    pub fn use_shim(&mut self, shim: Shim) {
        self.shim = Some(shim);
    }

    /// Starts it, with the directory that it has.
    ///
    /// # Errors
    /// When it runs already, or does not start.
    pub fn start(&mut self) -> Result<()> {
        if self.is_running() {
            bail!("{} runs already", self.name);
        }
        std::fs::create_dir_all(&self.data)
            .with_context(|| format!("{} cannot be made", self.data.display()))?;
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("{} cannot be opened", self.log.display()))?;
        self.log_before = log.metadata().map_or(0, |meta| meta.len());
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("{} does not start", self.name))?;
        cleanup::note(Undo::Kill(pid_of(&child)));
        self.child = Some(child);
        Ok(())
    }

    /// Everything below replaces itself by the next, so the process that is started is the one that serves in the end.
    fn command(&self) -> Command {
        // It must not outlive the harness, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        command.args(["nsenter", &format!("--net=/run/netns/{}", self.namespace)]);
        if self.clocks.offset > 0 {
            let offset = self.clocks.offset.to_string();
            command.args(["unshare", "--time", "--boottime", &offset, "--monotonic", &offset]);
        }
        if let Some(shim) = &self.shim {
            // Only for the program itself: the tools before it are none of the shim's business.
            let mut shimmed = Command::new("env");
            shim.load(&mut shimmed, self.clocks.rate.unwrap_or(1.0), self.clocks.wall.as_ref());
            command.arg("env");
            for (key, value) in shimmed.get_envs() {
                let value = value.unwrap_or_default().to_string_lossy();
                command.arg(format!("{}={value}", key.to_string_lossy()));
            }
        }
        command.arg(&self.program).args(["serve", "--insecure", "--log-format", "human"]);
        command.args(["--name", &self.name, "--listen", &self.address]).arg("--data").arg(&self.data);
        match &self.beginning {
            Beginning::Alone => {}
            Beginning::Together(all) => {
                command.args(["--initial-cluster", all]);
            }
            Beginning::Joins => {
                command.arg("--join");
            }
        }
        command.args(&self.options);
        command
    }

    /// Whether it runs. An end that nobody asked for is noted.
    pub fn is_running(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                self.ended();
                self.deaths.push(format!(
                    "{} ended by itself: {status}; see {}",
                    self.name,
                    self.log.display()
                ));
                false
            }
            Err(_) => false,
        }
    }

    /// Ends that nobody asked for, so far.
    pub fn deaths(&mut self) -> &[String] {
        self.is_running();
        &self.deaths
    }

    /// Forgets ends that nobody asked for: the scenario expects them.
    pub fn forgive(&mut self) {
        self.is_running();
        self.deaths.clear();
    }

    /// What it wrote to its log since it was last started.
    pub fn said(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let from = usize::try_from(self.log_before).unwrap_or(usize::MAX).min(text.len());
        String::from_utf8_lossy(&text[from..]).into_owned()
    }

    /// Waits until it ends by itself, which the scenario expects, and gives what it said. Nothing if it still runs after `patience`.
    pub fn ends_by_itself(&mut self, patience: Duration) -> Option<String> {
        let end = At::now().plus(patience);
        while self.is_running() {
            if At::now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.forgive();
        Some(self.said())
    }

    /// Kills it, with no time to do anything.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.wait(Duration::from_secs(10)).map(|_| ())
    }

    /// Asks it to end, and waits.
    ///
    /// # Errors
    /// When it does not run, does not end in `patience`, or ends with anything but 0.
    pub fn terminate(&mut self, patience: Duration) -> Result<()> {
        self.signal(Signal::TERM)?;
        let status = self.wait(patience)?;
        if !status.success() {
            bail!("{} ended with {status} on SIGTERM; see {}", self.name, self.log.display());
        }
        Ok(())
    }

    /// It stands still until [`cont`](Self::cont).
    ///
    /// # Errors
    /// When it does not run.
    pub fn stop(&mut self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// It goes on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn cont(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Removes everything in its directory. It must not run.
    ///
    /// # Errors
    /// When it runs, or the directory cannot be removed.
    pub fn wipe(&mut self) -> Result<()> {
        if self.is_running() {
            bail!("{} runs", self.name);
        }
        std::fs::remove_dir_all(&self.data)
            .with_context(|| format!("{} cannot be removed", self.data.display()))
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        if !self.is_running() {
            bail!("{} does not run; see {}", self.name, self.log.display());
        }
        let child = self.child.as_ref().expect("it runs");
        kill_process(pid_of(child), signal).with_context(|| format!("{} cannot be signalled", self.name))
    }

    fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let end = At::now().plus(patience);
        let Some(child) = &mut self.child else { bail!("{} does not run", self.name) };
        loop {
            if let Some(status) = child.try_wait()? {
                self.ended();
                return Ok(status);
            }
            if At::now() > end {
                bail!("{} has not ended after {patience:?}; see {}", self.name, self.log.display());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn ended(&mut self) {
        if let Some(child) = self.child.take() {
            cleanup::done(&Undo::Kill(pid_of(&child)));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            cleanup::done(&Undo::Kill(pid_of(&child)));
        }
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}
