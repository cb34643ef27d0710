//! Which connection speaks for which session.
//!
//! Kept by the leader alone and lost with its leadership: clients attach again. The table's attach number is the truth; this
//! only says where to send.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::SessionId;

/// Names a connection of this node. Never used twice in the life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

#[derive(Debug, Default)]
pub(crate) struct Routes {
    attached: BTreeMap<SessionId, ConnectionId>,
    /// Sessions that a connection has proven to be its own, by opening them or by their nonce.
    proven: BTreeMap<ConnectionId, BTreeSet<SessionId>>,
}

impl Routes {
    pub(crate) fn prove(&mut self, connection: ConnectionId, session: SessionId) {
        self.proven.entry(connection).or_default().insert(session);
    }

    pub(crate) fn is_proven(&self, connection: ConnectionId, session: SessionId) -> bool {
        self.proven.get(&connection).is_some_and(|sessions| sessions.contains(&session))
    }

    pub(crate) fn attach(&mut self, connection: ConnectionId, session: SessionId) {
        self.attached.insert(session, connection);
        self.prove(connection, session);
    }

    pub(crate) fn attached(&self, session: SessionId) -> Option<ConnectionId> {
        self.attached.get(&session).copied()
    }

    pub(crate) fn disconnect(&mut self, connection: ConnectionId) {
        for session in self.proven.remove(&connection).unwrap_or_default() {
            if self.attached.get(&session) == Some(&connection) {
                self.attached.remove(&session);
            }
        }
    }

    pub(crate) fn end_session(&mut self, session: SessionId) {
        if let Some(connection) = self.attached.remove(&session)
            && let Some(sessions) = self.proven.get_mut(&connection)
        {
            sessions.remove(&session);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.attached.clear();
    }
}
