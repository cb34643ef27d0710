//! For how long a busy machine kept those who take part from running, and when: by the kernel's own count, not by a guess.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::place::{nanos, now, pause};

const EVERY: Duration = Duration::from_millis(25);

#[derive(Default)]
struct Shared {
    pids: Mutex<Vec<u32>>,
    /// The boot clock, and how long threads had waited for a processor up to then, in all.
    samples: Mutex<Vec<(u64, u64)>>,
    over: AtomicBool,
}

pub(crate) struct Lateness(Arc<Shared>);

impl Lateness {
    pub(crate) fn begin() -> Self {
        let shared = Arc::new(Shared::default());
        let counting = Arc::clone(&shared);
        std::thread::spawn(move || count(&counting));
        Self(shared)
    }

    /// From now on this process is one of them.
    pub(crate) fn add(&self, pid: u32) {
        self.0.pids.lock().unwrap().push(pid);
    }

    /// Milliseconds between two points of the boot clock. What a sample misses counts for both that it lies between.
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        let samples = self.0.samples.lock().unwrap();
        let first = samples.partition_point(|(at, _)| *at <= from).saturating_sub(1);
        let last = samples.partition_point(|(at, _)| *at < to).min(samples.len().saturating_sub(1));
        let waited = |place: usize| samples.get(place).map_or(0, |(_, waited)| *waited);
        waited(last).saturating_sub(waited(first)) / 1_000_000
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

fn count(shared: &Shared) {
    // A process that has ended, or a thread, takes what it waited with it: only what is added counts.
    let (mut before, mut waited): (BTreeMap<u32, u64>, u64) = (BTreeMap::new(), 0);
    while !shared.over.load(Ordering::Relaxed) {
        let pids = shared.pids.lock().unwrap().clone();
        for pid in pids {
            let present = nanos(leasehold_kit::held_back(pid));
            let earlier = before.insert(pid, present).unwrap_or(present);
            waited += present.saturating_sub(earlier);
        }
        shared.samples.lock().unwrap().push((now(), waited));
        pause(EVERY);
    }
}
