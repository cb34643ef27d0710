//! The fields of requests, checked one by one. An error names the field as the request does, and says what is wrong with it.

use std::fmt::Display;

use leasehold_core::limits::MAX_NAME_BYTES;
use leasehold_core::numbers::DEFAULT_TTL;
use leasehold_core::protocol::{GapsOf, MAX_PAGE, Watch};
use leasehold_core::{
    Acquire, Label, Millis, Mode, Nonce, Policies, Reason, RegisterKey, Request, ResourceName, Revision,
    Token, Value,
};
use leasehold_wire::Wire;
use leasehold_wire::messages as pb;
use pb::write_register_request::Content;

use crate::plain::{ApiError, ClearAlarm, OpenSession, OwnNumbers, RegisterWrite, Revoke, SessionKey};

/// Entries of a page when nobody says how many.
const PAGE: usize = 100;
/// Who did it, when nobody says who.
const NAMELESS: &str = "grpc";

type Checked<T> = Result<T, ApiError>;

pub(super) fn key(text: &str) -> Checked<SessionKey> {
    text.parse().map_err(|why| bad("session_key", why))
}

pub(super) fn resource(text: &str) -> Checked<ResourceName> {
    name("resource", text)
}

pub(super) fn register_key(text: &str) -> Checked<RegisterKey> {
    RegisterKey::new(text).map_err(|why| bad("key", why))
}

pub(super) fn value(bytes: Vec<u8>) -> Checked<Value> {
    Value::new(bytes).map_err(|why| bad("value", why))
}

/// Who does something.
pub(super) fn by(text: &str) -> Checked<Label> {
    label("by", if text.is_empty() { NAMELESS } else { text })
}

pub(super) fn prefix(text: String) -> Checked<String> {
    if text.len() > MAX_NAME_BYTES {
        let why = format!("prefix of {} bytes is above the maximum of {MAX_NAME_BYTES} bytes", text.len());
        return Err(bad("prefix", why));
    }
    Ok(text)
}

/// The name after which a page begins.
pub(super) fn after(text: Option<&str>) -> Checked<Option<ResourceName>> {
    text.map(|text| name("after", text)).transpose()
}

pub(super) fn page_size(limit: Option<u64>) -> Checked<usize> {
    let Some(limit) = limit else { return Ok(PAGE) };
    let fitting = usize::try_from(limit).ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    fitting.ok_or_else(|| bad("limit", format!("limit of {limit} is outside 1 to {MAX_PAGE}")))
}

/// One name, or a page of them.
pub(super) fn gaps_of(m: pb::GapsRequest) -> Checked<GapsOf> {
    let Some(only) = m.resource else {
        let (after, limit) = (after(m.after.as_deref())?, page_size(m.limit)?);
        return Ok(GapsOf::Page { prefix: prefix(m.prefix)?, after, limit });
    };
    let paged =
        [("prefix", !m.prefix.is_empty()), ("after", m.after.is_some()), ("limit", m.limit.is_some())];
    match paged.into_iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(bad(field, "with resource there is only that one name")),
        None => resource(&only).map(GapsOf::Name),
    }
}

pub(super) fn in_flight(count: u64) -> Checked<u32> {
    let too_many = |_| bad("in_flight", format!("in_flight of {count} is above {}", u32::MAX));
    u32::try_from(count).map_err(too_many)
}

pub(super) fn open(m: &pb::OpenSessionRequest) -> Checked<OpenSession> {
    let nonce = match <[u8; 16]>::try_from(&m.nonce[..]) {
        Ok(nonce) => Some(Nonce(nonce)),
        Err(_) if m.nonce.is_empty() => None,
        Err(_) => return Err(bad("nonce", format!("it has {} bytes and must have 16", m.nonce.len()))),
    };
    let policies = Policies {
        grace: Millis::new(m.grace_ms),
        hard: Millis::new(m.hard_ms.unwrap_or(m.grace_ms)),
        delay: Millis::new(m.delay_ms),
    };
    let ttl = m.ttl_ms.map_or(DEFAULT_TTL, Millis::new);
    let numbers = OwnNumbers {
        renew_every: m.renew_every_ms.map(Millis::new),
        margin: m.margin_ms.map(Millis::new),
        round_trip: m.round_trip_ms.map(Millis::new),
    };
    Ok(OpenSession { label: label("label", &m.label)?, ttl, numbers, policies, nonce })
}

