//! Kafka: every write is a transaction of the newest producer epoch of its fence name.
//!
//! ```no_run
//! use leasehold_fence::Authority;
//! use leasehold_fence_kafka::{Fence, Record};
//! use rdkafka::ClientConfig;
//!
//! # async fn example(guard: impl Authority) -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = ClientConfig::new();
//! config.set("bootstrap.servers", "kafka-1:9092,kafka-2:9092");
//! let fence = Fence::make(config, "fences", 3).await?; // the topic that keeps fences, in three copies
//! let report = Record::to("reports").key("today").value("dry");
//! fence.write(&guard, vec![report]).await?;
//! # Ok(()) }
//! ```
//!
//! **The atomic step** is the broker's: the transaction coordinator takes a commit only from the newest epoch of a `transactional.id`, which
//! is the fence topic, `/` and the fence name. It does not know our tokens. They are compared when an epoch begins: the fence topic is
//! read, the epoch begun, the fence record written in its first transaction, and the topic read again up to that record. If a
//! greater token is there, the transaction is aborted and the token *stale*; else its commit is the seal. If somebody else begins an epoch
//! at any moment in between, the commit is refused and everything is done again. From then on each [`Fence::write`] is one
//! transaction in that epoch, without reading anything.
//!
//! A stale holder that comes late is usually told by what it reads. If it was paused right after reading, it ends the epoch of the rightful
//! one, finds the greater token, and has written nothing; the rightful one notices at its next write, does the steps again, and sends the
//! write again. That costs some time and nothing else.
//!
//! **What it needs.** Kafka 2.5 or later. A fence topic with **one partition and `cleanup.policy=compact`** and nothing else, because whatever
//! deletes by time or size forgets fences; [`Fence::open`] refuses another one. [`Fence::make`] makes it. Nobody else may write there. Readers
//! of what is protected must read with **`isolation.level=read_committed`**: without it they see records of transactions that were
//! refused. Rights: describe and write on transactional ids that begin with the name of the fence topic; read and describe of that
//! topic and its settings; reading what is protected, to look up a commit whose answer was lost (without it such a write is *unknown*).
//!
//! **What it does not cover.** Producers that go around the adapter, with a `transactional.id` of their own or none. What loses acknowledged records: unclean leader
//! elections, `min.insync.replicas` below a majority. Several fence names in one write: a transaction belongs to one
//! `transactional.id`. Offsets of consumers are not written with the records (`send_offsets_to_transaction`). Refusals are not kept;
//! [`Seen::refusals`] is `None`.
//!
//! Writers of one token in several processes take turns, and each turn begins an epoch. One process with many writers has one
//! epoch, in which transactions are made one after the other: put what belongs together into one write.
//!
//! A commit without an answer is looked up where its first record was delivered. If that does not tell, the write is *unknown*. A seal
//! that failed, or was aborted, counts as seen until the topic is compacted: its holder existed.
//!
//! This crate brings no TLS and no compression by zlib or zstd: switch them on by features of `rdkafka` in your own manifest.

mod epoch;
mod names;
mod reader;
mod record;
mod steps;
mod topic;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use leasehold_fence::{Answer, Authority, Counts, Error, Pending, Receiver, Seen, Stamp};
use rdkafka::ClientConfig;

use names::Names;
pub use record::{Record, TOKEN_HEADER};
use steps::{Ended, Steps};

/// How long each step waits for a broker: a lease of ten seconds leaves time for a second try.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// For how long the broker lets a transaction be open whose client is paused, unless the caller's settings say so. Readers wait
/// behind it.
const TRANSACTION_TIMEOUT_MS: &str = "10000";
/// How many names a process has epochs of at once. Each is a client of its own, with a thread for every broker. Names beyond that begin
/// an epoch more often.
pub const MOST_EPOCHS: usize = 64;
/// How often it is tried when epochs end: five seconds altogether, while others do the same.
const TRIES: u32 = 8;
/// The first pause after an epoch has ended; each is twice the one before, and up to as much longer by chance.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Fences in a topic, one for each name. Clones share their epochs.
#[derive(Clone)]
pub struct Fence {
    steps: Steps,
    names: Arc<Names>,
    counts: Counts,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings may have passwords.
        write!(f, "Fence at {}", self.steps.place)
    }
}

