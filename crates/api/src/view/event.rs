//! Changes as watchers see them.

use leasehold_core::Value;
use leasehold_core::protocol::Change;
use serde::Serialize;

use super::lease::{digits, text};
use super::{Ending, number};
use crate::Number;

/// One change.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Event<'a>(Happened<'a>);

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Happened<'a> {
    Granted {
        resource: &'a str,
        token: Number,
        fence_token: Number,
        slot: Option<u32>,
        shared: bool,
        session: Number,
        label: &'a str,
        #[serde(flatten)]
        value: Watched,
    },
    Ended {
        resource: &'a str,
        token: Number,
        session: Number,
        label: &'a str,
        #[serde(flatten)]
        ending: Ending,
    },
    ValueSet {
        resource: &'a str,
        token: Number,
        session: Number,
        #[serde(flatten)]
        value: Watched,
    },
    RegisterWritten {
        resource: &'a str,
        key: &'a str,
        token: Number,
        removed: bool,
    },
    AlarmRaised {
        resource: &'a str,
        token: Number,
        by: &'a str,
    },
    AlarmCleared {
        resource: &'a str,
        token: Number,
        by: &'a str,
        reason: &'a str,
    },
    ReadySet {
        resource: &'a str,
        token: Number,
        session: Number,
        ready: bool,
    },
    DrainingShown {
        resource: &'a str,
        token: Number,
        session: Number,
        in_flight: u32,
        within_ms: u64,
    },
}

/// A value with a change. A long one is not part of it; whoever wants it reads it.
#[derive(Debug, Serialize)]
struct Watched {
    value: Option<String>,
    value_hex: Option<String>,
    value_left_out: bool,
}

/// All changes of one revision.
#[derive(Debug, Serialize)]
pub struct Changes<'a> {
    revision: Number,
    events: Vec<Event<'a>>,
}

impl<'a> Changes<'a> {
    /// As the log tells them.
    pub fn new(changes: &'a leasehold_core::protocol::Changes) -> Self {
        let events = changes.changes.iter().map(Event::new).collect();
        Self { revision: number(changes.revision), events }
    }
}

impl<'a> Event<'a> {
    /// As the log tells it.
    pub fn new(change: &'a Change) -> Self {
        Self(match change {
            Change::Granted { grant, shared, session, label, value } => Happened::Granted {
                resource: grant.resource.as_str(),
                token: grant.token.get().into(),
                fence_token: grant.fence.get().into(),
                slot: grant.slot,
                shared: *shared,
                session: session.get().into(),
                label: label.as_str(),
                value: Watched::new(value.as_ref()),
            },
            Change::ValueSet { resource, token, session, value } => Happened::ValueSet {
                resource: resource.as_str(),
                token: token.get().into(),
                session: session.get().into(),
                value: Watched::new(value.as_ref()),
            },
            Change::RegisterWritten { resource, key, token, removed } => Happened::RegisterWritten {
                resource: resource.as_str(),
                key: key.as_str(),
                token: token.get().into(),
                removed: *removed,
            },
            Change::Ended { resource, token, session, label, how } => Happened::Ended {
                resource: resource.as_str(),
                token: token.get().into(),
                session: session.get().into(),
                label: label.as_str(),
                ending: Ending::new(how),
            },
            Change::AlarmRaised { resource, token, by } => Happened::AlarmRaised {
                resource: resource.as_str(),
                token: token.get().into(),
                by: by.as_str(),
            },
            Change::AlarmCleared { resource, token, by, reason } => Happened::AlarmCleared {
                resource: resource.as_str(),
                token: token.get().into(),
                by: by.as_str(),
                reason: reason.as_str(),
            },
            Change::ReadySet { resource, token, session, ready } => Happened::ReadySet {
                resource: resource.as_str(),
                token: token.get().into(),
                session: session.get().into(),
                ready: *ready,
            },
            Change::DrainingShown { resource, token, session, in_flight, within } => {
                Happened::DrainingShown {
                    resource: resource.as_str(),
                    token: token.get().into(),
                    session: session.get().into(),
                    in_flight: *in_flight,
                    within_ms: within.get(),
                }
            }
        })
    }

    /// One line of JSON.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("events have texts as keys and no failing serializers")
    }
}

impl Watched {
    fn new(value: Option<&Value>) -> Self {
        Self {
            value: value.and_then(text),
            value_hex: value.and_then(digits),
            value_left_out: value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{Ending, Grant, Label, RegisterKey, ResourceName, SessionId, Token};

    use super::*;

    const RESOURCE: &str = "jobs/\"night\"\u{2028}";

    fn name() -> ResourceName {
        ResourceName::new(RESOURCE).unwrap()
    }

    fn read(change: &Change) -> serde_json::Value {
        let line = Event::new(change).line();
        assert!(!line.contains('\n') && !line.contains('\r'), "{line}");
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_grant_says_who_and_what() {
        let token = Token::from_u64(u64::MAX);
        let grant = Grant { resource: name(), token, fence: token, slot: Some(3) };
        let label = Label::new("web").unwrap();
        let value = Some(Value::new(b"a\nb".to_vec()).unwrap());
        let event =
            read(&Change::Granted { grant, shared: false, session: SessionId::from_u64(7), label, value });
        assert_eq!(event["kind"], "granted");
        assert_eq!(event["resource"], RESOURCE);
        assert_eq!(event["token"], u64::MAX.to_string());
        assert_eq!(event["value"], "a\nb");
        assert_eq!(event["value_left_out"], false);
    }

    #[test]
    fn a_long_value_is_left_out_and_says_so() {
        let (session, token) = (SessionId::from_u64(7), Token::from_u64(8));
        let event = read(&Change::ValueSet { resource: name(), token, session, value: None });
        assert_eq!((&event["kind"], &event["value_left_out"]), (&"value-set".into(), &true.into()));
        assert!(event["value"].is_null() && event["value_hex"].is_null());
    }

    #[test]
    fn an_ending_is_flat() {
        let (session, token, label) = (SessionId::from_u64(7), Token::from_u64(8), Label::new("x").unwrap());
        let how = Ending::Taken { by: Token::from_u64(9) };
        let event = read(&Change::Ended { resource: name(), token, session, label, how });
        assert_eq!(event["kind"], "ended");
        assert_eq!((&event["ended"], &event["taken_by"]), (&"taken".into(), &"9".into()));
    }

    #[test]
    fn a_register_is_told_by_its_key() {
        let key = RegisterKey::new("cursor").unwrap();
        let token = Token::from_u64(8);
        let event = read(&Change::RegisterWritten { resource: name(), key, token, removed: true });
        assert_eq!(event["kind"], "register-written");
        assert_eq!((&event["key"], &event["removed"]), (&"cursor".into(), &true.into()));
    }
}
