//! Looking at the table. Every length is counted to the `at` of the last entry applied. Those that say for how long something was held, or how
//! long ago it ended, have the outages in them: people did not stand still with log time.

use alloc::vec::Vec;

use super::alarms::AlarmView;
use super::gaps::Sign;
use super::resource::{Holder, Kind, Readiness, Resource, Standing};
use super::session::Session;
use super::{Config, Counters, LeaseTable};
use crate::answer::{Ending, Item};
use crate::command::{Mode, SessionKind};
use crate::id::{AttachNumber, CommandNumber, Epoch, ItemNumber, Nonce, RenewalNumber, SessionId, Token};
use crate::name::{Label, RegisterKey, ResourceName, Value};
use crate::planted::{Bug, planted};
use crate::time::{LogTime, Millis};

/// Waiters shown of one resource: whoever looks wants to know who is next, not all of them.
pub const MAX_WAITERS_SHOWN: usize = 32;
/// Holders shown of one resource: a name may have ten thousand slots, and a page must fit a frame.
pub const MAX_HOLDERS_SHOWN: usize = 1_000;
/// Bytes of values shown with one resource. The first holder's is always shown; later ones that do not fit are left out.
pub const MAX_VALUES_SHOWN_BYTES: usize = 256 * 1024;

/// One resource as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// Which resource.
    pub resource: ResourceName,
    /// A mode of its kind.
    pub mode: Mode,
    /// Who holds it, in the order of the grants, at most [`MAX_HOLDERS_SHOWN`]; leases whose session is over are left out.
    pub holders: Vec<HolderView>,
    /// How many hold it in all.
    pub holding: usize,
    /// Who waits, first in line first, at most [`MAX_WAITERS_SHOWN`].
    pub queue: Vec<WaiterView>,
    /// How many wait in all.
    pub waiting: usize,
    /// How long it goes to nobody, if a cool-down runs.
    pub cool_down: Option<Millis>,
    /// How long nothing at all is granted, because the state was restored and holders from before may still act.
    pub restore_wait: Option<Millis>,
    /// Grants so far.
    pub transitions: u64,
    /// The alarm that keeps it from everybody.
    pub alarm: Option<AlarmView>,
}

/// One holder of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderView {
    /// Its session.
    pub session: SessionId,
    /// What it calls itself.
    pub label: Label,
    /// Its token.
    pub token: Token,
    /// The token it fences with.
    pub fence: Token,
    /// Its slot, if the name has slots.
    pub slot: Option<u32>,
    /// Whether it shares.
    pub shared: bool,
    /// What it shows; nothing if that was left out, because all values together are longer than [`MAX_VALUES_SHOWN_BYTES`].
    pub value: Option<Value>,
    /// Its session's ttl.
    pub ttl: Millis,
    /// Until it is overdue.
    pub remaining: Millis,
    /// Since the grant.
    pub held_for: Millis,
    /// Since the last renewal.
    pub renewed_ago: Millis,
    /// How it stands.
    pub state: HoldingState,
    /// What it says of its drain, if it drains.
    pub draining: Option<DrainingView>,
    /// Whom it offers its place to, while that offer stands and its successor lives.
    pub offer: Option<OfferView>,
    /// What it says of its readiness, if it says anything.
    pub readiness: Option<ReadinessView>,
}

/// What a holder says of its readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadinessView {
    /// It is not ready to act yet.
    WarmingUp,
    /// It was ready so long after its grant.
    ReadyAfter(Millis),
}

/// A drain, as its holder tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainingView {
    /// How many pieces of work were under way when it was told.
    pub in_flight: u32,
    /// Until the point by which the holder meant to be done; zero behind it.
    pub remaining: Millis,
}

/// An offer of a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferView {
    /// The successor.
    pub to: SessionId,
    /// What it calls itself.
    pub label: Label,
    /// Whether it has accepted, and a release now would pass the place to it.
    pub ready: bool,
    /// How long the offer stands.
    pub remaining: Millis,
}

/// How a holder stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldingState {
    /// Renewed in time.
    Held,
    /// Not renewed in time; grace or the hard limit runs.
    Overdue,
    /// Revoked; the holder may not know yet.
    Revoked,
}

/// One waiter of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaiterView {
    /// Its session.
    pub session: SessionId,
    /// What it calls itself.
    pub label: Label,
    /// Since it began to wait.
    pub waiting_for: Millis,
    /// Whether it is passed over because its session is overdue.
    pub overdue: bool,
}

/// One session as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// Which session.
    pub session: SessionId,
    /// What it calls itself.
    pub label: Label,
    /// Its ttl.
    pub ttl: Millis,
    /// Until it is overdue.
    pub remaining: Millis,
    /// Since it was opened.
    pub age: Millis,
    /// Since its last renewal.
    pub renewed_ago: Millis,
    /// Whether it is overdue.
    pub overdue: bool,
    /// Leases held.
    pub leases: usize,
    /// Waits in queues.
    pub waits: usize,
}

