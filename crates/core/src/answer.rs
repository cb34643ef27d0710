//! What applying an entry gives back: direct replies, items for the sessions' streams, and events for whoever watches.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::command::Successor;
use crate::gap::GapNote;
use crate::id::{CallNumber, CommandNumber, ItemNumber, RenewalNumber, SessionId, Token};
use crate::name::{Label, Reason, RegisterKey, ResourceName, Value};
use crate::time::{Drift, LogTime, Millis};

pub use crate::refusal::{BadRequest, LimitedThing, Refusal, Unavailable};

/// The outcome of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// One reply per command, in the order of the commands.
    pub replies: Vec<Reply>,
    /// What arose in the streams of sessions, in order.
    pub items: Vec<(SessionId, Item)>,
    /// What happened, for watchers, in order.
    pub events: Vec<Event>,
    /// What happened to gaps, for whoever counts them, in order.
    pub gaps: Vec<GapNote>,
}

/// The direct reply to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The session exists, newly or already.
    Opened(Opened),
    /// The connection is attached; everything unseen follows.
    Attached {
        /// The last command of the session that was applied.
        last_command: CommandNumber,
        /// The number of the newest answer or event.
        last_item: ItemNumber,
    },
    /// The session is renewed.
    Renewed(Renewed),
    /// A renewal with an equal or lower number than an earlier one: nothing changed.
    StaleRenewal {
        /// The number sent.
        number: RenewalNumber,
        /// The highest number applied.
        highest: RenewalNumber,
    },
    /// The command was applied; its answer is an item of the session's stream.
    Applied {
        /// The command.
        number: CommandNumber,
    },
    /// The command had been applied before; its answer is or was an item of the session's stream.
    Repeated {
        /// The command.
        number: CommandNumber,
    },
    /// The answer to a command of a plain session.
    Plain {
        /// The number that the command was given.
        number: CommandNumber,
        /// The answer.
        answer: Answer,
        /// The last renewal applied: a lease granted by this answer counts from that renewal's sending.
        renewal: RenewalNumber,
    },
    /// The recorded answer to a numbered call of a plain session that was sent again: nothing was done now.
    PlainRepeated {
        /// The number that the command was given when it was applied.
        number: CommandNumber,
        /// The answer, as it was; queued while the wait runs.
        answer: Answer,
        /// The renewal that the first answer named. A later one may not have confirmed the lease.
        renewal: RenewalNumber,
        /// Of the leases in the answer, those that are still held.
        held: Vec<Token>,
    },
    /// The number of a call, or the one that it would cancel, is settled. Nothing was done now; what was done under that number before is
    /// not known any more.
    NumberSettled {
        /// The number.
        call: CallNumber,
        /// No number below this one is wanted any more.
        settled: CallNumber,
    },
    /// The wait of a plain session for which its caller was kept waiting ended without a lease.
    PlainWaitEnded {
        /// The number of the acquire.
        number: CommandNumber,
        /// Why.
        why: WaitEnding,
    },
    /// The session was closed by this command.
    Closed,
    /// The holder was asked.
    Asked {
        /// The token of the lease.
        token: Token,
        /// What the holder calls itself.
        holder: Label,
    },
    /// The lease was revoked.
    Revoked {
        /// For how long at most the resource still goes to nobody because the holder may not know yet.
        held_back: Millis,
    },
    /// The kind of the resource was changed.
    KindChanged,
    /// The alarm is answered.
    AlarmCleared,
    /// The node's own command was carried out.
    Done,
    /// No effect, now or later.
    Refused(Refusal),
}

/// What a client learns when its session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The session.
    pub session: SessionId,
    /// Its ttl.
    pub ttl: Millis,
    /// The drift that the service allows every clock.
    pub drift: Drift,
    /// Whether the session existed already: then nothing was renewed by this.
    pub repeated: bool,
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    /// The sending that is answered.
    pub number: RenewalNumber,
    /// The last answer or event that arose before: the renewal counts only for a client that has processed it.
    pub after: ItemNumber,
    /// For a plain session, what it has: the renewal counts for the leases in it and no others.
    pub holdings: Option<Holdings>,
}

