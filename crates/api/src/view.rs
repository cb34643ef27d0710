//! Answers as JSON. These field names are an interface: v1 may add to them and changes none. What does not apply is null.

/// Answers: each member with its type and where it comes from. With `new` an answer is made of what the table shows, with `from` of what a
/// call gives.
macro_rules! views {
    (@new $name:ident $of:ident: $source:ty, { $($made:tt)* }) => {
        impl $name {
            /// As the table shows it.
            pub fn new($of: $source) -> Self {
                Self { $($made)* }
            }
        }
    };
    (@from $name:ident $of:ident: $source:ty, { $($made:tt)* }) => {
        impl From<$source> for $name {
            fn from($of: $source) -> Self {
                Self { $($made)* }
            }
        }
    };
    ($(
        $(#[$about:meta])*
        $name:ident $way:ident($of:ident: $source:ty) {$(
            $(#[$said:meta])*
            $visible:vis $member:ident: $type:ty = $value:expr
        ),* $(,)?}
    )+) => {$(
        $(#[$about])*
        #[derive(Debug, Serialize)]
        #[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
        pub struct $name {$(
            $(#[$said])*
            $visible $member: $type,
        )*}

        views!(@$way $name $of: $source, { $($member: $value),* });
    )+};
}

mod cluster;
mod event;
mod gaps;
mod lease;

use leasehold_core::protocol::{self, TokenCheck};
use leasehold_core::table::{AlarmView, LeaseView, PastView, SessionView};
use leasehold_core::{Millis, Revision, Token, Value};
use serde::Serialize;

pub use self::cluster::{Changed, Cluster, LocalCluster, LocalMember, Member, Transferred};
pub use self::event::{Changes, Event};
pub use self::gaps::{Gap, GapPart, GapSide, Gaps, NameGaps, Outage};
pub use self::lease::{Alarm, Draining, Ending, Holder, Lease, Offer, Past, Readiness, Session, Waiter};
use self::lease::{digits, text};
use crate::answer::{self, AcquireOutcome, AtRevision, CancelAnswer, Page};
use crate::{ApiError, Number};

/// Nothing to say but that it is done.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Done {}

impl From<()> for Done {
    fn from((): ()) -> Self {
        Self {}
    }
}

views! {
    /// A session that was opened.
    Opened from(opened: answer::SessionOpened) {
        session: Number = opened.key.id.get().into(),
        /// A secret: it goes into the header `Leasehold-Session` of every call for this session.
        session_key: String = opened.key.reveal(),
        ttl_ms: u64 = opened.ttl.get(),
        drift_ppm: u32 = opened.drift.ppm(),
        /// Whether the session existed already: then nothing was renewed.
        repeated: bool = opened.repeated,
        /// The renewal that the open counts as; null if it was repeated.
        // A client that repeats an open may not know when it was first sent: only a renewal counts for it.
        renewal: Option<Number> = (!opened.repeated).then(|| 0.into()),
        renew_every_ms: Option<u64> = opened.advice.map(|advice| advice.renew_every.get()),
        margin_ms: Option<u64> = opened.advice.map(|advice| advice.margin.get()),
    }

    /// A session that was renewed, with everything it has.
    Renewed from(renewed: answer::SessionRenewed) {
        renewal: Number = renewed.renewal.get().into(),
        leases: Vec<Held> = renewed.holdings.leases.iter().map(Held::new).collect(),
        waits: Vec<Wait> = renewed.holdings.waits.iter().map(Wait::new).collect(),
    }

    /// A lease of a session.
    Held new(held: &leasehold_core::HeldLease) {
        #[serde(flatten)]
        grant: Grant = Grant::new(&held.grant),
        release_requested: bool = held.release_requested,
    }

    /// A lease that was granted.
    Grant new(grant: &leasehold_core::Grant) {
        resource: String = grant.resource.to_string(),
        token: Number = grant.token.get().into(),
        /// The token to send with writes.
        fence_token: Number = grant.fence.get().into(),
        slot: Option<u32> = grant.slot,
    }

    /// A lease that a call was granted.
    Granted new(granted: &(leasehold_core::Grant, bool)) {
        #[serde(flatten)]
        grant: Grant = Grant::new(&granted.0),
        /// Whether the session still holds it: in a repeated answer it may be over.
        held: bool = granted.1,
    }

    /// A wait of a session.
    Wait new(wait: &leasehold_core::Waited) {
        acquire: Number = wait.acquire.get().into(),
        resources: Vec<String> = wait.resources.iter().map(ToString::to_string).collect(),
    }
}

/// What became of an acquire.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Acquired {
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["granted", "queued"])))]
    outcome: &'static str,
    acquire: Number,
    /// The leases count from the sending of this renewal until a later one lists them.
    renewal: Number,
    leases: Vec<Granted>,
    ahead: Option<u32>,
    /// Whether a call with this number had arrived before, and this is its answer.
    repeated: bool,
}

/// What became of a cancel.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Cancelled {
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["cancelled", "already-granted"])))]
    outcome: &'static str,
    leases: Vec<Grant>,
    /// Whether a call with this number had arrived before, and this is its answer.
    repeated: bool,
}

impl Acquired {
    /// Whether the session waits, and the call is to be continued.
    pub fn is_queued(&self) -> bool {
        self.ahead.is_some()
    }
}

