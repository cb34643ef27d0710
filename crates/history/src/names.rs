//! Names as small numbers: a history repeats few of them millions of times.

use std::collections::HashMap;

/// A name of a client, resource, clock or receiver, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u32);

impl Name {
    /// The place of this name among its kind.
    pub(crate) const fn place(self) -> usize {
        self.0 as usize
    }
}

/// The names of one kind.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<Box<str>, Name>,
    texts: Vec<Box<str>>,
}

impl Names {
    /// The number of a name, new or known.
    pub(crate) fn number(&mut self, text: &str) -> Name {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let name = Name(u32::try_from(self.texts.len()).expect("fewer names than lines"));
        self.numbers.insert(text.into(), name);
        self.texts.push(text.into());
        name
    }

    /// The name of a number that this gave.
    pub(crate) fn text(&self, name: Name) -> &str {
        &self.texts[name.place()]
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// All of them, in the order in which they came.
    pub(crate) fn all(&self) -> impl Iterator<Item = Name> + use<> {
        (0..u32::try_from(self.texts.len()).unwrap_or(u32::MAX)).map(Name)
    }
}
