//! What the log carries: entries of commands.
//!
//! Values in here were checked where they entered (their types allow no others); whether a command is *allowed* is decided by
//! the table when it is applied, because only there is it known what is true at that point of the log.

mod encoding;

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{
    AttachNumber, CallNumber, CommandNumber, Epoch, ItemNumber, Nonce, RenewalNumber, SessionId, Token,
};
use crate::limits::{MAX_POLICY, MAX_SLOTS};
use crate::name::{Label, Reason, RegisterKey, ResourceName, Value};
use crate::table::Config;
use crate::time::{LogTime, Millis};

pub(crate) use encoding::decode_versioned;
pub use encoding::{DecodeError, encode_behind};

/// One entry of the log: commands that share one point in log time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in log time.
    pub at: LogTime,
    /// What, in order; renewals are applied before all others. An entry without commands only moves time.
    pub commands: Vec<Command>,
}

/// The version of the entry format that [`Entry::encode`] writes.
const ENTRY_VERSION: u8 = 1;

impl Entry {
    /// The bytes that go into the log.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_behind(Vec::new())
    }

    /// The same behind other bytes, which may have room for them already.
    pub fn encode_behind(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.push(ENTRY_VERSION);
        encode_behind(bytes, self)
    }

    /// Reads an entry from the log.
    ///
    /// # Errors
    /// When the bytes were written by a later release or are not an entry.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode_versioned("entry", ENTRY_VERSION, bytes)
    }
}

/// One command of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A session begins, or is found again by its nonce.
    Open(Open),
    /// A connection takes over a streamed session.
    Attach(Attach),
    /// A session shows that it is alive.
    Renew {
        /// Which session.
        session: SessionId,
        /// The number of this sending; equal or lower ones are ignored.
        number: RenewalNumber,
        /// The last answer or event that the client has processed.
        seen: ItemNumber,
    },
    /// A session wants something.
    Session(SessionCommand),
    /// An operator wants something.
    Operator(Operator),
    /// The leader tidies up what has become due. Each named thing is judged again when this is applied.
    Tidy(Vec<Due>),
    /// The node itself has something to say.
    System(System),
    /// A plain session shows that it is alive: the next renewal, whatever its number.
    RenewPlain {
        /// Which session.
        session: SessionId,
    },
    /// A streamed command that there was no room on the disk for: it gets its number and is refused, so that what follows it in its
    /// stream can be taken in.
    NoRoom {
        /// Whose.
        session: SessionId,
        /// Its place in the stream.
        sequence: Sequence,
    },
    /// The connection through which a session was attached has ended: its process may have. It is a sign for the history of gaps, and
    /// changes nothing about the session. Only in logs of version 3.
    Detached {
        /// Which session.
        session: SessionId,
        /// Through which attachment: the word about an earlier one says nothing.
        attach: AttachNumber,
    },
}

impl Command {
    /// Whether it is one of those that count before everything else in an entry.
    pub const fn is_renewal(&self) -> bool {
        matches!(self, Self::Renew { .. } | Self::RenewPlain { .. })
    }
}

/// Begins a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Drawn by the client; repeating it finds the same session.
    pub nonce: Nonce,
    /// What the holder calls itself.
    pub label: Label,
    /// How long the session lives after a renewal.
    pub ttl: Millis,
    /// What happens when it is not renewed.
    pub policies: Policies,
    /// Streamed or plain.
    pub kind: SessionKind,
}

/// How a session talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// Two ordered, resumable streams.
    Streamed,
    /// Single requests without numbers; the answer to each renewal lists the leases held.
    Plain,
}

/// What happens to the leases of a session that is not renewed. All lengths count from the moment it is overdue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policies {
    /// For this long the leases of an overdue session go to nobody, and a renewal restores them.
    pub grace: Millis,
    /// From grace to hard a lease goes to a waiter, present or new; while nobody waits the holder may come back. Then it ends.
    pub hard: Millis,
    /// After an involuntary end the resource goes to nobody for this long, counted from when it first could have.
    pub delay: Millis,
}

