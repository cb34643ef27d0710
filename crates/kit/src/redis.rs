//! Redis, which appends every write to its log before it answers.
//!
//! `start_fast` keeps nothing on disk: after a kill such a server is empty.

use anyhow::{Context, Result};
use std::io::{Read as _, Write as _};
use std::time::Duration;

use crate::directory::Directory;
use crate::process::Recipe;
use crate::{Process, Receiver, port, programs, wire};

/// It takes a third of a second; more is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A Redis server.
#[derive(Debug)]
pub struct Server(Process);

impl Server {
    /// Starts one that keeps nothing on disk.
    ///
    /// # Errors
    /// As for [`Receiver::start`].
    pub fn start_fast() -> Result<Self> {
        Self::start_with(&["--appendonly", "no"])
    }

    fn start_with(durability: &[&str]) -> Result<Self> {
        let program = programs::program("redis-server", "redis")?;
        let (directory, port) = (Directory::new("redis")?, port::free()?);
        let mut arguments: Vec<_> = ["--bind", "127.0.0.1", "--save", "", "--port"].map(Into::into).into();
        arguments.push(port.to_string().into());
        arguments.extend(["--dir".into(), directory.path().into()]);
        arguments.extend(durability.iter().map(Into::into));
        let recipe = Recipe { name: "redis", port, program, arguments, user: None, ask, patience: PATIENCE };
        Process::start(directory, recipe).map(Self)
    }
}

impl Receiver for Server {
    fn start() -> Result<Self> {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port())
    }

    fn process(&self) -> &Process {
        &self.0
    }

    fn process_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}

/// While it loads its data it tells its version already, but refuses to be greeted.
fn ask(process: &Process) -> Result<String> {
    let mut stream = wire::connect(process.port())?;
    stream.write_all(b"PING\r\nINFO server\r\nQUIT\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let greeted = answer.strip_prefix("+PONG\r\n");
    let version = greeted.and_then(|rest| rest.lines().find_map(|line| line.strip_prefix("redis_version:")));
    version.map(ToOwned::to_owned).with_context(|| format!("it says {answer:?}"))
}
