//! Snapshots: the whole table as bytes, with a version.
//!
//! Reading one back checks what the table itself relies on (every name that is looked up exists, every length is within its
//! limit), so that damaged bytes are an error here and not a panic later. It does not check promises: see
//! [`check_invariants`](LeaseTable::check_invariants).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::resource::{Draining, Holder, Kind, Resource, Standing};
use super::session::Session;
use super::{Counters, LeaseTable};
use crate::command::{DecodeError, Mode, SessionKind, decode_versioned, encode_versioned};
use crate::id::Token;
use crate::limits::{LONGEST_MAX_TTL, MAX_ALARMS, MAX_POLICY};
use crate::name::ResourceName;
use crate::time::{Drift, LogTime};

/// The newest version of the snapshot format. Version 1 ends before the alarms, version 2 before [`Later`].
const SNAPSHOT_VERSION: u8 = 3;
/// What is written while every member may have to read it, of whatever release.
const BEFORE_DRAINS: u8 = 2;
/// The latest log time of a snapshot that is believed: far enough from the end that no length in it can pass the end.
const LATEST: LogTime = LogTime::new(u64::MAX / 2);

/// The highest count that is believed: far enough from the end that counting on cannot pass the end.
const HIGHEST: u64 = u64::MAX / 2;

/// What stands behind the table: a release that does not know it reads everything before it as ever.
#[derive(Serialize, Deserialize)]
struct Later {
    /// The version of what may stand in the log.
    version: u32,
    /// The drains that are shown, in the order of names and grants.
    draining: Vec<(ResourceName, Token, Draining)>,
    /// The leases whose holders have been told that their offer was accepted.
    told: Vec<(ResourceName, Token)>,
}

impl LeaseTable {
    /// The table as bytes. Equal tables give equal bytes.
    ///
    /// Until the log is of a version that shows drains, these are bytes that releases from before can read: one of them may be a
    /// member still, and be sent this.
    pub fn encode(&self) -> Vec<u8> {
        if !self.shows_drains() {
            return encode_versioned(BEFORE_DRAINS, self);
        }
        let bytes = encode_versioned(SNAPSHOT_VERSION, self);
        postcard::to_extend(&self.later(), bytes)
            .expect("these types have no failing serializers and a vector grows as needed")
    }

    /// Reads a table that [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes were written by a later release or are not a snapshot.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let damaged = |why| DecodeError::Damaged { what: "snapshot", why };
        let contradicts = || damaged(postcard::Error::DeserializeBadEncoding);
        let mut table: Self = match bytes.split_first() {
            Some((1, body)) => {
                let no_alarms = [&[BEFORE_DRAINS], body, &[0]].concat();
                decode_versioned("snapshot", BEFORE_DRAINS, &no_alarms)?
            }
            Some((&SNAPSHOT_VERSION, body)) => {
                let (mut table, rest): (Self, _) = postcard::take_from_bytes(body).map_err(damaged)?;
                let (later, rest) = postcard::take_from_bytes(rest).map_err(damaged)?;
                table.take_later(later).filter(|()| rest.is_empty()).ok_or_else(contradicts)?;
                table
            }
            _ => decode_versioned("snapshot", SNAPSHOT_VERSION, bytes)?,
        };
        if !table.is_whole() {
            return Err(contradicts());
        }
        table.misread();
        table.rebuild_index();
        Ok(table)
    }

    fn later(&self) -> Later {
        let places = || {
            self.resources
                .iter()
                .flat_map(|(name, resource)| resource.holders.iter().map(move |holder| (name, holder)))
        };
        let draining = |(name, holder): (&ResourceName, &Holder)| {
            holder.draining.map(|draining| (name.clone(), holder.token, draining))
        };
        let told = |(name, holder): (&ResourceName, &Holder)| {
            let told = holder.offer.as_ref().is_some_and(|offer| offer.told);
            told.then(|| (name.clone(), holder.token))
        };
        Later {
            version: self.version,
            draining: places().filter_map(draining).collect(),
            told: places().filter_map(told).collect(),
        }
    }

    /// Puts what stood behind the table where it belongs; nothing if there is no such place.
    fn take_later(&mut self, later: Later) -> Option<()> {
        self.version = later.version;
        for (name, token, draining) in later.draining {
            self.resources.get_mut(&name)?.holder_mut(token)?.draining = Some(draining);
        }
        for (name, token) in later.told {
            self.resources.get_mut(&name)?.holder_mut(token)?.offer.as_mut()?.told = true;
        }
        // Any other would have been written in the format from before.
        self.shows_drains().then_some(())
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
            && resource.holders.iter().all(|holder| holder.draining.is_none_or(|shown| shown.until <= LATEST))
            && resource.holders.iter().all(|holder| self.sessions.contains_key(&holder.session))
            && waiting.all(|waiting| {
                let session = self.sessions.get(&waiting.session);
                session.is_some_and(|session| session.waits.contains_key(&waiting.command))
            })
    }
}
