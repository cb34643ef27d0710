//! Changes of the table for whoever watches.
//!
//! There is one ring for all. A watcher has no queue of its own: it remembers how far it is and takes from the ring what comes
//! after, as fast as its client reads. One that falls behind what the ring keeps is told so. Position and changes are looked at
//! under one lock, so nothing is seen twice and nothing is missed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use leasehold_core::Revision;
use leasehold_core::protocol::{Change, Changes, Failure, Watch};
use leasehold_node::ChangeLog;
use tokio::sync::watch;

/// Entries that a watcher takes at once at most: what it takes is in memory until its client has read it.
const MAX_TAKEN: usize = 64;

/// The changes of one entry, and how they look to people and programs.
#[derive(Debug)]
pub struct Kept {
    /// The changes.
    pub changes: Arc<Changes>,
    /// The changes as texts, made by whoever needs them first and shared by all.
    pub texts: OnceLock<Texts>,
}

/// The text of each change of an entry, one behind the other. One piece of memory for all: it is freed by another thread than the
/// one that made it, and thousands of small ones kept for minutes would tear the memory into pieces.
#[derive(Debug)]
pub struct Texts {
    all: Box<str>,
    ends: Box<[usize]>,
}

impl Texts {
    /// Keeps these texts.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let mut all = String::new();
        let ends = texts.into_iter().map(|text| {
            all.push_str(text.as_ref());
            all.len()
        });
        let ends = ends.collect();
        Self { all: all.into_boxed_str(), ends }
    }

    /// The text of the change at this place in its entry.
    pub fn get(&self, at: usize) -> &str {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.all[begin..self.ends[at]]
    }
}

/// The ring.
#[derive(Debug)]
pub struct Hub {
    ring: Mutex<Ring>,
    /// Changed whenever there is something to see.
    news: watch::Sender<()>,
    /// One for each watcher, and this one.
    watchers: Arc<()>,
    max_watchers: usize,
}

#[derive(Debug)]
struct Ring {
    kept: VecDeque<Arc<Kept>>,
    oldest: Revision,
    newest: Revision,
    /// Whether this node has come as far as its leader once: before that nobody knows what is ahead.
    serving: bool,
    /// Whether this node leads: only a leader knows what does not exist.
    leads: bool,
    over: bool,
}

impl Hub {
    /// A ring with what a node has kept from before.
    pub(crate) fn new(log: &ChangeLog, max_watchers: usize) -> Self {
        let kept: VecDeque<Arc<Kept>> = log.kept().map(keep).collect();
        let newest = kept.back().map_or(log.oldest(), |last| last.changes.revision);
        let ring = Ring { kept, oldest: log.oldest(), newest, serving: false, leads: false, over: false };
        Self { ring: Mutex::new(ring), news: watch::Sender::new(()), watchers: Arc::new(()), max_watchers }
    }

    /// Adds what was applied. The node says which of the old ones it keeps, so that both always agree.
    pub(crate) fn publish(
        &self,
        changed: &[Arc<Changes>],
        oldest: Revision,
        applied: Revision,
        serving: bool,
        leads: bool,
    ) {
        let mut ring = self.lock();
        ring.kept.extend(changed.iter().map(keep));
        ring.newest = ring.newest.max(applied);
        ring.oldest = oldest;
        ring.serving |= serving;
        ring.leads = leads;
        while ring.kept.front().is_some_and(|first| first.changes.revision <= oldest) {
            ring.kept.pop_front();
        }
        drop(ring);
        if !changed.is_empty() {
            self.news.send_replace(());
        }
    }

    /// A snapshot of another node has taken the place of everything: whoever is behind what it keeps is told so.
    pub(crate) fn replace(&self, log: &ChangeLog) {
        let mut ring = self.lock();
        ring.kept = log.kept().map(keep).collect();
        ring.oldest = log.oldest();
        let newest = ring.kept.back().map_or(log.oldest(), |last| last.changes.revision);
        ring.newest = ring.newest.max(newest);
        drop(ring);
        self.news.send_replace(());
    }

    /// There will be no more.
    pub(crate) fn end(&self) {
        self.lock().over = true;
        self.news.send_replace(());
    }

