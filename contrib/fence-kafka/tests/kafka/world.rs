//! One broker for all tests, and for each test topics of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use leasehold_fence::conformance::{Subject, Trouble, Writer, Written};
use leasehold_fence::{Answer, Error, Receiver, Seen, Stamp};
use leasehold_fence_kafka::{Fence, Record, TOKEN_HEADER};
use leasehold_kit::Receiver as _;
use leasehold_kit::kafka::Server;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::producer::{BaseProducer, Producer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::relay::Relay;

/// How long the client library may take.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// It forgets a `transactional.id` after 15 seconds and not after a week, and looks twice a second for transactions that have lasted
/// too long.
const IMPATIENT: [&str; 3] = [
    "transactional.id.expiration.ms=15000",
    "transaction.remove.expired.transaction.cleanup.interval.ms=1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
];

fn broker() -> &'static RwLock<Server> {
    static BROKER: OnceLock<RwLock<Server>> = OnceLock::new();
    BROKER.get_or_init(|| RwLock::new(Server::start_with(&IMPATIENT).unwrap()))
}

/// The broker for one test alone, which may kill it.
pub(crate) async fn alone() -> RwLockWriteGuard<'static, Server> {
    broker().write().await
}

/// Topics of one test.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) port: u16,
    /// Where fences are kept.
    pub(crate) fences: String,
    /// What is protected.
    pub(crate) data: String,
    /// Keeps others from killing the broker.
    #[expect(dead_code, reason = "it is held and not looked at")]
    shared: Option<Arc<RwLockReadGuard<'static, Server>>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let server = broker().read().await;
        let world = Self::on(&server);
        Self { shared: Some(Arc::new(server)), ..world }
    }

    pub(crate) fn on(server: &Server) -> Self {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let nth = WORLDS.fetch_add(1, Ordering::Relaxed);
        let data = format!("data-{nth}");
        server.make_topic(&data).unwrap();
        Self { port: server.port(), fences: format!("fences-{nth}"), data, shared: None }
    }

    pub(crate) fn config(&self) -> ClientConfig {
        config(&format!("127.0.0.1:{}", self.port))
    }

    /// The fence of one more process.
    pub(crate) async fn fence(&self) -> Fence {
        Fence::make(self.config(), &self.fences, 1).await.unwrap().patience(LONG)
    }

    /// The same, on a way that can be held up.
    pub(crate) async fn relayed(&self) -> (Fence, Relay) {
        self.relayed_with(&[]).await
    }

    /// The same, with settings.
    pub(crate) async fn relayed_with(&self, settings: &[(&str, &str)]) -> (Fence, Relay) {
        let relay = Relay::to(self.port);
        let mut config = config(&relay.url());
        for (name, value) in settings {
            config.set(*name, *value);
        }
        (Fence::make(config, &self.fences, 1).await.unwrap().patience(LONG), relay)
    }

    /// A record for the log of a fence name.
    pub(crate) fn record(&self, name: &str, value: &str) -> Record {
        Record::to(&self.data).key(name).value(value)
    }

    pub(crate) async fn add(&self, fence: &Fence, stamp: &Stamp, value: &str) -> Result<(), Error> {
        fence.write(stamp, vec![self.record(stamp.name(), value)]).await
    }

    /// A producer of the name without the fence.
    pub(crate) fn unfenced(&self, name: &str) -> BaseProducer {
        let producer: BaseProducer = self
            .config()
            .set("transactional.id", format!("{}/{name}", self.fences))
            .set("transaction.timeout.ms", "10000")
            .create()
            .unwrap();
        producer.init_transactions(LONG).unwrap();
        producer
    }

    /// Begins a transaction without the fence and leaves it open.
    pub(crate) fn opened(&self, producer: &BaseProducer, stamp: &Stamp, value: &str) {
        producer.begin_transaction().unwrap();
        let token = stamp.token().to_string();
        let headers = rdkafka::message::OwnedHeaders::new();
        let headers =
            headers.insert(rdkafka::message::Header { key: TOKEN_HEADER, value: Some(token.as_bytes()) });
        let record = rdkafka::producer::BaseRecord::to(&self.data).key(stamp.name()).payload(value);
        producer.send(record.headers(headers)).unwrap();
        producer.flush(LONG).unwrap();
    }

    /// The log of a fence name, as readers with isolation see it when every transaction has ended.
    pub(crate) fn log(&self, name: &str) -> Vec<Written> {
        self.read("read_committed", name)
    }

    pub(crate) fn tokens(&self, name: &str) -> Vec<u64> {
        self.log(name).into_iter().map(|written| written.token).collect()
    }

    /// The same as everybody sees it who forgot the isolation.
    pub(crate) fn tokens_without_isolation(&self, name: &str) -> Vec<u64> {
        self.read("read_uncommitted", name).into_iter().map(|written| written.token).collect()
    }

    fn consumer(&self, isolation: &str) -> BaseConsumer {
        self.config()
            .set("group.id", "tests")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("fetch.wait.max.ms", "5")
            .set("isolation.level", isolation)
            .create()
            .unwrap()
    }

    fn read(&self, isolation: &str, name: &str) -> Vec<Written> {
        let all = self.consumer("read_uncommitted").fetch_watermarks(&self.data, 0, LONG).unwrap().1;
        let consumer = self.consumer(isolation);
        for _ in 0..200 {
            if consumer.fetch_watermarks(&self.data, 0, LONG).unwrap().1 >= all {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(consumer.fetch_watermarks(&self.data, 0, LONG).unwrap().1 >= all, "a transaction is open");
        let mut assigned = TopicPartitionList::new();
        assigned.add_partition_offset(&self.data, 0, Offset::Beginning).unwrap();
        consumer.assign(&assigned).unwrap();
        let mut read = Vec::new();
        loop {
            match consumer.poll(LONG).expect("the broker answers") {
                Ok(record) if record.key() == Some(name.as_bytes()) => {
                    let token = record.headers().unwrap().iter().find(|header| header.key == TOKEN_HEADER);
                    let token = std::str::from_utf8(token.unwrap().value.unwrap()).unwrap().parse().unwrap();
                    let value = String::from_utf8(record.payload().unwrap().to_vec()).unwrap();
                    read.push(Written { token, value });
                }
                Ok(_) => {}
                Err(KafkaError::PartitionEOF(_)) => return read,
                Err(error) => println!("reading goes on: {error}"),
            }
        }
    }
}

fn config(url: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", url);
    // Broken connections are part of the tests.
    config.set("reconnect.backoff.ms", "20").set("reconnect.backoff.max.ms", "200");
    config
}

pub(crate) fn stamp(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

/// What a refusal says of the highest token.
pub(crate) fn highest(result: Result<(), Error>) -> Option<u64> {
    match result {
        Err(Error::Stale(stale)) => stale.highest,
        other => panic!("{other:?}"),
    }
}

/// Which way is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Fenced,
    /// The epoch alone, without the comparison of tokens.
    EpochAlone,
}

/// Every holder is a process of its own: seals and writes with one token share its epochs.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    world: World,
    way: Way,
    processes: Arc<Mutex<HashMap<u64, Fence>>>,
}

