//! How far a watch has come: what is told to the application once, and what a new connection is asked for.

use leasehold_core::Revision;
use leasehold_core::protocol::Changes;

/// The place of a watch in the log, across connections.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// Everything up to here was told.
    last: Option<Revision>,
    /// Whether the application knows that the watch has begun.
    announced: bool,
    /// Whether the service has said on the present connection where it begins.
    begun: bool,
    /// Parts of one revision that came in before the last of them.
    parts: Option<Changes>,
}

/// A part of another revision came before a revision was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("changes of revision {came} came before those of revision {open} were complete")]
pub(super) struct Interrupted {
    open: Revision,
    came: Revision,
}

impl Position {
    pub(super) fn new(after: Option<Revision>) -> Self {
        Self { last: after, ..Self::default() }
    }

    /// What the next connection is asked for. An unfinished revision is sent again from its beginning.
    pub(super) fn connect(&mut self) -> Option<Revision> {
        self.begun = false;
        self.parts = None;
        self.last
    }

    /// Whether the present connection watches.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Takes what came in, and gives what is to be told: whole revisions, each once, in their order.
    pub(super) fn take(&mut self, came: Changes, more: bool) -> Result<Option<Changes>, Interrupted> {
        if !self.begun {
            self.begun = true;
            if came.changes.is_empty() {
                return Ok(self.begin(came.revision));
            }
        }
        if self.last.is_some_and(|last| came.revision <= last) {
            return Ok(None);
        }
        let whole = match self.parts.take() {
            None => came,
            Some(open) if open.revision != came.revision => {
                return Err(Interrupted { open: open.revision, came: came.revision });
            }
            Some(mut open) => {
                open.changes.extend(came.changes);
                open
            }
        };
        if more {
            self.parts = Some(whole);
            return Ok(None);
        }
        self.last = Some(whole.revision);
        self.announced = true;
        Ok(Some(whole))
    }

    /// Where the service begins matters only to a watch that did not say where: one that did has its own place, and what the
    /// service has after it is still to come.
    fn begin(&mut self, revision: Revision) -> Option<Changes> {
        let revision = *self.last.get_or_insert(revision);
        let first = !self.announced;
        self.announced = true;
        first.then(|| Changes { revision, changes: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::protocol::Change;
    use leasehold_core::{RegisterKey, ResourceName, Token};

    fn batch(revision: u64, tokens: &[u64]) -> Changes {
        let change = |token: &u64| Change::RegisterWritten {
            resource: ResourceName::new("job").unwrap(),
            key: RegisterKey::new("cursor").unwrap(),
            token: Token::from_u64(*token),
            removed: false,
        };
        Changes { revision: Revision::new(revision), changes: tokens.iter().map(change).collect() }
    }

    fn told(position: &mut Position, came: Changes, more: bool) -> Option<Changes> {
        position.take(came, more).unwrap()
    }

    #[test]
    fn a_watch_from_now_on_begins_where_the_service_says() {
        let mut position = Position::new(None);
        assert_eq!(position.connect(), None);
        assert_eq!(told(&mut position, batch(7, &[]), false), Some(batch(7, &[])));
        assert_eq!(told(&mut position, batch(8, &[1]), false), Some(batch(8, &[1])));
        assert_eq!(position.connect(), Some(Revision::new(8)));
    }

    /// A service that named its newest revision there must not make the watch skip what lies before it.
    #[test]
    fn a_watch_after_a_revision_begins_there_whatever_the_service_says() {
        let mut position = Position::new(Some(Revision::new(3)));
        assert_eq!(position.connect(), Some(Revision::new(3)));
        assert_eq!(told(&mut position, batch(9, &[]), false), Some(batch(3, &[])));
        assert_eq!(told(&mut position, batch(4, &[1]), false), Some(batch(4, &[1])));
    }

    #[test]
    fn the_beginning_is_told_once_across_connections() {
        let mut position = Position::new(None);
        position.connect();
        assert!(told(&mut position, batch(7, &[]), false).is_some());
        position.connect();
        assert!(!position.has_begun());
        assert_eq!(told(&mut position, batch(7, &[]), false), None);
        assert!(position.has_begun());
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let mut position = Position::new(Some(Revision::new(5)));
        position.connect();
        told(&mut position, batch(5, &[]), false);
        for old in [4, 5] {
            assert_eq!(told(&mut position, batch(old, &[1]), false), None);
        }
        assert_eq!(told(&mut position, batch(6, &[1]), false), Some(batch(6, &[1])));
        assert_eq!(told(&mut position, batch(6, &[1]), false), None);
    }

    #[test]
    fn progress_moves_the_place_to_resume_from() {
        let mut position = Position::new(Some(Revision::new(5)));
        position.connect();
        told(&mut position, batch(5, &[]), false);
        assert_eq!(told(&mut position, batch(40, &[]), false), Some(batch(40, &[])));
        assert_eq!(position.connect(), Some(Revision::new(40)));
    }

    #[test]
    fn parts_of_a_revision_are_told_together() {
        let mut position = Position::new(Some(Revision::new(5)));
        position.connect();
        told(&mut position, batch(5, &[]), false);
        assert_eq!(told(&mut position, batch(6, &[1, 2]), true), None);
        assert_eq!(told(&mut position, batch(6, &[3]), true), None);
        assert_eq!(told(&mut position, batch(6, &[4]), false), Some(batch(6, &[1, 2, 3, 4])));
    }

    #[test]
    fn half_a_revision_is_forgotten_with_its_connection() {
        let mut position = Position::new(Some(Revision::new(5)));
        position.connect();
        told(&mut position, batch(5, &[]), false);
        told(&mut position, batch(6, &[1]), true);
        assert_eq!(position.connect(), Some(Revision::new(5)));
        told(&mut position, batch(5, &[]), false);
        assert_eq!(told(&mut position, batch(6, &[1, 2]), false), Some(batch(6, &[1, 2])));
    }

    #[test]
    fn a_revision_in_the_middle_of_another_is_not_taken() {
        let mut position = Position::new(Some(Revision::new(5)));
        position.connect();
        told(&mut position, batch(5, &[]), false);
        told(&mut position, batch(6, &[1]), true);
        let error = position.take(batch(7, &[1]), false).unwrap_err();
        assert_eq!(error.to_string(), "changes of revision 7 came before those of revision 6 were complete");
    }
}
