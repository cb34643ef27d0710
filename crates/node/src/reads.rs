//! Reads: linearizable by a quorum check that all reads in flight share; no disk write.

use std::collections::VecDeque;
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{
    GapsOf, GapsView, MAX_PAGE, Query, ReadAnswer, Request, RequestId, TokenCheck,
};
use leasehold_core::table::PastView;
use leasehold_core::{LeaseTable, LogTime, Millis, ResourceName};

use crate::routes::ConnectionId;

/// Names in one page of gaps: each may have tens of gaps of tens of parts.
const MAX_GAPS_PAGE: usize = 100;
/// Bytes of values in one page of a listing at most, so that a page fits a frame.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// Reads that may be under way at once: each costs memory until it is answered.
pub(crate) const MAX_READS: usize = 4_096;
/// Requests that name a session this node has not heard of and wait for a quorum at once: there are hardly any but right behind an
/// election, each may have a long value, and anybody can send them.
pub(crate) const MAX_UNHEARD: usize = 256;
/// Listings answered in one turn at most: a page takes a millisecond or more, and renewals wait for the turn to end.
pub(crate) const MAX_PAGES_PER_TURN: usize = 1;

/// After so long the question how far the leader is, or its answer, counts as lost.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// Something that may be answered once it is certain that this node still leads.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) connection: ConnectionId,
    pub(crate) id: RequestId,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Query(Query),
    /// It names a session that this node has not heard of. Whoever leads without knowing that another does has not heard of the newest,
    /// and must not say that there are none.
    Unheard(Box<Request>),
}

/// Reads on their way: not asked for yet, asked for under a context, and those that wait for an index to be applied.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) new: Vec<Read>,
    pub(crate) asked: VecDeque<(Vec<u8>, Vec<Read>)>,
    pub(crate) confirmed: VecDeque<(u64, Vec<Read>)>,
    counter: u64,
    position: Position,
}

/// How far the leader is: asked for, and known.
#[derive(Debug, Default)]
struct Position {
    asked: Option<(Vec<u8>, Reading)>,
    known: Option<u64>,
}

impl Reads {
    pub(crate) fn push(&mut self, read: Read) {
        self.new.push(read);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.asked.is_empty() && self.confirmed.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        let asked = self.asked.iter().map(|(_, reads)| reads.len()).sum::<usize>();
        let confirmed = self.confirmed.iter().map(|(_, reads)| reads.len()).sum::<usize>();
        self.new.len() + asked + confirmed >= MAX_READS
    }

    /// Whether no more may wait that name a session which nobody here has heard of.
    pub(crate) fn is_full_of_unheard(&self) -> bool {
        self.is_full() || self.all().filter(|read| read.is_unheard()).count() >= MAX_UNHEARD
    }

    /// Whether something of this connection waits that names a session which nobody here has heard of.
    pub(crate) fn has_unheard(&self, connection: ConnectionId) -> bool {
        self.all().any(|read| read.connection == connection && read.is_unheard())
    }

    /// Nobody waits any more for what this connection asked for; with an id, for that alone.
    pub(crate) fn forget(&mut self, connection: ConnectionId, id: Option<RequestId>) {
        let is_wanted = |read: &Read| read.connection != connection || id.is_some_and(|id| read.id != id);
        self.new.retain(is_wanted);
        self.asked.iter_mut().for_each(|(_, reads)| reads.retain(is_wanted));
        self.confirmed.iter_mut().for_each(|(_, reads)| reads.retain(is_wanted));
    }

    fn all(&self) -> impl Iterator<Item = &Read> {
        let asked = self.asked.iter().flat_map(|(_, reads)| reads);
        let confirmed = self.confirmed.iter().flat_map(|(_, reads)| reads);
        self.new.iter().chain(asked).chain(confirmed)
    }

    /// These may be answered in a later turn: what was true then is true enough for them, and newer.
    pub(crate) fn postpone(&mut self, reads: Vec<Read>) {
        if !reads.is_empty() {
            self.confirmed.push_front((0, reads));
        }
    }

    /// Whether some could be answered in the next turn without anything happening before.
    pub(crate) fn has_due(&self, applied: u64) -> bool {
        self.confirmed.iter().any(|(index, _)| *index <= applied)
    }

    /// Gathers all new reads under one context that no other check of any node or term has.
    pub(crate) fn ask(&mut self, node: u64, term: u64) -> Option<Vec<u8>> {
        if self.new.is_empty() {
            return None;
        }
        let context = self.context(node, term);
        self.asked.push_back((context.clone(), std::mem::take(&mut self.new)));
        Some(context)
    }

    /// A context that no other check of any node or term has.
    fn context(&mut self, node: u64, term: u64) -> Vec<u8> {
        self.counter += u64::from(!planted(Bug::ReadContextReused));
        [node, term, self.counter].iter().flat_map(|part| part.to_be_bytes()).collect()
    }

    /// A context to ask the leader how far it is, unless it was asked just now. Questions are lost in silence.
    pub(crate) fn ask_position(&mut self, node: u64, term: u64, now: Reading) -> Option<Vec<u8>> {
        let waits = |(_, at): &(Vec<u8>, Reading)| now.since(*at).smaller() < ASK_AGAIN;
        if self.position.asked.as_ref().is_some_and(waits) {
            return None;
        }
        let context = self.context(node, term);
        self.position.asked = Some((context.clone(), now));
        Some(context)
    }