    /// Begins to watch.
    ///
    /// # Errors
    /// When the changes after that revision are not kept any more, it does not exist, there are as many watchers as there may be, or the
    /// service is still starting.
    pub fn watch(self: &Arc<Self>, watch: &Watch) -> Result<Watcher, Failure> {
        if self.watchers() >= self.max_watchers {
            return Err(Failure::TooManyWatches { limit: self.max_watchers });
        }
        // Subscribed before the ring is looked at: what comes in between is news.
        let news = self.news.subscribe();
        let ring = self.lock();
        if !ring.serving {
            return Err(Failure::Unavailable { why: "the service is starting".into() });
        }
        let position = match watch.after {
            None => ring.newest,
            Some(after) if after > ring.newest && ring.leads => {
                return Err(Failure::RevisionAhead { after, newest: ring.newest });
            }
            Some(after) if after < ring.oldest => {
                return Err(Failure::RevisionTooOld { after, oldest: ring.oldest });
            }
            Some(after) => after,
        };
        let counted = Arc::clone(&self.watchers);
        Ok(Watcher { hub: Arc::clone(self), prefix: watch.prefix.clone(), position, news, _counted: counted })
    }

    /// How many watch.
    pub fn watchers(&self) -> usize {
        Arc::strong_count(&self.watchers) - 1
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        // Nothing in here can panic half way; a poisoned lock is as good as any.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(changes: &Arc<Changes>) -> Arc<Kept> {
    Arc::new(Kept { changes: Arc::clone(changes), texts: OnceLock::new() })
}

/// Somebody who watches.
#[derive(Debug)]
pub struct Watcher {
    hub: Arc<Hub>,
    prefix: String,
    position: Revision,
    news: watch::Receiver<()>,
    _counted: Arc<()>,
}

impl Watcher {
    /// Everything up to this revision was seen, or is not wanted.
    pub fn position(&self) -> Revision {
        self.position
    }

    /// Whether this watcher wants to see a change.
    pub fn matches(&self, change: &Change) -> bool {
        change.resource().as_str().starts_with(&self.prefix)
    }

    /// The next entries with changes that match, or none after `idle` without any: then the position has moved on all the same.
    ///
    /// # Errors
    /// When this watcher was too slow, or the service stops.
    pub async fn next(&mut self, idle: Duration) -> Result<Vec<Arc<Kept>>, Failure> {
        let deadline = tokio::time::sleep(idle);
        tokio::pin!(deadline);
        loop {
            self.news.mark_unchanged();
            let taken = self.take()?;
            if !taken.is_empty() {
                return Ok(taken);
            }
            tokio::select! {
                changed = self.news.changed() => {
                    if changed.is_err() {
                        return Err(stopping());
                    }
                }
                // Entries that change nothing are no news, and move the position all the same.
                () = &mut deadline => return self.take(),
            }
        }
    }

