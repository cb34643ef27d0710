//! Which sessions have something to do: those that something happened to, and those whose time has come.
//!
//! A driver may have very many sessions, and most of them want nothing at most times. Only those named here are polled.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::holder::Reading;

use super::Key;
use super::counted::CountedMap;

/// Sessions to be polled now, and points in time at which others are. A point is reached as soon as one of the clocks has reached it, so
/// there is an order for each.
///
/// Every command moves the point of its session to the time at which its answer would be late, and every answer back to the next renewal.
/// So a point that becomes later is only noted: its place in the orders is changed when it is reached.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Keys may be there twice.
    now: Vec<Key>,
    at: CountedMap<Key, Alarm>,
    by_boot: BTreeSet<(u64, Key)>,
    by_raw: BTreeSet<(u64, Key)>,
}

#[derive(Debug, Clone, Copy)]
struct Alarm {
    point: Reading,
    /// Where it stands in the orders: not behind the point.
    place: Reading,
    /// Whether the point was reached and no other was named since.
    rang: bool,
}

impl Due {
    /// Something happened to this session.
    pub(super) fn touch(&mut self, key: Key) {
        if self.now.last() != Some(&key) {
            self.now.push(key);
        }
    }

    /// If nothing happens before, this session has something to do at that point, and at none that was named earlier.
    pub(super) fn set(&mut self, key: Key, point: Option<Reading>) {
        let Some(point) = point else { return self.unset(key) };
        if let Some(alarm) = self.at.get_mut(&key)
            && !alarm.rang
            && alarm.place.boot <= point.boot
            && alarm.place.raw <= point.raw
        {
            alarm.point = point;
            return;
        }
        self.put(key, point);
    }

    /// This session is over.
    pub(super) fn forget(&mut self, key: Key) {
        self.unset(key);
        self.now.retain(|touched| *touched != key);
    }

    fn put(&mut self, key: Key, point: Reading) {
        if let Some(before) = self.at.insert(key, Alarm { point, place: point, rang: false }) {
            self.by_boot.remove(&(before.place.boot, key));
            self.by_raw.remove(&(before.place.raw, key));
        }
        self.by_boot.insert((point.boot, key));
        self.by_raw.insert((point.raw, key));
    }

    fn unset(&mut self, key: Key) {
        if let Some(alarm) = self.at.remove(&key) {
            self.by_boot.remove(&(alarm.place.boot, key));
            self.by_raw.remove(&(alarm.place.raw, key));
        }
    }

    /// Everything that is to be polled, in the order of keys. Whoever polls says when the next time is.
    pub(super) fn take(&mut self, now: Reading) -> Vec<Key> {
        let mut due = std::mem::take(&mut self.now);
        let touched = due.len();
        due.extend(self.by_boot.iter().take_while(|(boot, _)| *boot <= now.boot).map(|(_, key)| *key));
        due.extend(self.by_raw.iter().take_while(|(raw, _)| *raw <= now.raw).map(|(_, key)| *key));
        for at in (touched..due.len()).rev() {
            if !self.rings(due[at], now) {
                due.swap_remove(at);
            }
        }
        due.sort_unstable();
        due.dedup();
        due
    }

    /// Whether the point of a session whose place was reached is reached too; else it gets its right place.
    fn rings(&mut self, key: Key, now: Reading) -> bool {
        let Some(alarm) = self.at.get_mut(&key) else { return false };
        let point = alarm.point;
        if now.has_reached(point) {
            alarm.rang = true;
            return true;
        }
        if alarm.place != point {
            self.put(key, point);
        }
        false
    }

    /// How long until something may have to be polled.
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

    #[test]
    fn a_point_that_becomes_later_is_not_reached_at_the_earlier_one_nor_lost() {
        let mut due = Due::default();
        due.set(Key(1), Some(at(10, 10)));
        due.set(Key(1), Some(at(30, 30)));
        assert!(taken(&mut due, at(10, 10)).is_empty());
        assert_eq!(due.left(at(10, 10)), Some(Duration::from_nanos(20)));
        due.set(Key(1), Some(at(20, 40)));
        assert!(taken(&mut due, at(19, 19)).is_empty());
        assert_eq!(taken(&mut due, at(20, 20)), [1]);
    }
}
