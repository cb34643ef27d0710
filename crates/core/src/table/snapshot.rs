//! Snapshots: the whole table as bytes, with a version.
//!
//! Reading one back checks what the table itself relies on (every name that is looked up exists, every length is within its
//! limit), so that damaged bytes are an error here and not a panic later. It does not check promises: see
//! [`check_invariants`](LeaseTable::check_invariants).

use alloc::vec::Vec;

use super::resource::{Kind, Resource, Standing};
use super::session::Session;
use super::{Counters, LeaseTable};
use crate::command::{DecodeError, Mode, SessionKind, decode_versioned, encode_versioned};
use crate::id::Token;
use crate::limits::{LONGEST_MAX_TTL, MAX_ALARMS, MAX_POLICY};
use crate::time::{Drift, LogTime};

/// The version of the snapshot format that is written here. Version 1 ends before the alarms.
const SNAPSHOT_VERSION: u8 = 2;
/// The latest log time of a snapshot that is believed: far enough from the end that no length in it can pass the end.
const LATEST: LogTime = LogTime::new(u64::MAX / 2);

/// The highest count that is believed: far enough from the end that counting on cannot pass the end.
const HIGHEST: u64 = u64::MAX / 2;

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
        let Counters { grants, renewals, voluntary_endings, involuntary_endings } = self.counters;
        let counts = [grants, renewals, voluntary_endings, involuntary_endings, self.next_place];
        self.last_at <= LATEST
            && counts.iter().all(|count| *count <= HIGHEST)
            && Token::new(self.epoch, self.counter).is_ok()
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
            && (session.kind == SessionKind::Streamed || session.renewal.get() <= HIGHEST)
            && session.last_command.get() <= HIGHEST
            && session.last_item.get() <= HIGHEST
            && (session.last_item.get().checked_add(1)).is_some_and(|next| next > session.unseen.len() as u64)
            && wanted.all(|request| self.resources.contains_key(&request.resource))
    }

    fn is_whole_resource(&self, resource: &Resource) -> bool {
        let good_slots = match resource.kind {
            Kind::Lock => true,
            Kind::Slots(of) => Mode::Slot { of }.is_valid(),
        };
        let mut waiting = resource.queue.values();
        let good_standing = |standing: &Standing| match standing {
            Standing::Held => true,
            Standing::Revoked { until, delay, .. } => *until <= LATEST && *delay <= MAX_POLICY,
        };
        good_slots
            && resource.transitions <= HIGHEST
            && resource.holders.iter().all(|holder| good_standing(&holder.standing))
            && resource.holders.iter().all(|holder| self.sessions.contains_key(&holder.session))
            && waiting.all(|waiting| {
                let session = self.sessions.get(&waiting.session);
                session.is_some_and(|session| session.waits.contains_key(&waiting.command))
            })
    }
}
