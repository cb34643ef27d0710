//! Watches: the changes of the hub as a stream of messages.
//!
//! A watch has no queue: it takes the next changes when its client has room for them. What matches in one revision is sent
//! whole, in several messages if it must be, so a client that was told of all of a revision can resume after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use leasehold_api::{ApiError, Number, request};
use leasehold_core::protocol::{Change, Changes};
use leasehold_host::{Kept, Watcher};
use leasehold_wire::Wire;
use leasehold_wire::messages as pb;
use tonic::Status;

use super::{Answers, status};
use crate::ops::Operations;
use crate::running::Counts;
use crate::tcp::Counted;
use crate::web::{ConnectionWatch, ConnectionWatches};

/// A watch without changes says at least this often how far the log has come.
const PROGRESS: Duration = Duration::from_secs(10);
/// Bytes of changes in one message, roughly; every client takes that.
const PART_BYTES: usize = 1024 * 1024;

/// Begins a watch, if there may be one more.
pub(super) fn begin(
    m: pb::WatchRequest,
    ops: &Operations,
    counts: &Arc<Counts>,
    limit: usize,
    of_connection: Option<&ConnectionWatches>,
) -> Result<Answers<pb::WatchResponse>, ApiError> {
    let watch = request::Watch { prefix: Some(m.prefix), after: m.after.map(Number) }.check(None)?;
    let counted = Counted::watch(counts, limit)?;
    let of_connection = of_connection.map(ConnectionWatches::count).transpose()?;
    let watcher = ops.caller().hub().watch(&watch)?;
    let first = VecDeque::from([here(&watcher)]);
    let watching =
        Watching { watcher, taken: VecDeque::new(), parts: first, _counted: (counted, of_connection) };
    Ok(Box::pin(stream::unfold(Some(watching), |watching| async {
        let mut watching = watching?;
        match watching.next().await {
            Ok(message) => Some((Ok(message), Some(watching))),
            // Whoever was told why it ended is not told again.
            Err(status) => Some((Err(status), None)),
        }
    })))
}

/// A watch that runs.
struct Watching {
    watcher: Watcher,
    /// Entries taken from the hub and not looked at yet.
    taken: VecDeque<Arc<Kept>>,
    /// Messages that are ready.
    parts: VecDeque<pb::WatchResponse>,
    _counted: (Counted, Option<ConnectionWatch>),
}

impl Watching {
    async fn next(&mut self) -> Result<pb::WatchResponse, Status> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Ok(part);
            }
            if let Some(kept) = self.taken.pop_front() {
                let matching = kept.changes.changes.iter().filter(|change| self.watcher.matches(change));
                self.parts = split(kept.changes.revision, matching);
                continue;
            }
            let taken = self.watcher.next(PROGRESS).await;
            self.taken = taken.map_err(|failure| status::of("watch", &failure.into()))?.into();
            if self.taken.is_empty() {
                self.parts.push_back(here(&self.watcher));
            }
        }
    }
}

/// How far a watch is, without changes.
fn here(watcher: &Watcher) -> pb::WatchResponse {
    let changes = Changes { revision: watcher.position(), changes: Vec::new() };
    pb::WatchResponse { changes: Some(changes.to_wire()), more: false }
}

/// The changes of one revision as messages.
fn split<'a>(
    revision: leasehold_core::Revision,
    matching: impl Iterator<Item = &'a Change>,
) -> VecDeque<pb::WatchResponse> {
    let mut parts = VecDeque::new();
    let (mut changes, mut bytes) = (Vec::new(), 0);
    let part = |changes, more| {
        let changes = pb::Changes { revision: revision.get(), changes };
        pb::WatchResponse { changes: Some(changes), more }
    };
    for change in matching {
        let weight = change.weight();
        if bytes > 0 && bytes + weight > PART_BYTES {
            parts.push_back(part(std::mem::take(&mut changes), true));
            bytes = 0;
        }
        bytes += weight;
        changes.push(change.to_wire());
    }
    parts.push_back(part(changes, false));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::{ResourceName, Revision, SessionId, Token, Value};

    #[test]
    fn a_revision_that_is_too_long_for_one_message_is_split_and_nothing_is_lost() {
        let change = |token: u64| Change::ValueSet {
            resource: ResourceName::new("a").unwrap(),
            token: Token::from_u64(token),
            session: SessionId::from_u64(1),
            value: Some(Value::new(vec![0; 4096]).unwrap()),
        };
        let changes: Vec<Change> = (0..600).map(change).collect();
        let parts = split(Revision::new(9), changes.iter());
        assert!(parts.len() > 2, "{} parts", parts.len());
        let last = parts.len() - 1;
        let mut told = Vec::new();
        for (place, part) in parts.into_iter().enumerate() {
            assert_eq!(part.more, place < last, "part {place}");
            let part = Changes::from_wire(part.changes.unwrap()).unwrap();
            assert_eq!(part.revision, Revision::new(9));
            assert!(part.changes.iter().map(Change::weight).sum::<usize>() <= PART_BYTES);
            told.extend(part.changes);
        }
        assert_eq!(told, changes);
    }

    #[test]
    fn a_revision_that_fits_is_one_message() {
        let parts = split(Revision::new(9), std::iter::empty());
        assert_eq!(parts.len(), 1);
        assert!(!parts[0].more);
    }
}