/// Policies that contradict themselves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The hard limit lies before the end of grace.
    #[error(
        "hard limit of {hard} is below the grace of {grace}; a holder would lose its lease inside its own grace"
    )]
    HardBelowGrace {
        /// The hard limit.
        hard: Millis,
        /// The grace.
        grace: Millis,
    },
    /// Longer than a day.
    #[error("{which} of {length} is above the maximum of {limit}")]
    TooLong {
        /// Which of the three.
        which: &'static str,
        /// What was asked for.
        length: Millis,
        /// The limit.
        limit: Millis,
    },
}

impl Policies {
    /// Whether these make sense together.
    ///
    /// # Errors
    /// When one is longer than a day, or hard is shorter than grace.
    pub fn check(&self) -> Result<(), PolicyError> {
        for (which, length) in [("grace", self.grace), ("hard limit", self.hard), ("delay", self.delay)] {
            if length > MAX_POLICY {
                return Err(PolicyError::TooLong { which, length, limit: MAX_POLICY });
            }
        }
        if self.hard < self.grace {
            return Err(PolicyError::HardBelowGrace { hard: self.hard, grace: self.grace });
        }
        Ok(())
    }
}

/// Attaches a connection to a streamed session. The nonce was checked before the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// Which session.
    pub session: SessionId,
    /// Greater than that of every earlier attachment.
    pub attach: AttachNumber,
    /// The last answer or event that the client has processed.
    pub seen: ItemNumber,
}

/// A command of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCommand {
    /// Which session.
    pub session: SessionId,
    /// Its place in the session's stream.
    pub sequence: Sequence,
    /// What is wanted.
    pub op: Op,
}

/// The place of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sequence {
    /// In a streamed session.
    Streamed {
        /// The attachment it came through.
        attach: AttachNumber,
        /// Its number.
        number: CommandNumber,
        /// The last answer or event that the client has processed.
        seen: ItemNumber,
    },
    /// In a plain session: the next one.
    Plain,
    /// The same, of a call that is known by its number when it is sent again. Only in logs of version 5.
    Numbered(Numbered),
}

/// How the client of a plain session names a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered {
    /// Its number.
    pub number: CallNumber,
    /// No number below this one is wanted any more.
    pub settled: CallNumber,
}

/// What a session can ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// One lease, or several at once: all or none.
    Acquire(Acquire),
    /// Gives up a place in the queues.
    Cancel {
        /// The number of the acquire.
        acquire: CommandNumber,
    },
    /// Shows another value with a lease held.
    SetValue {
        /// Which resource.
        resource: ResourceName,
        /// The token held.
        token: Token,
        /// The new value.
        value: Value,
    },
    /// Writes a register of a resource, if the token is current.
    WriteRegister {
        /// Which resource.
        resource: ResourceName,
        /// The token held.
        token: Token,
        /// Which register.
        key: RegisterKey,
        /// The new value; nothing removes the register.
        value: Option<Value>,
        /// Whether it goes when the lease ends.
        with_lease: bool,
    },
    /// Reserves the resource for a successor.
    Offer(Offer),
    /// Takes up an offer: from now on the successor is ready.
    Accept {
        /// Which resource.
        resource: ResourceName,
        /// The token of the holder that offers.
        token: Token,
        /// The value to show once granted.
        value: Value,
    },
    /// Gives a lease back. Also the acknowledgement of a revoke.
    Release {
        /// Which resource.
        resource: ResourceName,
        /// The token held.
        token: Token,
        /// Whether the work was drained before.
        drained: bool,
    },
    /// Ends the session and all its leases.
    Close,
    /// Shows that the work under a lease is being drained. It changes nothing about who is granted what. Only in logs of version 2.
    SetDraining {
        /// Which resource.
        resource: ResourceName,
        /// The token held.
        token: Token,
        /// How many pieces of work are still under way.
        in_flight: u32,
        /// How long that may still take at most.
        within: Millis,
    },
    /// Says that the holder is warming up, or ready to act: what others see of a gap. It changes nothing about who is granted what. Only
    /// in logs of version 3.
    SetReady {
        /// Which resource.
        resource: ResourceName,
        /// The token held.
        token: Token,
        /// Whether it is ready.
        ready: bool,
    },
    /// Gives up what the acquire with this number asked for. If it has not arrived, it never is applied. Only in logs of version 5.
    CancelCall {
        /// The number of the acquire, as its client chose it.
        call: CallNumber,
    },
}

