//! Snapshots: the whole table as bytes, with a version.
//!
//! Reading one back checks what the table itself relies on (every name that is looked up exists, every length is within its
//! limit), so that damaged bytes are an error here and not a panic later. It does not check promises: see
//! [`check_invariants`](LeaseTable::check_invariants).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::alarms::Alarm;
use super::calls::Calls;
use super::gaps::{Gaps, Outage, Sign};
use super::known::Image;
use super::resource::{Draining, Holder, Kind, Readiness, Resource, Standing};
use super::session::Session;
use super::version::{COUNTS_GAPS, GAPS_HAVE_TWO_LENGTHS, NUMBERS_CALLS, SHOWS_DRAINS};
use super::{Config, Counters, LeaseTable};
use crate::command::{DecodeError, Mode, SessionKind, decode_versioned, encode_behind};
use crate::id::{Epoch, SessionId, Token};
use crate::limits::{LONGEST_MAX_TTL, MAX_ALARMS, MAX_OUTAGES, MAX_POLICY};
use crate::name::ResourceName;
use crate::planted::{Bug, planted};
use crate::time::{Drift, LogTime, Millis};

/// The newest version of the snapshot format. Version 1 ends before the alarms, version 2 before [`Later`], version 3 before
/// [`Gapped`], version 4 before [`Measured`], version 5 before the numbered calls.
const SNAPSHOT_VERSION: u8 = 6;
/// What is written while every member may have to read it, of whatever release.
const BEFORE_DRAINS: u8 = 2;
/// What is written while the log shows drains and does not count gaps.
const BEFORE_GAPS: u8 = 3;
/// What is written while the log counts gaps and does not know their second length.
const BEFORE_MEASURED: u8 = 4;
/// What is written while calls have no numbers.
const BEFORE_NUMBERS: u8 = 5;
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

/// What stands behind that: gaps, and what they are made from.
#[derive(Serialize, Deserialize)]
struct Gapped {
    /// The last sign of life of each session.
    heard: Vec<(SessionId, Sign)>,
    /// What holders have said of their readiness, in the order of names and grants.
    readiness: Vec<(ResourceName, Token, Readiness)>,
    /// The leases that were granted right after an outage, and how many there had been.
    granted: Vec<(ResourceName, Token, u32)>,
    /// The leases of the past that were granted, or ended, right after an outage, and how many there had been.
    past: Vec<(ResourceName, Token, (u32, u32))>,
    /// In the order of names.
    gaps: Vec<(ResourceName, Gaps)>,
    outages: VecDeque<Outage>,
}

/// What stands behind that.
#[derive(Serialize, Deserialize)]
struct Measured {
    /// For how long holders may have acted behind their last sign of life, in the order of names.
    leeways: Vec<(ResourceName, Vec<Option<Millis>>)>,
    /// How many names sessions have stopped by an alarm.
    alarms: Vec<(SessionId, u32)>,
    /// The numbers of outages that were none: somebody led.
    led: Vec<u32>,
}

/// What a table was at some moment, to be made into bytes later, or elsewhere. It shares with the table what has not changed since.
///
/// Its fields are those of [`LeaseTable`], in the same order: this is how a table is written, and that is how it is read.
#[derive(Debug, Clone, Serialize)]
pub struct TableImage {
    config: Config,
    epoch: Epoch,
    counter: u64,
    last_at: LogTime,
    granting_after: Option<LogTime>,
    next_place: u64,
    sessions: Image<SessionId, Session>,
    resources: Image<ResourceName, Resource>,
    counters: Counters,
    alarms: BTreeMap<ResourceName, Alarm>,
    #[serde(skip)]
    outages: VecDeque<Outage>,
    #[serde(skip)]
    version: u32,
}

/// How a snapshot is written while this may stand in the log.
const fn format_of(version: u32) -> u8 {
    match version {
        ..SHOWS_DRAINS => BEFORE_DRAINS,
        SHOWS_DRAINS..COUNTS_GAPS => BEFORE_GAPS,
        COUNTS_GAPS..GAPS_HAVE_TWO_LENGTHS => BEFORE_MEASURED,
        GAPS_HAVE_TWO_LENGTHS..NUMBERS_CALLS => BEFORE_NUMBERS,
        NUMBERS_CALLS.. => SNAPSHOT_VERSION,
    }
}

