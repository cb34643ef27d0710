//! Cassandra: one node, which writes each change to disk before it answers.
//!
//! There is no keyspace yet, and no password.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::directory::Directory;
use crate::java::Java;
use crate::process::Recipe;
use crate::{Process, Receiver, port, programs, wire};

/// It takes ten seconds on an idle machine, and half a minute on a busy one.
const PATIENCE: Duration = Duration::from_secs(180);

/// Parts of Java that it uses without being meant to, as its own options list them.
const EXPORTS: [&str; 12] = [
    "java.base/java.lang.ref",
    "java.base/java.lang.reflect",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
    "jdk.management/com.sun.management.internal",
];
const OPENS: [&str; 17] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.rmi/sun.rmi.transport.tcp",
    "jdk.management/com.sun.management.internal",
];
/// There is nobody to wait for, and nothing to choose.
const ALONE: [&str; 5] = [
    "-Dcassandra-foreground=yes",
    "-Dcassandra.initial_token=0",
    "-Dcassandra.ring_delay_ms=0",
    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
    "-Djdk.attach.allowAttachSelf=true",
];
/// Without it, everything that a debugger would like to know is written.
const LOG: &str = r#"<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{HH:mm:ss.SSS} %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
"#;

/// A Cassandra server.
#[derive(Debug)]
pub struct Server(Process);

impl Server {
    /// Runs one statement. Gives back the value of the first column of the first row, if it answers with rows.
    ///
    /// # Errors
    /// When the server refuses, with what it said.
    pub fn cql(&self, statement: &str) -> Result<Option<Vec<u8>>> {
        cql(self.port(), statement)
    }
}

impl Receiver for Server {
    fn start() -> Result<Self> {
        let java = Java::with("cassandra", "cassandra-all")?;
        let (directory, port) = (Directory::new("cassandra")?, port::free()?);
        let (settings, log) = (directory.path().join("cassandra.yaml"), directory.path().join("logback.xml"));
        std::fs::write(&settings, in_words(port, port::free()?, directory.path()))?;
        std::fs::write(&log, LOG)?;
        let mut options: Vec<OsString> = ALONE.map(Into::into).into();
        options.extend(EXPORTS.map(|part| format!("--add-exports={part}=ALL-UNNAMED").into()));
        options.extend(OPENS.map(|part| format!("--add-opens={part}=ALL-UNNAMED").into()));
        for (option, path) in [
            ("-Dcassandra.config=file://", settings.as_path()),
            ("-Dcassandra.storagedir=", directory.path()),
            ("-Dlogback.configurationFile=", &log),
            ("-javaagent:", &programs::library("cassandra", "jamm")?),
        ] {
            let mut option = OsString::from(option);
            option.push(path);
            options.push(option);
        }
        let arguments = java.arguments(&options, "org.apache.cassandra.service.CassandraDaemon");
        let program = java.program;
        let recipe =
            Recipe { name: "cassandra", port, program, arguments, user: None, ask, patience: PATIENCE };
        Process::start(directory, recipe).map(Self)
    }

    /// As clients take it: without a scheme.
    fn url(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    fn process(&self) -> &Process {
        &self.0
    }

    fn process_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}

fn in_words(port: u16, peers: u16, directory: &Path) -> String {
    let directory = directory.display();
    format!(
        "\
cluster_name: tests
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
commitlog_sync: batch
data_file_directories: [{directory}/data]
commitlog_directory: {directory}/commitlog
saved_caches_directory: {directory}/caches
hints_directory: {directory}/hints
cdc_raw_directory: {directory}/cdc
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {peers}
native_transport_port: {port}
start_native_transport: true
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: 127.0.0.1:{peers}
"
    )
}

fn ask(process: &Process) -> Result<String> {
    let version = cql(process.port(), "SELECT release_version FROM system.local")?;
    String::from_utf8(version.context("it has no row about itself")?).context("its version is no text")
}

/// Kinds of messages of the protocol's fourth version.
const ERROR: u8 = 0;
const STARTUP: u8 = 1;
const QUERY: u8 = 7;
const RESULT: u8 = 8;
/// A result that has rows.
const ROWS: u32 = 2;

fn cql(port: u16, statement: &str) -> Result<Option<Vec<u8>>> {
    let mut stream = wire::connect(port)?;
    exchange(&mut stream, STARTUP, b"\0\x01\0\x0bCQL_VERSION\0\x053.0.0")?;
    let length = u32::try_from(statement.len())?.to_be_bytes();
    // With consistency ONE, and no options.
    let (kind, answer) = exchange(&mut stream, QUERY, &[&length, statement.as_bytes(), &[0, 1, 0]].concat())?;
    let mut answer = Answer(&answer);
    if kind != RESULT || answer.number()? != ROWS {
        return Ok(None);
    }
    // Whether all columns are of one table, how many columns, the names of keyspace and table; then columns.
    let (one_table, columns) = (answer.number()? & 1 == 1, answer.number()?);
    if one_table {
        answer.skip_words(2)?;
    }
    for _ in 0..columns {
        answer.skip_words(if one_table { 1 } else { 3 })?;
        answer.skip(2)?; // The type, of one that is not made of others.
    }
    if answer.number()? == 0 {
        return Ok(None);
    }
    let length = answer.number()? as usize;
    Ok(answer.0.get(..length).map(<[u8]>::to_vec))
}

/// A message is a version, three bytes that are of no use here, its kind and its length; then what belongs to the kind.
fn exchange(stream: &mut std::net::TcpStream, kind: u8, body: &[u8]) -> Result<(u8, Vec<u8>)> {
    let length = u32::try_from(body.len())?.to_be_bytes();
    stream.write_all(&[&[4, 0, 0, 0, kind], &length[..], body].concat())?;
    let head = wire::take(stream, 5)?;
    let length = wire::length(stream)?;
    let answer = wire::take(stream, length)?;
    if head[4] == ERROR {
        bail!("it says {}", String::from_utf8_lossy(answer.get(6..).unwrap_or_default()));
    }
    Ok((head[4], answer))
}

/// What is left of an answer.
struct Answer<'a>(&'a [u8]);

impl Answer<'_> {
    fn number(&mut self) -> Result<u32> {
        let (number, rest) = self.0.split_first_chunk().context("the answer is too short")?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*number))
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        self.0 = self.0.get(count..).context("the answer is too short")?;
        Ok(())
    }

    fn skip_words(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let (length, rest) = self.0.split_first_chunk().context("the answer is too short")?;
            self.0 = rest;
            self.skip(usize::from(u16::from_be_bytes(*length)))?;
        }
        Ok(())
    }
}