    fn take(&mut self) -> Result<Vec<Arc<Kept>>, Failure> {
        let ring = self.hub.lock();
        if self.position < ring.oldest {
            return Err(Failure::RevisionTooOld { after: self.position, oldest: ring.oldest });
        }
        let first = ring.kept.partition_point(|kept| kept.changes.revision <= self.position);
        let mut taken = Vec::new();
        for kept in ring.kept.range(first..) {
            if kept.changes.changes.iter().any(|change| self.matches(change)) {
                taken.push(Arc::clone(kept));
                if taken.len() == MAX_TAKEN {
                    self.position = kept.changes.revision;
                    return Ok(taken);
                }
            }
        }
        if taken.is_empty() && ring.over {
            return Err(stopping());
        }
        // A node that is behind the one that was watched before catches up first.
        self.position = self.position.max(ring.newest);
        Ok(taken)
    }
}

fn stopping() -> Failure {
    Failure::Unavailable { why: "the service is stopping".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::{RegisterKey, ResourceName, Token};

    const IDLE: Duration = Duration::from_millis(1);

    fn batch(revision: u64, resource: &str) -> Arc<Changes> {
        let change = Change::RegisterWritten {
            resource: ResourceName::new(resource).unwrap(),
            key: RegisterKey::new("cursor").unwrap(),
            token: Token::from_u64(revision),
            removed: false,
        };
        Arc::new(Changes { revision: Revision::new(revision), changes: vec![change] })
    }

    /// A hub that serves and has seen entries up to this one.
    fn hub(applied: u64) -> Arc<Hub> {
        let hub = Arc::new(Hub::new(&ChangeLog::default(), 8));
        hub.publish(&[], Revision::new(0), Revision::new(applied), true, true);
        hub
    }

    fn add(hub: &Hub, revisions: impl IntoIterator<Item = u64>, resource: &str) {
        for revision in revisions {
            hub.publish(&[batch(revision, resource)], Revision::new(0), Revision::new(revision), true, true);
        }
    }

    fn watch(prefix: &str, after: Option<u64>) -> Watch {
        Watch { prefix: prefix.to_owned(), after: after.map(Revision::new) }
    }

    fn next(watcher: &mut Watcher) -> Result<Vec<u64>, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let taken = runtime.block_on(watcher.next(IDLE))?;
        Ok(taken.iter().map(|kept| kept.changes.revision.get()).collect())
    }

    #[test]
    fn texts_are_found_by_their_places_also_empty_ones() {
        let texts = Texts::new(["one", "", "drei"]);
        assert_eq!([texts.get(0), texts.get(1), texts.get(2)], ["one", "", "drei"]);
    }

    #[test]
    fn nobody_watches_before_everything_in_the_log_is_known() {
        let hub = Arc::new(Hub::new(&ChangeLog::default(), 8));
        hub.publish(&[batch(3, "a")], Revision::new(0), Revision::new(3), false, false);
        assert!(matches!(hub.watch(&watch("", None)), Err(Failure::Unavailable { .. })));
        hub.publish(&[], Revision::new(0), Revision::new(5), true, true);
        let mut watcher = hub.watch(&watch("", Some(0))).unwrap();
        assert_eq!((next(&mut watcher), watcher.position()), (Ok(vec![3]), Revision::new(5)));
    }

    #[test]
    fn a_watcher_begins_now_or_after_a_revision() {
        let hub = hub(0);
        add(&hub, 1..=5, "a");
        let (mut now, mut after) =
            (hub.watch(&watch("", None)).unwrap(), hub.watch(&watch("", Some(3))).unwrap());
        add(&hub, 6..=7, "a");
        assert_eq!((next(&mut now), next(&mut after)), (Ok(vec![6, 7]), Ok(vec![4, 5, 6, 7])));
        assert_eq!((next(&mut now), next(&mut after)), (Ok(vec![]), Ok(vec![])));
    }

    #[test]
    fn what_is_ahead_and_what_is_too_old_are_refused_with_both_revisions() {
        let hub = hub(9);
        let (after, newest) = (Revision::new(10), Revision::new(9));
        assert_eq!(hub.watch(&watch("", Some(10))).unwrap_err(), Failure::RevisionAhead { after, newest });
        let mut slow = hub.watch(&watch("", Some(9))).unwrap();
        hub.publish(&[batch(10, "a"), batch(11, "a")], Revision::new(10), Revision::new(11), true, true);
        let oldest = Revision::new(10);
        let after = Revision::new(9);
        assert_eq!(hub.watch(&watch("", Some(9))).unwrap_err(), Failure::RevisionTooOld { after, oldest });
        assert_eq!(next(&mut slow), Err(Failure::RevisionTooOld { after, oldest }));
        assert_eq!(next(&mut hub.watch(&watch("", Some(10))).unwrap()), Ok(vec![11]));
    }

    #[test]
    fn a_watcher_takes_a_bounded_number_at_once_and_misses_nothing() {
        let hub = hub(0);
        let mut watcher = hub.watch(&watch("", None)).unwrap();
        let many = 2 * MAX_TAKEN as u64 + 1;
        add(&hub, 1..=many, "a");
        let mut seen = Vec::new();
        for expected in [MAX_TAKEN, MAX_TAKEN, 1, 0] {
            let taken = next(&mut watcher).unwrap();
            assert_eq!(taken.len(), expected);
            seen.extend(taken);
            assert!(seen.last() <= Some(&watcher.position().get()));
        }
        assert!(seen.into_iter().eq(1..=many));
    }

    #[test]
    fn what_does_not_match_moves_the_position_and_so_do_entries_without_changes() {
        let hub = hub(0);
        let mut watcher = hub.watch(&watch("job/", None)).unwrap();
        add(&hub, 1..=3, "other");
        assert_eq!((next(&mut watcher), watcher.position().get()), (Ok(vec![]), 3));
        hub.publish(&[], Revision::new(0), Revision::new(8), true, true);
        assert_eq!((next(&mut watcher), watcher.position().get()), (Ok(vec![]), 8));
        add(&hub, [9], "job/1");
        assert_eq!(next(&mut watcher), Ok(vec![9]));
    }

    /// While the watcher waits, entries without changes are applied: they are no news, and count when it looks again.
    #[test]
    fn progress_is_that_of_the_end_of_the_idle_time() {
        let hub = hub(1);
        let mut watcher = hub.watch(&watch("", None)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let taken = runtime.block_on(async {
            let later = Arc::clone(&hub);
            let entry = async move {
                tokio::task::yield_now().await;
                later.publish(&[], Revision::new(0), Revision::new(7), true, true);
            };
            tokio::join!(watcher.next(Duration::from_millis(20)), entry).0
        });
        assert!(taken.unwrap().is_empty());
        assert_eq!(watcher.position(), Revision::new(7));
    }

    #[test]
    fn the_end_is_told_behind_the_last_changes() {
        let hub = hub(0);
        let mut watcher = hub.watch(&watch("", None)).unwrap();
        add(&hub, [1], "a");
        hub.end();
        assert_eq!(next(&mut watcher), Ok(vec![1]));
        assert!(matches!(next(&mut watcher), Err(Failure::Unavailable { .. })));
    }
}
