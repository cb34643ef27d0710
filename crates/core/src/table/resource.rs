//! Resources: who holds them, who is in the way, and where the next one would stand.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::LeaseTable;
use super::gaps::Gaps;
use crate::answer::{Ending, Unavailable};
use crate::command::Mode;
use crate::id::{CommandNumber, SessionId, Token};
use crate::name::{Label, RegisterKey, ResourceName, Value};
use crate::planted::{Bug, planted};
use crate::time::{LogTime, Millis};

/// What kind of resource a name is. Exclusive and shared leases may follow each other on one name, because their tokens go
/// through one fence; slots have a fence each, so a name has them or has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Lock,
    Slots(u32),
}

impl Kind {
    pub(super) const fn of(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive | Mode::Shared => Self::Lock,
            Mode::Slot { of } => Self::Slots(of),
        }
    }

    /// Whether there is one place to be had.
    pub(super) const fn is_single(self) -> bool {
        matches!(self, Self::Lock | Self::Slots(1))
    }

    /// A mode that fits, for messages.
    pub(super) const fn mode(self) -> Mode {
        match self {
            Self::Lock => Mode::Exclusive,
            Self::Slots(of) => Mode::Slot { of },
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Resource {
    pub(super) kind: Kind,
    /// In the order of their grants.
    pub(super) holders: Vec<Holder>,
    pub(super) cooling: Vec<Cooling>,
    /// By place, smallest first.
    pub(super) queue: BTreeMap<u64, Waiting>,
    pub(super) transitions: u64,
    pub(super) history: VecDeque<Past>,
    pub(super) registers: BTreeMap<RegisterKey, Register>,
    /// How long nobody acted on it, and why. Behind the table in a snapshot.
    #[serde(skip)]
    pub(super) gaps: Option<Box<Gaps>>,
    /// Since when nobody holds it, waits for it or keeps something in it.
    pub(super) idle_since: Option<LogTime>,
    /// A hint: past this point something may have ended here. Never too late, often too early.
    #[serde(skip)]
    pub(super) due: Option<LogTime>,
    /// Part of the hint: when what is over was last looked for. Too early does no harm; a snapshot sets it back to the beginning.
    #[serde(skip)]
    pub(super) looked_at: LogTime,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Holder {
    pub(super) session: SessionId,
    pub(super) token: Token,
    pub(super) fence: Token,
    pub(super) slot: Option<u32>,
    pub(super) shared: bool,
    pub(super) value: Value,
    pub(super) since: LogTime,
    pub(super) command: CommandNumber,
    pub(super) standing: Standing,
    /// Few holders ever have one, and there are very many holders.
    pub(super) offer: Option<Box<OfferMade>>,
    pub(super) asks: u32,
    /// What the holder says of its drain. Behind the table in a snapshot, so that one without it is what it was before.
    #[serde(skip)]
    pub(super) draining: Option<Draining>,
    /// Whether it said that it is ready. Behind the table too.
    #[serde(skip)]
    pub(super) readiness: Readiness,
    /// How many outages there had been at its grant, if the last of them was at the same point of log time: else that point tells.
    /// Behind the table too.
    #[serde(skip)]
    pub(super) outages: u32,
}

/// What a holder says of its readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum Readiness {
    /// Nothing: it counts as ready since its grant.
    #[default]
    Unsaid,
    WarmingUp,
    Ready(LogTime),
}

impl Holder {
    pub(super) fn is_warming(&self) -> bool {
        matches!((&self.standing, self.readiness), (Standing::Held, Readiness::WarmingUp))
    }
}

/// A drain that others can see: it says something, and decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Draining {
    pub(super) in_flight: u32,
    /// By then the holder meant to be done.
    pub(super) until: LogTime,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Standing {
    Held,
    /// The lease is over for the table, but its holder may not know: the place stays taken until the holder acknowledges or
    /// the renewal that was the last at the time of the revoke is overdue.
    Revoked {
        until: LogTime,
        delay: Millis,
        blocks_all: bool,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OfferMade {
    pub(super) to: SessionId,
    pub(super) until: LogTime,
    pub(super) ready: Option<Ready>,
    /// Whether the holder has been told that it was accepted. Behind the table in a snapshot, as the drain is.
    #[serde(skip)]
    pub(super) told: bool,
}

/// The successor has accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Ready {
    /// Its wait in the queue is granted out of turn.
    Waiting(CommandNumber),
    /// It was not waiting: the accept itself is granted.
    Accepting { command: CommandNumber, value: Value },
}

impl Ready {
    /// The command that is granted.
    pub(super) const fn command(&self) -> CommandNumber {
        match self {
            Self::Waiting(command) | Self::Accepting { command, .. } => *command,
        }
    }
}

/// The place of a lease that ended against its holder's will: granted to nobody up to and including `until`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Cooling {
    pub(super) slot: Option<u32>,
    pub(super) until: LogTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(super) session: SessionId,
    pub(super) command: CommandNumber,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Past {
    pub(super) token: Token,
    pub(super) session: SessionId,
    pub(super) label: Label,
    pub(super) since: LogTime,
    pub(super) until: LogTime,
    pub(super) how: Ending,
    /// How many outages there had been at its grant and at its end, where the last of them was at the same point of log time. Behind the
    /// table in a snapshot.
    #[serde(skip)]
    pub(super) outages: (u32, u32),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Register {
    pub(super) value: Value,
    pub(super) token: Token,
    pub(super) with_lease: bool,
}

/// Where the next lease of a resource would stand.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub(super) slot: Option<u32>,
    /// The group's fence, for a shared lease that joins others.
    pub(super) group: Option<Token>,
    /// Leases that end by this grant.
    pub(super) takes: Vec<Token>,
}

impl Resource {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            holders: Vec::new(),
            cooling: Vec::new(),
            queue: BTreeMap::new(),
            transitions: 0,
            history: VecDeque::new(),
            registers: BTreeMap::new(),
            gaps: None,
            idle_since: None,
            due: None,
            looked_at: LogTime::ZERO,
        }
    }

    pub(super) fn holder(&self, token: Token) -> Option<&Holder> {
        self.holders.iter().find(|holder| holder.token == token)
    }

    pub(super) fn holder_mut(&mut self, token: Token) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.token == token)
    }

    /// How the lease with this token ended, if that is still known.
    pub(super) fn ending(&self, token: Token) -> Option<Ending> {
        self.history.iter().rev().find(|past| past.token == token).map(|past| past.how.clone())
    }
}

