//! What passes between a client and the service, as values. How they become bytes is the wire's business.
//!
//! A request carries an id that its connection chose, and gets one response with that id, or none if the connection ends
//! first: then the outcome of what was sent is unknown. One exception: a streamed command that was applied gets no response,
//! because its answer is an item of its session. Items are pushed beside the responses, in their own order.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

pub use crate::change::{Change, Changes, MAX_WATCHED_VALUE_BYTES};
pub use crate::cluster::{
    ClusterCommand, ClusterRefusal, ClusterReply, ClusterView, Incarnation, Member, MemberError, MemberId,
    MemberRole, MemberView, check_address, check_member_name,
};

use crate::answer::{Ending, Item, Reply};
use crate::command::{Attach, Numbered, Op, Open, Operator, SessionCommand};
use crate::gap::{NameGaps, OutageView};
use crate::id::{ItemNumber, Nonce, RenewalNumber, Revision, SessionId, Token};
use crate::name::{RegisterKey, ResourceName, Value};
use crate::table::{AlarmView, LeaseView, PastView, SessionView};
use crate::time::Millis;

/// Version of the protocol between clients and the service. A service refuses a greater one than its own.
pub const PROTOCOL_VERSION: u32 = 1;
/// Most resources or sessions in one page of a listing.
pub const MAX_PAGE: usize = 1_000;

/// The id that a connection gives to a request. Unique among the requests of the connection that are not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// From a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Begins a session, or finds it again.
    Open(Open),
    /// Attaches this connection to a streamed session.
    Attach {
        /// Which, and how far the client is.
        attach: Attach,
        /// Proves that the session is the client's own.
        nonce: Nonce,
    },
    /// Renews a session that this connection has opened or attached to.
    Renew {
        /// Which session.
        session: SessionId,
        /// The number of this sending.
        number: RenewalNumber,
        /// The last item processed.
        seen: ItemNumber,
    },
    /// A command of a session that this connection is attached to.
    Command(SessionCommand),
    /// Something that needs no session.
    Operator(Operator),
    /// Something for the nodes themselves.
    Cluster(ClusterCommand),
    /// A look at the table.
    Read(Query),
    /// A request of a plain session, with its own proof: no connection belongs to it.
    Plain {
        /// Which session.
        session: SessionId,
        /// Proves that the session is the caller's own.
        nonce: Nonce,
        /// What is wanted.
        plain: Plain,
    },
    /// Every change from now on, or after a revision.
    Watch(Watch),
    /// An end to a watch of this connection.
    StopWatch {
        /// The id of the request that began it.
        watch: RequestId,
    },
}

/// What a plain session can ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plain {
    /// Shows that the session is alive.
    Renew,
    /// A command.
    Command {
        /// What is wanted.
        op: Op,
        /// Whether an acquire that is queued is answered only when its wait is over. A caller that goes away before gives the
        /// wait up, unless the call has a number.
        hold: bool,
        /// What the call is known by when it is sent again.
        numbered: Option<Numbered>,
    },
}

/// Which changes, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Only of resources whose names begin with this.
    pub prefix: String,
    /// Only later ones than this; nothing means from now on.
    pub after: Option<Revision>,
}

/// A question about the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// One resource.
    Lease(ResourceName),
    /// A page of resources.
    Leases {
        /// Only names that begin with this.
        prefix: String,
        /// Only names after this one.
        after: Option<ResourceName>,
        /// At most so many; more than [`MAX_PAGE`] is cut to it.
        limit: usize,
    },
    /// A page of sessions.
    Sessions {
        /// Only ids after this one.
        after: Option<SessionId>,
        /// At most so many; more than [`MAX_PAGE`] is cut to it.
        limit: usize,
    },
    /// The past of a resource.
    History(ResourceName),
    /// Whether a token is current.
    Check {
        /// Of which resource.
        resource: ResourceName,
        /// Which token.
        token: Token,
    },
    /// A register.
    Register {
        /// Of which resource.
        resource: ResourceName,
        /// Which register.
        key: RegisterKey,
    },
    /// The service itself.
    Status,
    /// The nodes that keep the log.
    Cluster,
    /// The alarms that are raised.
    Alarms,
    /// The gaps of names.
    Gaps {
        /// Of which names.
        of: GapsOf,
        /// Only those that ended no longer ago than this.
        last: Option<Millis>,
    },
}

impl Query {
    /// Whether its answer is a page, which may be large.
    pub const fn is_listing(&self) -> bool {
        matches!(self, Self::Leases { .. } | Self::Sessions { .. } | Self::Alarms | Self::Gaps { .. })
    }
}

/// Whose gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GapsOf {
    /// Of one resource.
    Name(ResourceName),
    /// A page of resources that have any.
    Page {
        /// Only names that begin with this.
        prefix: String,
        /// Only names after this one.
        after: Option<ResourceName>,
        /// At most so many; more than [`MAX_PAGE`] is cut to it.
        limit: usize,
    },
}

