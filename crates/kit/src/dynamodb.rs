//! DynamoDB as Amazon gives it to developers, on a file.
//!
//! Any key is let in, and all keys and regions see the same tables. It listens on every address of the machine, and has no option
//! against that.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::directory::Directory;
use crate::java::Java;
use crate::process::Recipe;
use crate::{Process, Receiver, port, wire};

/// It takes two seconds; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Looked at, but not checked.
const CREDENTIALS: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/dynamodb/aws4_request, \
     SignedHeaders=host, Signature=0";

/// A DynamoDB server.
#[derive(Debug)]
pub struct Server(Process);

impl Server {
    /// Calls an operation with a body of JSON, and gives back what it answers.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn call(&self, operation: &str, body: &str) -> Result<String> {
        call(self.port(), operation, body)
    }
}

impl Receiver for Server {
    fn start() -> Result<Self> {
        let java = Java::with("dynamodb", "DynamoDBLocal")?;
        let (directory, port) = (Directory::new("dynamodb")?, port::free()?);
        let mut sqlite = std::ffi::OsString::from("-Djava.library.path=");
        sqlite.push(&java.place);
        let class = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner";
        let mut arguments = java.arguments(&[sqlite], class);
        arguments.extend([
            "-port".into(),
            port.to_string().into(),
            "-dbPath".into(),
            directory.path().into(),
        ]);
        arguments.extend(["-sharedDb", "-disableTelemetry"].map(Into::into));
        let program = java.program;
        let recipe =
            Recipe { name: "dynamodb", port, program, arguments, user: None, ask, patience: PATIENCE };
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

fn call(port: u16, operation: &str, body: &str) -> Result<String> {
    let head = format!(
        "POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n\
         Content-Type: application/x-amz-json-1.0\r\n{CREDENTIALS}"
    );
    wire::http(port, &head, body)
}

/// It says its version when it starts.
fn ask(process: &Process) -> Result<String> {
    call(process.port(), "ListTables", "{}")?;
    let log = process.log();
    let version = log.lines().find_map(|line| line.strip_prefix("Version:"));
    Ok(version.context("it has not said its version")?.trim().to_owned())
}
