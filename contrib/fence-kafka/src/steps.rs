//! The steps of a seal and of a write, on a thread that may wait.

use std::time::Duration;

use leasehold_fence::{Error, Mark, Stale, Stamp};
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;

use super::epoch::{Epoch, Place, Trouble};
use super::reader::{Reader, was_committed};
use super::record::{Record, of_fence};

/// How one try ended.
pub(super) enum Ended {
    /// Nothing was written, because the epoch was over. Whether the token is stale, the next try will see.
    Again(KafkaError),
    /// Trying again would end the same, or nobody can say how this one ended.
    ForGood(Error),
}

impl From<Stale> for Ended {
    fn from(stale: Stale) -> Self {
        Self::ForGood(stale.into())
    }
}

/// Where fences are kept, and how long it is waited for each step.
#[derive(Clone)]
pub(super) struct Steps {
    pub(super) config: ClientConfig,
    pub(super) topic: String,
    pub(super) place: String,
    pub(super) patience: Duration,
}

impl Steps {
    /// Writes records in one transaction, unless the token is stale. Without records, and for a seal, it writes the fence record.
    pub(super) fn make(
        &self,
        slot: &mut Option<Epoch>,
        stamp: &Stamp,
        records: &[Record],
        seals: bool,
    ) -> Result<(), Ended> {
        // A fence does not fall: what this process has sealed is a bound, whoever has begun an epoch since.
        if let Some(highest) = slot.as_ref().map(|epoch| epoch.token).filter(|sealed| *sealed > stamp.token())
        {
            return Err(Stale::of(stamp, Some(highest)).into());
        }
        let (mut epoch, reader) = match slot.take() {
            Some(epoch) => (epoch, None),
            None => {
                let (epoch, reader) = self.begin(stamp)?;
                (epoch, Some(reader))
            }
        };
        epoch.patience = self.patience;
        let raises = seals || records.is_empty() || reader.is_some() || epoch.token < stamp.token();
        let first = match self.deliver(&epoch, reader, stamp, records, raises) {
            Ok(first) => first,
            Err(ended) => {
                epoch.abort();
                return Err(ended);
            }
        };
        match epoch.commit() {
            Ok(()) => {
                epoch.token = stamp.token();
                *slot = Some(epoch);
                Ok(())
            }
            Err(trouble) => self.look_up(first.as_ref(), trouble),
        }
    }

    /// What the fence topic says of a name.
    pub(super) fn look(&self, name: &str) -> Result<Option<Mark>, Error> {
        let reader = Reader::open(&self.config, &self.topic, name, self.patience).and_then(|mut reader| {
            reader.read_to_end()?;
            Ok(reader.into_highest())
        });
        reader.map_err(|error| Error::failed(&self.place, error))
    }

    /// Begins an epoch, unless it can be told before that the token is stale. Then nobody is disturbed.
    fn begin<'a>(&self, stamp: &'a Stamp) -> Result<(Epoch, Reader<'a>), Ended> {
        let mut reader = Reader::open(&self.config, &self.topic, stamp.name(), self.patience)
            .map_err(|error| self.failed(error))?;
        reader.read_to_end().map_err(|error| self.failed(error))?;
        not_stale(stamp, &reader)?;
        let id = format!("{}/{}", self.topic, stamp.name());
        let epoch = Epoch::begin(&self.config, &id, stamp.token(), self.patience);
        epoch.map(|epoch| (epoch, reader)).map_err(|error| self.failed(error))
    }

    /// All of a transaction but its commit: the fence record if it raises, the comparison if the epoch is new, the records. Gives back
    /// where the first record lies.
    fn deliver(
        &self,
        epoch: &Epoch,
        reader: Option<Reader<'_>>,
        stamp: &Stamp,
        records: &[Record],
        raises: bool,
    ) -> Result<Option<Place>, Ended> {
        epoch.open().map_err(|trouble| self.ended(trouble))?;
        if raises {
            let fence = [of_fence(&self.topic, stamp)];
            let place = epoch.deliver(stamp, &fence).map_err(|trouble| self.ended(trouble))?;
            if let Some(mut reader) = reader {
                let Some(place) = place else {
                    return Err(self.failed("the fence record was not delivered"));
                };
                reader.read_up_to(place.offset).map_err(|error| self.failed(error))?;
                not_stale(stamp, &reader)?;
            }
        }
        epoch.deliver(stamp, records).map_err(|trouble| self.ended(trouble))
    }

    /// The commit was not answered with yes. The client library may have sent it more than once, so no other answer proves
    /// anything: the first record does.
    fn look_up(&self, first: Option<&Place>, trouble: Trouble) -> Result<(), Ended> {
        let is_over = matches!(trouble, Trouble::Over(_));
        let error = trouble.into_error();
        // A seal has no record but that of the fence, and may be repeated.
        let Some(first) = first else {
            return Err(match is_over {
                true => Ended::Again(error),
                false => Ended::ForGood(Error::unknown(&self.place, error)),
            });
        };
        match was_committed(&self.config, first, self.patience) {
            Some(true) => Ok(()),
            Some(false) if is_over => Err(Ended::Again(error)),
            Some(false) => Err(self.failed(error)),
            None => Err(Ended::ForGood(Error::unknown(&self.place, error))),
        }
    }

    fn ended(&self, trouble: Trouble) -> Ended {
        match trouble {
            Trouble::Over(error) => Ended::Again(error),
            Trouble::Other(error) => self.failed(error),
        }
    }

    fn failed(&self, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Ended {
        Ended::ForGood(Error::failed(&self.place, why))
    }
}

fn not_stale(stamp: &Stamp, reader: &Reader<'_>) -> Result<(), Stale> {
    match reader.highest() {
        Some(highest) if highest.token > stamp.token() => Err(Stale::of(stamp, Some(highest.token))),
        _ => Ok(()),
    }
}
