//! Kafka: one node that is broker and controller, and writes each record to disk before it answers.
//!
//! Topics of its own have one partition, so that the first transaction does not wait for fifty. After a kill it takes itself for
//! alive until a session has ended; that is made short.

use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::directory::Directory;
use crate::java::Java;
use crate::process::Recipe;
use crate::run::output;
use crate::{Process, Receiver, port, wire};

/// It takes some seconds, more after a kill; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Any will do: 16 bytes in base64.
const CLUSTER: &str = "bGVhc2Vob2xkLXRlc3RzMQ";
/// Questions of the protocol, with the oldest version that servers still understand.
const API_VERSIONS: [u8; 4] = [0, 18, 0, 0];
const CREATE_TOPICS: [u8; 4] = [0, 19, 0, 2];

/// A Kafka server.
#[derive(Debug)]
pub struct Server(Process);

impl Server {
    /// Starts it with more settings, each a line of its properties.
    ///
    /// # Errors
    /// As for `start`.
    pub fn start_with(settings: &[&str]) -> Result<Self> {
        let java = Java::with("kafka", "kafka_2.13")?;
        let (directory, port) = (Directory::new("kafka")?, port::free()?);
        let properties = directory.path().join("server.properties");
        let data = directory.path().join("data");
        let words = in_words(port, port::free()?, &data.display().to_string());
        std::fs::write(&properties, words + &settings.join("\n"))?;
        let mut format = Command::new(&java.program);
        format.args(java.arguments(&[], "kafka.tools.StorageTool"));
        output(
            format.args(["format", "--standalone", "--cluster-id", CLUSTER, "--config"]).arg(&properties),
        )?;
        let mut arguments = java.arguments(&[], "kafka.Kafka");
        arguments.push(properties.into());
        let program = java.program;
        let recipe = Recipe { name: "kafka", port, program, arguments, user: None, ask, patience: PATIENCE };
        Process::start(directory, recipe).map(Self)
    }

    /// Makes a topic with one partition.
    ///
    /// # Errors
    /// When the server refuses, with the number of its error: 36 if there is one with this name.
    pub fn make_topic(&self, name: &str) -> Result<()> {
        let name = [&u16::try_from(name.len())?.to_be_bytes(), name.as_bytes()].concat();
        // One topic, one partition, one copy, no places and no settings; ten seconds; in earnest.
        let end = [&[0, 0, 0, 1, 0, 1][..], &[0; 8], &10_000_u32.to_be_bytes(), &[0]].concat();
        let answer = ask_for(self.port(), CREATE_TOPICS, &[&1_u32.to_be_bytes(), &name[..], &end].concat())?;
        // It begins with a delay, the number of topics, and the topic's name.
        let code = answer.get(8 + name.len()..).and_then(|rest| rest.first_chunk());
        let code = code.map(|code| i16::from_be_bytes(*code)).context("the answer is too short")?;
        ensure!(code == 0, "the topic is refused with error {code}");
        Ok(())
    }
}

impl Receiver for Server {
    fn start() -> Result<Self> {
        Self::start_with(&[])
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

fn in_words(port: u16, controller: u16, data: &str) -> String {
    format!(
        "\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
broker.heartbeat.interval.ms=1000
broker.session.timeout.ms=3000
log.dirs={data}
log.flush.interval.messages=1
num.partitions=1
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"
    )
}

/// It listens some time before it serves, and says in its log when that begins.
fn ask(process: &Process) -> Result<String> {
    let log = process.log();
    ensure!(log.contains("Kafka Server started"), "it has not said that it started");
    let answer = ask_for(process.port(), API_VERSIONS, &[])?;
    ensure!(answer.starts_with(&[0, 0]), "it answers {answer:?}");
    let version = log.lines().find_map(|line| line.split_once("Kafka version: "));
    Ok(version.context("it has not said its version")?.1.to_owned())
}

/// A question is its length, its kind and version, a number that is repeated in the answer, and no name of the client; then what
/// belongs to the kind. Gives back what follows the number.
fn ask_for(port: u16, kind: [u8; 4], body: &[u8]) -> Result<Vec<u8>> {
    let mut stream = wire::connect(port)?;
    let length = u32::try_from(body.len() + 10)?;
    stream.write_all(&[&length.to_be_bytes()[..], &kind, &[0, 0, 0, 7], &[0xff, 0xff], body].concat())?;
    let length = wire::length(&mut stream)?;
    let answer = wire::take(&mut stream, length)?;
    let answer = answer.strip_prefix(&[0, 0, 0, 7]);
    Ok(answer.context("the answer is to another question")?.to_vec())
}
