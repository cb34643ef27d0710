//! Clients under faults: all through the shipped library, all recording what they ask, are told and believe.
//!
//! - *Contenders* want names that others want too, wait for them, hold them for a while and give them back.
//! - *Pulses* have a name of their own each, and take it and give it back as fast as they can: they show when there are no grants.
//! - *Keepers* take a name at the beginning and hold it to the end: their token must not change.
//! - *Stranded* clients contend for the first of the names, and as soon as one has it, the proxies of its links swallow everything
//!   for longer than a ttl.
//! - *Callers* contend over plain HTTP, every call to another node.
//! - *Crowds* are sessions with very many leases each; every lease has a name of its own and is taken, held for a while and given back,
//!   again and again. Each lease counts as a client.
//! - One *looker* asks who holds what.
//!
//! Clients are numbered in this order, from 0. Every client has a connection of its own.

mod client;
mod crowd;
mod looker;
mod strander;
mod web;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use leasehold::SessionOptions;
use tokio::task::JoinHandle;

pub(crate) use self::web::post;

use crate::cluster::until;
use crate::history::{ClientId, Event, Recorder};
use crate::random::Random;

/// What a workload is.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Clients that contend.
    pub contenders: u32,
    /// For so many names.
    pub names: usize,
    /// Clients that show when there are no grants.
    pub pulses: u32,
    /// The pause between two grants of a pulse.
    pub pulse_pause: Duration,
    /// Clients that hold on.
    pub keepers: u32,
    /// Clients that contend and are cut off when they hold something.
    pub stranded: u32,
    /// Clients that contend over plain HTTP.
    pub callers: u32,
    /// Whether callers write to registers, and now and then sleep through their ttl before they do.
    pub writes: bool,
    /// Sessions with very many leases.
    pub crowds: u32,
    /// How many leases each of them has.
    pub crowd_leases: u32,
    /// The ttl of all but keepers.
    pub ttl: Duration,
    /// The ttl of keepers.
    pub keeper_ttl: Duration,
    /// How long a contender holds.
    pub hold: Range<Duration>,
    /// How long a contender waits in the queue.
    pub wait: Duration,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            contenders: 6,
            names: 3,
            pulses: 2,
            pulse_pause: Duration::from_millis(5),
            keepers: 1,
            stranded: 1,
            callers: 1,
            writes: false,
            crowds: 0,
            crowd_leases: 0,
            ttl: Duration::from_secs(2),
            keeper_ttl: Duration::from_secs(3),
            hold: Duration::from_millis(5)..Duration::from_millis(300),
            wait: Duration::from_secs(10),
        }
    }
}

impl Shape {
    /// Whether this client is a pulse.
    pub const fn is_pulse(&self, client: ClientId) -> bool {
        client.0 >= self.contenders && client.0 < self.contenders + self.pulses
    }

    /// Whether this client is a keeper.
    pub const fn is_keeper(&self, client: ClientId) -> bool {
        let first = self.contenders + self.pulses;
        client.0 >= first && client.0 < first + self.keepers
    }

    /// Whether this client is cut off when it holds something.
    pub const fn is_stranded(&self, client: ClientId) -> bool {
        let first = self.contenders + self.pulses + self.keepers;
        client.0 >= first && client.0 < first + self.stranded
    }

    /// Whether this client speaks HTTP.
    pub const fn is_caller(&self, client: ClientId) -> bool {
        let first = self.contenders + self.pulses + self.keepers + self.stranded;
        client.0 >= first && client.0 < first + self.callers
    }

    /// Whether this client is a lease of a crowd.
    pub const fn is_in_crowd(&self, client: ClientId) -> bool {
        client.0 >= self.singles()
    }

    /// Clients that are not in a crowd.
    const fn singles(&self) -> u32 {
        self.contenders + self.pulses + self.keepers + self.stranded + self.callers
    }
}

/// What every client has.
#[derive(Debug, Clone)]
struct Life {
    url: String,
    /// Whether the client uses these addresses alone, and never a node past its links.
    only_listed: bool,
    recorder: Recorder,
    over: Arc<AtomicBool>,
    /// Links of stranded clients are to be whole from now on.
    healing: Arc<AtomicBool>,
    /// How many clients hold what they are to hold before faults begin.
    settled: Arc<AtomicU32>,
}