    /// How far the leader was when it was asked.
    pub(crate) const fn position(&self) -> Option<u64> {
        self.position.known
    }

    pub(crate) fn forget_position(&mut self) {
        self.position = Position::default();
    }

    /// The quorum has confirmed a context: its reads may be answered once `index` is applied.
    pub(crate) fn confirm(&mut self, context: &[u8], index: u64) {
        if self.position.asked.as_ref().is_some_and(|(asked, _)| asked == context) {
            self.position.known = Some(index);
        }
        while let Some(position) = self.asked.iter().position(|(asked, _)| asked == context) {
            let (_, reads) = self.asked.remove(position).expect("the position was just found");
            self.confirmed.push_back((index, reads));
        }
    }

    /// Reads that may be answered now.
    pub(crate) fn due(&mut self, applied: u64) -> Vec<Read> {
        let (due, later): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.confirmed).into_iter().partition(|(index, _)| *index <= applied);
        self.confirmed = later;
        due.into_iter().flat_map(|(_, reads)| reads).collect()
    }

    /// Checks under way vanish silently when the role changes: these must be asked for again, here or elsewhere.
    pub(crate) fn take_unconfirmed(&mut self) -> Vec<Read> {
        let asked = self.asked.drain(..).flat_map(|(_, reads)| reads);
        let mut unconfirmed: Vec<Read> = asked.collect();
        unconfirmed.append(&mut self.new);
        unconfirmed
    }
}

impl Read {
    const fn is_unheard(&self) -> bool {
        matches!(self.what, What::Unheard(_))
    }

    /// Whether its answer may be large.
    pub(crate) const fn is_listing(&self) -> bool {
        matches!(&self.what, What::Query(query) if query.is_listing())
    }
}

/// Answers a question from the table. `now` is only for how long ago something was: nothing is judged by it. What asks for the node or its cluster is the node's own to answer.
pub(crate) fn answer(table: &LeaseTable, query: &Query, now: LogTime) -> Option<ReadAnswer> {
    Some(match query {
        Query::Lease(name) => ReadAnswer::Lease(table.lease(name).map(Box::new)),
        Query::Leases { prefix, after, limit } => {
            let limit = (*limit).min(MAX_PAGE);
            let mut bytes = 0;
            let mut leases = Vec::new();
            let mut more = false;
            for lease in table.leases(prefix, after.as_ref(), limit.saturating_add(1)) {
                let size = lease
                    .holders
                    .iter()
                    .map(|h| 256 + h.value.as_ref().map_or(0, |value| value.as_bytes().len()))
                    .sum::<usize>()
                    + 256 * (lease.queue.len() + 2);
                if leases.len() == limit || (bytes + size > MAX_PAGE_BYTES && !leases.is_empty()) {
                    more = true;
                    break;
                }
                bytes += size;
                leases.push(lease);
            }
            ReadAnswer::Leases { leases, more }
        }
        Query::Sessions { after, limit } => {
            let limit = (*limit).min(MAX_PAGE);
            let mut sessions: Vec<_> = table.sessions(*after, limit.saturating_add(1)).collect();
            let more = sessions.len() > limit;
            sessions.truncate(limit);
            ReadAnswer::Sessions { sessions, more }
        }
        Query::History(name) => ReadAnswer::History(history(table, name, now)),
        Query::Check { resource, token } => ReadAnswer::Check(match table.check(resource, *token) {
            Ok(()) => TokenCheck::Current,
            Err(Some(how)) => TokenCheck::Ended(how),
            Err(None) if table.is_ahead(*token) => TokenCheck::Ahead { newest: table.newest() },
            Err(None) => TokenCheck::NotKnown,
        }),
        Query::Register { resource, key } => {
            ReadAnswer::Register(table.register(resource, key).map(|(value, token)| (value.clone(), token)))
        }
        Query::Alarms => ReadAnswer::Alarms(table.alarms().collect()),
        Query::Gaps { of, last } => ReadAnswer::Gaps(gaps(table, of, *last, now)),
        Query::Status | Query::Cluster => return None,
    })
}

/// The past grows older while nobody uses the table and nothing is put into the log.
fn history(table: &LeaseTable, name: &ResourceName, now: LogTime) -> Vec<PastView> {
    let idle = now.since(table.last_at());
    let mut past = table.history(name);
    past.iter_mut().for_each(|past| past.ended_ago = past.ended_ago.saturating_add(idle));
    past
}

fn gaps(table: &LeaseTable, of: &GapsOf, last: Option<Millis>, now: LogTime) -> GapsView {
    let (names, next) = match of {
        GapsOf::Name(name) => (table.gaps(name, last, now).into_iter().collect(), None),
        GapsOf::Page { prefix, after, limit } => {
            table.gaps_page(prefix, after.as_ref(), last, (*limit).min(MAX_GAPS_PAGE), now)
        }
    };
    let is_recent =
        |outage: &leasehold_core::gap::OutageView| last.is_none_or(|last| outage.ended_ago <= last);
    GapsView { names, next, outages: table.outages(now).into_iter().filter(is_recent).collect() }
}
