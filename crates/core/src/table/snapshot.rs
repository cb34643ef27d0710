//! Snapshots: the whole table as bytes, with a version.
//!
//! Reading one back checks what the table itself relies on (every name that is looked up exists, every length is within its
//! limit), so that damaged bytes are an error here and not a panic later. It does not check promises: see
//! [`check_invariants`](LeaseTable::check_invariants).

use alloc::vec::Vec;

use super::LeaseTable;
use super::resource::{Kind, Resource};
use super::session::Session;
use crate::command::{DecodeError, Mode, decode_versioned, encode_versioned};
use crate::limits::{LONGEST_MAX_TTL, MAX_ALARMS, MAX_POLICY};
use crate::time::{Drift, LogTime};

/// The version of the snapshot format that is written here. Version 1 ends before the alarms.
const SNAPSHOT_VERSION: u8 = 2;
/// The latest log time of a snapshot that is believed: far enough from the end that no length in it can pass the end.
const LATEST: LogTime = LogTime::new(u64::MAX / 2);

impl LeaseTable {
    /// The table as bytes. Equal tables give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_versioned(SNAPSHOT_VERSION, self)
    }

    /// Reads a table that [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes were written by a later release or are not a snapshot.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut table: Self = match bytes.split_first() {
            Some((1, body)) => {
                let no_alarms = [&[SNAPSHOT_VERSION], body, &[0]].concat();
                decode_versioned("snapshot", SNAPSHOT_VERSION, &no_alarms)?
            }
            _ => decode_versioned("snapshot", SNAPSHOT_VERSION, bytes)?,
        };
        if !table.is_whole() {
            return Err(DecodeError::Damaged {
                what: "snapshot",
                why: postcard::Error::DeserializeBadEncoding,
            });
        }
        table.misread();
        table.rebuild_index();
        Ok(table)
    }

    fn is_whole(&self) -> bool {
        self.last_at <= LATEST
            && self.config.drift <= Drift::MAX
            && self.alarms.len() <= MAX_ALARMS
            && self.alarms.values().all(|alarm| alarm.since <= self.last_at)
            && self.sessions.values().all(|session| self.is_whole_session(session))
            && self.resources.values().all(|resource| self.is_whole_resource(resource))
    }

    fn is_whole_session(&self, session: &Session) -> bool {
        let lengths = [session.policies.grace, session.policies.hard, session.policies.delay];
        let mut wanted = session.waits.values().flat_map(|wait| &wait.requests);
        session.ttl <= LONGEST_MAX_TTL
            && lengths.iter().all(|length| *length <= MAX_POLICY)
            && session.last_renewal <= self.last_at
            && (session.last_item.get().checked_add(1)).is_some_and(|next| next > session.unseen.len() as u64)
            && wanted.all(|request| self.resources.contains_key(&request.resource))
    }

    fn is_whole_resource(&self, resource: &Resource) -> bool {
        let good_slots = match resource.kind {
            Kind::Lock => true,
            Kind::Slots(of) => Mode::Slot { of }.is_valid(),
        };
        let mut waiting = resource.queue.values();
        good_slots
            && resource.holders.iter().all(|holder| self.sessions.contains_key(&holder.session))
            && waiting.all(|waiting| {
                let session = self.sessions.get(&waiting.session);
                session.is_some_and(|session| session.waits.contains_key(&waiting.command))
            })
    }
}