/// Asks for leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acquire {
    /// The resources, each at most once: all or none.
    pub requests: Vec<Request>,
    /// The value to show with each.
    pub value: Value,
    /// How long to wait in the queues; nothing refuses at once what is not free.
    pub wait: Option<Millis>,
}

/// One resource of an acquire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Which resource.
    pub resource: ResourceName,
    /// In which mode.
    pub mode: Mode,
}

/// How a resource is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mode {
    /// By one.
    Exclusive,
    /// By any number that also share.
    Shared,
    /// By one in each of `of` slots.
    Slot {
        /// How many slots the name has.
        of: u32,
    },
}

impl Mode {
    /// Whether the number of slots is one that a name may have.
    pub const fn is_valid(self) -> bool {
        match self {
            Self::Exclusive | Self::Shared => true,
            Self::Slot { of } => of >= 1 && of <= MAX_SLOTS,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => write!(f, "an exclusive name"),
            Self::Shared => write!(f, "a shared name"),
            Self::Slot { of: 1 } => write!(f, "a name with 1 slot"),
            Self::Slot { of } => write!(f, "a name with {of} slots"),
        }
    }
}

/// Reserves a resource for a successor until the holder releases it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Which resource.
    pub resource: ResourceName,
    /// The token held.
    pub token: Token,
    /// For whom.
    pub to: Successor,
    /// How long the offer stands.
    pub length: Millis,
}

/// Who is to come next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Successor {
    /// The first waiter whose session is not overdue.
    FirstWaiter,
    /// The first such waiter with this label.
    Labelled(Label),
    /// This session, waiting or not.
    Session(SessionId),
}

/// What an operator can do without a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// Asks the holder to release, or to hand over.
    AskRelease {
        /// Which resource.
        resource: ResourceName,
        /// Only this token; nothing means whoever holds it.
        token: Option<Token>,
        /// To whom, if the holder should hand over.
        successor: Option<Successor>,
        /// Who asks.
        by: Label,
    },
    /// Ends a lease.
    Revoke {
        /// Which resource.
        resource: ResourceName,
        /// Which lease: a revoke never touches another.
        token: Token,
        /// Who does it.
        by: Label,
        /// Why.
        reason: Reason,
        /// Grant to the next at once; only the fence protects then.
        now: bool,
    },
    /// Changes what kind of resource a name is. Writers of the old kind are not fenced by tokens of the new one.
    ChangeKind {
        /// Which resource.
        resource: ResourceName,
        /// A mode of the new kind.
        mode: Mode,
        /// Who does it.
        by: Label,
    },
    /// Answers an alarm: the resource is granted again.
    ClearAlarm {
        /// Which resource.
        resource: ResourceName,
        /// The token that was shown: an alarm of another is not answered by this.
        token: Token,
        /// Who does it.
        by: Label,
        /// What was found.
        reason: Reason,
    },
}

/// Something that has become due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Due {
    /// A session that may have passed its hard limit.
    Session(SessionId),
    /// A resource on which something may have ended: a cool-down, an offer, a wait, a revoked or takeable lease.
    Resource(ResourceName),
}

/// What the node itself puts into the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum System {
    /// The first command of a log: the choices that hold for its whole life.
    Found(Config),
    /// The machine was started anew: every process with a session on it is gone.
    Rebooted,
    /// The state comes from a backup, or its clocks cannot be compared any more: a new epoch begins, everything ends, and
    /// nothing is granted for `wait`.
    Restored {
        /// The new epoch; never lower than the present one.
        epoch: Epoch,
        /// How long nothing is granted.
        wait: Millis,
    },
    /// Every member knows what this version may put into the log: from here on it may.
    ClusterVersion {
        /// The version.
        version: u32,
    },
    /// Nobody led before this entry, and log time stood still. Only in logs of version 3.
    Unserved {
        /// For about how long; nothing if nobody knows.
        length: Option<Millis>,
    },
    /// Before that somebody led who stamped nothing, and log time stood still as well. Only in logs of version 4.
    Unstamped {
        /// For about how long.
        length: Millis,
    },
}
