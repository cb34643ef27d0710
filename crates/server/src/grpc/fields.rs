//! Messages as requests of `api`. What protobuf cannot say is checked here, under the name that the message has for the field; the rest is
//! checked with the requests of every other interface.

use std::fmt::Display;
use std::str::FromStr;

use leasehold_api::request::{self, ModeWord, WhenQueued, check_slots};
use leasehold_api::{ApiError, Hex, Number, Object, SessionKey, TokenNumber, bad_field};
use leasehold_core::{Label, Mode, Nonce, ResourceName, Value};
use leasehold_wire::Wire;
use leasehold_wire::messages as pb;
use pb::write_register_request::Content;

type Checked<T> = Result<T, ApiError>;

/// A text that is a value of its own.
pub(super) fn text<T: FromStr<Err: Display>>(field: &str, text: &str) -> Checked<T> {
    text.parse().map_err(|why| bad_field(field, why))
}

pub(super) fn key(key: &str) -> Checked<SessionKey> {
    text("session_key", key)
}

/// What a call is known by when it is sent again.
pub(super) fn numbers(number: Option<u64>, settled: Option<u64>) -> (Option<Number>, Option<Number>) {
    (number.map(Number), settled.map(Number))
}

pub(super) fn resource(name: &str) -> Checked<ResourceName> {
    text("resource", name)
}

/// Bytes that are no longer than a value may be.
pub(super) fn value(bytes: Vec<u8>) -> Checked<Option<Hex>> {
    let value = Value::new(bytes).map_err(|why| bad_field("value", why))?;
    Ok(Some(Hex(value.as_bytes().to_vec())))
}

/// A text that is empty is left out.
pub(super) fn by(label: &str) -> Checked<Option<Label>> {
    if label.is_empty() { Ok(None) } else { text("by", label).map(Some) }
}

/// The name after which a page begins.
pub(super) fn after(name: Option<&str>) -> Checked<Option<ResourceName>> {
    name.map(|name| text("after", name)).transpose()
}

pub(super) fn gaps(m: pb::GapsRequest) -> Checked<request::Gaps> {
    Ok(request::Gaps {
        resource: m.resource.as_deref().map(resource).transpose()?,
        prefix: Some(m.prefix).filter(|prefix| !prefix.is_empty()),
        after: after(m.after.as_deref())?,
        limit: m.limit,
        last_ms: m.last_ms,
    })
}

pub(super) fn in_flight(count: u64) -> Checked<u32> {
    let too_many = |_| bad_field("in_flight", format!("in_flight of {count} is above {}", u32::MAX));
    u32::try_from(count).map_err(too_many)
}

pub(super) fn token(number: u64) -> Checked<TokenNumber> {
    TokenNumber::new(number).map_err(|why| bad_field("token", why))
}

pub(super) fn open(m: &pb::OpenSessionRequest) -> Checked<request::Open> {
    let nonce = match <[u8; 16]>::try_from(&m.nonce[..]) {
        Ok(nonce) => Some(Nonce(nonce)),
        Err(_) if m.nonce.is_empty() => None,
        Err(_) => return Err(bad_field("nonce", format!("it has {} bytes and must have 16", m.nonce.len()))),
    };
    Ok(request::Open {
        label: Some(text("label", &m.label)?),
        ttl_ms: m.ttl_ms,
        renew_every_ms: m.renew_every_ms,
        margin_ms: m.margin_ms,
        round_trip_ms: m.round_trip_ms,
        grace_ms: Some(m.grace_ms),
        hard_ms: m.hard_ms,
        delay_ms: Some(m.delay_ms),
        nonce,
    })
}

pub(super) fn acquire(m: pb::AcquireRequest) -> Checked<request::Acquire> {
    let wanted = m.requests.into_iter().enumerate().map(|(i, request)| {
        let resource = text(&format!("requests[{i}].resource"), &request.resource)?;
        // Only a mode that was left out is the usual one. A mode of a kind that is not known here is there, and is refused.
        let mode = request.mode.map_or(Ok(Mode::Exclusive), Mode::from_wire);
        let field = format!("requests[{i}].mode");
        let (mode, slots) = match check_slots(&field, mode.map_err(|why| bad_field(&field, why))?)? {
            Mode::Exclusive => (ModeWord::Exclusive, None),
            Mode::Shared => (ModeWord::Shared, None),
            Mode::Slot { of } => (ModeWord::Slots, Some(of)),
        };
        Ok(Object(request::Wanted { resource, mode: Some(mode), slots }))
    });
    Ok(request::Acquire {
        resources: Some(wanted.collect::<Checked<_>>()?),
        value_hex: value(m.value)?,
        wait_ms: m.wait_ms,
        when_queued: m.return_when_queued.then_some(WhenQueued::Return),
        number: m.number.map(Number),
        settled: m.settled.map(Number),
        ..Default::default()
    })
}