/// Bytes of a session or a resource in a snapshot, roughly: what was made room for is not moved while it grows.
const USUAL_BYTES: usize = 96;

impl TableImage {
    /// The bytes of the table behind others. Equal tables give equal bytes.
    ///
    /// Until the log is of a version that shows drains, these are bytes that releases from before can read: one of them may be a
    /// member still, and be sent this.
    pub fn encode_behind(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.reserve((self.sessions.len() + self.resources.len()) * USUAL_BYTES);
        let format = format_of(self.version);
        bytes.push(format);
        let mut bytes = encode_behind(bytes, self);
        if format >= BEFORE_GAPS {
            bytes = encode_behind(bytes, &self.later());
        }
        if format >= BEFORE_MEASURED {
            bytes = encode_behind(bytes, &self.gapped());
        }
        if format >= BEFORE_NUMBERS {
            bytes = encode_behind(bytes, &self.measured());
        }
        if format >= SNAPSHOT_VERSION {
            let calls = |(id, session): (&SessionId, &Session)| Some((*id, session.calls.clone()?));
            bytes = encode_behind(bytes, &self.sessions.iter().filter_map(calls).collect::<Vec<_>>());
        }
        bytes
    }

    fn measured(&self) -> Measured {
        let kept = |(name, resource): (&ResourceName, &Resource)| {
            let gaps = resource.gaps.as_ref()?;
            Some((name.clone(), gaps.leeways().collect()))
        };
        let raised = self.sessions.iter().filter(|(_, session)| session.alarms > 0);
        Measured {
            leeways: self.resources.iter().filter_map(kept).collect(),
            alarms: raised.map(|(id, session)| (*id, session.alarms)).collect(),
            led: self.outages.iter().filter(|outage| outage.led).map(|outage| outage.number).collect(),
        }
    }

    fn places(&self) -> impl Iterator<Item = (&ResourceName, &Holder)> {
        self.resources
            .iter()
            .flat_map(|(name, resource)| resource.holders.iter().map(move |holder| (name, holder)))
    }

    fn later(&self) -> Later {
        let draining = |(name, holder): (&ResourceName, &Holder)| {
            holder.draining.map(|draining| (name.clone(), holder.token, draining))
        };
        let told = |(name, holder): (&ResourceName, &Holder)| {
            let told = holder.offer.as_ref().is_some_and(|offer| offer.told);
            told.then(|| (name.clone(), holder.token))
        };
        Later {
            version: self.version,
            draining: self.places().filter_map(draining).collect(),
            told: self.places().filter_map(told).collect(),
        }
    }

    fn gapped(&self) -> Gapped {
        let heard = self.sessions.iter().filter(|(_, session)| session.heard != Sign::default());
        let readiness = self.places().filter(|(_, holder)| holder.readiness != Readiness::Unsaid);
        let granted = self.places().filter(|(_, holder)| holder.outages > 0);
        let past = |(name, resource): (&ResourceName, &Resource)| -> Vec<_> {
            let known = resource.history.iter().filter(|past| past.outages != (0, 0));
            known.map(|past| (name.clone(), past.token, past.outages)).collect()
        };
        let gaps = self.resources.iter().filter_map(|(name, resource)| Some((name, resource.gaps.as_ref()?)));
        Gapped {
            heard: heard.map(|(id, session)| (*id, session.heard)).collect(),
            readiness: readiness
                .map(|(name, holder)| (name.clone(), holder.token, holder.readiness))
                .collect(),
            granted: granted.map(|(name, holder)| (name.clone(), holder.token, holder.outages)).collect(),
            past: self.resources.iter().flat_map(past).collect(),
            gaps: gaps.map(|(name, gaps)| (name.clone(), (**gaps).clone())).collect(),
            outages: self.outages.clone(),
        }
    }
}

impl LeaseTable {
    /// What the table is now. Takes a look at every session and resource, and copies none.
    pub fn image(&self) -> TableImage {
        TableImage {
            config: self.config.clone(),
            epoch: self.epoch,
            counter: self.counter,
            last_at: self.last_at,
            granting_after: self.granting_after,
            next_place: self.next_place,
            sessions: self.sessions.image(),
            resources: self.resources.image(),
            counters: self.counters,
            alarms: self.alarms.clone(),
            outages: self.outages.clone(),
            version: self.version,
        }
    }

