//! Requests between members: what a follower has sent to the leader, and whom a leader serves at other members.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{MemberId, Request, RequestId};

use crate::routes::{CALLS, ConnectionId};

/// What a follower has sent to the leader and is not answered.
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    /// To whom, and in which term that one led.
    to: Option<(MemberId, u64)>,
    /// Single calls: answered one by one.
    calls: BTreeMap<RequestId, (Request, Reading)>,
    /// Streams: closed when the leader is lost, whatever was under way on them.
    streams: BTreeSet<ConnectionId>,
    /// Handovers that were asked for: who leads next is the answer.
    transfers: Vec<(RequestId, MemberId)>,
    /// Who has said last that it does not lead, in which term it was thought to, and when.
    turned_away: Option<((MemberId, u64), Reading)>,
}

impl Forwards {
    pub(crate) fn leader(&self) -> Option<(MemberId, u64)> {
        self.to
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.transfers.is_empty()
    }

    pub(crate) fn sent(
        &mut self,
        leader: (MemberId, u64),
        connection: ConnectionId,
        id: RequestId,
        request: &Request,
        since: Reading,
    ) {
        self.to = Some(leader);
        if connection == CALLS {
            self.calls.insert(id, (request.clone(), since));
        } else {
            self.streams.insert(connection);
        }
    }

    /// Whether this connection has sent something to the leader.
    pub(crate) fn has_stream(&self, connection: ConnectionId) -> bool {
        self.streams.contains(&connection)
    }

    pub(crate) fn forget_stream(&mut self, connection: ConnectionId) -> bool {
        self.streams.remove(&connection)
    }

    /// A call is over, and was this; since when its caller waits.
    pub(crate) fn forget_call(&mut self, id: RequestId) -> Option<(Request, Reading)> {
        self.calls.remove(&id)
    }

    /// All calls: their fate is unknown.
    pub(crate) fn take_calls(&mut self) -> BTreeMap<RequestId, (Request, Reading)> {
        std::mem::take(&mut self.calls)
    }

    /// The leader is lost: all streams.
    pub(crate) fn take_streams(&mut self) -> BTreeSet<ConnectionId> {
        self.to = None;
        std::mem::take(&mut self.streams)
    }

    /// A handover was asked for, and the leader that was asked is lost.
    pub(crate) fn watch_transfer(&mut self, id: RequestId, before: MemberId) {
        self.transfers.push((id, before));
    }

    /// Handovers whose callers wait to hear who leads, each with who did before.
    pub(crate) fn take_transfers(&mut self) -> Vec<(RequestId, MemberId)> {
        std::mem::take(&mut self.transfers)
    }

    /// Whoever was thought to lead has said that it does not.
    pub(crate) fn turned_away(&mut self, now: Reading) {
        self.turned_away = self.to.map(|by| (by, now));
    }

    /// Who has last said so, and when.
    pub(crate) fn last_turned_away(&self) -> Option<((MemberId, u64), Reading)> {
        self.turned_away
    }

    /// The calls under way.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.calls.iter().map(|(id, (request, _))| (*id, request))
    }
}

/// Connections of clients at other members, each with a connection of its own here.
#[derive(Debug)]
pub(crate) struct Visitors {
    by_origin: BTreeMap<(MemberId, ConnectionId), ConnectionId>,
    by_local: BTreeMap<ConnectionId, (MemberId, ConnectionId)>,
    next: u64,
}

/// The ids of visitors begin here; those of the node's own connections count from below and never come this far.
const FIRST: u64 = 1 << 63;

impl Default for Visitors {
    fn default() -> Self {
        Self { by_origin: BTreeMap::new(), by_local: BTreeMap::new(), next: FIRST }
    }
}

impl Visitors {
    /// Whether a connection is one of a client at another member.
    pub(crate) const fn is_visitor(connection: ConnectionId) -> bool {
        connection.0 >= FIRST
    }

    /// Whether a connection is the one that all single calls of a node share, here or at another member.
    pub(crate) fn is_calls(&self, connection: ConnectionId) -> bool {
        connection == CALLS || self.origin(connection).is_some_and(|(_, theirs)| theirs == CALLS)
    }

    /// The connection here, made if there is none yet.
    pub(crate) fn enter(&mut self, from: MemberId, connection: ConnectionId) -> ConnectionId {
        *self.by_origin.entry((from, connection)).or_insert_with(|| {
            let local = ConnectionId(self.next);
            self.next += 1;
            self.by_local.insert(local, (from, connection));
            local
        })
    }

    pub(crate) fn local(&self, from: MemberId, connection: ConnectionId) -> Option<ConnectionId> {
        self.by_origin.get(&(from, connection)).copied()
    }

    pub(crate) fn origin(&self, local: ConnectionId) -> Option<(MemberId, ConnectionId)> {
        self.by_local.get(&local).copied()
    }

    pub(crate) fn leave(&mut self, from: MemberId, connection: ConnectionId) -> Option<ConnectionId> {
        let local = self.by_origin.remove(&(from, connection))?;
        self.by_local.remove(&local);
        Some(local)
    }

    /// All connections of clients at a member that cannot be reached any more: there, and here.
    pub(crate) fn leave_all(&mut self, from: MemberId) -> Vec<(ConnectionId, ConnectionId)> {
        let gone: Vec<_> = self.by_origin.keys().filter(|(member, _)| *member == from).copied().collect();
        gone.into_iter().filter_map(|(from, theirs)| Some((theirs, self.leave(from, theirs)?))).collect()
    }

    /// All connections: whoever does not lead serves nobody elsewhere.
    pub(crate) fn clear(&mut self) {
        self.by_origin.clear();
        self.by_local.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_come_and_go_and_no_id_is_used_twice() {
        let mut visitors = Visitors::default();
        let (one, two) = (MemberId(1), MemberId(2));
        let first = visitors.enter(one, ConnectionId(5));
        assert_eq!(visitors.enter(one, ConnectionId(5)), first);
        let other = visitors.enter(two, ConnectionId(5));
        assert_ne!(first, other);
        assert!(Visitors::is_visitor(first) && !Visitors::is_visitor(ConnectionId(5)));
        assert_eq!(visitors.origin(other), Some((two, ConnectionId(5))));
        assert_eq!(visitors.leave_all(one), [(ConnectionId(5), first)]);
        assert_eq!(visitors.origin(first), None);
        assert_ne!(visitors.enter(one, ConnectionId(5)), first);
        assert_eq!(visitors.leave(two, ConnectionId(5)), Some(other));
        assert_eq!(visitors.leave(two, ConnectionId(5)), None);
    }
}
