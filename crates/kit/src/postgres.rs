//! PostgreSQL as it comes: every commit is on disk before it is acknowledged.
//!
//! `start_fast` does not wait for the disk, and `start_with_tls` speaks TLS too. The user and the database are `postgres`, without a password. It refuses to run as root;
//! a test that is run by root runs it as somebody else.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::directory::Directory;
use crate::process::Recipe;
use crate::run::output;
use crate::user::User;
use crate::{Process, Receiver, port, programs, tls, wire};

/// It takes a tenth of a second, and some more for a log that has to be read; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// A message that opens a connection has no kind, only a length, a version of the protocol and pairs of words.
const OPEN: &[u8] = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
/// No message that comes before the first question is longer.
const LONGEST_MESSAGE: usize = 10_000;

/// Nothing that is acknowledged is waited for.
const FAST: [&str; 3] = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/// A PostgreSQL server.
#[derive(Debug)]
pub struct Server(Process);

impl Server {
    /// Starts one that does not wait for the disk.
    ///
    /// # Errors
    /// As for [`Receiver::start`].
    pub fn start_fast() -> Result<Self> {
        Self::start_with(&FAST, false)
    }

    /// Starts one that does not wait for the disk, and takes connections over TLS as well as without.
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
        let mut client = Command::new(programs::of_postgresql("psql")?);
        client.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]);
        client.args(["--command", statements, &self.url()]);
        output(&mut client)
    }

    fn start_with(durability: &[&str], has_tls: bool) -> Result<Self> {
        let program = programs::of_postgresql("postgres")?;
        let (directory, port, user) = (Directory::new("postgres")?, port::free()?, User::if_root()?);
        let data = directory.path().join("data");
        make_data(&data, user.as_ref())?;
        let mut arguments: Vec<OsString> =
            vec!["-D".into(), data.into(), "-p".into(), port.to_string().into()];
        let settings = ["listen_addresses=127.0.0.1", "unix_socket_directories="];
        for setting in settings.iter().chain(durability) {
            arguments.extend(["-c".into(), setting.into()]);
        }
        if has_tls {
            let tls::Pair { certificate, key } = tls::make(directory.path(), user.as_ref())?;
            let files = [("ssl_cert_file", &certificate), ("ssl_key_file", &key)];
            let settings = files.map(|(setting, file)| format!("{setting}={}", file.display()));
            for setting in settings.into_iter().chain(["ssl=on".to_owned()]) {
                arguments.extend(["-c".into(), setting.into()]);
            }
        }
        let recipe = Recipe { name: "postgres", port, program, arguments, user, ask, patience: PATIENCE };
        Process::start(directory, recipe).map(Self)
    }
}

impl Receiver for Server {
    fn start() -> Result<Self> {
        Self::start_with(&[], false)
    }

    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port())
    }

    fn process(&self) -> &Process {
        &self.0
    }

    fn process_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}

/// Without waiting for the disk: the data is still empty.
fn make_data(data: &Path, user: Option<&User>) -> Result<()> {
    std::fs::create_dir(data).with_context(|| format!("{} cannot be made", data.display()))?;
    let initdb = programs::of_postgresql("initdb")?;
    let mut make = match user {
        None => Command::new(initdb),
        Some(user) => {
            user.own(data)?;
            let mut make = Command::new("setpriv");
            make.args(user.for_setpriv()).arg("--").arg(initdb);
            make
        }
    };
    // Wherever the test was started, another user may not be allowed to be.
    make.current_dir("/").arg("-D").arg(data);
    make.args(["--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]);
    output(&mut make).map(drop)
}

/// Among what the server says when a connection is opened is its version. While it starts it says that instead.
fn ask(process: &Process) -> Result<String> {
    let mut stream = wire::connect(process.port())?;
    let length = u32::try_from(OPEN.len() + 4).expect("it is a short constant");
    stream.write_all(&[&length.to_be_bytes(), OPEN].concat())?;
    loop {
        let head = wire::take(&mut stream, 5)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=LONGEST_MESSAGE).contains(&length) {
            bail!("it sends a message of {length} bytes");
        }
        let body = wire::take(&mut stream, length - 4)?;
        let words: Vec<_> = body.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        match (head[0], words.as_slice()) {
            (b'S', [name, version, ..]) if name == "server_version" => {
                return Ok(version.clone().into_owned());
            }
            (b'R' | b'S', _) => {}
            _ => bail!("it says {}", words.join(" ")),
        }
    }
}