/// One lease of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastView {
    /// Its token.
    pub token: Token,
    /// Whose it was.
    pub session: SessionId,
    /// What the holder called itself.
    pub label: Label,
    /// How long it was held.
    pub held_for: Millis,
    /// How long ago it ended.
    pub ended_ago: Millis,
    /// How.
    pub how: Ending,
}

impl LeaseTable {
    /// The `at` of the last entry applied.
    pub fn last_at(&self) -> LogTime {
        self.last_at
    }

    /// The choices made when the log began.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Totals since the log began.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The present epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How long nothing is granted, because the state was restored and holders from before may still act.
    pub fn restore_wait(&self) -> Option<Millis> {
        let short = |after: &LogTime| planted(Bug::RestoreWaitShort) && self.last_at == *after;
        let runs = |after: &LogTime| self.last_at <= *after && !short(after);
        self.granting_after.filter(runs).map(|after| after.since(self.last_at))
    }

    /// The greatest token or session id drawn so far, as a number.
    pub fn newest(&self) -> u64 {
        Token::new(self.epoch, self.counter).map_or(u64::MAX, Token::get)
    }

    /// How many sessions and resources there are, for metrics.
    pub fn sizes(&self) -> (usize, usize) {
        (self.sessions.len(), self.resources.len())
    }

    /// How many waits stand in queues, for metrics.
    pub fn waiting(&self) -> usize {
        self.index.waits
    }

    /// The nonce of a session that is not over.
    pub fn nonce(&self, id: SessionId) -> Option<Nonce> {
        self.alive(id).map(|session| session.nonce)
    }

    /// How a session that is not over talks.
    pub fn session_kind(&self, id: SessionId) -> Option<SessionKind> {
        self.alive(id).map(|session| session.kind)
    }

    /// The present attachment of a session that is not over.
    pub fn attachment(&self, id: SessionId) -> Option<AttachNumber> {
        self.alive(id).map(|session| session.attach)
    }

    /// The last command applied and the newest item of a session that is not over.
    pub fn stream_position(&self, id: SessionId) -> Option<(CommandNumber, ItemNumber)> {
        self.alive(id).map(|session| (session.last_command, session.last_item))
    }

    /// The last renewal of a session that is not over.
    pub fn renewal(&self, id: SessionId) -> Option<RenewalNumber> {
        self.alive(id).map(|session| session.renewal)
    }

    /// The ttl of a session that is not over.
    pub fn session_ttl(&self, id: SessionId) -> Option<Millis> {
        self.alive(id).map(|session| session.ttl)
    }

    /// What the client of a session has not said it has seen.
    pub fn unseen(&self, id: SessionId) -> impl Iterator<Item = &Item> {
        self.sessions.get(&id).into_iter().flat_map(|session| session.unseen.iter())
    }

    /// One resource, if the table knows it.
    pub fn lease(&self, name: &ResourceName) -> Option<LeaseView> {
        if let Some(resource) = self.resources.get(name) {
            return Some(self.view(name, resource));
        }
        // Nobody has ever held it here, and yet there is something to be seen.
        self.alarms.contains_key(name).then(|| self.view(name, &Resource::new(Kind::Lock)))
    }