impl Tried {
    pub(crate) async fn new(way: Way) -> Self {
        Self { world: World::new().await, way, processes: Arc::default() }
    }

    async fn process(&self, token: u64) -> Fence {
        let known = self.processes.lock().unwrap().get(&token).cloned();
        match known {
            Some(fence) => fence,
            None => {
                let made = self.world.fence().await;
                self.processes.lock().unwrap().entry(token).or_insert(made).clone()
            }
        }
    }
}

impl Writer for Tried {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        if self.way == Way::EpochAlone {
            tokio::task::block_in_place(|| {
                let producer = self.world.unfenced(stamp.name());
                self.world.opened(&producer, stamp, value);
                producer.commit_transaction(LONG).unwrap();
            });
            return Ok(());
        }
        let fence = self.process(stamp.token()).await;
        self.world.add(&fence, stamp, value).await
    }
}

impl Receiver for Tried {
    fn place(&self) -> &'static str {
        "processes"
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move { self.process(stamp.token()).await.seal(stamp).await })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move { self.process(0).await.look(name).await })
    }
}

impl Subject for Tried {
    type Writer = Self;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.clone())
    }

    async fn writer(&self) -> Result<Self, Trouble> {
        Ok(self.clone())
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        Ok(tokio::task::block_in_place(|| self.world.log(name)))
    }
}
