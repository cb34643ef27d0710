//! What is to happen, in order of true time; what falls on the same nanosecond happens in the order in which it was planned.

use std::collections::BTreeMap;

/// A queue of things to come.
#[derive(Debug)]
pub struct Queue<T> {
    /// By the time at which they happen, and the order in which they were planned.
    planned: BTreeMap<(u64, u64), T>,
    next: u64,
}

impl<T> Queue<T> {
    /// Plans something.
    pub fn push(&mut self, at: u64, what: T) {
        self.planned.insert((at, self.next), what);
        self.next += 1;
    }

    /// When the next thing happens.
    pub fn next_at(&self) -> u64 {
        self.planned.first_key_value().map_or(u64::MAX, |((at, _), _)| *at)
    }

    /// Takes the next thing.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        self.planned.pop_first().map(|((at, _), what)| (at, what))
    }
}

impl<T> Default for Queue<T> {
    /// Nothing is planned.
    fn default() -> Self {
        Self { planned: BTreeMap::new(), next: 0 }
    }
}
