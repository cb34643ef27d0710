//! Which sessions have something to do: those that something happened to, and those whose time has come.
//!
//! A driver may have very many sessions, and most of them want nothing at most times. Only those named here are polled.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use leasehold_core::holder::Reading;

use super::Key;

/// Sessions to be polled now, and points in time at which others are. A point is reached as soon as one of the clocks has reached it, so
/// there is an order for each.
#[derive(Debug, Default)]
pub(super) struct Due {
    now: BTreeSet<Key>,
    at: HashMap<Key, Reading>,
    by_boot: BTreeSet<(u64, Key)>,
    by_raw: BTreeSet<(u64, Key)>,
}

impl Due {
    /// Something happened to this session.
    pub(super) fn touch(&mut self, key: Key) {
        self.now.insert(key);
    }

    /// If nothing happens before, this session has something to do at that point, and at none that was named earlier.
    pub(super) fn set(&mut self, key: Key, point: Option<Reading>) {
        self.unset(key);
        if let Some(point) = point {
            self.at.insert(key, point);
            self.by_boot.insert((point.boot, key));
            self.by_raw.insert((point.raw, key));
        }
    }

    /// This session is over.
    pub(super) fn forget(&mut self, key: Key) {
        self.unset(key);
        self.now.remove(&key);
    }

    fn unset(&mut self, key: Key) {
        if let Some(point) = self.at.remove(&key) {
            self.by_boot.remove(&(point.boot, key));
            self.by_raw.remove(&(point.raw, key));
        }
    }

    /// Everything that is to be polled, in the order of keys. Whoever polls says when the next time is.
    pub(super) fn take(&mut self, now: Reading) -> BTreeSet<Key> {
        let mut due = std::mem::take(&mut self.now);
        due.extend(self.by_boot.iter().take_while(|(boot, _)| *boot <= now.boot).map(|(_, key)| *key));
        due.extend(self.by_raw.iter().take_while(|(raw, _)| *raw <= now.raw).map(|(_, key)| *key));
        due
    }

    /// How long until something is to be polled.
    pub(super) fn left(&self, now: Reading) -> Option<Duration> {
        if !self.now.is_empty() {
            return Some(Duration::ZERO);
        }
        let boot = self.by_boot.first().map(|(boot, _)| boot.saturating_sub(now.boot));
        let raw = self.by_raw.first().map(|(raw, _)| raw.saturating_sub(now.raw));
        boot.into_iter().chain(raw).min().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(boot: u64, raw: u64) -> Reading {
        Reading { boot, raw }
    }

    fn taken(due: &mut Due, now: Reading) -> Vec<u64> {
        due.take(now).into_iter().map(|key| key.0).collect()
    }

    #[test]
    fn a_point_is_reached_by_either_clock_and_a_later_word_replaces_it() {
        let mut due = Due::default();
        due.set(Key(1), Some(at(100, 10)));
        due.set(Key(2), Some(at(50, 60)));
        assert_eq!(due.left(at(40, 5)), Some(Duration::from_nanos(5)));
        assert!(taken(&mut due, at(49, 9)).is_empty());
        assert_eq!(taken(&mut due, at(50, 9)), [2]);
        assert_eq!(taken(&mut due, at(50, 10)), [1, 2]);
        due.set(Key(2), Some(at(200, 200)));
        due.set(Key(1), None);
        assert!(taken(&mut due, at(199, 199)).is_empty());
        assert_eq!(due.left(at(199, 150)), Some(Duration::from_nanos(1)));
    }

    #[test]
    fn what_was_touched_is_due_once_and_what_is_over_never() {
        let mut due = Due::default();
        due.touch(Key(3));
        due.touch(Key(3));
        assert_eq!(due.left(at(0, 0)), Some(Duration::ZERO));
        assert_eq!(taken(&mut due, at(0, 0)), [3]);
        assert!(taken(&mut due, at(0, 0)).is_empty());
        due.touch(Key(3));
        due.set(Key(3), Some(at(0, 0)));
        due.forget(Key(3));
        assert_eq!((taken(&mut due, at(9, 9)), due.left(at(9, 9))), (vec![], None));
    }
}