impl LeaseTable {
    /// Whether this session holds this lease (and it was not revoked).
    pub(super) fn holds(&self, session: SessionId, resource: &ResourceName, token: Token) -> bool {
        self.resources
            .get(resource)
            .and_then(|resource| resource.holder(token))
            .is_some_and(|holder| holder.session == session && matches!(holder.standing, Standing::Held))
    }

    /// How a lease ended, if the history still knows.
    pub(super) fn ending(&self, resource: &ResourceName, token: Token) -> Option<Ending> {
        self.resources.get(resource)?.ending(token)
    }

    /// Where a lease in this mode would stand now, or what is in the way. Queues are not looked at.
    pub(super) fn placement(&self, name: &ResourceName, mode: Mode) -> Result<Placement, Unavailable> {
        if let Some(remaining) = self.restore_wait() {
            return Err(Unavailable::RestoreWait { remaining });
        }
        if let Some(token) = self.stopped_by(name) {
            return Err(Unavailable::Alarm { token });
        }
        let Some(resource) = self.resources.get(name) else {
            return Ok(Placement { slot: first_slot(mode), ..Placement::default() });
        };
        let blocked =
            |holder: &&Holder| matches!(holder.standing, Standing::Revoked { blocks_all: true, .. });
        if let Some(holder) = resource.holders.iter().find(blocked) {
            return Err(self.in_the_way(holder));
        }
        match mode {
            Mode::Exclusive => self.place_lock(resource, false),
            Mode::Shared => self.place_lock(resource, true),
            Mode::Slot { of } => self.place_slot(resource, of),
        }
    }

