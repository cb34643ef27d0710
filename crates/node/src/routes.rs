//! Which connection speaks for which session.
//!
//! Kept by the leader alone and lost with its leadership: clients attach again. The table's attach number is the truth; this
//! only says where to send.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use leasehold_core::SessionId;

/// Names a connection of this node. Never used twice in the life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The connection that all single requests of a node share. Each proves by itself for which session it speaks.
pub const CALLS: ConnectionId = ConnectionId(0);

/// Mixes the bits of a session's id, which the table draws one after the other: nobody chooses ids that mix alike.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = (self.0.rotate_left(29) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Looked up for every request and every answer, and never iterated over.
    attached: HashMap<SessionId, ConnectionId, BuildHasherDefault<Mixed>>,
    /// Sessions that a connection has proven to be its own, by opening them or by their nonce.
    proven: BTreeMap<ConnectionId, BTreeSet<SessionId>>,
    /// The same the other way round, so that a session takes its proofs with it: a connection may outlive very many.
    provers: BTreeMap<SessionId, BTreeSet<ConnectionId>>,
}

impl Routes {
    pub(crate) fn prove(&mut self, connection: ConnectionId, session: SessionId) {
        self.proven.entry(connection).or_default().insert(session);
        self.provers.entry(session).or_default().insert(connection);
    }

    pub(crate) fn is_proven(&self, connection: ConnectionId, session: SessionId) -> bool {
        // Whoever is attached has proven it.
        self.attached(session) == Some(connection)
            || self.proven.get(&connection).is_some_and(|sessions| sessions.contains(&session))
    }

    pub(crate) fn attach(&mut self, connection: ConnectionId, session: SessionId) {
        self.attached.insert(session, connection);
        self.prove(connection, session);
    }

    pub(crate) fn attached(&self, session: SessionId) -> Option<ConnectionId> {
        self.attached.get(&session).copied()
    }

    /// The sessions that speak through this connection.
    pub(crate) fn attached_through(&self, connection: ConnectionId) -> impl Iterator<Item = SessionId> {
        let proven = self.proven.get(&connection).into_iter().flatten().copied();
        proven.filter(move |session| self.attached.get(session) == Some(&connection))
    }

    pub(crate) fn disconnect(&mut self, connection: ConnectionId) {
        for session in self.proven.remove(&connection).unwrap_or_default() {
            if self.attached.get(&session) == Some(&connection) {
                self.attached.remove(&session);
            }
            remove(&mut self.provers, &session, &connection);
        }
    }

    pub(crate) fn end_session(&mut self, session: SessionId) {
        self.attached.remove(&session);
        for connection in self.provers.remove(&session).unwrap_or_default() {
            remove(&mut self.proven, &connection, &session);
        }
    }

    /// Forgets everything, and names the connections that had proven a session.
    pub(crate) fn clear(&mut self) -> Vec<ConnectionId> {
        self.attached.clear();
        self.provers.clear();
        std::mem::take(&mut self.proven).into_keys().collect()
    }
}

/// Takes `value` out of the set of `key`, and the set away with its last value.
fn remove<K: Ord, V: Ord>(sets: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_of_sessions_that_ended_and_connections_that_are_gone() {
        let mut routes = Routes::default();
        for number in 1..=10 {
            let (connection, session) = (ConnectionId(number % 3), SessionId::from_u64(number));
            routes.prove(connection, session);
            if number % 2 == 0 {
                routes.attach(connection, session);
            }
        }
        for number in 1..=5 {
            routes.end_session(SessionId::from_u64(number));
            assert!(!routes.is_proven(ConnectionId(number % 3), SessionId::from_u64(number)));
        }
        assert!(routes.is_proven(ConnectionId(0), SessionId::from_u64(6)));
        for connection in 0..3 {
            routes.disconnect(ConnectionId(connection));
        }
        assert!(routes.attached.is_empty() && routes.proven.is_empty() && routes.provers.is_empty());
    }
}
