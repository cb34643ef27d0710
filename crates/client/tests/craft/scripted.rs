//! A receiver that keeps the rule of the fence, and answers seals as a test has written down.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use leasehold::fence::{Answer, Authority, Error, Mark, Receiver, Seen, Stale, Stamp};

/// How a seal is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Say {
    /// By the rule: sealed, or stale.
    Rule,
    /// Nothing was done, because it could not be reached.
    Failed,
    /// Nothing was done, for something that passes.
    Busy,
    /// Nothing was done, for something that somebody has to mend.
    Missing,
    /// It was done, and whoever asked does not learn it.
    Unknown,
    /// Not before the gate is opened; then by the rule.
    AtTheGate,
}

#[derive(Debug)]
pub(crate) struct Scripted {
    place: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    script: VecDeque<Say>,
    then: Say,
    gate_is_open: bool,
    /// Every seal that was tried, in order.
    tried: Vec<(String, u64)>,
    highest: BTreeMap<String, Mark>,
}

impl Scripted {
    /// Answers by the script, and as `then` says once that is over.
    pub(crate) fn new(place: &str, script: &[Say], then: Say) -> Arc<Self> {
        let state = State {
            script: script.iter().copied().collect(),
            then,
            gate_is_open: false,
            tried: Vec::new(),
            highest: BTreeMap::new(),
        };
        Arc::new(Self { place: place.to_owned(), state: Mutex::new(state) })
    }

    /// Keeps the rule, always.
    pub(crate) fn honest(place: &str) -> Arc<Self> {
        Self::new(place, &[], Say::Rule)
    }

    pub(crate) fn answer_with(&self, then: Say) {
        let mut state = self.lock();
        state.script.clear();
        state.then = then;
    }

    pub(crate) fn open_the_gate(&self) {
        self.lock().gate_is_open = true;
    }

    pub(crate) fn tried(&self) -> Vec<(String, u64)> {
        self.lock().tried.clone()
    }

    pub(crate) fn highest(&self, name: &str) -> Option<u64> {
        self.lock().highest.get(name).map(|mark| mark.token)
    }

    pub(crate) fn holder(&self, name: &str) -> Option<String> {
        self.lock().highest.get(name).and_then(|mark| mark.holder.clone())
    }

    /// A write: the authority is asked, then compared and raised in one step.
    pub(crate) fn write(&self, authority: &impl Authority) -> Result<(), Error> {
        let stamp = authority.stamp()?;
        self.lock().raise(&stamp)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    fn raise(&mut self, stamp: &Stamp) -> Result<(), Error> {
        let (name, token) = (stamp.name().to_owned(), stamp.token());
        match self.highest.get(&name).map(|mark| mark.token) {
            Some(highest) if highest > token => Err(Stale { name, token, highest: Some(highest) }.into()),
            _ => {
                self.highest.insert(name, Mark { token, holder: stamp.holder().map(str::to_owned) });
                Ok(())
            }
        }
    }
}

impl Receiver for Scripted {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move {
            let say = {
                let mut state = self.lock();
                state.tried.push((stamp.name().to_owned(), stamp.token()));
                let then = state.then;
                state.script.pop_front().unwrap_or(then)
            };
            match say {
                Say::Rule => self.lock().raise(stamp),
                Say::Failed => Err(Error::away(self.place(), "connection refused")),
                Say::Busy => Err(Error::failed(self.place(), "others have the lock")),
                Say::Missing => Err(Error::lasting(self.place(), "there is no table")),
                Say::Unknown => {
                    self.lock().raise(stamp)?;
                    Err(Error::unknown(self.place(), "connection lost"))
                }
                Say::AtTheGate => {
                    // The world polls whenever anything happens or time moves.
                    poll_fn(|_| if self.lock().gate_is_open { Poll::Ready(()) } else { Poll::Pending }).await;
                    self.lock().raise(stamp)
                }
            }
        })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        let highest = self.lock().highest.get(name).cloned();
        Box::pin(async move { Ok(Seen { highest, refusals: None }) })
    }
}
