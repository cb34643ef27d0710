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

/// Changes: the parts of each, and the members that it is shown with.
macro_rules! events {
    ($($kind:ident { $($part:ident),+ } => {$(
        $(#[$said:meta])*
        $member:ident: $type:ty = $value:expr
    ),+ $(,)?})+) => {
        #[derive(Debug, Serialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        enum Happened<'a> {
            $($kind { $($(#[$said])* $member: $type),+ },)+
        }

        impl<'a> From<&'a Change> for Happened<'a> {
            fn from(change: &'a Change) -> Self {
                match change {
                    $(Change::$kind { $($part),+ } => Self::$kind { $($member: $value),+ },)+
                }
            }
        }
    };
}

events! {
    Granted { grant, shared, session, label, value } => {
        resource: &'a str = grant.resource.as_str(),
        token: Number = grant.token.get().into(),
        fence_token: Number = grant.fence.get().into(),
        slot: Option<u32> = grant.slot,
        shared: bool = *shared,
        session: Number = session.get().into(),
        label: &'a str = label.as_str(),
        #[serde(flatten)]
        value: Watched = Watched::new(value.as_ref()),
    }
    ValueSet { resource, token, session, value } => {
        resource: &'a str = resource.as_str(),
        token: Number = token.get().into(),
        session: Number = session.get().into(),
        #[serde(flatten)]
        value: Watched = Watched::new(value.as_ref()),
    }
    RegisterWritten { resource, key, token, removed } => {
        resource: &'a str = resource.as_str(),
        key: &'a str = key.as_str(),
        token: Number = token.get().into(),
        removed: bool = *removed,
    }
    Ended { resource, token, session, label, how } => {
        resource: &'a str = resource.as_str(),
        token: Number = token.get().into(),
        session: Number = session.get().into(),
        label: &'a str = label.as_str(),
        #[serde(flatten)]
        ending: Ending = Ending::new(how),
    }
    AlarmRaised { resource, token, by } => {
        resource: &'a str = resource.as_str(),
        token: Number = token.get().into(),
        by: &'a str = by.as_str(),
    }
    AlarmCleared { resource, token, by, reason } => {
        resource: &'a str = resource.as_str(),
        token: Number = token.get().into(),
        by: &'a str = by.as_str(),
        reason: &'a str = reason.as_str(),
    }
    ReadySet { resource, token, session, ready } => {
        resource: &'a str = resource.as_str(),
        token: Number = token.get().into(),
        session: Number = session.get().into(),
        ready: bool = *ready,
    }
    DrainingShown { resource, token, session, in_flight, within } => {
        resource: &'a str = resource.as_str(),
        token: Number = token.get().into(),
        session: Number = session.get().into(),
        in_flight: u32 = *in_flight,
        within_ms: u64 = within.get(),
    }
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
        Self(change.into())
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