pub(super) fn acquire(m: pb::AcquireRequest) -> Checked<Acquire> {
    let requests = m.requests.into_iter().enumerate().map(|(i, request)| {
        let resource = name(&format!("requests[{i}].resource"), &request.resource)?;
        // Only a mode that was left out is the usual one. A mode of a kind that is not known here is there, and is refused.
        let mode = request.mode.map_or(Ok(Mode::Exclusive), Mode::from_wire);
        let field = format!("requests[{i}].mode");
        let mode = ApiError::check_slots(&field, mode.map_err(|why| bad(&field, why))?)?;
        Ok(Request { resource, mode })
    });
    Ok(Acquire {
        requests: requests.collect::<Checked<_>>()?,
        value: value(m.value)?,
        wait: ApiError::check_wait("wait_ms", m.wait_ms.map(Millis::new))?,
    })
}

pub(super) fn register_write(m: pb::WriteRegisterRequest) -> Checked<RegisterWrite> {
    let content = match m.content {
        Some(Content::Value(bytes)) => Some(value(bytes)?),
        Some(Content::Remove(pb::Nothing {})) => None,
        None => return Err(bad("content", "it is missing; give value or remove")),
    };
    Ok(RegisterWrite {
        resource: resource(&m.resource)?,
        token: Token::from_u64(m.token),
        register: register_key(&m.key)?,
        value: content,
        with_lease: m.with_lease,
    })
}

pub(super) fn revoke(m: &pb::RevokeRequest) -> Checked<Revoke> {
    Ok(Revoke {
        resource: resource(&m.resource)?,
        token: Token::from_u64(m.token),
        by: by(&m.by)?,
        reason: reason(&m.reason)?,
        now: m.now,
    })
}

pub(super) fn clear_alarm(m: &pb::ClearAlarmRequest) -> Checked<ClearAlarm> {
    Ok(ClearAlarm {
        resource: resource(&m.resource)?,
        token: Token::from_u64(m.token),
        by: by(&m.by)?,
        reason: reason(&m.reason)?,
    })
}

pub(super) fn watch(m: pb::WatchRequest) -> Checked<Watch> {
    Ok(Watch { prefix: prefix(m.prefix)?, after: m.after.map(Revision::new) })
}

fn name(field: &str, text: &str) -> Checked<ResourceName> {
    ResourceName::new(text).map_err(|why| bad(field, why))
}

fn reason(text: &str) -> Checked<Reason> {
    Reason::new(text).map_err(|why| bad("reason", why))
}

fn label(field: &str, text: &str) -> Checked<Label> {
    Label::new(text).map_err(|why| bad(field, why))
}

