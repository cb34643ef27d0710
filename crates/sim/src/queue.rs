//! What is to happen, in order of true time; what falls on the same nanosecond happens in the order in which it was planned.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A queue of things to come.
#[derive(Debug)]
pub struct Queue<T> {
    heap: BinaryHeap<Planned<T>>,
    next: u64,
}

#[derive(Debug)]
struct Planned<T> {
    at: u64,
    number: u64,
    what: T,
}

impl<T> Queue<T> {
    /// Nothing is planned.
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), next: 0 }
    }

    /// Plans something.
    pub fn push(&mut self, at: u64, what: T) {
        let number = self.next;
        self.next += 1;
        self.heap.push(Planned { at, number, what });
    }

    /// When the next thing happens.
    pub fn next_at(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |planned| planned.at)
    }

    /// Takes the next thing.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        self.heap.pop().map(|planned| (planned.at, planned.what))
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PartialEq for Planned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && self.number == other.number
    }
}

impl<T> Eq for Planned<T> {}

impl<T> PartialOrd for Planned<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Planned<T> {
    /// The other way round: the heap gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
