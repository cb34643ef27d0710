//! The S3 interface of moto, a server in Python.
//!
//! It keeps everything in memory: after a kill it is empty. It checks no signatures; any key is let in. Requests are served one at a
//! time, or conditional writes would race with each other.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::directory::Directory;
use crate::process::Recipe;
use crate::run::output;
use crate::{Process, Receiver, port, programs, wire};

/// It takes a few seconds to load; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the server.
const SERVE: &str = include_str!("moto.py");

/// A moto server.
#[derive(Debug)]
pub struct Server(Process);

impl Server {
    /// Makes an empty bucket.
    ///
    /// # Errors
    /// When the server does not do it.
    pub fn make_bucket(&self, name: &str) -> Result<()> {
        wire::http(self.port(), &format!("PUT /{name} HTTP/1.1\r\n{CREDENTIALS}"), "").map(drop)
    }
}

/// Not checked, but looked at: this is how the server knows that S3 is meant.
const CREDENTIALS: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

impl Receiver for Server {
    fn start() -> Result<Self> {
        // The Python beside it is the one that has moto.
        let program = programs::program("moto_server", "moto")?.with_file_name("python");
        let (directory, port) = (Directory::new("s3")?, port::free()?);
        let arguments = vec!["-c".into(), SERVE.into(), port.to_string().into()];
        let recipe = Recipe { name: "moto", port, program, arguments, user: None, ask, patience: PATIENCE };
        Process::start(directory, recipe).map(Self)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    fn process(&self) -> &Process {
        &self.0
    }

    fn process_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}

/// It does not tell its version over the wire, so the Python that runs it is asked, once it serves.
fn ask(process: &Process) -> Result<String> {
    wire::http(process.port(), &format!("GET / HTTP/1.1\r\n{CREDENTIALS}"), "")?;
    let mut python = Command::new(process.program());
    let version =
        output(python.args(["-c", "from importlib.metadata import version; print(version('moto'))"]))?;
    Ok(version.trim().to_owned())
}
