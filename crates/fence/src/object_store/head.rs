//! The head: the object whose conditional put decides, and what it tells of puts that went before.

use object_store::UpdateVersion;
use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;

/// So many of the last puts are listed in a head, which makes it a kilobyte long. A put without an answer is looked up there, and in a
/// store behind a network no more heads than that pass between a request and its answer.
pub(super) const RECENT: usize = 64;

/// What lies at the path. No two heads are equal, for each has a number and an identity that no other has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// Under which name the object is fenced.
    pub(super) name: String,
    /// Text, because others may read this too, and numbers of JSON are doubles to many.
    pub(super) token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<String>,
    /// One more with every head.
    pub(super) sequence: u64,
    /// Nothing was written yet if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Body>,
    /// The identities of the puts that made this head and those before it, the newest first.
    pub(super) recent: Vec<String>,
}

/// Where the contents are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Body {
    pub(super) key: String,
    pub(super) size: u64,
}

/// A head as it was found, with what a conditional put has to name.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) head: Head,
    pub(super) version: UpdateVersion,
}

/// A put of a head that may have been made: its answer was lost, or is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) id: String,
    pub(super) sequence: u64,
}

/// What a head tells of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It was made.
    Made,
    /// It was not made and never will be: the head that it names is gone, and does not come back.
    Never,
    /// It may still arrive.
    NotYet,
    /// Too many heads have passed.
    TooLate,
}

impl Head {
    /// The head after this one, if there is one.
    pub(super) fn after(before: Option<&Self>, id: &str, stamp: &Stamp) -> Self {
        let older = before.map(|head| head.recent.as_slice()).unwrap_or_default();
        let recent = std::iter::once(id.to_owned()).chain(older.iter().cloned()).take(RECENT).collect();
        Self {
            name: stamp.name().to_owned(),
            token: stamp.token().to_string(),
            holder: stamp.holder().map(ToOwned::to_owned),
            sequence: before.map_or(1, |head| head.sequence + 1),
            body: before.and_then(|head| head.body.clone()),
            recent,
        }
    }

    /// What this head tells of a put.
    pub(super) fn tells(&self, sent: &Sent) -> Told {
        let Some(later) = self.sequence.checked_sub(sent.sequence) else { return Told::NotYet };
        match usize::try_from(later).ok().and_then(|later| self.recent.get(later)) {
            Some(id) if *id == sent.id => Told::Made,
            Some(_) => Told::Never,
            None => Told::TooLate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(count: usize) -> Vec<Head> {
        let (mut heads, stamp) = (Vec::new(), Stamp::new("a", 34).unwrap());
        for nth in 1..=count {
            heads.push(Head::after(heads.last(), &format!("id-{nth}"), &stamp));
        }
        heads
    }

    #[test]
    fn a_head_tells_of_the_puts_before_it() {
        let last = heads(100).pop().unwrap();
        assert_eq!((last.sequence, last.recent.len()), (100, RECENT));
        for (sequence, id, told) in [
            (100, "id-100", Told::Made),
            (100, "other", Told::Never),
            (37, "id-37", Told::Made),
            (37, "other", Told::Never),
            (36, "id-36", Told::TooLate),
            (101, "id-101", Told::NotYet),
        ] {
            assert_eq!(last.tells(&Sent { id: id.to_owned(), sequence }), told, "{sequence} {id}");
        }
    }

    #[test]
    fn no_two_heads_are_equal() {
        let heads = heads(100);
        let texts: std::collections::BTreeSet<String> =
            heads.iter().map(|head| serde_json::to_string(head).unwrap()).collect();
        assert_eq!(texts.len(), heads.len());
    }
}
