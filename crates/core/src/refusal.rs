//! Refusals: why nothing was done. A refusal has no effect, now or later.

use serde::{Deserialize, Serialize};

use crate::answer::Ending;
use crate::command::Mode;
use crate::id::{AttachNumber, CallNumber, CommandNumber, ItemNumber, SessionId, Token};
use crate::name::{Label, ResourceName};
use crate::time::Millis;

/// Why a resource cannot be granted now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unavailable {
    /// Somebody holds it.
    Held {
        /// What the holder calls itself.
        holder: Label,
        /// Its token.
        token: Token,
        /// Whether the holder is overdue and its grace runs.
        overdue: bool,
    },
    /// Others were first.
    Queue {
        /// How many wait.
        waiting: u32,
    },
    /// A lease was revoked, and its holder may not know yet.
    RevokePending {
        /// The token revoked.
        token: Token,
        /// How long at most.
        remaining: Millis,
    },
    /// A cool-down runs.
    CoolDown {
        /// How long.
        remaining: Millis,
    },
    /// The state was restored, and holders from before may still act.
    RestoreWait {
        /// How long.
        remaining: Millis,
    },
    /// A token was shown that was never granted: the state may have been set back, and an operator must look.
    Alarm {
        /// The token shown.
        token: Token,
    },
}

/// Why nothing was done. A refusal has no effect, now or later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The session is over. What it had sent and got no answer to is unknown.
    #[error("session {session} has ended")]
    SessionEnded {
        /// The session.
        session: SessionId,
    },
    /// The session must be renewed before it can be granted anything.
    #[error("session is overdue; renew it first")]
    SessionOverdue,
    /// A newer connection has taken over the session.
    #[error("frame of attachment {attach}, but the session is attached as {current}")]
    OlderAttach {
        /// The frame's.
        attach: AttachNumber,
        /// The session's.
        current: AttachNumber,
    },
    /// A command is missing before this one.
    #[error("command {number} leaves a gap; send again from {expected}")]
    CommandGap {
        /// The command.
        number: CommandNumber,
        /// The first missing one.
        expected: CommandNumber,
    },
    /// The client says it has seen what does not exist yet.
    #[error("seen {seen} is above the newest item {newest}")]
    SeenAhead {
        /// What the client says.
        seen: ItemNumber,
        /// What there is.
        newest: ItemNumber,
    },
    /// The client does not say what it has seen.
    #[error("more than {limit} answers and events are unseen; attach and say what was seen")]
    TooManyUnseen {
        /// The limit.
        limit: usize,
    },
    /// A streamed frame for a plain session, or the other way round.
    #[error("the session was opened in the other way of talking")]
    WrongSessionKind,
    /// A ttl outside its limits.
    #[error("ttl of {ttl} is outside {min} to {max}")]
    TtlOutOfRange {
        /// What was asked for.
        ttl: Millis,
        /// The shortest.
        min: Millis,
        /// The longest.
        max: Millis,
    },
    /// Policies that contradict themselves.
    #[error(
        "policies are not possible: grace, hard limit and delay at most a day each, hard limit at least grace"
    )]
    BadPolicies,
    /// A number of slots, a length or a set of resources that cannot be.
    #[error("request is not possible: {what}")]
    BadRequest {
        /// What is wrong with it.
        what: BadRequest,
    },
    /// The name is of another kind since its first grant.
    #[error("resource is {has}, and was asked for as another kind")]
    WrongKind {
        /// A mode of its kind.
        has: Mode,
    },
    /// The resource is not free.
    #[error("resource {resource} is not free")]
    NotFree {
        /// Which one.
        resource: ResourceName,
        /// Why.
        why: Unavailable,
    },
    /// The lease named is not held by whoever names it.
    #[error("token {token} of {resource} is not held by this session")]
    NotHolder {
        /// Which resource.
        resource: ResourceName,
        /// Which token.
        token: Token,
        /// How the lease ended, if the history still knows.
        ended: Option<Ending>,
    },
    /// The lease named is not a present one.
    #[error("token {token} of {resource} is not current")]
    NotCurrent {
        /// Which resource.
        resource: ResourceName,
        /// Which token.
        token: Token,
        /// How the lease ended, if the history still knows.
        ended: Option<Ending>,
    },
    /// Nobody holds the resource.
    #[error("nobody holds {resource}")]
    NotHeld {
        /// Which resource.
        resource: ResourceName,
    },
    /// No such wait.
    #[error("command {acquire} is not a wait of this session")]
    NoSuchWait {
        /// The acquire named.
        acquire: CommandNumber,
    },
    /// Nobody to offer to.
    #[error("no such successor")]
    NoSuchSuccessor,
    /// No offer to accept.
    #[error("no offer of {resource} with that token stands for this session")]
    NoOffer {
        /// Which resource.
        resource: ResourceName,
    },
    /// One of the limits of the table.
    #[error("limit of {limit} {what} is reached")]
    LimitReached {
        /// Of what.
        what: LimitedThing,
        /// The limit.
        limit: usize,
    },
    /// Every token of this epoch is used.
    #[error("the grant counter of this epoch is used up; restore with a new epoch")]
    TokensExhausted,
    /// The token named was never granted here: it is of a later life of the state, or made up. The resource is granted to nobody
    /// until an operator has looked.
    #[error(
        "token {token} of {resource} was never granted here: the newest is {newest}; the state may have been set back, and the resource is \
         granted to nobody until an operator has looked"
    )]
    TokenAhead {
        /// Which resource.
        resource: ResourceName,
        /// Which token.
        token: Token,
        /// The newest number drawn here.
        newest: u64,
    },
    /// No such alarm is raised.
    #[error("no alarm with token {token} is raised for {resource}")]
    NoSuchAlarm {
        /// Which resource.
        resource: ResourceName,
        /// Which token.
        token: Token,
        /// The token of the alarm that is raised, if there is one.
        raised: Option<Token>,
    },
    /// The disk is full.
    #[error("the disk is full; only what renews, ends or frees something is taken in")]
    NoRoom,
    /// A member of the cluster does not know the command yet. The same command is taken in once all do.
    #[error(
        "a member of the cluster does not know this command yet; it is taken in once every member is upgraded"
    )]
    NotYetInUse,
    /// Another call of the session had this number.
    #[error("number {call} was that of another call; give each call a number of its own")]
    NumberReused {
        /// The number.
        call: CallNumber,
    },
}