/// What a plain session has when its renewal is answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holdings {
    /// The leases held; revoked ones are not among them.
    pub leases: Vec<HeldLease>,
    /// The waits that run, in the order of their acquires.
    pub waits: Vec<Waited>,
}

/// A lease that a plain session holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// The lease.
    pub grant: Grant,
    /// Whether somebody has asked for its release.
    pub release_requested: bool,
}

/// A wait of a plain session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waited {
    /// The number of the acquire, by which it can be cancelled.
    pub acquire: CommandNumber,
    /// What it waits for.
    pub resources: Vec<ResourceName>,
}

/// A numbered answer or event of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its place in the stream.
    pub number: ItemNumber,
    /// What it says.
    pub kind: ItemKind,
}

/// What an item says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ItemKind {
    /// The answer to a command.
    Answer {
        /// The command.
        command: CommandNumber,
        /// The answer.
        answer: Answer,
    },
    /// A wait came to its end with everything it asked for.
    WaitGranted {
        /// The acquire or accept.
        command: CommandNumber,
        /// The leases.
        grants: Vec<Grant>,
    },
    /// A wait ended without a lease.
    WaitEnded {
        /// The acquire or accept.
        command: CommandNumber,
        /// Why.
        why: WaitEnding,
    },
    /// A lease ended that the holder did not give back.
    LeaseEnded {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// How.
        how: Ending,
    },
    /// Somebody asks the holder to drain and release.
    ReleaseRequested {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// To whom, if a handover is wanted.
        successor: Option<Successor>,
        /// Who asks.
        by: Label,
    },
    /// A holder offers its resource to this session.
    Offered {
        /// Which resource.
        resource: ResourceName,
        /// The holder's token.
        token: Token,
        /// What the holder calls itself.
        from: Label,
        /// How long the offer stands.
        length: Millis,
    },
    /// An offer to this session is over without a grant.
    OfferEnded {
        /// Which resource.
        resource: ResourceName,
        /// The holder's token.
        token: Token,
    },
    /// The successor has accepted what this session offered. Told once for each offer.
    OfferAccepted {
        /// Which resource.
        resource: ResourceName,
        /// The token of the lease offered.
        token: Token,
        /// The successor.
        by: SessionId,
        /// What it calls itself.
        label: Label,
    },
}

/// The answer to a command of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Everything asked for, in the order of the requests.
    Granted(Vec<Grant>),
    /// Not free; the session waits.
    Queued {
        /// How many waiters stand before it in the longest of its queues.
        ahead: u32,
    },
    /// The wait is over; nothing will be granted by it.
    Cancelled,
    /// The cancel came too late.
    AlreadyGranted(Vec<Grant>),
    /// The value is shown.
    ValueSet,
    /// The register is written.
    RegisterWritten,
    /// The resource is reserved for this session.
    Offered {
        /// The successor.
        to: SessionId,
    },
    /// The successor is ready; the grant follows when the holder releases.
    Accepted {
        /// The command under whose number it follows: the accept itself, or a wait for the same place that was there before.
        wait: CommandNumber,
    },
    /// The lease is given back, or its revoke acknowledged.
    Released,
    /// No effect, now or later.
    Refused(Refusal),
    /// The drain is shown.
    DrainingShown,
    /// Others can see whether the holder is ready.
    ReadySet,
}

/// One lease granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Which resource.
    pub resource: ResourceName,
    /// The token of this grant.
    pub token: Token,
    /// The token to fence with: a shared holder's is that of its group.
    pub fence: Token,
    /// The slot, if the name has slots: it fences as `NAME#slot`.
    pub slot: Option<u32>,
}