/// From the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToClient {
    /// The response to a request.
    Response {
        /// Which request.
        id: RequestId,
        /// The response.
        response: Response,
    },
    /// Answers and events of a session that this connection is attached to.
    Items {
        /// Which session.
        session: SessionId,
        /// In order.
        items: Vec<Item>,
    },
    /// A wish for the next renewal of a session that has just renewed through this connection, in this long from the arrival of the
    /// wish. It renews nothing, and nobody has to follow it.
    Hint {
        /// Which session.
        session: SessionId,
        /// In how long.
        length: Millis,
    },
    /// Changes for a watch of this connection. The first are empty and say where the watch begins.
    Watched {
        /// The id of the request that began it.
        watch: RequestId,
        /// The changes.
        changes: Changes,
        /// Whether more of the same revision follow: they did not fit one message.
        more: bool,
    },
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The table's word.
    Reply(Reply),
    /// The answer to a question.
    Read {
        /// The last entry that the answer takes into account.
        revision: Revision,
        /// The answer.
        answer: ReadAnswer,
    },
    /// The word of the nodes themselves.
    Cluster(ClusterReply),
    /// Neither done nor refused by the table.
    Failed(Failure),
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadAnswer {
    /// One resource; nothing if it was never held or is forgotten.
    Lease(Option<Box<LeaseView>>),
    /// A page of resources.
    Leases {
        /// In order of their names.
        leases: Vec<LeaseView>,
        /// Whether there are more after the last.
        more: bool,
    },
    /// A page of sessions.
    Sessions {
        /// In order of their ids.
        sessions: Vec<SessionView>,
        /// Whether there are more after the last.
        more: bool,
    },
    /// The past of a resource, newest first.
    History(Vec<PastView>),
    /// Whether a token is current.
    Check(TokenCheck),
    /// A register and the token it was written with.
    Register(Option<(Value, Token)>),
    /// The service itself.
    Status(Status),
    /// The nodes that keep the log.
    Cluster(ClusterView),
    /// The alarms that are raised, by name.
    Alarms(Vec<AlarmView>),
    /// Gaps.
    Gaps(GapsView),
}

/// The answer to a question about gaps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GapsView {
    /// In order of their names.
    pub names: Vec<NameGaps>,
    /// Ask again for the names after this one; nothing if these are all.
    pub next: Option<ResourceName>,
    /// When nobody led, newest first.
    pub outages: Vec<OutageView>,
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenCheck {
    /// It is that of a present lease.
    Current,
    /// The lease has ended so.
    Ended(Ending),
    /// No present lease has it, and the history does not know it, or not any more.
    NotKnown,
    /// It is above all that were granted here: the state may have been set back. A question raises no alarm.
    Ahead {
        /// The newest number drawn here.
        newest: u64,
    },
}

/// The service itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The release that serves.
    pub version: String,
    /// The process that serves.
    pub pid: u32,
    /// Sessions in the table.
    pub sessions: u64,
    /// Resources in the table.
    pub resources: u64,
    /// Index of the last entry applied.
    pub applied: u64,
    /// Log time of the last entry applied, as a length since the log began.
    pub log_time: Millis,
    /// Time cut from log time so far because the service stood still.
    pub cut: Millis,
}

/// Why the table was not asked, or its word is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It was sent on its way, and nobody here can say whether it took effect.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    /// Not taken in; no effect. Asking again later is right.
    #[error("the service takes in no requests now: {why}")]
    Unavailable {
        /// Why.
        why: String,
    },
    /// The nonce does not fit the session, or the connection has not attached to it. No effect.
    #[error("session {session} does not belong to this connection")]
    NotYourSession {
        /// The session named.
        session: SessionId,
    },
    /// The changes after that revision are not kept any more. Look at the present state, then watch after its revision.
    #[error("changes after revision {after} are not kept any more; the oldest to watch after is {oldest}")]
    RevisionTooOld {
        /// After which revision changes were asked for.
        after: Revision,
        /// The first after which all changes are kept.
        oldest: Revision,
    },
    /// That revision does not exist: it is another store's, or this one was set back.
    #[error(
        "revision {after} is ahead of the newest, {newest}: it is of another store, or this one was set back"
    )]
    RevisionAhead {
        /// After which revision changes were asked for.
        after: Revision,
        /// The newest.
        newest: Revision,
    },
    /// One more watch is not possible now. No effect.
    #[error("limit of {limit} watches is reached")]
    TooManyWatches {
        /// The limit, of the connection or of the service.
        limit: usize,
    },
    /// What waits for readers leaves no room for a page, or not in time. No effect. Asking again later is right.
    #[error(
        "there is no room for a page now: answers that wait for their readers have a limit of {limit} bytes together"
    )]
    TooMuchUnread {
        /// The limit, of the process.
        limit: usize,
    },
    /// Not a request that this release understands. No effect.
    #[error("the request is not understood: {why}")]
    BadRequest {
        /// Why.
        why: String,
    },
}