/// What is wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum BadRequest {
    /// No resource named.
    #[error("no resource is named")]
    NoResource,
    /// Too many resources named.
    #[error("more than 64 resources are named")]
    TooManyResources,
    /// One named twice.
    #[error("a resource is named twice")]
    NamedTwice,
    /// Slots out of range.
    #[error("the number of slots is outside 1 to 10000")]
    BadSlots,
    /// A length above its limit.
    #[error("the length is above a day")]
    TooLong,
    /// A nonce that belongs to a session which was opened in another way.
    #[error("the nonce is that of a session with another ttl, label, policies or kind; draw a new one")]
    NonceTaken,
}

/// What a limit of the table counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum LimitedThing {
    /// Leases of one session.
    #[error("leases of the session")]
    LeasesOfSession,
    /// Waits of one session.
    #[error("waits of the session")]
    WaitsOfSession,
    /// Sessions of the table.
    #[error("sessions")]
    Sessions,
    /// Waiters of one resource.
    #[error("waiters of the resource")]
    WaitersOfResource,
    /// Names of the table.
    #[error("resources")]
    Resources,
    /// Registers of one resource.
    #[error("registers of the resource")]
    RegistersOfResource,
    /// Numbers of calls that one session has not settled.
    #[error("numbers of the session that are not settled")]
    CallsOfSession,
}
