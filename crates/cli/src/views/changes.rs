//! Changes as JSON: the same objects as in the events of `GET /v1/watch`.

use leasehold::core::Value;
use leasehold::{Change, Changes};
use serde::Serialize;

use super::{EndingJson, value};

/// All changes of one revision.
#[derive(Debug, Serialize)]
pub(crate) struct ChangesJson {
    revision: String,
    events: Vec<ChangeJson>,
}

/// One change.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum ChangeJson {
    Granted {
        resource: String,
        token: String,
        fence_token: String,
        slot: Option<u32>,
        shared: bool,
        session: String,
        label: String,
        value: Option<String>,
        value_hex: Option<String>,
        value_left_out: bool,
    },
    ValueSet {
        resource: String,
        token: String,
        session: String,
        value: Option<String>,
        value_hex: Option<String>,
        value_left_out: bool,
    },
    RegisterWritten {
        resource: String,
        key: String,
        token: String,
        removed: bool,
    },
    Ended {
        resource: String,
        token: String,
        session: String,
        label: String,
        #[serde(flatten)]
        ending: EndingJson,
    },
    AlarmRaised {
        resource: String,
        token: String,
        by: String,
    },
    AlarmCleared {
        resource: String,
        token: String,
        by: String,
        reason: String,
    },
    ReadySet {
        resource: String,
        token: String,
        session: String,
        ready: bool,
    },
    DrainingShown {
        resource: String,
        token: String,
        session: String,
        in_flight: u32,
        within_ms: u64,
    },
}

impl ChangesJson {
    pub(crate) fn new(changes: &Changes) -> Self {
        let events = changes.changes.iter().map(ChangeJson::new).collect();
        Self { revision: changes.revision.to_string(), events }
    }
}

impl ChangeJson {
    fn new(change: &Change) -> Self {
        match change {
            Change::Granted { grant, shared, session, label, value } => {
                let left_out = value.is_none();
                let (value, value_hex) = shown(value.as_ref());
                Self::Granted {
                    resource: grant.resource.to_string(),
                    token: grant.token.to_string(),
                    fence_token: grant.fence.to_string(),
                    slot: grant.slot,
                    shared: *shared,
                    session: session.to_string(),
                    label: label.to_string(),
                    value,
                    value_hex,
                    value_left_out: left_out,
                }
            }
            Change::ValueSet { resource, token, session, value } => {
                let value_left_out = value.is_none();
                let (value, value_hex) = shown(value.as_ref());
                let (resource, token, session) =
                    (resource.to_string(), token.to_string(), session.to_string());
                Self::ValueSet { resource, token, session, value, value_hex, value_left_out }
            }
            Change::RegisterWritten { resource, key, token, removed } => Self::RegisterWritten {
                resource: resource.to_string(),
                key: key.to_string(),
                token: token.to_string(),
                removed: *removed,
            },
            Change::Ended { resource, token, session, label, how } => Self::Ended {
                resource: resource.to_string(),
                token: token.to_string(),
                session: session.to_string(),
                label: label.to_string(),
                ending: EndingJson::new(how),
            },
            Change::AlarmRaised { resource, token, by } => Self::AlarmRaised {
                resource: resource.to_string(),
                token: token.to_string(),
                by: by.to_string(),
            },
            Change::AlarmCleared { resource, token, by, reason } => Self::AlarmCleared {
                resource: resource.to_string(),
                token: token.to_string(),
                by: by.to_string(),
                reason: reason.to_string(),
            },
            Change::ReadySet { resource, token, session, ready } => Self::ReadySet {
                resource: resource.to_string(),
                token: token.to_string(),
                session: session.to_string(),
                ready: *ready,
            },
            Change::DrainingShown { resource, token, session, in_flight, within } => Self::DrainingShown {
                resource: resource.to_string(),
                token: token.to_string(),
                session: session.to_string(),
                in_flight: *in_flight,
                within_ms: within.get(),
            },
        }
    }
}

/// A long value is not part of a change, and the change says that it was left out; whoever wants it looks.
fn shown(given: Option<&Value>) -> (Option<String>, Option<String>) {
    given.map_or((None, None), value)
}

#[cfg(test)]
mod tests {
    use leasehold::core::RegisterKey;
    use leasehold::{Ending, Label, ResourceName, Revision, SessionId, Token};

    use super::*;

    #[test]
    fn a_revision_is_one_object_with_all_its_changes() {
        let resource = ResourceName::new("job").unwrap();
        let token = Token::from_u64(4);
        let changes = Changes {
            revision: Revision::new(9),
            changes: vec![
                Change::Ended {
                    resource: resource.clone(),
                    token,
                    session: SessionId::from_u64(3),
                    label: Label::new("w").unwrap(),
                    how: Ending::Taken { by: Token::from_u64(5) },
                },
                Change::RegisterWritten {
                    resource,
                    key: RegisterKey::new("cursor").unwrap(),
                    token,
                    removed: false,
                },
            ],
        };
        let json = serde_json::to_string(&ChangesJson::new(&changes)).unwrap();
        assert_eq!(
            json,
            "{\"revision\":\"9\",\"events\":[{\"kind\":\"ended\",\"resource\":\"job\",\"token\":\"4\",\"session\":\"3\",\
             \"label\":\"w\",\"ended\":\"taken\",\"by\":null,\"reason\":null,\"successor\":null,\"taken_by\":\"5\"},\
             {\"kind\":\"register-written\",\"resource\":\"job\",\"key\":\"cursor\",\"token\":\"4\",\"removed\":false}]}"
        );
    }
}
