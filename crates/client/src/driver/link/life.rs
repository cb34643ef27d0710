//! Which life of a service's state this process knows.
//!
//! A cluster that was restored or recovered names another incarnation, and a greater epoch: its tokens are greater than all before, and
//! its sessions have begun anew. One with another incarnation and the same or a smaller epoch is an old copy, or another cluster behind a
//! known address: its tokens may be those of others, so nobody speaks with it. What it does not do: it authenticates nobody, and a
//! process that begins anew knows nothing of before.

use std::sync::{Arc, Mutex, PoisonError};

use leasehold_wire::Hello;

use crate::error::Unreachable;

/// One life of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Life {
    incarnation: String,
    epoch: u32,
}

/// The latest one that was met. Clones share it: a store and its watches know the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lives(Arc<Mutex<Option<Life>>>);

impl Lives {
    /// What a hello says of it; nothing if it is not known.
    pub(super) fn known(&self) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|life| life.incarnation.clone()).unwrap_or_default()
    }

    /// How often it was restored, if one was met.
    pub(super) fn epoch(&self) -> Option<u32> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|life| life.epoch)
    }

    /// Judges who is met at a place, and knows it from then on.
    ///
    /// # Errors
    /// When it is another life than the one that is known, and not a later one.
    pub(super) fn meet(&self, place: &str, hello: &Hello) -> Result<(), Unreachable> {
        // A node that is part of nothing yet has no state, and speaks for none.
        if hello.incarnation.is_empty() {
            return Ok(());
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref()
            && known.incarnation != hello.incarnation
            && known.epoch >= hello.epoch
        {
            return Err(other_life(place, known, hello));
        }
        *known = Some(Life { incarnation: hello.incarnation.clone(), epoch: hello.epoch });
        Ok(())
    }

    /// Judges who is met at a place that only the service named. Another cluster may live there by now, with any epoch, so nothing but
    /// the life that is known counts: a later one is met at an address of the list.
    ///
    /// # Errors
    /// When it is any other life.
    pub(super) fn meet_known(&self, place: &str, hello: &Hello) -> Result<(), Unreachable> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.as_ref() {
            Some(known) if !hello.incarnation.is_empty() && known.incarnation != hello.incarnation => {
                Err(other_life(place, known, hello))
            }
            _ => Ok(()),
        }
    }

    /// Whether somebody who was met before speaks for the life that is known by now, or for none.
    pub(super) fn is_current(&self, hello: &Hello) -> bool {
        self.meet_known("", hello).is_ok()
    }
}

fn other_life(place: &str, known: &Life, hello: &Hello) -> Unreachable {
    Unreachable::OtherLife {
        place: place.to_owned(),
        known: known.incarnation.clone(),
        known_epoch: known.epoch,
        found: hello.incarnation.clone(),
        found_epoch: hello.epoch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(incarnation: &str, epoch: u32) -> Hello {
        Hello::new("x", 1, incarnation).with_epoch(epoch)
    }

    #[test]
    fn only_a_later_life_takes_the_place_of_a_known_one() {
        let lives = Lives::default();
        lives.meet("a:1", &hello("first", 1)).unwrap();
        lives.meet("a:1", &hello("first", 1)).unwrap();
        for (incarnation, epoch) in [("second", 1), ("second", 0)] {
            let error = lives.meet("a:1", &hello(incarnation, epoch)).unwrap_err().to_string();
            assert!(error.contains("a:1") && error.contains("first") && error.contains("second"), "{error}");
        }
        assert_eq!(lives.known(), "first");
        lives.clone().meet("b:1", &hello("second", 2)).unwrap();
        assert_eq!((lives.known().as_str(), lives.epoch()), ("second", Some(2)));
        assert!(lives.meet("a:1", &hello("first", 1)).is_err());
    }

    #[test]
    fn at_an_address_that_was_learned_even_a_later_life_is_another() {
        let lives = Lives::default();
        lives.meet("a:1", &hello("first", 1)).unwrap();
        for life in [hello("first", 1), hello("", 0)] {
            lives.meet_known("b:1", &life).unwrap();
        }
        assert!(lives.meet_known("b:1", &hello("second", 2)).is_err());
        assert_eq!(lives.known(), "first");
        let first = hello("first", 1);
        assert!(lives.is_current(&first));
        lives.meet("a:1", &hello("second", 2)).unwrap();
        assert!(!lives.is_current(&first) && lives.is_current(&hello("", 0)));
    }

    #[test]
    fn a_node_without_a_state_is_no_other_life() {
        let lives = Lives::default();
        lives.meet("a:1", &hello("first", 1)).unwrap();
        lives.meet("b:1", &hello("", 0)).unwrap();
        assert_eq!(lives.known(), "first");
    }
}