impl From<answer::Acquired> for Acquired {
    fn from(acquired: answer::Acquired) -> Self {
        let answer::Acquired { acquire, renewal, repeated, outcome } = acquired;
        let (outcome, leases, ahead) = match outcome {
            AcquireOutcome::Granted(granted) => ("granted", granted.iter().map(Granted::new).collect(), None),
            AcquireOutcome::Queued { ahead } => ("queued", Vec::new(), Some(ahead)),
        };
        Self {
            outcome,
            acquire: acquire.get().into(),
            renewal: renewal.get().into(),
            leases,
            ahead,
            repeated,
        }
    }
}

impl From<CancelAnswer> for Cancelled {
    fn from(CancelAnswer { outcome, repeated }: CancelAnswer) -> Self {
        match outcome {
            answer::Cancelled::Cancelled => Self { outcome: "cancelled", leases: Vec::new(), repeated },
            answer::Cancelled::AlreadyGranted(held) => {
                Self { outcome: "already-granted", leases: held.iter().map(Grant::new).collect(), repeated }
            }
        }
    }
}

views! {
    /// One resource, or null if it was never held or is forgotten.
    LeaseAnswer from(seen: AtRevision<Option<LeaseView>>) {
        revision: Number = number(seen.revision),
        lease: Option<Lease> = seen.answer.as_ref().map(Lease::new),
    }

    /// A page of resources.
    Leases from(seen: AtRevision<Page<LeaseView>>) {
        revision: Number = number(seen.revision),
        leases: Vec<Lease> = seen.answer.items.iter().map(Lease::new).collect(),
        /// Give it as `after` for the next page; null at the end.
        next: Option<String> = seen.answer.next().map(|last| last.resource.to_string()),
    }

    /// A page of sessions.
    Sessions from(seen: AtRevision<Page<SessionView>>) {
        revision: Number = number(seen.revision),
        sessions: Vec<Session> = seen.answer.items.iter().map(Session::new).collect(),
        /// Give it as `after` for the next page; null at the end.
        next: Option<Number> = seen.answer.next().map(|last| last.session.get().into()),
    }

    /// The alarms that are raised.
    Alarms from(seen: AtRevision<Vec<AlarmView>>) {
        revision: Number = number(seen.revision),
        alarms: Vec<Alarm> = seen.answer.iter().map(Alarm::new).collect(),
    }

    /// The leases of the past on a resource.
    History from(seen: AtRevision<Vec<PastView>>) {
        revision: Number = number(seen.revision),
        history: Vec<Past> = seen.answer.iter().map(Past::new).collect(),
    }

    /// A lease that was ended.
    Revoked from(held_back: Millis) {
        /// For how long at most the resource still goes to nobody.
        held_back_ms: u64 = held_back.get(),
    }

    /// The holder that was asked to release.
    Asked from(asked: answer::Asked) {
        token: Number = asked.token.get().into(),
        label: String = asked.holder.to_string(),
    }

    /// A register, or null if it is not written or went with its lease.
    RegisterAnswer from(seen: AtRevision<Option<(Value, Token)>>) {
        revision: Number = number(seen.revision),
        register: Option<Register> = seen.answer.as_ref().map(Register::new),
    }

    /// What a register holds.
    Register new(register: &(Value, Token)) {
        value: Option<String> = text(&register.0),
        value_hex: Option<String> = digits(&register.0),
        token: Number = register.1.get().into(),
    }

    /// The service itself.
    Status from(status: protocol::Status) {
        version: String = status.version,
        pid: u32 = status.pid,
        sessions: u64 = status.sessions,
        resources: u64 = status.resources,
        revision: Number = status.applied.into(),
        log_time_ms: u64 = status.log_time.get(),
        log_time_cut_ms: u64 = status.cut.get(),
    }
}

/// Whether a token is current.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Check {
    revision: Number,
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["current", "ended", "not-known", "ahead"])))]
    state: &'static str,
    ending: Option<Ending>,
    newest: Option<Number>,
}

impl From<AtRevision<TokenCheck>> for Check {
    fn from(seen: AtRevision<TokenCheck>) -> Self {
        let (state, ending, newest) = match &seen.answer {
            TokenCheck::Current => ("current", None, None),
            TokenCheck::Ended(how) => ("ended", Some(Ending::new(how)), None),
            TokenCheck::NotKnown => ("not-known", None, None),
            TokenCheck::Ahead { newest } => ("ahead", None, Some((*newest).into())),
        };
        Self { revision: number(seen.revision), state, ending, newest }
    }
}

/// A problem as RFC 9457 has it, with a code, its kind, and what else the code knows.
#[derive(Debug, Serialize)]
pub struct Problem<'a> {
    r#type: &'static str,
    title: &'a str,
    status: u16,
    detail: String,
    code: &'static str,
    kind: &'static str,
    request_id: &'a str,
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

impl<'a> Problem<'a> {
    /// Of an error; the title is that of its status.
    pub fn new(error: &ApiError, title: &'a str, request_id: &'a str) -> Self {
        let more = match error.details() {
            serde_json::Value::Object(more) => more,
            _ => serde_json::Map::new(),
        };
        let (status, detail) = (error.http_status(), error.message());
        let (code, kind) = (error.code(), error.kind().as_str());
        Self { r#type: "about:blank", title, status, detail, code, kind, request_id, more }
    }
}

fn number(revision: Revision) -> Number {
    revision.get().into()
}
