//! The greatest of what was seen so far, for whoever compares itself with others alone.

/// The greatest, and beside it the greatest of another owner: where the greatest is one's own, nothing else would show what it hides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Top<K, O, T> {
    first: Option<Ranked<K, O, T>>,
    other: Option<Ranked<K, O, T>>,
}

#[derive(Debug, Clone, Copy)]
struct Ranked<K, O, T> {
    key: K,
    owner: O,
    thing: T,
}

impl<K, O, T> Default for Top<K, O, T> {
    fn default() -> Self {
        Self { first: None, other: None }
    }
}

impl<K: Ord + Copy, O: Eq + Copy, T: Copy> Top<K, O, T> {
    /// Takes in one more. Of two with the same key the first stays.
    pub(super) fn take(&mut self, key: K, owner: O, thing: T) {
        let new = Ranked { key, owner, thing };
        match self.first {
            None => self.first = Some(new),
            Some(first) if key > first.key => {
                if first.owner != owner {
                    self.other = self.first;
                }
                self.first = Some(new);
            }
            Some(first) if first.owner != owner => {
                if self.other.is_none_or(|other| key > other.key) {
                    self.other = Some(new);
                }
            }
            Some(_) => {}
        }
    }

    /// The greatest that another owner has, with its key.
    pub(super) fn beside(&self, owner: O) -> Option<(K, T)> {
        let of_another = |ranked: &Ranked<K, O, T>| ranked.owner != owner;
        let found = self.first.filter(of_another).or(self.other.filter(of_another))?;
        Some((found.key, found.thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_of_others_is_known_whatever_the_order() {
        let all = [(5, 'a'), (9, 'a'), (7, 'b'), (3, 'c'), (8, 'c')];
        for turn in 0..all.len() {
            let mut turned = all;
            turned.rotate_left(turn);
            let mut top = Top::default();
            for (key, owner) in turned {
                top.take(key, owner, key);
            }
            assert_eq!(top.beside('a'), Some((8, 8)), "{turned:?}");
            assert_eq!(top.beside('c'), Some((9, 9)), "{turned:?}");
        }
    }

    #[test]
    fn whoever_is_alone_has_nobody_beside_it() {
        let mut top = Top::default();
        top.take(1, 'a', ());
        top.take(2, 'a', ());
        assert_eq!((top.beside('a'), top.beside('b')), (None, Some((2, ()))));
    }
}