    /// The table as bytes. Equal tables give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.image().encode_behind(Vec::new())
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
            Some((&format @ BEFORE_GAPS..=SNAPSHOT_VERSION, body)) => {
                let (mut table, rest): (Self, _) = postcard::take_from_bytes(body).map_err(damaged)?;
                let (later, mut rest) = postcard::take_from_bytes(rest).map_err(damaged)?;
                table.take_later(later).ok_or_else(contradicts)?;
                if format >= BEFORE_MEASURED {
                    let (gapped, behind) = postcard::take_from_bytes(rest).map_err(damaged)?;
                    table.take_gapped(gapped).ok_or_else(contradicts)?;
                    rest = behind;
                }
                if format >= BEFORE_NUMBERS {
                    let (measured, behind) = postcard::take_from_bytes(rest).map_err(damaged)?;
                    table.take_measured(measured).ok_or_else(contradicts)?;
                    rest = behind;
                }
                if format >= SNAPSHOT_VERSION {
                    let (calls, behind) = postcard::take_from_bytes(rest).map_err(damaged)?;
                    table.take_calls(calls).ok_or_else(contradicts)?;
                    rest = behind;
                }
                // Any other would have been written in another format.
                if !rest.is_empty() || format_of(table.version) != format {
                    return Err(contradicts());
                }
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

    /// The same for what gaps are made from.
    fn take_gapped(&mut self, gapped: Gapped) -> Option<()> {
        for (id, heard) in gapped.heard {
            let outages = if planted(Bug::GapSignNotInSnapshot) { 0 } else { heard.outages };
            self.sessions.get_mut(&id)?.heard = Sign { outages, ..heard };
            (heard.at <= self.last_at).then_some(())?;
        }
        for (name, token, readiness) in gapped.readiness {
            self.resources.get_mut(&name)?.holder_mut(token)?.readiness = readiness;
        }
        for (name, token, outages) in gapped.granted {
            self.resources.get_mut(&name)?.holder_mut(token)?.outages = outages;
        }
        for (name, token, outages) in gapped.past {
            let mut past = self.resources.get_mut(&name)?.history.iter_mut();
            past.find(|past| past.token == token)?.outages = outages;
        }
        for (name, gaps) in gapped.gaps {
            gaps.is_whole(self.last_at, LATEST).then_some(())?;
            self.resources.get_mut(&name)?.gaps = Some(Box::new(gaps));
        }
        self.outages = gapped.outages;
        let in_time = |outage: &Outage| outage.at <= self.last_at;
        let bounded = self.outages.len() <= MAX_OUTAGES && self.outages.iter().all(in_time);
        bounded.then_some(())
    }

    /// The same for what came with the second length of gaps.
    fn take_measured(&mut self, Measured { leeways, alarms, led }: Measured) -> Option<()> {
        for outage in &mut self.outages {
            outage.led = led.contains(&outage.number);
        }
        for (id, alarms) in alarms {
            self.sessions.get_mut(&id)?.alarms = alarms;
        }
        for (name, leeways) in leeways {
            let gaps = self.resources.get_mut(&name)?.gaps.as_mut()?;
            (gaps.leeways_mut().count() == leeways.len()).then_some(())?;
            gaps.leeways_mut().zip(leeways).for_each(|(place, leeway)| *place = leeway);
        }
        Some(())
    }

    /// The same for numbered calls.
    fn take_calls(&mut self, calls: Vec<(SessionId, Box<Calls>)>) -> Option<()> {
        for (id, calls) in calls {
            let session = self.sessions.get_mut(&id).filter(|session| calls.is_whole(session))?;
            session.calls = Some(calls);
        }
        Some(())
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
        Some(())
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
            && resource.holders.iter().all(|holder| holder.since <= self.last_at)
            && resource.holders.iter().all(|holder| good_standing(&holder.standing))
            && resource.holders.iter().all(|holder| holder.draining.is_none_or(|shown| shown.until <= LATEST))
            && resource.holders.iter().all(|holder| self.sessions.contains_key(&holder.session))
            && waiting.all(|waiting| {
                let session = self.sessions.get(&waiting.session);
                session.is_some_and(|session| session.waits.contains_key(&waiting.command))
            })
    }
}
