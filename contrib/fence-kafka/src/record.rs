//! What is written: records of the caller, and the fence's own.

use leasehold_fence::{Mark, Stamp};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::BaseRecord;

/// The header in which every record of a fenced write has its token, as text.
pub const TOKEN_HEADER: &str = "leasehold-token";

/// A record to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    topic: String,
    partition: Option<i32>,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Vec<u8>)>,
}

impl Record {
    /// An empty record for a topic. Without a partition, the partitioner of the client's settings chooses one.
    pub fn to(topic: impl Into<String>) -> Self {
        Self { topic: topic.into(), partition: None, key: None, value: None, headers: Vec::new() }
    }

    /// For this partition of the topic.
    #[must_use]
    pub const fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// With a key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// With a value. Without one it is a tombstone.
    #[must_use]
    pub fn value(mut self, value: impl Into<Vec<u8>>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// With one more header. [`TOKEN_HEADER`] is added by the fence.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// For which topic it is.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// As the client library takes it, `nth` of its transaction.
    pub(super) fn stamped(&self, stamp: &Stamp, nth: usize) -> BaseRecord<'_, [u8], [u8], usize> {
        let token = stamp.token().to_string();
        let headers = OwnedHeaders::new_with_capacity(self.headers.len() + 1);
        let headers = headers.insert(Header { key: TOKEN_HEADER, value: Some(token.as_bytes()) });
        let headers = self
            .headers
            .iter()
            .fold(headers, |headers, (key, value)| headers.insert(Header { key, value: Some(value) }));
        let record = BaseRecord::with_opaque_to(&self.topic, nth).headers(headers);
        let record = match self.partition {
            Some(partition) => record.partition(partition),
            None => record,
        };
        let record = match &self.key {
            Some(key) => record.key(key.as_slice()),
            None => record,
        };
        match &self.value {
            Some(value) => record.payload(value.as_slice()),
            None => record,
        }
    }
}

/// The fence's own record: the token as text and, after a blank, who holds it.
pub(super) fn of_fence(topic: &str, stamp: &Stamp) -> Record {
    let value = match stamp.holder() {
        Some(holder) => format!("{} {holder}", stamp.token()),
        None => stamp.token().to_string(),
    };
    Record::to(topic).partition(0).key(stamp.name()).value(value)
}

/// What a fence's record says.
pub(super) fn mark(value: &[u8]) -> Option<Mark> {
    let text = std::str::from_utf8(value).ok()?;
    let (token, holder) = match text.split_once(' ') {
        Some((token, holder)) => (token, Some(holder.to_owned())),
        None => (text, None),
    };
    Some(Mark { token: token.parse().ok()?, holder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_record_is_read_as_it_was_written() {
        let stamp = Stamp::new("a", (1 << 62) + 1).unwrap();
        for stamp in [stamp.clone(), stamp.held_by("worker 3, of many").unwrap()] {
            let read = mark(&of_fence("fences", &stamp).value.unwrap()).unwrap();
            assert_eq!((read.token, read.holder.as_deref()), (stamp.token(), stamp.holder()));
        }
        for odd in [&b""[..], b"x", b"-1", b"34x y", b"\xff"] {
            assert_eq!(mark(odd), None, "{odd:?}");
        }
    }
}