pub(super) fn write_register(m: pb::WriteRegisterRequest) -> Checked<request::WriteRegister> {
    let (value_hex, remove) = match m.content {
        Some(Content::Value(bytes)) => (value(bytes)?, false),
        Some(Content::Remove(pb::Nothing {})) => (None, true),
        None => return Err(bad_field("content", "it is missing; give value or remove")),
    };
    Ok(request::WriteRegister {
        resource: resource(&m.resource)?,
        token: token(m.token)?,
        key: text("key", &m.key)?,
        value: None,
        value_hex,
        remove: Some(remove),
        with_lease: Some(m.with_lease),
        number: m.number.map(Number),
        settled: m.settled.map(Number),
    })
}

pub(super) fn revoke(m: &pb::RevokeRequest) -> Checked<request::Revoke> {
    Ok(request::Revoke {
        resource: resource(&m.resource)?,
        token: token(m.token)?,
        reason: text("reason", &m.reason)?,
        by: by(&m.by)?,
        now: Some(m.now),
    })
}

pub(super) fn clear_alarm(m: &pb::ClearAlarmRequest) -> Checked<request::ClearAlarm> {
    Ok(request::ClearAlarm {
        resource: resource(&m.resource)?,
        token: token(m.token)?,
        reason: text("reason", &m.reason)?,
        by: by(&m.by)?,
    })
}

#[cfg(test)]
mod tests {
    use leasehold_core::protocol::GapsOf;
    use leasehold_core::{Millis, Policies};

    use super::*;

    fn field_of<T: std::fmt::Debug>(checked: Checked<T>) -> String {
        match checked {
            Err(ApiError::BadField { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_open_has_the_defaults_that_its_comments_name() {
        let opened = open(&pb::OpenSessionRequest::default()).unwrap().check();
        assert_eq!((opened.nonce, opened.ttl), (None, Millis::new(10_000)));
        assert_eq!(opened.policies, Policies::default());
        let graceful = pb::OpenSessionRequest { grace_ms: 5, nonce: vec![9; 16], ..Default::default() };
        let opened = open(&graceful).unwrap().check();
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
        let usual = acquire(None).unwrap().check().unwrap().0;
        assert_eq!((usual.requests[0].mode, usual.wait), (Mode::Exclusive, None));
        assert_eq!(field_of(acquire(Some(pb::Mode { mode: None }))), "requests[0].mode");
    }

    #[test]
    fn a_register_is_removed_only_when_that_is_said() {
        let write = |content| {
            let (resource, key) = ("a".into(), "k".into());
            write_register(pb::WriteRegisterRequest { resource, key, content, ..Default::default() })
                .and_then(|mut write| write.value())
        };
        assert_eq!(field_of(write(None)), "content");
        assert_eq!(write(Some(Content::Remove(pb::Nothing {}))).unwrap(), None);
        assert_eq!(write(Some(Content::Value(Vec::new()))).unwrap(), Some(Value::default()));
    }

    #[test]
    fn gaps_are_those_of_one_name_or_of_a_page() {
        let gaps_of = |m| gaps(m).and_then(request::Gaps::check).map(|(of, _)| of);
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
        assert_eq!(by(""), Ok(None));
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
        let acquire = |m| acquire(m).and_then(request::Acquire::check);
        assert!(acquire(slots(10_000)).is_ok());
        let fault = acquire(slots(10_001)).unwrap_err();
        assert_eq!(fault.message(), "requests[0].mode: 10001 is outside 1 to 10000 slots");
        let long = pb::AcquireRequest { wait_ms: Some(86_400_001), ..slots(1) };
        let fault = acquire(long).unwrap_err();
        assert_eq!((fault.code(), fault.message().split(':').next()), ("bad-request", Some("wait_ms")));
    }
}
