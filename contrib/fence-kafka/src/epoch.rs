//! One producer epoch of a fence name, and transactions in it.
//!
//! A producer with which anything went wrong is never used again. The client library begins an epoch by itself when it aborts
//! after some errors, and nobody would have compared the token before.

use std::sync::Mutex;
use std::time::Duration;

use leasehold_fence::Stamp;
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseProducer, Producer as _, ProducerContext};

use super::record::Record;

/// How long it is waited for deliveries before it is asked whether the transaction has failed meanwhile: the client library does not
/// tell by itself.
const SLICE: Duration = Duration::from_millis(20);
/// How long one look for deliveries takes at most. The client library's own flush looks for as long as it is given, also when all has been
/// delivered in its first moment.
const LOOK: Duration = Duration::from_millis(1);
/// How long an abort may take that nobody depends on: the next epoch aborts what is left.
const COURTESY: Duration = Duration::from_millis(500);

/// Where a record lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) offset: i64,
}

/// Why a step of a transaction was not made.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The epoch is over, or the broker has forgotten it.
    Over(KafkaError),
    /// Anything else.
    Other(KafkaError),
}

impl Trouble {
    pub(super) fn into_error(self) -> KafkaError {
        let (Self::Over(error) | Self::Other(error)) = self;
        error
    }
}

/// An epoch, and the token to which it belongs once a transaction with the fence record was committed in it.
pub(super) struct Epoch {
    producer: BaseProducer<Deliveries>,
    pub(super) token: u64,
    /// How long each step may take.
    pub(super) patience: Duration,
}

impl Epoch {
    /// Begins one: from here on the epoch before it is over.
    pub(super) fn begin(
        config: &ClientConfig,
        id: &str,
        token: u64,
        patience: Duration,
    ) -> Result<Self, KafkaError> {
        let mut config = config.clone();
        config.set("transactional.id", id).set("acks", "all");
        let producer: BaseProducer<Deliveries> = config.create_with_context(Deliveries::default())?;
        producer.init_transactions(patience)?;
        Ok(Self { producer, token, patience })
    }

    pub(super) fn open(&self) -> Result<(), Trouble> {
        self.producer.context().forget();
        self.producer.begin_transaction().map_err(|error| self.trouble(error))
    }

    /// Sends records and waits until all are delivered. Gives back where the first one lies.
    pub(super) fn deliver(&self, stamp: &Stamp, records: &[Record]) -> Result<Option<Place>, Trouble> {
        self.producer.context().forget();
        for (nth, record) in records.iter().enumerate() {
            self.send(stamp, nth, record)?;
        }
        self.flush()?;
        let delivered = self.producer.context().taken();
        let mut first = None;
        for (nth, end) in delivered {
            let place = end.map_err(|code| self.cause(KafkaError::MessageProduction(code)))?;
            if nth == 0 {
                first = Some(place);
            }
        }
        Ok(first)
    }

    fn send(&self, stamp: &Stamp, nth: usize, record: &Record) -> Result<(), Trouble> {
        for _ in 0..slices(self.patience) {
            match self.producer.send(record.stamped(stamp, nth)) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(Code::QueueFull), _)) => self.producer.poll(SLICE),
                Err((error, _)) => return Err(self.trouble(error)),
            }
        }
        Err(self.trouble(KafkaError::MessageProduction(Code::QueueFull)))
    }

    fn flush(&self) -> Result<(), Trouble> {
        let mut ended = Ok(());
        for _ in 0..slices(self.patience) {
            for _ in 0..SLICE.as_millis() / LOOK.as_millis() {
                ended = self.producer.flush(Duration::ZERO);
                if ended.is_ok() {
                    return Ok(());
                }
                self.producer.poll(LOOK);
            }
            if let Some(error) = self.failure() {
                return Err(self.trouble(error));
            }
        }
        ended.map_err(|error| self.trouble(error))
    }

    pub(super) fn commit(&self) -> Result<(), Trouble> {
        self.producer.commit_transaction(self.patience).map_err(|error| self.trouble(error))
    }

    /// Aborts what is open, if that is quickly done, and lets the producer go.
    pub(super) fn abort(self) {
        // Whether it is aborted now or by the next epoch is the same to everybody but those who read behind it.
        let _ = self.producer.abort_transaction(COURTESY);
    }

    /// Why the transaction has failed, if it has. A second one cannot begin in the first. Why not is told, and what has failed is
    /// told before that.
    fn failure(&self) -> Option<KafkaError> {
        match self.producer.begin_transaction() {
            Err(KafkaError::Transaction(error)) if error.code() != Code::State => {
                Some(KafkaError::Transaction(error))
            }
            _ => None,
        }
    }

    /// Records of a transaction that has failed are purged. What counts is why it has.
    fn cause(&self, error: KafkaError) -> Trouble {
        self.trouble(self.failure().unwrap_or(error))
    }

    fn trouble(&self, error: KafkaError) -> Trouble {
        let fatal = self.producer.client().fatal_error().map(|(code, _)| code);
        let code = match &error {
            KafkaError::Transaction(error) => Some(error.code()),
            other => other.rdkafka_error_code(),
        };
        match [fatal, code].into_iter().flatten().any(is_over) {
            true => Trouble::Over(error),
            false => Trouble::Other(error),
        }
    }
}

const fn is_over(code: Code) -> bool {
    matches!(
        code,
        Code::Fenced
            | Code::InvalidProducerEpoch
            | Code::InvalidProducerIdMapping
            | Code::InvalidTransactionalState
            | Code::ProducerFenced
            | Code::UnknownProducerId
    )
}

/// How many slices make up the patience.
fn slices(patience: Duration) -> u128 {
    (patience.as_millis() / SLICE.as_millis()).max(1)
}

type End = (usize, Result<Place, Code>);

/// What became of the records that were sent last.
#[derive(Default)]
struct Deliveries(Mutex<Vec<End>>);

impl Deliveries {
    fn forget(&self) {
        drop(self.taken());
    }

    fn taken(&self) -> Vec<End> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, nth: usize) {
        let end = match result {
            Ok(record) => Ok(Place {
                topic: record.topic().to_owned(),
                partition: record.partition(),
                offset: record.offset(),
            }),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(Code::Unknown)),
        };
        self.0.lock().expect("nobody panics with it").push((nth, end));
    }
}
