//! The fields of every request, as types. A field that is not in its type is refused; null is the same as left out.

mod cluster;
mod types;

use leasehold_core::limits::MAX_NAME_BYTES;
use leasehold_core::numbers::DEFAULT_TTL;
use leasehold_core::protocol::{GapsOf, MAX_PAGE, Watch};
use leasehold_core::{
    Acquire, CommandNumber, Label, Millis, Mode, Policies, Reason, RegisterKey, Request, ResourceName,
    Revision, SessionId, Token, Value,
};
use serde::Deserialize;

pub(crate) use self::cluster::{AddFields, BackupFields, MemberFields, TransferFields};
pub(crate) use self::types::{Hex, Key, NonceDigits, Number};
use crate::plain::{ApiError, ClearAlarm, OpenSession, OwnNumbers, RegisterWrite, Revoke};

/// Items of a page when nobody says how many.
pub(crate) const DEFAULT_PAGE: usize = 100;
/// Who did it, when nobody says who.
pub(crate) const NAMELESS: &str = "http";

/// A request without fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenFields {
    label: Option<Label>,
    ttl_ms: Option<u64>,
    renew_every_ms: Option<u64>,
    margin_ms: Option<u64>,
    round_trip_ms: Option<u64>,
    grace_ms: Option<u64>,
    hard_ms: Option<u64>,
    delay_ms: Option<u64>,
    nonce: Option<NonceDigits>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionFields {
    pub(crate) session_key: Key,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionsFields {
    after: Option<Number>,
    limit: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcquireFields {
    pub(crate) session_key: Key,
    resource: Option<ResourceName>,
    resources: Option<Vec<WantedFields>>,
    mode: Option<ModeWord>,
    slots: Option<u32>,
    value: Option<String>,
    value_hex: Option<Hex>,
    wait_ms: Option<u64>,
    when_queued: Option<WhenQueued>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedFields {
    resource: ResourceName,
    mode: Option<ModeWord>,
    slots: Option<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeWord {
    Exclusive,
    Shared,
    Slots,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WhenQueued {
    Wait,
    Return,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseFields {
    pub(crate) session_key: Key,
    pub(crate) resource: ResourceName,
    pub(crate) token: Number,
    pub(crate) drained: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetValueFields {
    pub(crate) session_key: Key,
    pub(crate) resource: ResourceName,
    pub(crate) token: Number,
    value: Option<String>,
    value_hex: Option<Hex>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrainFields {
    pub(crate) session_key: Key,
    pub(crate) resource: ResourceName,
    pub(crate) token: Number,
    pub(crate) in_flight: u32,
    pub(crate) within_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyFields {
    pub(crate) session_key: Key,
    pub(crate) resource: ResourceName,
    pub(crate) token: Number,
    pub(crate) ready: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelFields {
    pub(crate) session_key: Key,
    pub(crate) acquire: Number,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceFields {
    pub(crate) resource: ResourceName,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeasesFields {
    prefix: Option<String>,
    after: Option<ResourceName>,
    limit: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GapsFields {
    resource: Option<ResourceName>,
    prefix: Option<String>,
    after: Option<ResourceName>,
    limit: Option<u64>,
    last_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenFields {
    pub(crate) resource: ResourceName,
    pub(crate) token: Number,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RevokeFields {
    resource: ResourceName,
    token: Number,
    reason: Reason,
    by: Option<Label>,
    now: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClearFields {
    resource: ResourceName,
    token: Number,
    reason: Reason,
    by: Option<Label>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskFields {
    pub(crate) resource: ResourceName,
    token: Option<Number>,
    by: Option<Label>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFields {
    pub(crate) session_key: Key,
    resource: ResourceName,
    token: Number,
    key: RegisterKey,
    value: Option<String>,
    value_hex: Option<Hex>,
    remove: Option<bool>,
    with_lease: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegisterFields {
    pub(crate) resource: ResourceName,
    pub(crate) key: RegisterKey,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WatchFields {
    prefix: Option<String>,
    after: Option<Number>,
}

impl OpenFields {
    pub(crate) fn session(self) -> OpenSession {
        let grace = self.grace_ms.map_or(Millis::ZERO, Millis::new);
        OpenSession {
            label: self.label.unwrap_or_else(|| nameless("")),
            ttl: self.ttl_ms.map_or(DEFAULT_TTL, Millis::new),
            numbers: OwnNumbers {
                renew_every: self.renew_every_ms.map(Millis::new),
                margin: self.margin_ms.map(Millis::new),
                round_trip: self.round_trip_ms.map(Millis::new),
            },
            policies: Policies {
                grace,
                hard: self.hard_ms.map_or(grace, Millis::new),
                delay: self.delay_ms.map_or(Millis::ZERO, Millis::new),
            },
            nonce: self.nonce.map(|digits| digits.0),
        }
    }
}

impl SessionsFields {
    pub(crate) fn page(&self) -> Result<(Option<SessionId>, usize), ApiError> {
        Ok((self.after.map(|after| SessionId::from_u64(after.0)), page_size(self.limit)?))
    }
}

impl AcquireFields {
    /// What is asked for, and whether the answer waits until the wait is over.
    pub(crate) fn acquire(self) -> Result<(Acquire, bool), ApiError> {
        let requests = match (self.resource, self.resources) {
            (Some(resource), None) => vec![Request { resource, mode: mode("", self.mode, self.slots)? }],
            (None, Some(_)) if self.mode.is_some() || self.slots.is_some() => {
                return Err(bad("mode", "with resources, each has its own mode and slots"));
            }
            (None, Some(wanted)) => wanted
                .into_iter()
                .enumerate()
                .map(|(i, wanted)| {
                    let mode = mode(&format!("resources[{i}]."), wanted.mode, wanted.slots)?;
                    Ok(Request { resource: wanted.resource, mode })
                })
                .collect::<Result<_, ApiError>>()?,
            (Some(_), Some(_)) => return Err(bad("resources", "give resource or resources, not both")),
            (None, None) => return Err(bad("resource", "it is missing; give resource or resources")),
        };
        let value = value(self.value, self.value_hex)?.unwrap_or_default();
        let wait = ApiError::check_wait("wait_ms", self.wait_ms.map(Millis::new))?;
        let hold = self.when_queued != Some(WhenQueued::Return);
        Ok((Acquire { requests, value, wait }, hold))
    }
}

impl SetValueFields {
    pub(crate) fn value(&mut self) -> Result<Value, ApiError> {
        value(self.value.take(), self.value_hex.take())?
            .ok_or_else(|| bad("value", "it is missing; give value or value_hex"))
    }
}

impl LeasesFields {
    pub(crate) fn page(self) -> Result<(String, Option<ResourceName>, usize), ApiError> {
        Ok((prefix(self.prefix)?, self.after, page_size(self.limit)?))
    }
}

impl GapsFields {
    /// Whose gaps, and how far back.
    pub(crate) fn of(self) -> Result<(GapsOf, Option<Millis>), ApiError> {
        let paged = [("prefix", self.prefix.is_some()), ("after", self.after.is_some())];
        let paged = paged.into_iter().chain([("limit", self.limit.is_some())]);
        let of = match self.resource {
            Some(resource) => match paged.into_iter().find(|(_, given)| *given) {
                Some((field, _)) => return Err(bad(field, "with resource there is only that one name")),
                None => GapsOf::Name(resource),
            },
            None => GapsOf::Page {
                prefix: prefix(self.prefix)?,
                after: self.after,
                limit: page_size(self.limit)?,
            },
        };
        Ok((of, self.last_ms.map(Millis::new)))
    }
}

impl RevokeFields {
    pub(crate) fn revoke(self) -> Revoke {
        Revoke {
            resource: self.resource,
            token: Token::from_u64(self.token.0),
            by: self.by.unwrap_or_else(|| nameless(NAMELESS)),
            reason: self.reason,
            now: self.now.unwrap_or(false),
        }
    }
}

impl ClearFields {
    pub(crate) fn clear(self) -> ClearAlarm {
        ClearAlarm {
            resource: self.resource,
            token: Token::from_u64(self.token.0),
            by: self.by.unwrap_or_else(|| nameless(NAMELESS)),
            reason: self.reason,
        }
    }
}

impl AskFields {
    pub(crate) fn split(self) -> (ResourceName, Option<Token>, Label) {
        let by = self.by.unwrap_or_else(|| nameless(NAMELESS));
        (self.resource, self.token.map(|token| Token::from_u64(token.0)), by)
    }
}

impl WriteFields {
    pub(crate) fn write(self) -> Result<RegisterWrite, ApiError> {
        let remove = self.remove.unwrap_or(false);
        let value = value(self.value, self.value_hex)?;
        match (&value, remove) {
            (Some(_), true) => return Err(bad("remove", "give a value or remove, not both")),
            (None, false) => return Err(bad("value", "it is missing; give value, value_hex or remove")),
            _ => {}
        }
        Ok(RegisterWrite {
            resource: self.resource,
            token: Token::from_u64(self.token.0),
            register: self.key,
            value,
            with_lease: self.with_lease.unwrap_or(false),
        })
    }
}

impl WatchFields {
    /// What to watch; `resume` is what a client that connects again says it has seen, and is later than what it began with.
    pub(crate) fn watch(self, resume: Option<Number>) -> Result<Watch, ApiError> {
        let after = resume.or(self.after).map(|after| Revision::new(after.0));
        Ok(Watch { prefix: prefix(self.prefix)?, after })
    }
}

impl ReleaseFields {
    pub(crate) const fn token(&self) -> Token {
        Token::from_u64(self.token.0)
    }
}

impl CancelFields {
    pub(crate) const fn acquire(&self) -> CommandNumber {
        CommandNumber::new(self.acquire.0)
    }
}

fn mode(place: &str, mode: Option<ModeWord>, slots: Option<u32>) -> Result<Mode, ApiError> {
    match (mode, slots) {
        (None | Some(ModeWord::Exclusive), None) => Ok(Mode::Exclusive),
        (Some(ModeWord::Shared), None) => Ok(Mode::Shared),
        (None | Some(ModeWord::Slots), Some(of)) => {
            ApiError::check_slots(&format!("{place}slots"), Mode::Slot { of })
        }
        (Some(ModeWord::Slots), None) => {
            Err(bad(&format!("{place}slots"), "it is missing; mode slots needs their number"))
        }
        (Some(_), Some(_)) => Err(bad(&format!("{place}slots"), "only mode slots has a number of them")),
    }
}

fn value(text: Option<String>, hex: Option<Hex>) -> Result<Option<Value>, ApiError> {
    let (field, bytes) = match (text, hex) {
        (Some(_), Some(_)) => return Err(bad("value_hex", "give value or value_hex, not both")),
        (Some(text), None) => ("value", text.into_bytes()),
        (None, Some(hex)) => ("value_hex", hex.0),
        (None, None) => return Ok(None),
    };
    Value::new(bytes).map(Some).map_err(|error| bad(field, &error.to_string()))
}

fn prefix(prefix: Option<String>) -> Result<String, ApiError> {
    let prefix = prefix.unwrap_or_default();
    if prefix.len() > MAX_NAME_BYTES {
        let why = format!("prefix of {} bytes is above the maximum of {MAX_NAME_BYTES} bytes", prefix.len());
        return Err(bad("prefix", &why));
    }
    Ok(prefix)
}

fn page_size(limit: Option<u64>) -> Result<usize, ApiError> {
    let Some(limit) = limit else { return Ok(DEFAULT_PAGE) };
    let fitting = usize::try_from(limit).ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    fitting.ok_or_else(|| bad("limit", &format!("limit of {limit} is outside 1 to {MAX_PAGE}")))
}

fn nameless(name: &str) -> Label {
    Label::new(name).expect("a short word is a label")
}

fn bad(field: &str, why: &str) -> ApiError {
    ApiError::BadField { field: field.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests;