/// Why a wait ended without a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitEnding {
    /// Its length had passed.
    TimedOut,
    /// The offer that it stood for ended.
    OfferEnded,
    /// An operator changed the kind of the resource.
    KindChanged,
    /// Another request of the same session cancelled it. Only who was kept waiting hears this.
    Cancelled,
}

/// How a lease ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The holder gave it back.
    Released,
    /// The holder gave it to this session.
    HandedOver {
        /// The successor.
        to: SessionId,
    },
    /// The holder finished its work first and gave it back.
    Drained,
    /// The session passed its hard limit.
    Expired,
    /// A waiter took it between grace and the hard limit.
    Taken {
        /// The token of the waiter's grant.
        by: Token,
    },
    /// An operator ended it.
    Revoked {
        /// Who.
        by: Label,
        /// Why.
        reason: Reason,
    },
    /// The session was closed.
    SessionClosed,
    /// The machine was started anew.
    Rebooted,
    /// The state was restored from a backup, or its clocks could not be compared.
    Restored,
}

impl Ending {
    /// Whether the holder asked for it.
    pub const fn is_voluntary(&self) -> bool {
        matches!(self, Self::Released | Self::HandedOver { .. } | Self::Drained | Self::SessionClosed)
    }
}

/// Something that happened in the table, for watchers and for whoever waits on behalf of a plain session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A session began.
    SessionOpened {
        /// Which.
        session: SessionId,
        /// What its holder calls itself.
        label: Label,
    },
    /// A session ended.
    SessionEnded {
        /// Which.
        session: SessionId,
    },
    /// A lease was granted.
    Granted {
        /// The lease.
        grant: Grant,
        /// Whether it is shared.
        shared: bool,
        /// To which session.
        session: SessionId,
        /// What its holder calls itself.
        label: Label,
        /// What it shows.
        value: Value,
        /// By which of its commands.
        command: CommandNumber,
    },
    /// A holder shows another value.
    ValueSet {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Of which session.
        session: SessionId,
        /// What is shown now.
        value: Value,
    },
    /// A register was written or removed by its writer. One that goes with its lease is not told of again.
    RegisterWritten {
        /// Which resource.
        resource: ResourceName,
        /// Which register.
        key: RegisterKey,
        /// With which token.
        token: Token,
        /// Whether it was removed.
        removed: bool,
    },
    /// A lease ended.
    Ended {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Of which session.
        session: SessionId,
        /// What its holder called itself.
        label: Label,
        /// When, in log time: for an expiry the point at which it was over, which may lie before the entry.
        when: LogTime,
        /// How.
        how: Ending,
    },
    /// Every lease of a wait was granted (one event per wait, after those of its grants).
    WaitGranted {
        /// Whose wait.
        session: SessionId,
        /// The acquire or accept.
        command: CommandNumber,
        /// The leases.
        grants: Vec<Grant>,
    },
    /// A wait ended without a lease.
    WaitEnded {
        /// Whose wait.
        session: SessionId,
        /// The acquire or accept.
        command: CommandNumber,
        /// Why.
        why: WaitEnding,
    },
    /// A token was shown that was never granted.
    AlarmRaised {
        /// Which resource.
        resource: ResourceName,
        /// Which token.
        token: Token,
        /// What the one who showed it calls itself.
        by: Label,
    },
    /// An operator has answered an alarm.
    AlarmCleared {
        /// Which resource.
        resource: ResourceName,
        /// Which token was shown.
        token: Token,
        /// Who answered.
        by: Label,
        /// What was found.
        reason: Reason,
    },
    /// A holder shows that it drains.
    DrainingShown {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Of which session.
        session: SessionId,
        /// How many pieces of work are under way.
        in_flight: u32,
        /// How long they may still take at most.
        within: Millis,
    },
    /// A holder says that it is warming up, or ready.
    ReadySet {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Of which session.
        session: SessionId,
        /// Whether it is ready.
        ready: bool,
    },
}