fn bad(field: &str, why: impl Display) -> ApiError {
    ApiError::BadField { field: field.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_of<T: std::fmt::Debug>(checked: Checked<T>) -> String {
        match checked {
            Err(ApiError::BadField { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_open_has_the_defaults_that_its_comments_name() {
        let opened = open(&pb::OpenSessionRequest::default()).unwrap();
        assert_eq!((opened.nonce, opened.ttl), (None, Millis::new(10_000)));
        assert_eq!(opened.policies, Policies::default());
        let graceful = pb::OpenSessionRequest { grace_ms: 5, nonce: vec![9; 16], ..Default::default() };
        let opened = open(&graceful).unwrap();
        assert_eq!(opened.nonce, Some(Nonce([9; 16])));
        assert_eq!((opened.policies.grace, opened.policies.hard), (Millis::new(5), Millis::new(5)));
    }

    #[test]
    fn a_nonce_has_16_bytes_or_none() {
        for length in [1, 15, 17] {
            let request = pb::OpenSessionRequest { nonce: vec![9; length], ..Default::default() };
            assert_eq!(field_of(open(&request)), "nonce", "{length} bytes");
        }
    }

    #[test]
    fn a_mode_that_is_left_out_is_exclusive_and_one_that_is_not_known_is_refused() {
        let acquire = |mode| {
            let requests = vec![pb::ResourceRequest { resource: "a".into(), mode }];
            acquire(pb::AcquireRequest { requests, ..Default::default() })
        };
        let usual = acquire(None).unwrap();
        assert_eq!((usual.requests[0].mode, usual.wait), (Mode::Exclusive, None));
        assert_eq!(field_of(acquire(Some(pb::Mode { mode: None }))), "requests[0].mode");
    }

    #[test]
    fn a_register_is_removed_only_when_that_is_said() {
        let write = |content| {
            let (resource, key) = ("a".into(), "k".into());
            register_write(pb::WriteRegisterRequest { resource, key, content, ..Default::default() })
        };
        assert_eq!(field_of(write(None)), "content");
        assert_eq!(write(Some(Content::Remove(pb::Nothing {}))).unwrap().value, None);
        assert_eq!(write(Some(Content::Value(Vec::new()))).unwrap().value, Some(Value::default()));
    }

    #[test]
    fn pages_have_1_to_1000_entries() {
        assert_eq!(page_size(None), Ok(100));
        assert_eq!((page_size(Some(1)), page_size(Some(1_000))), (Ok(1), Ok(1_000)));
        for limit in [0, 1_001, u64::MAX] {
            assert_eq!(field_of(page_size(Some(limit))), "limit");
        }
    }

    #[test]
    fn gaps_are_those_of_one_name_or_of_a_page() {
        let page = gaps_of(pb::GapsRequest { prefix: "a/".into(), ..Default::default() }).unwrap();
        assert_eq!(page, GapsOf::Page { prefix: "a/".into(), after: None, limit: 100 });
        let one = || pb::GapsRequest { resource: Some("a".into()), ..Default::default() };
        assert_eq!(gaps_of(one()), Ok(GapsOf::Name(ResourceName::new("a").unwrap())));
        let also = |prefix: &str, after: Option<&str>, limit| pb::GapsRequest {
            prefix: prefix.into(),
            after: after.map(Into::into),
            limit,
            ..one()
        };
        assert_eq!(field_of(gaps_of(also("a", None, None))), "prefix");
        assert_eq!(field_of(gaps_of(also("", Some("a"), None))), "after");
        assert_eq!(field_of(gaps_of(also("", None, Some(5)))), "limit");
    }

    #[test]
    fn names_are_named_by_their_place() {
        let requests = vec![
            pb::ResourceRequest { resource: "a".into(), mode: None },
            pb::ResourceRequest { resource: "b#1".into(), mode: None },
        ];
        let request = pb::AcquireRequest { requests, ..Default::default() };
        assert_eq!(field_of(acquire(request)), "requests[1].resource");
        assert_eq!(field_of(resource("")), "resource");
        assert_eq!(field_of(after(Some("\n"))), "after");
        assert_eq!(field_of(prefix("p".repeat(513))), "prefix");
        assert!(prefix("p".repeat(512)).is_ok());
        assert_eq!(by("").unwrap().as_str(), "grpc");
    }

    #[test]
    fn what_the_table_would_refuse_in_any_state_is_refused_with_its_field() {
        let wanted =
            |mode| pb::ResourceRequest { resource: "a".into(), mode: Some(pb::Mode { mode: Some(mode) }) };
        let slots = |of| pb::AcquireRequest {
            requests: vec![wanted(pb::mode::Mode::SlotOf(of))],
            wait_ms: Some(86_400_000),
            ..Default::default()
        };
        assert!(acquire(slots(10_000)).is_ok());
        let fault = acquire(slots(10_001)).unwrap_err();
        assert_eq!(fault.message(), "requests[0].mode: 10001 is outside 1 to 10000 slots");
        let long = pb::AcquireRequest { wait_ms: Some(86_400_001), ..slots(1) };
        let fault = acquire(long).unwrap_err();
        assert_eq!((fault.code(), fault.message().split(':').next()), ("bad-request", Some("wait_ms")));
    }
}
