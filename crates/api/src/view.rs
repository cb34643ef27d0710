//! Answers as JSON. These field names are an interface: v1 may add to them and changes none. What does not apply is null.

mod cluster;
mod event;
mod gaps;
mod lease;

use leasehold_core::protocol::{self, TokenCheck};
use leasehold_core::table::{AlarmView, LeaseView, PastView, SessionView};
use leasehold_core::{Millis, Revision, Value};
use serde::Serialize;

pub use self::cluster::{Changed, Cluster, LocalCluster, LocalMember, Member, Transferred};
pub use self::event::{Changes, Event};
pub use self::gaps::{Gap, GapPart, GapSide, Gaps, NameGaps, Outage};
use self::lease::value_fields;
pub use self::lease::{Alarm, Draining, Ending, Holder, Lease, Offer, Past, Readiness, Session, Waiter};
use crate::Number;
use crate::answer::{self, AtRevision, Page};

/// Nothing to say but that it is done.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Done {}

/// A session that was opened.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Opened {
    session: Number,
    /// A secret: it goes into the header `Leasehold-Session` of every call for this session.
    session_key: String,
    ttl_ms: u64,
    drift_ppm: u32,
    /// Whether the session existed already: then nothing was renewed.
    repeated: bool,
    /// The renewal that the open counts as; null if it was repeated.
    renewal: Option<Number>,
    renew_every_ms: Option<u64>,
    margin_ms: Option<u64>,
}

/// A session that was renewed, with everything it has.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Renewed {
    renewal: Number,
    leases: Vec<Held>,
    waits: Vec<Wait>,
}

/// A lease of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Held {
    #[serde(flatten)]
    grant: Grant,
    release_requested: bool,
}

/// A lease that was granted.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Grant {
    resource: String,
    token: Number,
    /// The token to send with writes.
    fence_token: Number,
    slot: Option<u32>,
}

/// A wait of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Wait {
    acquire: Number,
    resources: Vec<String>,
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
    leases: Vec<Grant>,
    ahead: Option<u32>,
}

/// What became of a cancel.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Cancelled {
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["cancelled", "already-granted"])))]
    outcome: &'static str,
    leases: Vec<Grant>,
}

/// One resource, or null if it was never held or is forgotten.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct LeaseAnswer {
    revision: Number,
    lease: Option<Lease>,
}

/// A page of resources.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Leases {
    revision: Number,
    leases: Vec<Lease>,
    more: bool,
}

/// A page of sessions.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Sessions {
    revision: Number,
    sessions: Vec<Session>,
    more: bool,
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

/// The alarms that are raised.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Alarms {
    revision: Number,
    alarms: Vec<Alarm>,
}

/// The leases of the past on a resource.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct History {
    revision: Number,
    history: Vec<Past>,
}

/// A lease that was ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Revoked {
    /// For how long at most the resource still goes to nobody.
    held_back_ms: u64,
}

/// The holder that was asked to release.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Asked {
    token: Number,
    label: String,
}

/// A register, or null if it is not written or went with its lease.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct RegisterAnswer {
    revision: Number,
    register: Option<Register>,
}

/// What a register holds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Register {
    value: Option<String>,
    value_hex: Option<String>,
    token: Number,
}

/// The service itself.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Status {
    version: String,
    pid: u32,
    sessions: u64,
    resources: u64,
    revision: Number,
    log_time_ms: u64,
    log_time_cut_ms: u64,
}

impl From<()> for Done {
    fn from((): ()) -> Self {
        Self {}
    }
}

impl From<answer::SessionOpened> for Opened {
    fn from(opened: answer::SessionOpened) -> Self {
        Self {
            session: opened.key.id.get().into(),
            session_key: opened.key.reveal(),
            ttl_ms: opened.ttl.get(),
            drift_ppm: opened.drift.ppm(),
            repeated: opened.repeated,
            // A client that repeats an open may not know when it was first sent: only a renewal counts for it.
            renewal: (!opened.repeated).then(|| 0.into()),
            renew_every_ms: opened.advice.map(|advice| advice.renew_every.get()),
            margin_ms: opened.advice.map(|advice| advice.margin.get()),
        }
    }
}

