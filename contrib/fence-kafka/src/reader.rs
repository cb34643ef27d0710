//! Reads the fence topic, and looks up how a transaction ended.
//!
//! Neither waits for ever: what is not there within the patience is told as trouble.

use std::time::Duration;

use leasehold_fence::Mark;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::epoch::Place;
use super::record::mark;

/// How long a broker may let a reader wait at the end of a partition. The end is told after that time.
const AT_THE_END_MS: &str = "5";
/// The client library wants a group although nothing is committed under it.
const GROUP: &str = "leasehold-fence";
/// One look for the next record.
const SLICE: Duration = Duration::from_millis(100);

/// What keeps a reader from reading on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    #[error("the fence topic was not read within {0:?}; look at its leader, or be more patient")]
    TooSlow(Duration),
    #[error(
        "record {offset} of the fence topic has the key {name} and is no token; write a tombstone for it, and seal again"
    )]
    Odd { offset: i64, name: String },
}

/// Reads the fence topic from its beginning for one name.
///
/// It reads without isolation: a record whose transaction is open or was aborted counts as seen. Its holder existed.
pub(super) struct Reader<'a> {
    consumer: BaseConsumer,
    name: &'a str,
    patience: Duration,
    found: Found,
    /// The offset after the last record that was read.
    next: i64,
}

impl<'a> Reader<'a> {
    pub(super) fn open(
        config: &ClientConfig,
        topic: &str,
        name: &'a str,
        patience: Duration,
    ) -> Result<Self, Unread> {
        let start = Place { topic: topic.to_owned(), partition: 0, offset: 0 };
        let consumer = consumer(config, "read_uncommitted", &start, Offset::Beginning)?;
        Ok(Self { consumer, name, patience, found: Found::default(), next: 0 })
    }

    /// The highest token that was read.
    pub(super) fn highest(&self) -> Option<&Mark> {
        self.found.highest.as_ref()
    }

    pub(super) fn into_highest(self) -> Option<Mark> {
        self.found.highest
    }

    /// Reads as far as there is something. Where that is may be told by a broker that does not know the end yet.
    pub(super) fn read_to_end(&mut self) -> Result<(), Unread> {
        self.read(None)
    }

    /// Reads up to a record that was delivered.
    pub(super) fn read_up_to(&mut self, offset: i64) -> Result<(), Unread> {
        self.read(Some(offset))
    }

    fn read(&mut self, last: Option<i64>) -> Result<(), Unread> {
        let mut idle = 0;
        while last.is_none_or(|last| self.next <= last) {
            match self.consumer.poll(SLICE) {
                Some(Ok(record)) => {
                    idle = 0;
                    self.next = record.offset() + 1;
                    if record.key() == Some(self.name.as_bytes()) {
                        self.found.note(record.offset(), record.payload());
                    }
                }
                Some(Err(KafkaError::PartitionEOF(_))) if last.is_none() => break,
                // Behind the end lies the record that is waited for. Other trouble is the client library's to overcome.
                Some(Err(_)) | None => {
                    idle += 1;
                    if SLICE * idle > self.patience {
                        return Err(Unread::TooSlow(self.patience));
                    }
                }
            }
        }
        match self.found.odd {
            Some(offset) => Err(Unread::Odd { offset, name: self.name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// What the records of a name say.
#[derive(Default)]
struct Found {
    highest: Option<Mark>,
    /// A record that is no token, and which no tombstone has followed.
    odd: Option<i64>,
}

impl Found {
    fn note(&mut self, offset: i64, value: Option<&[u8]>) {
        match value.map(mark) {
            // A tombstone: an operator has emptied the fence. Compaction would remove what is before it sooner or later.
            None => (self.highest, self.odd) = (None, None),
            Some(None) => self.odd = Some(offset),
            Some(Some(read)) => {
                if self.highest.as_ref().is_none_or(|highest| highest.token <= read.token) {
                    self.highest = Some(read);
                }
            }
        }
    }
}

/// Whether the record at a place was committed. Nothing if that cannot be told, or not yet.
///
/// It is looked twice. A broker that has just become leader may for a moment show an end that lies before the record; one that
/// was asked for the end of what is committed has caught up.
pub(super) fn was_committed(config: &ClientConfig, place: &Place, patience: Duration) -> Option<bool> {
    match looked_up(config, place, patience)? {
        true => Some(true),
        false => looked_up(config, place, patience),
    }
}

fn looked_up(config: &ClientConfig, place: &Place, patience: Duration) -> Option<bool> {
    let Place { topic, partition, offset } = place;
    let consumer = consumer(config, "read_committed", place, Offset::Offset(*offset)).ok()?;
    let mut waited = Duration::ZERO;
    // The end of what is committed has to lie behind the record. An open transaction before it may keep it back.
    loop {
        let (first, end) = consumer.fetch_watermarks(topic, *partition, patience).ok()?;
        if first > *offset {
            return None;
        }
        if end > *offset {
            break;
        }
        waited += SLICE;
        if waited > patience {
            return None;
        }
        std::thread::sleep(SLICE);
    }
    let mut idle = 0;
    while SLICE * idle <= patience {
        match consumer.poll(SLICE) {
            Some(Ok(record)) => return Some(record.offset() == *offset),
            Some(Err(KafkaError::PartitionEOF(_))) => return Some(false),
            Some(Err(error)) if error.rdkafka_error_code() == Some(Code::AutoOffsetReset) => return None,
            Some(Err(_)) | None => idle += 1,
        }
    }
    None
}

fn consumer(
    config: &ClientConfig,
    isolation: &str,
    place: &Place,
    from: Offset,
) -> Result<BaseConsumer, KafkaError> {
    let mut config = config.clone();
    config
        .set("group.id", GROUP)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "error")
        .set("fetch.wait.max.ms", AT_THE_END_MS)
        .set("isolation.level", isolation);
    let consumer: BaseConsumer = config.create()?;
    let mut assigned = TopicPartitionList::with_capacity(1);
    assigned.add_partition_offset(&place.topic, place.partition, from)?;
    consumer.assign(&assigned)?;
    Ok(consumer)
}
