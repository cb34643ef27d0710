//! One client of the world: a machine, its two clocks, and an application that wants things at random.

use alloc::collections::BTreeSet;
use alloc::vec;

use super::weather::Random;
use crate::answer::Answer;
use crate::client::{ClientSession, EndedWhy, Event, LeaseState, Outcome, Profile};
use crate::command::{Acquire, Mode, Op, Policies, Request};
use crate::holder::Reading;
use crate::id::{CommandNumber, Nonce, Token};
use crate::name::{Label, ResourceName, Value};
use crate::numbers::{Ask, Numbers};
use crate::time::{Drift, Millis};

pub(super) const TTL: Millis = Millis::new(1_000);
/// Five per cent: large enough that a missing factor shows within one ttl.
pub(super) const DRIFT_PPM: u32 = 50_000;

pub(super) fn drift() -> Drift {
    Drift::from_ppm(DRIFT_PPM).unwrap()
}

/// A margin of one millisecond: nothing but the rules themselves keeps two holders apart.
pub(super) fn tight_numbers() -> Numbers {
    Numbers::check(Ask {
        renew_every: Some(Millis::new(450)),
        margin: Some(Millis::new(1)),
        clock_bound: Some(Millis::new(1)),
        round_trip: Some(Millis::new(50)),
        drift: drift(),
        ..Ask::for_ttl(TTL)
    })
    .unwrap()
}

/// How the two clocks of a machine run against true time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    pub(super) boot_ppm: u64,
    pub(super) raw_ppm: u64,
    /// True time in which the machine was suspended: only the boot clock counted it.
    pub(super) suspended: u64,
}

impl Clocks {
    pub(super) fn read(&self, now: u64) -> Reading {
        let run =
            |time: u64, ppm: u64| u64::try_from(u128::from(time) * u128::from(ppm) / 1_000_000).unwrap();
        Reading { boot: 7 + run(now, self.boot_ppm), raw: 3 + run(now - self.suspended, self.raw_ppm) }
    }
}

pub(super) struct Actor {
    pub(super) machine: ClientSession,
    pub(super) clocks: Clocks,
    /// The present connection, and the last one there was.
    pub(super) connection: Option<u64>,
    pub(super) paused_until: u64,
    pub(super) wakes: u64,
    /// The acquire that is not resolved for good.
    pub(super) wanted: Option<CommandNumber>,
    pub(super) cancelled: bool,
    pub(super) held: BTreeSet<(ResourceName, Token)>,
    /// Ended by the service, and to be released as acknowledgement.
    unacknowledged: BTreeSet<(ResourceName, Token)>,
    pub(super) over: bool,
    pub(super) policies: Policies,
}

impl Actor {
    pub(super) fn new(clocks: Clocks, policies: Policies, nonce: Nonce) -> Self {
        Self {
            machine: ClientSession::new(profile(policies), nonce),
            clocks,
            connection: None,
            paused_until: 0,
            wakes: 0,
            wanted: None,
            cancelled: false,
            held: BTreeSet::new(),
            unacknowledged: BTreeSet::new(),
            over: false,
            policies,
        }
    }

    /// A new machine after the session of the last one has ended.
    pub(super) fn begin_anew(&mut self, nonce: Nonce) {
        self.machine = ClientSession::new(profile(self.policies), nonce);
        (self.wanted, self.cancelled, self.over) = (None, false, false);
        self.held.clear();
        self.unacknowledged.clear();
    }

    /// Whether this client believes at this moment that it holds a resource.
    pub(super) fn believes(&self, resource: &ResourceName, now: u64) -> bool {
        let reading = self.clocks.read(now);
        self.machine.leases().any(|lease| {
            let state = lease.state(reading);
            lease.grant().resource == *resource
                && matches!(state, LeaseState::Held { .. } | LeaseState::Retrying { .. })
        })
    }

    /// What the application does next, if anything.
    pub(super) fn wish(
        &mut self,
        random: &mut Random,
        resources: &[ResourceName],
        close: u64,
        release: u64,
    ) -> Option<Op> {
        if random.one_in(close) {
            return Some(Op::Close);
        }
        if let Some((resource, token)) = self.unacknowledged.pop_first() {
            return Some(Op::Release { resource, token, drained: false });
        }
        if let Some((resource, token)) = self.held.first().cloned()
            && random.one_in(release)
        {
            return Some(Op::Release { resource, token, drained: random.one_in(2) });
        }
        match self.wanted {
            Some(acquire) if !self.cancelled && random.one_in(3 * release) => {
                self.cancelled = true;
                Some(Op::Cancel { acquire })
            }
            None if self.held.is_empty() => {
                let resource = resources[random.below(resources.len() as u64) as usize].clone();
                let wait = (!random.one_in(4)).then(|| Millis::new(100 + random.below(4_000)));
                let requests = vec![Request { resource, mode: Mode::Exclusive }];
                Some(Op::Acquire(Acquire { requests, value: Value::default(), wait }))
            }
            _ => None,
        }
    }

    /// What the application learns.
    pub(super) fn learn(&mut self, event: &Event) {
        use crate::client::WaitOver;
        match event {
            Event::Resolved { command, outcome } if self.wanted == Some(*command) => match outcome {
                Outcome::Answered(Answer::Queued { .. }) => {}
                Outcome::Answered(Answer::Granted(grants)) => {
                    self.wanted = None;
                    self.held.extend(grants.iter().map(|grant| (grant.resource.clone(), grant.token)));
                }
                _ => self.wanted = None,
            },
            Event::WaitOver { command, how } if self.wanted == Some(*command) => {
                self.wanted = None;
                if let WaitOver::Granted(grants) = how {
                    self.held.extend(grants.iter().map(|grant| (grant.resource.clone(), grant.token)));
                }
            }
            Event::LeaseEnded { resource, token, why, .. } => {
                self.held.remove(&(resource.clone(), *token));
                if matches!(why, EndedWhy::ByService(_)) {
                    self.unacknowledged.insert((resource.clone(), *token));
                }
            }
            Event::SessionEnded { .. } => self.over = true,
            _ => {}
        }
    }
}

fn profile(policies: Policies) -> Profile {
    Profile { label: Label::new("actor").unwrap(), numbers: tight_numbers(), policies }
}