impl From<answer::SessionRenewed> for Renewed {
    fn from(renewed: answer::SessionRenewed) -> Self {
        let held = |held: &leasehold_core::HeldLease| Held {
            grant: Grant::from(&held.grant),
            release_requested: held.release_requested,
        };
        let wait = |wait: &leasehold_core::Waited| Wait {
            acquire: wait.acquire.get().into(),
            resources: wait.resources.iter().map(ToString::to_string).collect(),
        };
        Self {
            renewal: renewed.renewal.get().into(),
            leases: renewed.holdings.leases.iter().map(held).collect(),
            waits: renewed.holdings.waits.iter().map(wait).collect(),
        }
    }
}

impl From<&leasehold_core::Grant> for Grant {
    fn from(grant: &leasehold_core::Grant) -> Self {
        Self {
            resource: grant.resource.to_string(),
            token: grant.token.get().into(),
            fence_token: grant.fence.get().into(),
            slot: grant.slot,
        }
    }
}

fn grants(grants: &[leasehold_core::Grant]) -> Vec<Grant> {
    grants.iter().map(Grant::from).collect()
}

impl From<answer::Acquired> for Acquired {
    fn from(acquired: answer::Acquired) -> Self {
        let (outcome, acquire, renewal, leases, ahead) = match acquired {
            answer::Acquired::Granted { acquire, renewal, grants: granted } => {
                ("granted", acquire, renewal, grants(&granted), None)
            }
            answer::Acquired::Queued { acquire, renewal, ahead } => {
                ("queued", acquire, renewal, Vec::new(), Some(ahead))
            }
        };
        Self { outcome, acquire: acquire.get().into(), renewal: renewal.get().into(), leases, ahead }
    }
}

impl From<answer::Cancelled> for Cancelled {
    fn from(cancelled: answer::Cancelled) -> Self {
        match cancelled {
            answer::Cancelled::Cancelled => Self { outcome: "cancelled", leases: Vec::new() },
            answer::Cancelled::AlreadyGranted(held) => {
                Self { outcome: "already-granted", leases: grants(&held) }
            }
        }
    }
}

impl From<AtRevision<Option<LeaseView>>> for LeaseAnswer {
    fn from(seen: AtRevision<Option<LeaseView>>) -> Self {
        Self { revision: number(seen.revision), lease: seen.answer.as_ref().map(Lease::new) }
    }
}

impl From<AtRevision<Page<LeaseView>>> for Leases {
    fn from(seen: AtRevision<Page<LeaseView>>) -> Self {
        let leases = seen.answer.items.iter().map(Lease::new).collect();
        Self { revision: number(seen.revision), leases, more: seen.answer.more }
    }
}

impl From<AtRevision<Page<SessionView>>> for Sessions {
    fn from(seen: AtRevision<Page<SessionView>>) -> Self {
        let sessions = seen.answer.items.iter().map(Session::new).collect();
        Self { revision: number(seen.revision), sessions, more: seen.answer.more }
    }
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

impl From<AtRevision<Vec<AlarmView>>> for Alarms {
    fn from(seen: AtRevision<Vec<AlarmView>>) -> Self {
        Self { revision: number(seen.revision), alarms: seen.answer.iter().map(Alarm::new).collect() }
    }
}

impl From<AtRevision<Vec<PastView>>> for History {
    fn from(seen: AtRevision<Vec<PastView>>) -> Self {
        Self { revision: number(seen.revision), history: seen.answer.iter().map(Past::new).collect() }
    }
}

impl From<Millis> for Revoked {
    fn from(held_back: Millis) -> Self {
        Self { held_back_ms: held_back.get() }
    }
}

impl From<answer::Asked> for Asked {
    fn from(asked: answer::Asked) -> Self {
        Self { token: asked.token.get().into(), label: asked.holder.to_string() }
    }
}

impl From<AtRevision<Option<(Value, leasehold_core::Token)>>> for RegisterAnswer {
    fn from(seen: AtRevision<Option<(Value, leasehold_core::Token)>>) -> Self {
        let register = |(value, token): &(Value, leasehold_core::Token)| {
            let (value, value_hex) = value_fields(value);
            Register { value, value_hex, token: token.get().into() }
        };
        Self { revision: number(seen.revision), register: seen.answer.as_ref().map(register) }
    }
}

impl From<protocol::Status> for Status {
    fn from(status: protocol::Status) -> Self {
        Self {
            version: status.version,
            pid: status.pid,
            sessions: status.sessions,
            resources: status.resources,
            revision: status.applied.into(),
            log_time_ms: status.log_time.get(),
            log_time_cut_ms: status.cut.get(),
        }
    }
}

fn number(revision: Revision) -> Number {
    revision.get().into()
}