impl Life {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn is_healing(&self) -> bool {
        self.healing.load(Ordering::Relaxed)
    }
}

/// Clients at work.
#[derive(Debug)]
pub struct Workload {
    life: Life,
    tasks: Vec<JoinHandle<()>>,
    count: u32,
}

impl Workload {
    /// Starts clients on this runtime.
    ///
    /// # Errors
    /// When the numbers of the shape do not fit together.
    pub fn start(
        runtime: &tokio::runtime::Runtime,
        url: &str,
        shape: &Shape,
        recorder: &Recorder,
        random: &mut Random,
    ) -> Result<Self> {
        let life = Life {
            url: url.to_owned(),
            only_listed: false,
            recorder: recorder.clone(),
            over: Arc::new(AtomicBool::new(false)),
            healing: Arc::new(AtomicBool::new(false)),
            settled: Arc::new(AtomicU32::new(0)),
        };
        let mut tasks = Vec::new();
        for number in 0..shape.singles() {
            let id = ClientId(number);
            if shape.is_caller(id) {
                let (caller, shape) = (web::Caller::new(id, life.clone(), random.split()), shape.clone());
                tasks.push(runtime.spawn(async move { caller.run(&shape).await }));
                continue;
            }
            let ttl = if shape.is_keeper(id) { shape.keeper_ttl } else { shape.ttl };
            let options = SessionOptions::new().ttl(ttl).label(format!("client-{number}"));
            options.numbers()?;
            let mut life = life.clone();
            let mut links = None;
            if shape.is_stranded(id) {
                let new = runtime.block_on(strander::Links::to(url))?;
                (life.url, life.only_listed) = (new.url(), true);
                links = Some(new);
            }
            let client = client::Client::new(id, life, options, random.split());
            let shape = shape.clone();
            tasks.push(runtime.spawn(async move {
                if let Some(links) = links {
                    client.strand(&shape, links).await;
                } else if shape.is_keeper(id) {
                    client.keep().await;
                } else if shape.is_pulse(id) {
                    client.pulse(shape.pulse_pause).await;
                } else {
                    client.contend(&shape).await;
                }
            }));
        }
        for number in 0..shape.crowds {
            let options = SessionOptions::new().ttl(shape.ttl).label(format!("crowd-{number}"));
            options.numbers()?;
            let first = shape.singles() + number * shape.crowd_leases;
            let ids = (first..first + shape.crowd_leases).map(ClientId);
            tasks.push(runtime.spawn(crowd::churn(ids, life.clone(), options, random.split())));
        }
        let count = shape.singles() + shape.crowds * shape.crowd_leases;
        tasks.push(runtime.spawn(looker::look(life.clone(), shape.names, random.split())));
        Ok(Self { life, tasks, count })
    }

    /// Waits until every client was served once.
    ///
    /// # Errors
    /// When that takes longer than `patience`.
    pub fn settle(&self, patience: Duration) -> Result<()> {
        until(patience, Duration::from_millis(10), || {
            let settled = self.life.settled.load(Ordering::Relaxed);
            ensure!(settled >= self.count, "only {settled} of {} clients were served", self.count);
            Ok(())
        })
    }

    /// Nobody is cut off any more.
    pub fn heal(&self) {
        self.life.healing.store(true, Ordering::Relaxed);
    }

    /// Lets every client finish and waits for that. Gives how many did not.
    pub fn finish(self, runtime: &tokio::runtime::Runtime, patience: Duration) -> usize {
        self.life.recorder.record(Event::Finishing);
        self.life.over.store(true, Ordering::Relaxed);
        runtime.block_on(async {
            let mut late = 0;
            let mut patience = patience;
            for mut task in self.tasks {
                if tokio::time::timeout(patience, &mut task).await.is_err() {
                    task.abort();
                    late += 1;
                    // All had their time together; the rest need only be looked at.
                    patience = Duration::from_millis(1);
                }
            }
            late
        })
    }
}

/// A name that clients contend for.
fn name(number: usize) -> String {
    format!("contended/{number}")
}