    /// Resources whose name begins with `prefix`, in order, after the name `after`, at most `limit`.
    pub fn leases<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a ResourceName>,
        limit: usize,
    ) -> impl Iterator<Item = LeaseView> + 'a {
        use core::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let from_prefix = ResourceName::new(prefix).ok();
        let from = match (&from, &from_prefix) {
            (Bound::Excluded(after), Some(first)) if *after >= first => from,
            (_, Some(first)) => Bound::Included(first),
            (_, None) => from,
        };
        self.resources
            .range((from.cloned(), Bound::Unbounded))
            .take_while(move |(name, _)| name.as_str().starts_with(prefix))
            .take(limit)
            .map(|(name, resource)| self.view(name, resource))
    }

    /// Sessions that are not over, in order of their ids, after the id `after`, at most `limit`.
    pub fn sessions(&self, after: Option<SessionId>, limit: usize) -> impl Iterator<Item = SessionView> {
        use core::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (at, drift) = (self.last_at, self.config.drift);
        self.sessions
            .range((from, Bound::Unbounded))
            .filter(move |(_, session)| !session.is_ended(at, drift))
            .take(limit)
            .map(move |(id, session)| SessionView {
                session: *id,
                label: session.label.clone(),
                ttl: session.ttl,
                remaining: session.overdue_after(drift).since(at),
                age: at.since(session.opened),
                renewed_ago: at.since(session.last_renewal),
                overdue: session.is_overdue(at, drift),
                leases: session.leases.len(),
                waits: session.waits.len(),
            })
    }

    /// The leases of the past on a resource, newest first, as far as they are remembered.
    pub fn history(&self, name: &ResourceName) -> Vec<PastView> {
        let past = self.resources.get(name).into_iter().flat_map(|resource| resource.history.iter().rev());
        past.map(|past| {
            let [granted, ended] = self.ends_of(past);
            PastView {
                token: past.token,
                session: past.session,
                label: past.label.clone(),
                held_for: self.passed(granted, ended),
                ended_ago: self.passed(ended, self.now()),
                how: past.how.clone(),
            }
        })
        .collect()
    }

    /// Whether a token is that of a present lease, or how that lease ended if the history still knows.
    ///
    /// # Errors
    /// The ending, when the token is not current.
    pub fn check(&self, name: &ResourceName, token: Token) -> Result<(), Option<Ending>> {
        let resource = self.resources.get(name).ok_or(None)?;
        match resource.holder(token) {
            Some(holder) if self.is_current(holder) => Ok(()),
            Some(_) => Err(resource.ending(token).or(Some(Ending::Expired))),
            None => Err(resource.ending(token)),
        }
    }

    /// A register, if it is written and its lease, where it depends on one, is not over.
    pub fn register(&self, name: &ResourceName, key: &RegisterKey) -> Option<(&Value, Token)> {
        let resource = self.resources.get(name)?;
        let register = resource.registers.get(key)?;
        let lives = !register.with_lease
            || planted(Bug::RegisterOutlivesLease)
            || resource.holder(register.token).is_some_and(|h| self.is_current(h));
        lives.then_some((&register.value, register.token))
    }

    fn is_current(&self, holder: &Holder) -> bool {
        matches!(holder.standing, Standing::Held) && self.living(holder.session).is_ok()
    }

    fn view(&self, name: &ResourceName, resource: &Resource) -> LeaseView {
        let at = self.last_at;
        let mut room = MAX_VALUES_SHOWN_BYTES;
        let shown = resource.holders.iter().filter(|holder| self.living(holder.session).is_ok());
        let running = resource.cooling.iter().filter(|cooling| at <= cooling.until);
        LeaseView {
            resource: name.clone(),
            mode: resource.kind.mode(),
            holding: shown.clone().count(),
            holders: shown
                .take(MAX_HOLDERS_SHOWN)
                .map(|holder| self.view_holder(holder, &self.sessions[&holder.session], &mut room))
                .collect(),
            queue: resource
                .queue
                .values()
                .take(MAX_WAITERS_SHOWN)
                .map(|waiting| {
                    let session = &self.sessions[&waiting.session];
                    WaiterView {
                        session: waiting.session,
                        label: session.label.clone(),
                        waiting_for: at.since(session.waits[&waiting.command].since),
                        overdue: session.is_overdue(at, self.config.drift),
                    }
                })
                .collect(),
            waiting: resource.queue.len(),
            cool_down: running.map(|cooling| cooling.until.since(at)).max(),
            restore_wait: self.restore_wait(),
            transitions: resource.transitions,
            alarm: self.alarm(name),
        }
    }

    /// One holder. Its value takes up `room`, and is left out if that is not enough.
    fn view_holder(&self, holder: &Holder, session: &Session, room: &mut usize) -> HolderView {
        let left = room.checked_sub(holder.value.as_bytes().len());
        *room = left.unwrap_or(*room);
        let (at, drift) = (self.last_at, self.config.drift);
        let state = match holder.standing {
            Standing::Revoked { .. } => HoldingState::Revoked,
            Standing::Held if session.is_overdue(at, drift) => HoldingState::Overdue,
            Standing::Held => HoldingState::Held,
        };
        HolderView {
            session: holder.session,
            label: session.label.clone(),
            token: holder.token,
            fence: holder.fence,
            slot: holder.slot,
            shared: holder.shared,
            value: left.is_some().then(|| holder.value.clone()),
            ttl: session.ttl,
            remaining: session.overdue_after(drift).since(at),
            held_for: self.passed(Sign::of_grant(holder, &self.outages), self.now()),
            renewed_ago: at.since(session.last_renewal),
            state,
            draining: holder.draining.map(|draining| DrainingView {
                in_flight: draining.in_flight,
                remaining: draining.until.since(at),
            }),
            offer: self.view_offer(holder),
            readiness: match holder.readiness {
                Readiness::Unsaid => None,
                Readiness::WarmingUp => Some(ReadinessView::WarmingUp),
                Readiness::Ready(at) => Some(ReadinessView::ReadyAfter(at.since(holder.since))),
            },
        }
    }

    fn view_offer(&self, holder: &Holder) -> Option<OfferView> {
        let offer = holder.offer.as_ref().filter(|offer| self.last_at <= offer.until)?;
        let successor = self.living(offer.to).ok()?;
        let ready = offer.ready.as_ref().is_some_and(|ready| self.still_ready(offer.to, ready));
        Some(OfferView {
            to: offer.to,
            label: successor.label.clone(),
            ready: ready && self.is_live(offer.to),
            remaining: offer.until.since(self.last_at),
        })
    }
}
