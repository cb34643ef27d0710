//! What a watcher was told, and whether it is the story of what happened.

use std::collections::{BTreeMap, HashMap};

/// Something that a watcher was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) revision: u64,
    pub(crate) token: u64,
    pub(crate) ended: bool,
}

/// Everything that a watcher was told, in order.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) told: Vec<Told>,
    last: u64,
}

impl Story {
    /// Up to where it was told everything.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// All changes of one revision. They come once and in order.
    pub(crate) fn take(
        &mut self,
        revision: u64,
        changes: impl Iterator<Item = (u64, bool)>,
    ) -> Result<(), String> {
        if revision <= self.last {
            return Err(format!("revision {revision} after {}", self.last));
        }
        self.last = revision;
        self.told.extend(changes.map(|(token, ended)| Told { revision, token, ended }));
        Ok(())
    }
}

/// Whether these changes are exactly the grants that the writers know of, by token and name, and their endings: each once, the
/// grant before its ending, the ending before the next grant of that name, tokens rising.
pub(crate) fn judge(told: &[Told], known: &BTreeMap<u64, String>) -> Result<(), String> {
    let mut held: HashMap<&str, u64> = HashMap::new();
    let (mut last, mut grants, mut endings) = (0, 0, 0);
    for change in told {
        let Told { revision, token, ended } = *change;
        let name =
            known.get(&token).ok_or_else(|| format!("revision {revision}: nobody has token {token}"))?;
        if ended {
            if held.remove(name.as_str()) != Some(token) {
                return Err(format!(
                    "revision {revision}: {name} ended with token {token}, which did not hold it"
                ));
            }
            endings += 1;
            continue;
        }
        if let Some(before) = held.insert(name, token) {
            return Err(format!(
                "revision {revision}: {name} went from token {before} to {token} without an end"
            ));
        }
        if token <= last {
            return Err(format!("revision {revision}: token {token} after {last}"));
        }
        last = token;
        grants += 1;
    }
    match (known.len(), grants, endings) {
        (all, grants, _) if grants < all => Err(format!("{grants} of {all} grants were told")),
        (all, _, endings) if endings < all => Err(format!("{endings} of {all} endings were told")),
        _ => Ok(()),
    }
}

/// Whether two watchers were told the same.
pub(crate) fn same(one: &[Told], other: &[Told]) -> Result<(), String> {
    if let Some((one, other)) = one.iter().zip(other).find(|(one, other)| one != other) {
        return Err(format!("one was told {one:?}, another {other:?}"));
    }
    if one.len() != other.len() {
        return Err(format!("one was told {} changes, another {}", one.len(), other.len()));
    }
    Ok(())
}

fn good() -> (Vec<Told>, BTreeMap<u64, String>) {
    let told = |revision, token, ended| Told { revision, token, ended };
    let story = vec![
        told(3, 1, false),
        told(4, 2, false),
        told(5, 1, true),
        told(5, 3, false),
        told(6, 3, true),
        told(7, 2, true),
    ];
    let known = [(1, "a"), (2, "b"), (3, "a")].map(|(token, name)| (token, name.to_owned()));
    (story, known.into())
}

/// The judges themselves, each bug on its own.
#[test]
fn a_missing_a_repeated_a_misplaced_and_a_foreign_change_are_found() {
    let (story, known) = good();
    assert_eq!(judge(&story, &known), Ok(()));
    for missing in 0..story.len() {
        let mut story = story.clone();
        story.remove(missing);
        assert!(judge(&story, &known).is_err(), "{missing} is missing");
    }
    for repeated in 0..story.len() {
        let mut story = story.clone();
        story.insert(repeated, story[repeated]);
        assert!(judge(&story, &known).is_err(), "{repeated} came twice");
    }
    let mut swapped = story.clone();
    swapped.swap(2, 3);
    assert!(judge(&swapped, &known).unwrap_err().contains("without an end"));
    let mut foreign = story.clone();
    foreign.push(Told { revision: 8, token: 9, ended: false });
    assert!(judge(&foreign, &known).unwrap_err().contains("nobody has token 9"));
    assert!(same(&story, &swapped).is_err() && same(&story, &story[..5]).is_err());
    assert_eq!(same(&story, &story), Ok(()));
}

#[test]
fn a_revision_that_comes_again_or_late_is_found() {
    let mut story = Story::default();
    assert_eq!(story.take(3, [(1, false), (2, false)].into_iter()), Ok(()));
    assert_eq!(story.take(5, [(1, true)].into_iter()), Ok(()));
    assert!(story.take(5, [(2, true)].into_iter()).unwrap_err().contains("revision 5 after 5"));
    assert!(story.take(4, [(2, true)].into_iter()).is_err());
    assert_eq!((story.last(), story.told.len()), (5, 3));
}