impl Fence {
    /// Fences in a topic that exists.
    ///
    /// # Errors
    /// When the topic is missing, has several partitions, or would forget fences; or when no broker answers.
    pub async fn open(config: ClientConfig, topic: &str) -> Result<Self, Error> {
        let fence = Self::new(config, topic);
        let checked = topic::check(&fence.steps.config, topic, PATIENCE).await;
        checked.map_err(|error| Error::failed(&fence.steps.place, error))?;
        Ok(fence)
    }

    /// The same, and makes the topic if it is missing, with as many copies as said: three, where there are three brokers.
    ///
    /// # Errors
    /// As [`Fence::open`], and when the topic cannot be made.
    pub async fn make(config: ClientConfig, topic: &str, copies: u16) -> Result<Self, Error> {
        let fence = Self::new(config, topic);
        let made = topic::make(&fence.steps.config, topic, copies, PATIENCE).await;
        made.map_err(|error| Error::failed(&fence.steps.place, error))?;
        Ok(fence)
    }

    fn new(mut config: ClientConfig, topic: &str) -> Self {
        if config.get("transaction.timeout.ms").is_none() {
            config.set("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS);
        }
        let place = format!("kafka:{}/{topic}", config.get("bootstrap.servers").unwrap_or_default());
        let steps = Steps { config, topic: topic.to_owned(), place, patience: PATIENCE };
        Self { steps, names: Arc::default(), counts: Counts::default() }
    }

    /// Each step waits for a broker so long, and not for [`PATIENCE`].
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.steps.patience = patience;
        self
    }

    /// Counts seals and writes there.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// Writes records in one transaction, all of them or none, unless the token is stale. Each has the token in [`TOKEN_HEADER`].
    ///
    /// If the epoch has ended, it is tried again a few times, and the authority is asked each time. A call that is dropped half way is
    /// still carried out, or not.
    ///
    /// # Errors
    /// [`Error::Failed`] also when a record cannot be delivered, or is for the fence topic.
    pub async fn write(&self, authority: &impl Authority, records: Vec<Record>) -> Result<(), Error> {
        let place = &self.steps.place;
        let mut pending = Pending::new(&self.counts, place);
        if records.iter().any(|record| record.topic() == self.steps.topic) {
            let words =
                format!("a record is for the fence topic {}; nobody may write there", self.steps.topic);
            return pending.ended(Err(Error::failed(place, words)));
        }
        let result = self.patiently(authority, records.into(), Some(&mut pending)).await;
        pending.ended(result)
    }

    /// Tries until no epoch ends under it. Without something pending it is a seal.
    async fn patiently(
        &self,
        authority: &impl Authority,
        records: Arc<[Record]>,
        mut pending: Option<&mut Pending<'_>>,
    ) -> Result<(), Error> {
        let mut tried = 1;
        loop {
            let stamp = authority.stamp()?;
            let (slot, gone) = self.names.slot(stamp.name(), MOST_EPOCHS);
            let mut slot = slot.lock_owned().await;
            let (steps, records, seals) = (self.steps.clone(), Arc::clone(&records), pending.is_none());
            if let Some(pending) = &mut pending {
                pending.sent();
            }
            let made = tokio::task::spawn_blocking(move || {
                drop(gone);
                steps.make(&mut slot, &stamp, &records, seals)
            });
            match made.await.map_err(|error| Error::unknown(&self.steps.place, error))? {
                Ok(()) => return Ok(()),
                Err(Ended::ForGood(error)) => return Err(error),
                Err(Ended::Again(error)) if tried == TRIES => {
                    let words = format!(
                        "{TRIES} times somebody else began an epoch meanwhile; do several processes write with one token? {error}"
                    );
                    return Err(Error::failed(&self.steps.place, words));
                }
                Err(Ended::Again(_)) => {}
            }
            let pause = FIRST_PAUSE * 2_u32.pow(tried - 1);
            let chance = u32::try_from(RandomState::new().build_hasher().finish() % 100);
            tokio::time::sleep(pause + pause * chance.expect("it is below 100") / 100).await;
            tried += 1;
        }
    }
}

impl Receiver for Fence {
    fn place(&self) -> &str {
        &self.steps.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move {
            let result = self.patiently(stamp, Arc::default(), None).await;
            self.counts.seal(&self.steps.place, result)
        })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move {
            let (steps, name) = (self.steps.clone(), name.to_owned());
            let looked = tokio::task::spawn_blocking(move || steps.look(&name)).await;
            let highest = looked.map_err(|error| Error::failed(&self.steps.place, error))??;
            Ok(Seen { highest, refusals: None })
        })
    }
}
