//! The epochs that this process has, by fence name: not more than a few, the least recently used one goes first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::epoch::Epoch;

/// The epoch of a name, if there is one. Whoever writes under the name has it to itself meanwhile.
pub(super) type Slot = Arc<tokio::sync::Mutex<Option<Epoch>>>;

#[derive(Default)]
pub(super) struct Names(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    by_name: HashMap<String, (u64, Slot)>,
    /// Counts uses, for want of a clock.
    used: u64,
}

impl Names {
    /// The slot of a name, and one that had to make room for it and is to be dropped where one may wait.
    pub(super) fn slot(&self, name: &str, most: usize) -> (Slot, Option<Slot>) {
        let mut slots = self.0.lock().expect("nobody panics with it");
        slots.used += 1;
        let used = slots.used;
        if let Some((last, slot)) = slots.by_name.get_mut(name) {
            *last = used;
            return (Arc::clone(slot), None);
        }
        // One that is being written with has an owner besides this map, and stays.
        let idle = slots.by_name.iter().filter(|(_, (_, slot))| Arc::strong_count(slot) == 1);
        let oldest = idle.min_by_key(|(_, (last, _))| *last).map(|(name, _)| name.clone());
        let oldest = oldest.filter(|_| slots.by_name.len() >= most);
        let gone = oldest.and_then(|name| slots.by_name.remove(&name)).map(|(_, slot)| slot);
        let slot = Slot::default();
        slots.by_name.insert(name.to_owned(), (used, Arc::clone(&slot)));
        (slot, gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_name_makes_room_unless_it_is_in_use() {
        let names = Names::default();
        let (a, _) = names.slot("a", 2);
        assert!(names.slot("b", 2).1.is_none());
        assert!(Arc::ptr_eq(&names.slot("a", 2).0, &a));
        assert!(names.slot("c", 2).1.is_some(), "b goes");
        assert!(Arc::ptr_eq(&names.slot("a", 2).0, &a), "a is in use");
        drop(a);
        assert!(names.slot("d", 2).1.is_some());
        let mut left: Vec<String> = names.0.lock().unwrap().by_name.keys().cloned().collect();
        left.sort();
        assert_eq!(left, ["a", "d"], "c was not used since");
    }
}
