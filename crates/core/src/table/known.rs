//! A map in the order of its keys in which what was looked at lately is found without comparing its way through a tree.
//!
//! A command looks up the same session and the same name again and again, and a name is a text. Values have a place of their own here, and a
//! small table says, by a mixture of the key's bits, at which places the keys were that were last looked at. What it says is compared with
//! the key before it counts, so it decides nothing: a key that is not found there is looked up in the tree. That is also why nobody gains
//! anything by names that mix alike. Iterating, and the bytes of a snapshot, go by the order of keys alone.
//!
//! An [`Image`] of it is taken by counting alone, and shares all values with it. What is changed afterwards is copied first, so an image stays
//! what it was, and whoever has it may look at it on another thread.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, RangeBounds};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::SessionId;
use crate::name::ResourceName;

/// Places that are remembered for keys that mix alike: two names in use that do would take turns with one.
const WAYS: usize = 2;
/// How many times as many places are remembered as there are values: few enough mix alike then.
const ROOM: usize = 4;
/// An odd number with its bits all over: the golden ratio's.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A key whose bits can be mixed: equal keys mix alike, others seldom do.
pub(super) trait Mixed: Ord + Clone {
    fn mixed(&self) -> u64;
}

impl Mixed for SessionId {
    fn mixed(&self) -> u64 {
        self.get().wrapping_mul(SPREAD)
    }
}

impl Mixed for ResourceName {
    fn mixed(&self) -> u64 {
        let bytes = self.as_str().as_bytes();
        // The upper half of the product is what the last letters, which are the upper bits of a word, have a part in.
        let mix = |mixed: u64, word: u64| {
            let product = u128::from(mixed.rotate_left(23) ^ word) * u128::from(SPREAD);
            (product >> 64) as u64 ^ product as u64
        };
        let length = bytes.len() as u64;
        // The last word overlaps the one before it, so that there is no rest to go through byte by byte.
        let Some(last) = bytes.last_chunk::<8>() else {
            return mix(length, bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        };
        let (words, _) = bytes.as_chunks::<8>();
        let mixed = words.iter().fold(length, |mixed, word| mix(mixed, u64::from_le_bytes(*word)));
        mix(mixed, u64::from_le_bytes(*last))
    }
}

/// The map.
#[derive(Clone)]
pub(super) struct Known<K, V> {
    /// Where each value is.
    order: BTreeMap<K, u32>,
    /// The values at their places, each with its key. Behind a pointer, so that making room for more moves none of them, and shared with images.
    places: Vec<Option<Arc<(K, V)>>>,
    free: Vec<u32>,
    /// Places of keys that were looked at lately: [`WAYS`] for keys that mix alike. Of a power of two, or empty.
    recent: Vec<u32>,
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Self { order: BTreeMap::new(), places: Vec::new(), free: Vec::new(), recent: Vec::new() }
    }
}

impl<K: Mixed, V: Clone> Known<K, V> {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    #[inline]
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        match self.recent(key) {
            Some(place) => self.at(place),
            None => self.at(*self.order.get(key)?),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = match self.recent(key) {
            Some(place) => place,
            None => self.remembered(key)?,
        };
        self.places[place as usize].as_mut().map(own)
    }

    /// The place of a key that was not looked at lately; now it was.
    fn remembered(&mut self, key: &K) -> Option<u32> {
        let place = *self.order.get(key)?;
        self.remember(key, place);
        Some(place)
    }

    /// The value of a key, which is made if there is none.
    pub(super) fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.recent(key).or_else(|| self.remembered(key)) {
            Some(place) => place,
            None => self.add(key, make()),
        };
        self.places[place as usize].as_mut().map(own).expect("it was there, or was put there")
    }

    pub(super) fn insert(&mut self, key: &K, value: V) {
        match self.get_mut(key) {
            Some(present) => *present = value,
            None => {
                self.add(key, value);
            }
        }
    }

    /// Puts something new somewhere.
    fn add(&mut self, key: &K, value: V) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("limits keep the table far below 2^32 of anything")
        });
        self.order.insert(key.clone(), place);
        self.places[place as usize] = Some(Arc::new((key.clone(), value)));
        self.make_room();
        self.remember(key, place);
        place
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.order.remove(key)?;
        self.free.push(place);
        self.places[place as usize].take().map(|entry| Arc::unwrap_or_clone(entry).1)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.order.iter().map(|(key, place)| (key, self.of(*place)))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.order.keys()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.order.values().map(|place| self.of(*place))
    }

    /// In an order that means nothing.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.places.iter_mut().flatten().map(own)
    }

    pub(super) fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        self.order.range(range).map(|(key, place)| (key, self.of(*place)))
    }

    /// What it is now, for however long somebody wants to look at it.
    pub(super) fn image(&self) -> Image<K, V> {
        // Place by place, as they lie in memory: in the order of keys each of very many would be waited for.
        Image { order: self.order.values().copied().collect(), places: self.places.clone() }
    }

    fn at(&self, place: u32) -> Option<&V> {
        self.places.get(place as usize)?.as_ref().map(|entry| &entry.1)
    }

    fn of(&self, place: u32) -> &V {
        self.at(place).expect("what the order names is there")
    }

    /// The first of the ways of a key.
    fn way(&self, key: &K) -> usize {
        let mixed = key.mixed();
        ((mixed >> 32 ^ mixed) as usize) & self.recent.len().saturating_sub(1) & !(WAYS - 1)
    }

    /// The place of a key, if it was looked at lately.
    #[inline]
    fn recent(&self, key: &K) -> Option<u32> {
        let way = self.way(key);
        let ways = self.recent.get(way..way + WAYS)?;
        let is_of = |place: &u32| {
            self.places.get(*place as usize).is_some_and(|at| at.as_ref().is_some_and(|at| at.0 == *key))
        };
        ways.iter().copied().find(|place| is_of(place))
    }

    fn remember(&mut self, key: &K, place: u32) {
        self.remember_at(self.way(key), place);
    }

    fn remember_at(&mut self, way: usize, place: u32) {
        if let Some(ways) = self.recent.get_mut(way..way + WAYS) {
            ways.rotate_right(1);
            ways[0] = place;
        }
    }

    /// Remembers more places once there are many values. They are all forgotten by that, and soon known again: filling them in here would be
    /// a long step where there are very many.
    fn make_room(&mut self) {
        if self.recent.len() < self.places.len() * ROOM / 2 {
            self.recent = alloc::vec![u32::MAX; (self.places.len() * ROOM).next_power_of_two()];
        }
    }
}

