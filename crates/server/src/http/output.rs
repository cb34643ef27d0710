//! Answers as JSON. These field names are an interface: they may be added to, not changed, and where the command line shows the
//! same thing it has the same name there. Tokens, revisions and ids are strings, because a JSON number loses the last digits of
//! one; lengths are milliseconds and say so in their names. What does not apply is null.

mod cluster;
mod events;
mod gaps;
mod views;

use leasehold_core::protocol::{Status, TokenCheck};
use leasehold_core::table::{AlarmView, LeaseView, PastView, SessionView};
use leasehold_core::{Grant, HeldLease, Token, Value, Waited};
use serde::Serialize;

pub(crate) use self::cluster::{ChangedJson, ClusterJson, LocalJson, TransferredJson};
pub(crate) use self::events::event_json;
pub(crate) use self::gaps::GapsAnswer;
pub(crate) use self::views::{AlarmJson, EndingJson, LeaseJson, PastJson, SessionJson, value_fields};
use crate::plain::{Acquired, Asked, Cancelled, Page, Seen, SessionOpened, SessionRenewed};

/// Nothing to say but that it is done.
#[derive(Debug, Serialize)]
pub(crate) struct Done {}

#[derive(Debug, Serialize)]
pub(crate) struct OpenedJson {
    session: String,
    session_key: String,
    ttl_ms: u64,
    drift_ppm: u32,
    repeated: bool,
    renewal: Option<String>,
    renew_every_ms: Option<u64>,
    margin_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RenewedJson {
    renewal: String,
    leases: Vec<HeldJson>,
    waits: Vec<WaitJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct HeldJson {
    #[serde(flatten)]
    grant: GrantJson,
    release_requested: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct GrantJson {
    resource: String,
    token: String,
    fence_token: String,
    slot: Option<u32>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WaitJson {
    acquire: String,
    resources: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AcquiredJson {
    outcome: &'static str,
    acquire: String,
    renewal: String,
    leases: Vec<GrantJson>,
    ahead: Option<u32>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CancelledJson {
    outcome: &'static str,
    leases: Vec<GrantJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct LeaseAnswer {
    revision: String,
    lease: Option<LeaseJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct LeasesAnswer {
    revision: String,
    leases: Vec<LeaseJson>,
    more: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct SessionsAnswer {
    revision: String,
    sessions: Vec<SessionJson>,
    more: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct CheckAnswer {
    revision: String,
    state: &'static str,
    ending: Option<EndingJson>,
    newest: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AlarmsAnswer {
    revision: String,
    alarms: Vec<AlarmJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct HistoryAnswer {
    revision: String,
    history: Vec<PastJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RevokedJson {
    pub(crate) held_back_ms: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct AskedJson {
    token: String,
    label: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct RegisterAnswer {
    revision: String,
    register: Option<RegisterJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RegisterJson {
    value: Option<String>,
    value_hex: Option<String>,
    token: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct StatusJson {
    version: String,
    pid: u32,
    sessions: u64,
    resources: u64,
    revision: String,
    log_time_ms: u64,
    log_time_cut_ms: u64,
}

impl From<&SessionOpened> for OpenedJson {
    fn from(opened: &SessionOpened) -> Self {
        Self {
            session: opened.key.id.to_string(),
            session_key: opened.key.reveal(),
            ttl_ms: opened.ttl.get(),
            drift_ppm: opened.drift.ppm(),
            repeated: opened.repeated,
            // Whoever repeats an open may not know when it was first sent: only a renewal counts for it.
            renewal: (!opened.repeated).then(|| "0".to_owned()),
            renew_every_ms: opened.advice.map(|advice| advice.renew_every.get()),
            margin_ms: opened.advice.map(|advice| advice.margin.get()),
        }
    }
}

impl From<&SessionRenewed> for RenewedJson {
    fn from(renewed: &SessionRenewed) -> Self {
        let held = |held: &HeldLease| HeldJson {
            grant: GrantJson::from(&held.grant),
            release_requested: held.release_requested,
        };
        let wait = |wait: &Waited| WaitJson {
            acquire: wait.acquire.to_string(),
            resources: wait.resources.iter().map(ToString::to_string).collect(),
        };
        Self {
            renewal: renewed.renewal.to_string(),
            leases: renewed.holdings.leases.iter().map(held).collect(),
            waits: renewed.holdings.waits.iter().map(wait).collect(),
        }
    }
}

impl From<&Grant> for GrantJson {
    fn from(grant: &Grant) -> Self {
        Self {
            resource: grant.resource.to_string(),
            token: grant.token.to_string(),
            fence_token: grant.fence.to_string(),
            slot: grant.slot,
        }
    }
}

fn grants(grants: &[Grant]) -> Vec<GrantJson> {
    grants.iter().map(GrantJson::from).collect()
}

impl From<&Acquired> for AcquiredJson {
    fn from(acquired: &Acquired) -> Self {
        match acquired {
            Acquired::Granted { acquire, renewal, grants: granted } => Self {
                outcome: "granted",
                acquire: acquire.to_string(),
                renewal: renewal.to_string(),
                leases: grants(granted),
                ahead: None,
            },
            Acquired::Queued { acquire, renewal, ahead } => Self {
                outcome: "queued",
                acquire: acquire.to_string(),
                renewal: renewal.to_string(),
                leases: Vec::new(),
                ahead: Some(*ahead),
            },
        }
    }
}

impl From<&Cancelled> for CancelledJson {
    fn from(cancelled: &Cancelled) -> Self {
        match cancelled {
            Cancelled::Cancelled => Self { outcome: "cancelled", leases: Vec::new() },
            Cancelled::AlreadyGranted(held) => Self { outcome: "already-granted", leases: grants(held) },
        }
    }
}

impl From<&Seen<Option<LeaseView>>> for LeaseAnswer {
    fn from(seen: &Seen<Option<LeaseView>>) -> Self {
        Self { revision: seen.revision.to_string(), lease: seen.answer.as_ref().map(LeaseJson::new) }
    }
}

impl From<&Seen<Page<LeaseView>>> for LeasesAnswer {
    fn from(seen: &Seen<Page<LeaseView>>) -> Self {
        let leases = seen.answer.items.iter().map(LeaseJson::new).collect();
        Self { revision: seen.revision.to_string(), leases, more: seen.answer.more }
    }
}

impl From<&Seen<Page<SessionView>>> for SessionsAnswer {
    fn from(seen: &Seen<Page<SessionView>>) -> Self {
        let sessions = seen.answer.items.iter().map(SessionJson::new).collect();
        Self { revision: seen.revision.to_string(), sessions, more: seen.answer.more }
    }
}

impl From<&Seen<TokenCheck>> for CheckAnswer {
    fn from(seen: &Seen<TokenCheck>) -> Self {
        let (state, ending, newest) = match &seen.answer {
            TokenCheck::Current => ("current", None, None),
            TokenCheck::Ended(how) => ("ended", Some(EndingJson::new(how)), None),
            TokenCheck::NotKnown => ("not-known", None, None),
            TokenCheck::Ahead { newest } => ("ahead", None, Some(newest.to_string())),
        };
        Self { revision: seen.revision.to_string(), state, ending, newest }
    }
}

impl From<&Seen<Vec<AlarmView>>> for AlarmsAnswer {
    fn from(seen: &Seen<Vec<AlarmView>>) -> Self {
        let alarms = seen.answer.iter().map(AlarmJson::new).collect();
        Self { revision: seen.revision.to_string(), alarms }
    }
}

impl From<&Seen<Vec<PastView>>> for HistoryAnswer {
    fn from(seen: &Seen<Vec<PastView>>) -> Self {
        let history = seen.answer.iter().map(PastJson::new).collect();
        Self { revision: seen.revision.to_string(), history }
    }
}

impl From<&Asked> for AskedJson {
    fn from(asked: &Asked) -> Self {
        Self { token: asked.token.to_string(), label: asked.holder.to_string() }
    }
}

impl From<&Seen<Option<(Value, Token)>>> for RegisterAnswer {
    fn from(seen: &Seen<Option<(Value, Token)>>) -> Self {
        let register = |(value, token): &(Value, Token)| {
            let (value, value_hex) = value_fields(value);
            RegisterJson { value, value_hex, token: token.to_string() }
        };
        Self { revision: seen.revision.to_string(), register: seen.answer.as_ref().map(register) }
    }
}

impl From<&Status> for StatusJson {
    fn from(status: &Status) -> Self {
        Self {
            version: status.version.clone(),
            pid: status.pid,
            sessions: status.sessions,
            resources: status.resources,
            revision: status.applied.to_string(),
            log_time_ms: status.log_time.get(),
            log_time_cut_ms: status.cut.get(),
        }
    }
}
