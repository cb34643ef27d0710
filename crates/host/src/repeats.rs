//! What would be logged again and again: said once, and then now and then with how often it was.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use leasehold_core::holder::Reading;

/// Between two lines about the same.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// Different things that are remembered: beyond it everything is forgotten and said anew.
const MAX_KINDS: usize = 256;

/// Counts what was not said, by what it is about.
#[derive(Debug)]
pub struct Repeats<K>(Mutex<HashMap<K, Said>>);

#[derive(Debug)]
struct Said {
    at: Reading,
    kept_back: u64,
}

impl<K> Default for Repeats<K> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Hash + Eq> Repeats<K> {
    /// Whether it is to be said now: with how often it was kept back since it was said last.
    pub fn say(&self, what: K, now: Reading) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(said) = kinds.get_mut(&what) {
            if now.since(said.at).greater() < SAY_EVERY {
                said.kept_back += 1;
                return None;
            }
            said.at = now;
            return Some(std::mem::take(&mut said.kept_back));
        }
        if kinds.len() >= MAX_KINDS {
            kinds.clear();
        }
        kinds.insert(what, Said { at: now, kept_back: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Reading {
        let nanos = seconds * 1_000_000_000;
        Reading { boot: nanos, raw: nanos }
    }

    #[test]
    fn the_first_is_said_and_the_rest_is_counted() {
        let repeats = Repeats::default();
        assert_eq!(repeats.say("a", at(0)), Some(0));
        assert_eq!((repeats.say("a", at(1)), repeats.say("a", at(59))), (None, None));
        assert_eq!(repeats.say("b", at(59)), Some(0));
        assert_eq!(repeats.say("a", at(60)), Some(2));
        assert_eq!(repeats.say("a", at(61)), None);
        assert_eq!(repeats.say("a", at(500)), Some(1));
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let repeats = Repeats::default();
        for kind in 0..10 * MAX_KINDS {
            assert_eq!(repeats.say(kind, at(0)), Some(0));
        }
        assert!(repeats.0.lock().unwrap().len() <= MAX_KINDS);
    }
}
