//! MariaDB with InnoDB as it comes: every commit is on disk before it is acknowledged.
//!
//! `start_fast` writes its log to disk once a second instead, and `start_with_tls` speaks TLS too. The user is `root` without a password, the database `test`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::directory::Directory;
use crate::process::Recipe;
use crate::run::output;
use crate::{Process, Receiver, port, programs, tls, wire};

/// It takes a second, and some more for a log that has to be read; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Stands before the version in the greeting, for old replicas that looked at the first number only.
const FOR_OLD_REPLICAS: &str = "5.5.5-";

/// Its log is synced once a second.
const FAST: [&str; 2] = ["--innodb-flush-log-at-trx-commit=2", "--skip-innodb-doublewrite"];

/// A MariaDB server.
#[derive(Debug)]
pub struct Server(Process);

impl Server {
    /// Starts one that may lose the last second, though not when it is merely killed.
    ///
    /// # Errors
    /// As for [`Receiver::start`].
    pub fn start_fast() -> Result<Self> {
        Self::start_with(&FAST, false)
    }

    /// Starts one that may lose the last second, and takes connections over TLS as well as without.
    ///
    /// # Errors
    /// As for [`Receiver::start`].
    pub fn start_with_tls() -> Result<Self> {
        Self::start_with(&FAST, true)
    }

    /// Where the certificate is that it shows, if it speaks TLS: it is for `localhost`, and trusted by nobody.
    pub fn certificate(&self) -> PathBuf {
        tls::certificate(self.0.directory())
    }

    /// Runs statements with the program that comes with the server, and gives back what it prints.
    ///
    /// # Errors
    /// When they fail, with what the server said.
    pub fn sql(&self, statements: &str) -> Result<String> {
        let mut client = Command::new(programs::program("mariadb", "mariadb")?);
        client.args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--batch", "--skip-column-names"]);
        client.arg(format!("--port={}", self.port())).args(["--execute", statements, "test"]);
        output(&mut client)
    }

    fn start_with(durability: &[&str], has_tls: bool) -> Result<Self> {
        let program = programs::program("mariadbd", "mariadb")?;
        let (directory, port) = (Directory::new("mariadb")?, port::free()?);
        let data = directory.path().join("data");
        make_data(&data, directory.path())?;
        let mut arguments: Vec<OsString> =
            ["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"].map(Into::into).into();
        arguments.extend([option("--datadir", &data), option("--socket", &directory.path().join("socket"))]);
        arguments.push(format!("--port={port}").into());
        // At its start it removes temporary tables of a server that died, and looks for them where temporary files are: those of one
        // that runs beside it must not be there.
        arguments.push(option("--tmpdir", directory.path()));
        // It refuses to run as root unless it is told to.
        arguments.extend(rustix::process::geteuid().is_root().then(|| "--user=root".into()));
        arguments.extend(durability.iter().map(Into::into));
        if has_tls {
            let tls::Pair { certificate, key } = tls::make(directory.path(), None)?;
            arguments.extend([option("--ssl-cert", &certificate), option("--ssl-key", &key)]);
        }
        let recipe =
            Recipe { name: "mariadb", port, program, arguments, user: None, ask, patience: PATIENCE };
        Process::start(directory, recipe).map(Self)
    }
}

impl Receiver for Server {
    fn start() -> Result<Self> {
        Self::start_with(&[], false)
    }

    fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/test", self.port())
    }

    fn process(&self) -> &Process {
        &self.0
    }

    fn process_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}

/// It starts a server of its own for this, which also empties the place of temporary files.
fn make_data(data: &Path, temporary: &Path) -> Result<()> {
    let mut make = Command::new(programs::program("mariadb-install-db", "mariadb")?);
    make.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-name-resolve"]);
    make.arg(option("--datadir", data)).env("TMPDIR", temporary);
    if rustix::process::geteuid().is_root() {
        make.arg("--user=root");
    }
    output(&mut make).map(drop)
}

fn option(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push("=");
    option.push(value);
    option
}

/// The server speaks first: three bytes of length, a number, the version of the protocol, then its own version.
fn ask(process: &Process) -> Result<String> {
    let mut stream = wire::connect(process.port())?;
    let head = wire::take(&mut stream, 4)?;
    let length = usize::from(head[0]) + (usize::from(head[1]) << 8);
    let greeting = wire::take(&mut stream, length)?;
    let version = greeting.strip_prefix(&[10]).and_then(|rest| rest.split(|byte| *byte == 0).next());
    let version = version.with_context(|| format!("its greeting is {greeting:?}"))?;
    let version = String::from_utf8_lossy(version);
    Ok(version.strip_prefix(FOR_OLD_REPLICAS).unwrap_or(&version).to_owned())
}
