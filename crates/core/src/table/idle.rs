//! Resources that are only remembered, the longest idle first.
//!
//! A name that is taken and given back again and again is idle for a moment each time. Keeping all of them in order at every moment would be
//! a large part of what a lease costs, and the order is needed only when something is to be forgotten. So what becomes idle is written down as
//! it comes, what is used again is not looked for, and both are put right when there is a lot of it or somebody asks for the oldest.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::known::Known;
use super::resource::Resource;
use crate::name::ResourceName;
use crate::time::LogTime;

/// So many notes are made before they are put in order: those of names in use are gone by then.
const MAX_FRESH: usize = 1_024;

/// The idle resources. A note counts if the resource it names is idle since that very point.
#[derive(Debug, Clone, Default)]
pub(super) struct Idle {
    /// Notes as they came.
    fresh: Vec<(LogTime, ResourceName)>,
    /// Notes in order.
    settled: BTreeSet<(LogTime, ResourceName)>,
    /// How many resources are idle. Exact.
    count: usize,
}

impl Idle {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// A resource is idle since `since`, and says so.
    pub(super) fn begin(
        &mut self,
        since: LogTime,
        name: ResourceName,
        known: &Known<ResourceName, Resource>,
    ) {
        self.count += 1;
        self.fresh.push((since, name));
        if self.fresh.len() >= MAX_FRESH {
            self.settle(known);
        }
    }

    /// A resource is not idle any more, and does not say so any more.
    pub(super) fn end(&mut self) {
        self.count -= 1;
    }

    /// Takes out the resource that has been idle for longest; among equals the first by name.
    pub(super) fn pop_oldest(&mut self, known: &Known<ResourceName, Resource>) -> Option<ResourceName> {
        self.settle(known);
        while let Some(note) = self.settled.pop_first() {
            if counts(&note, known) {
                self.count -= 1;
                return Some(note.1);
            }
        }
        None
    }

    /// Puts in order what is to be kept.
    fn settle(&mut self, known: &Known<ResourceName, Resource>) {
        self.settled.extend(self.fresh.drain(..).filter(|note| counts(note, known)));
        if self.settled.len() > 2 * self.count + MAX_FRESH {
            self.settled.retain(|note| counts(note, known));
        }
    }
}

fn counts((since, name): &(LogTime, ResourceName), known: &Known<ResourceName, Resource>) -> bool {
    known.get(name).is_some_and(|resource| resource.idle_since == Some(*since))
}

#[cfg(test)]
mod tests {
    use super::super::resource::Kind;
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::format;
    use proptest::prelude::*;

    proptest! {
        /// There to find: a name that is forgotten though it is in use, or out of its order, or notes without end.
        #[test]
        fn the_oldest_is_the_first_of_an_exact_order(steps in proptest::collection::vec((0_u8..8, 0_u64..40), 0..6_000)) {
            let (mut idle, mut known, mut exact) = (Idle::default(), Known::default(), BTreeMap::new());
            let mut now = LogTime::ZERO;
            for (what, number) in steps {
                let name = ResourceName::new(&format!("jobs/{number}")).unwrap();
                let resource = known.get_or_insert_with(&name, || Resource::new(Kind::Lock));
                match what {
                    0 => now = now.plus(crate::time::Millis::new(number % 3)),
                    1 if number < 4 => {
                        let oldest = exact.iter().map(|(name, since)| (*since, ResourceName::clone(name))).min();
                        assert_eq!(idle.pop_oldest(&known), oldest.as_ref().map(|(_, name)| name.clone()));
                        if let Some((_, oldest)) = oldest {
                            exact.remove(&oldest);
                            known.remove(&oldest);
                        }
                    }
                    _ if resource.idle_since.take().is_some() => {
                        idle.end();
                        exact.remove(&name);
                    }
                    _ => {
                        resource.idle_since = Some(now);
                        idle.begin(now, name.clone(), &known);
                        exact.insert(name, now);
                    }
                }
                assert_eq!(idle.len(), exact.len());
                assert!(idle.fresh.len() < MAX_FRESH && idle.settled.len() <= 2 * 40 + 2 * MAX_FRESH);
            }
        }
    }
}