/// The value, to be changed: an image that shares it keeps what it was.
#[inline]
fn own<K: Clone, V: Clone>(entry: &mut Arc<(K, V)>) -> &mut V {
    &mut Arc::make_mut(entry).1
}

/// What a map was at some moment, in the order of keys.
#[derive(Debug, Clone)]
pub(super) struct Image<K, V> {
    /// The places in the order of keys.
    order: Vec<u32>,
    places: Vec<Option<Arc<(K, V)>>>,
}

impl<K, V> Image<K, V> {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.order.iter().map(|place| {
            let entry = self.places[*place as usize].as_ref().expect("what the order names is there");
            (&entry.0, &entry.1)
        })
    }
}

impl<K: Mixed, V: Clone> Index<&K> for Known<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("whoever names it knows that it is there")
    }
}

/// All at once: one after the other would look up each of very many keys that are not there.
impl<K: Mixed, V: Clone> From<BTreeMap<K, V>> for Known<K, V> {
    fn from(entries: BTreeMap<K, V>) -> Self {
        let places: Vec<_> = entries.into_iter().map(|entry| Some(Arc::new(entry))).collect();
        let keys = places.iter().flatten().zip(0..);
        let order = keys.map(|(entry, place)| (entry.0.clone(), place)).collect();
        let mut known = Self { order, places, free: Vec::new(), recent: Vec::new() };
        known.make_room();
        for place in 0..known.places.len() {
            if let Some(way) = known.places[place].as_ref().map(|entry| known.way(&entry.0)) {
                known.remember_at(way, u32::try_from(place).expect("as above, far below 2^32"));
            }
        }
        known
    }
}

impl<K: Mixed + fmt::Debug, V: Clone + fmt::Debug> fmt::Debug for Known<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// As a map.
impl<K: Serialize, V: Serialize> Serialize for Image<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de, K: Mixed + Deserialize<'de>, V: Clone + Deserialize<'de>> Deserialize<'de> for Known<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A key of which many mix alike.
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    struct Alike(u8);

    impl Mixed for Alike {
        fn mixed(&self) -> u64 {
            u64::from(self.0 % 3)
        }
    }

    proptest! {
        #[test]
        fn it_is_the_map_that_a_tree_is(steps in proptest::collection::vec((0_u8..6, any::<u8>(), any::<u32>()), 0..400)) {
            let (mut known, mut tree) = (Known::<Alike, u32>::default(), BTreeMap::new());
            let mut images = Vec::new();
            for (what, key, value) in steps {
                let key = Alike(key);
                match what {
                    4 => images.push((known.image(), tree.clone())),
                    5 => known.values_mut().chain(tree.values_mut()).for_each(|value| *value = value.wrapping_add(1)),
                    0 => drop((known.insert(&key, value), tree.insert(key.clone(), value))),
                    1 => assert_eq!(known.remove(&key), tree.remove(&key)),
                    2 => {
                        assert_eq!(known.get_mut(&key), tree.get_mut(&key));
                        known.get_mut(&key).into_iter().chain(tree.get_mut(&key)).for_each(|present| *present = value);
                    }
                    _ => assert_eq!(known.get_or_insert_with(&key, || value), tree.entry(key.clone()).or_insert(value)),
                }
                assert_eq!((known.get(&key), known.len()), (tree.get(&key), tree.len()));
            }
            assert!(known.iter().eq(tree.iter()) && known.values().eq(tree.values()) && known.keys().eq(tree.keys()));
            for (image, tree) in images {
                assert!(image.iter().eq(tree.iter()), "an image is what the map was when it was taken");
                assert_eq!(image.len(), tree.len());
            }
            let from = Alike(100);
            assert!(known.range(from.clone()..).eq(tree.range(from..)));
            let bytes = postcard::to_allocvec(&known.image()).unwrap();
            assert_eq!(&bytes, &postcard::to_allocvec(&tree).unwrap());
            let read: Known<Alike, u32> = postcard::from_bytes(&bytes).unwrap();
            assert!(read.iter().eq(tree.iter()) && tree.iter().all(|(key, value)| read.get(key) == Some(value)));
        }
    }

    #[test]
    fn names_that_differ_in_one_place_mix_differently() {
        let mixed = |text: &str| ResourceName::new(text).unwrap().mixed();
        for (one, other) in
            [("a", "b"), ("jobs", "jobz"), ("jobs/one", "jobs/two"), ("shop/orders/1", "shop/orders/2")]
        {
            assert_ne!(mixed(one), mixed(other), "{one} and {other}");
        }
        assert_eq!(mixed("shop/orders/1"), mixed("shop/orders/1"));
    }
}
