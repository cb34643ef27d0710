//! Who may pass: one fence name at a time, the highest token first, and nobody beside those with a smaller one.
//!
//! For each name: `seen` is the greatest token that came, `kept` the greatest on disk, and `passing` how many are under way with each token.
//! Whoever comes with a token below `seen` is refused, also while that one still waits: were it not, a stream of old requests could keep a
//! new holder out for ever. Whoever comes with `seen` waits until it is kept and nobody with a smaller one is under way.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;

use super::store::Store;
use super::{MAX_FENCE_NAMES, MAX_REFUSALS, OpenError};
use crate::error::Stale;
use crate::receiver::{KEPT_REFUSALS, Mark, Refused, Seen};
use crate::stamp::Stamp;

/// Why somebody may not pass. Nothing was forwarded.
#[derive(Debug)]
pub(super) enum Barred {
    Stale(Stale),
    Unusable(String),
    TooManyNames,
}

#[derive(Debug)]
pub(super) struct Gate {
    state: Mutex<State>,
    store: Store,
    /// Whether the time after the start is over in which the upstream may be busy with requests of before.
    settled: watch::Receiver<bool>,
    at: Option<fn() -> String>,
}

#[derive(Debug, Default)]
struct State {
    names: HashMap<String, Name>,
    refusals: VecDeque<(String, Refused)>,
}

#[derive(Debug)]
struct Name {
    seen: u64,
    kept: Option<Mark>,
    passing: BTreeMap<u64, usize>,
    changed: watch::Sender<()>,
}

impl Name {
    fn new(kept: Option<Mark>) -> Self {
        let seen = kept.as_ref().map_or(0, |mark| mark.token);
        Self { seen, kept, passing: BTreeMap::new(), changed: watch::Sender::new(()) }
    }

    fn is_kept(&self, token: u64) -> bool {
        self.kept.as_ref().is_some_and(|mark| mark.token >= token)
    }
}

/// What somebody who comes has to do next.
enum Next {
    Keep,
    Wait(watch::Receiver<()>),
    Pass,
}

impl Gate {
    /// Opens the directory. Inside a runtime.
    pub(super) fn open(
        directory: &std::path::Path,
        settle: Duration,
        at: Option<fn() -> String>,
    ) -> Result<Self, OpenError> {
        let (store, marks) = Store::open(directory)?;
        let names = marks.into_iter().map(|(name, mark)| (name, Name::new(Some(mark)))).collect();
        let (settle_now, settled) = watch::channel(settle.is_zero());
        if !settle.is_zero() {
            tokio::spawn(async move {
                tokio::time::sleep(settle).await;
                settle_now.send_replace(true);
            });
        }
        Ok(Self { state: Mutex::new(State { names, refusals: VecDeque::new() }), store, settled, at })
    }

    /// Comes back when nobody with a smaller token is under way, and none will be.
    pub(super) async fn enter(self: &Arc<Self>, stamp: &Stamp) -> Result<Passage, Barred> {
        let mut settled = self.settled.clone();
        // The sender goes away when it has said so.
        let _ = settled.wait_for(|settled| *settled).await;
        loop {
            match self.next(stamp)? {
                Next::Pass => {
                    let gate = Arc::clone(self);
                    return Ok(Passage { gate, name: stamp.name().to_owned(), token: stamp.token() });
                }
                Next::Keep => {
                    self.store.raise(stamp).await.map_err(Barred::Unusable)?;
                    self.keep(stamp);
                }
                // An error would mean that the name is gone, and names are never forgotten.
                Next::Wait(mut changed) => drop(changed.changed().await),
            }
        }
    }

    fn next(&self, stamp: &Stamp) -> Result<Next, Barred> {
        let token = stamp.token();
        let mut state = self.state();
        if !state.names.contains_key(stamp.name()) {
            if state.names.len() >= MAX_FENCE_NAMES {
                return Err(Barred::TooManyNames);
            }
            state.names.insert(stamp.name().to_owned(), Name::new(None));
        }
        let name = state.names.get_mut(stamp.name()).expect("it was there or was made");
        if token < name.seen {
            let highest = name.seen;
            let stale = Stale::of(stamp, Some(highest));
            let holder = stamp.holder().map(str::to_owned);
            let refused = Refused { token, highest, holder, at: self.at.map(|at| at()) };
            state.refusals.truncate(MAX_REFUSALS - 1);
            state.refusals.push_front((stale.name.clone(), refused));
            return Err(Barred::Stale(stale));
        }
        if token > name.seen {
            name.seen = token;
            // Those that wait with a smaller one are to hear that they are stale.
            name.changed.send_replace(());
        }
        if !name.is_kept(token) {
            return Ok(Next::Keep);
        }
        if name.passing.first_key_value().is_some_and(|(smallest, _)| *smallest < token) {
            return Ok(Next::Wait(name.changed.subscribe()));
        }
        *name.passing.entry(token).or_default() += 1;
        Ok(Next::Pass)
    }

    fn keep(&self, stamp: &Stamp) {
        if let Some(name) = self.state().names.get_mut(stamp.name())
            && !name.is_kept(stamp.token())
        {
            let holder = stamp.holder().map(str::to_owned);
            name.kept = Some(Mark { token: stamp.token(), holder });
        }
    }

    fn leave(&self, name: &str, token: u64) {
        let mut state = self.state();
        let name = state.names.get_mut(name).expect("names are never forgotten");
        let passing = name.passing.get_mut(&token).expect("whoever leaves has entered");
        *passing -= 1;
        if *passing == 0 {
            name.passing.remove(&token);
            name.changed.send_replace(());
        }
    }

    /// What is known of a name: the token that is kept, and the last refusals since the start.
    pub(super) fn look(&self, name: &str) -> Seen {
        let state = self.state();
        let highest = state.names.get(name).and_then(|name| name.kept.clone());
        let refusals = state.refusals.iter().filter(|(of, _)| of == name).map(|(_, refused)| refused.clone());
        Seen { highest, refusals: Some(refusals.take(KEPT_REFUSALS).collect()) }
    }

    pub(super) fn known_names(&self) -> usize {
        self.state().names.values().filter(|name| name.kept.is_some()).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }
}

/// Leave to be under way with a token. Greater ones wait while it exists.
#[derive(Debug)]
pub(super) struct Passage {
    gate: Arc<Gate>,
    name: String,
    token: u64,
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.gate.leave(&self.name, self.token);
    }
}

#[cfg(test)]
mod tests;