    fn place_lock(&self, resource: &Resource, shared: bool) -> Result<Placement, Unavailable> {
        if let Some(until) = self.cooling(resource).map(|cooling| cooling.until).max() {
            return Err(Unavailable::CoolDown { remaining: until.since(self.last_at) });
        }
        // Whoever joined a group whose lease was revoked would share its fence with a holder that may not know.
        let revoked = |holder: &&Holder| matches!(holder.standing, Standing::Revoked { .. });
        if let Some(revoked) = resource.holders.iter().find(revoked).filter(|_| shared) {
            return Err(self.in_the_way(revoked));
        }
        match resource.holders.iter().find(|holder| !self.is_takeable(holder)) {
            None => {
                let takes = resource.holders.iter().map(|holder| holder.token).collect();
                Ok(Placement { takes, ..Placement::default() })
            }
            Some(present) if shared && present.shared => {
                Ok(Placement { group: Some(present.fence), ..Placement::default() })
            }
            Some(present) => Err(self.in_the_way(present)),
        }
    }

    fn place_slot(&self, resource: &Resource, of: u32) -> Result<Placement, Unavailable> {
        // A cool-down from before the name had these slots is one of all of them.
        let whole = self.cooling(resource).filter(|cooling| cooling.slot.is_none());
        if let Some(until) = whole.map(|cooling| cooling.until).max() {
            return Err(Unavailable::CoolDown { remaining: until.since(self.last_at) });
        }
        let mut taken: Vec<u32> = resource.holders.iter().filter_map(|holder| holder.slot).collect();
        if !planted(Bug::SlotNotCooled) {
            taken.extend(self.cooling(resource).filter_map(|cooling| cooling.slot));
        }
        taken.sort_unstable();
        let free = (0..of).find(|slot| taken.binary_search(slot).is_err());
        if let Some(slot) = free {
            return Ok(Placement { slot: Some(slot), ..Placement::default() });
        }
        let takeable = resource.holders.iter().filter(|holder| self.is_takeable(holder));
        if let Some(holder) = takeable.min_by_key(|holder| holder.slot) {
            return Ok(Placement {
                slot: holder.slot,
                takes: alloc::vec![holder.token],
                ..Placement::default()
            });
        }
        match resource.holders.first() {
            Some(holder) => Err(self.in_the_way(holder)),
            None => {
                let first = self.cooling(resource).map(|cooling| cooling.until).min();
                let until = first.expect("every slot is held or cools down, and none is held");
                Err(Unavailable::CoolDown { remaining: until.since(self.last_at) })
            }
        }
    }

    /// The cool-downs that run on the resource.
    fn cooling<'a>(&self, resource: &'a Resource) -> impl Iterator<Item = &'a Cooling> + use<'a> {
        let at = self.last_at;
        resource.cooling.iter().filter(move |cooling| at <= cooling.until)
    }

    fn is_takeable(&self, holder: &Holder) -> bool {
        matches!(holder.standing, Standing::Held)
            && self.last_at > self.sessions[&holder.session].takeable_after(self.config.drift)
    }

    fn in_the_way(&self, holder: &Holder) -> Unavailable {
        match holder.standing {
            Standing::Held => {
                let session = &self.sessions[&holder.session];
                Unavailable::Held {
                    holder: session.label.clone(),
                    token: holder.token,
                    overdue: session.is_overdue(self.last_at, self.config.drift),
                }
            }
            Standing::Revoked { until, .. } => {
                Unavailable::RevokePending { token: holder.token, remaining: until.since(self.last_at) }
            }
        }
    }
}

const fn first_slot(mode: Mode) -> Option<u32> {
    match mode {
        Mode::Exclusive | Mode::Shared => None,
        Mode::Slot { .. } => Some(0),
    }
}
