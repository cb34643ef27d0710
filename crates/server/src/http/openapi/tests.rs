//! The document against the code: the fields of every request, the codes, and answers as they are written.

use leasehold_core::gap::{GapCause, GapPart, GapSide, GapView, NameGaps, OutageView};
use leasehold_core::protocol::{
    ClusterView, GapsView, Incarnation, Member, MemberId, MemberRole, MemberView, Status, TokenCheck,
};
use leasehold_core::table::{
    AlarmView, DrainingView, HolderView, HoldingState, LeaseView, OfferView, PastView, SessionView,
    WaiterView,
};
use leasehold_core::{
    CommandNumber, Drift, Ending, Grant, HeldLease, Holdings, Label, Millis, Mode, Nonce, RenewalNumber,
    ResourceName, Revision, SessionId, Token, Waited,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::input;
use super::super::output;
use super::*;
use crate::plain::{
    Acquired, Advice, Asked, Cancelled, Page, Seen, SessionKey, SessionOpened, SessionRenewed,
};

/// The names of all fields of a type, from its own refusal of another.
fn fields_of<T: DeserializeOwned>() -> BTreeSet<String> {
    let error = serde_json::from_str::<T>(r#"{"no such field":1}"#).err().expect("there is no such field");
    let text = error.to_string();
    let (_, named) = text.split_once("field `no such field`").expect("the field is named");
    named.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names of the fields of a call, as the document has them.
fn documented(name: &str) -> BTreeSet<String> {
    let call = calls::all().into_iter().find(|call| call.name == name).expect(name);
    match call.body {
        None => call.fields.iter().map(|field| field.name.to_owned()).collect(),
        Some(body) => {
            let shapes = body["oneOf"].as_array().expect("a body of its own has shapes");
            let names =
                shapes.iter().flat_map(|shape| shape["properties"].as_object().expect("an object").keys());
            names.cloned().collect()
        }
    }
}

#[test]
fn every_field_is_documented_and_no_other() {
    assert_eq!(documented("open"), fields_of::<input::OpenFields>());
    assert_eq!(documented("renew"), fields_of::<input::SessionFields>());
    assert_eq!(documented("close"), fields_of::<input::SessionFields>());
    assert_eq!(documented("sessions"), fields_of::<input::SessionsFields>());
    assert_eq!(documented("acquire"), fields_of::<input::AcquireFields>());
    assert_eq!(documented("release"), fields_of::<input::ReleaseFields>());
    assert_eq!(documented("set-value"), fields_of::<input::SetValueFields>());
    assert_eq!(documented("drain"), fields_of::<input::DrainFields>());
    assert_eq!(documented("set-ready"), fields_of::<input::ReadyFields>());
    assert_eq!(documented("cancel"), fields_of::<input::CancelFields>());
    assert_eq!(documented("get"), fields_of::<input::ResourceFields>());
    assert_eq!(documented("list"), fields_of::<input::LeasesFields>());
    assert_eq!(documented("check"), fields_of::<input::TokenFields>());
    assert_eq!(documented("history"), fields_of::<input::ResourceFields>());
    assert_eq!(documented("gaps"), fields_of::<input::GapsFields>());
    assert_eq!(documented("revoke"), fields_of::<input::RevokeFields>());
    assert_eq!(documented("alarms"), fields_of::<input::NoFields>());
    assert_eq!(documented("clear-alarm"), fields_of::<input::ClearFields>());
    assert_eq!(documented("ask-release"), fields_of::<input::AskFields>());
    assert_eq!(documented("write-register"), fields_of::<input::WriteFields>());
    assert_eq!(documented("read-register"), fields_of::<input::RegisterFields>());
    assert_eq!(documented("watch"), fields_of::<input::WatchFields>());
    assert_eq!(documented("status"), fields_of::<input::NoFields>());
    assert_eq!(documented("cluster-status"), fields_of::<input::NoFields>());
    assert_eq!(documented("cluster-add"), fields_of::<input::AddFields>());
    assert_eq!(documented("cluster-promote"), fields_of::<input::MemberFields>());
    assert_eq!(documented("cluster-remove"), fields_of::<input::MemberFields>());
    assert_eq!(documented("cluster-transfer"), fields_of::<input::TransferFields>());
    assert_eq!(documented("cluster-local"), fields_of::<input::NoFields>());
    assert_eq!(documented("backup"), fields_of::<input::BackupFields>());
    assert_eq!(calls::all().len(), 34, "a new call needs a line in here");
}

#[test]
fn every_example_is_read() {
    fn reads<T: DeserializeOwned>(name: &str) {
        let call = calls::all().into_iter().find(|call| call.name == name).expect(name);
        assert!(serde_json::from_value::<T>(call.example).is_ok(), "{name}");
    }
    reads::<input::OpenFields>("open");
    reads::<input::SessionFields>("renew");
    reads::<input::SessionFields>("close");
    reads::<input::SessionsFields>("sessions");
    reads::<input::AcquireFields>("acquire");
    reads::<input::ReleaseFields>("release");
    reads::<input::SetValueFields>("set-value");
    reads::<input::DrainFields>("drain");
    reads::<input::ReadyFields>("set-ready");
    reads::<input::CancelFields>("cancel");
    reads::<input::ResourceFields>("get");
    reads::<input::LeasesFields>("list");
    reads::<input::TokenFields>("check");
    reads::<input::GapsFields>("gaps");
    reads::<input::RevokeFields>("revoke");
    reads::<input::NoFields>("alarms");
    reads::<input::ClearFields>("clear-alarm");
    reads::<input::AskFields>("ask-release");
    reads::<input::WriteFields>("write-register");
    reads::<input::RegisterFields>("read-register");
    reads::<input::AddFields>("cluster-add");
    reads::<input::MemberFields>("cluster-promote");
    reads::<input::MemberFields>("cluster-remove");
    reads::<input::TransferFields>("cluster-transfer");
}

/// Whether an answer has exactly the members that its schema names, all the way down.
fn check_members(schemas: &Map<String, Value>, schema: &Value, answer: &Value, place: &str) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().expect("a reference has a name");
        return check_members(schemas, &schemas[name], answer, name);
    }
    match (schema.get("anyOf"), answer) {
        (Some(choices), Value::Null) => assert_eq!(choices[1]["type"], "null", "{place}"),
        (Some(choices), _) => check_members(schemas, &choices[0], answer, place),
        (None, Value::Object(members)) => {
            let named = schema["properties"].as_object().unwrap_or_else(|| panic!("{place}: no members"));
            assert!(named.keys().eq(members.keys()), "{place}: {named:?} and {members:?}");
            for (name, member) in members {
                check_members(schemas, &named[name], member, &format!("{place}.{name}"));
            }
        }
        (None, Value::Array(items)) => {
            assert!(!items.is_empty(), "{place}: an empty list shows nothing");
            for item in items {
                check_members(schemas, &schema["items"], item, place);
            }
        }
        (None, answer) => {
            let kind = match answer {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "integer",
                _ => "string",
            };
            let kinds = &schema["type"];
            let fits = kinds == kind || kinds.as_array().is_some_and(|kinds| kinds.contains(&kind.into()));
            assert!(fits, "{place}: {answer} is not {kinds}");
            if let (Some(words), Value::String(word)) = (schema.get("enum"), answer) {
                assert!(words.as_array().expect("a list").contains(&word.as_str().into()), "{place}: {word}");
            }
        }
    }
}

fn fits(name: &str, answer: impl Serialize) {
    let schemas = answers::all();
    let answer = serde_json::to_value(answer).unwrap();
    check_members(&schemas, &schemas[name], &answer, name);
}

fn resource() -> ResourceName {
    ResourceName::new("jobs").unwrap()
}

fn seen<T>(answer: T) -> Seen<T> {
    Seen { revision: Revision::new(5), answer }
}

fn grant() -> Grant {
    Grant { resource: resource(), token: Token::from_u64(7), fence: Token::from_u64(7), slot: Some(1) }
}

fn lease() -> LeaseView {
    let (session, label, length) = (SessionId::from_u64(3), Label::new("web").unwrap(), Millis::new(1));
    let value = leasehold_core::Value::new(vec![255]).unwrap();
    let holder = HolderView {
        session,
        label: label.clone(),
        token: Token::from_u64(7),
        fence: Token::from_u64(7),
        slot: None,
        shared: false,
        value: Some(value),
        ttl: length,
        remaining: length,
        held_for: length,
        renewed_ago: length,
        state: HoldingState::Overdue,
        draining: Some(DrainingView { in_flight: 3, remaining: length }),
        readiness: Some(leasehold_core::table::ReadinessView::ReadyAfter(length)),
        offer: Some(OfferView { to: session, label: label.clone(), ready: true, remaining: length }),
    };
    let waiter = WaiterView { session, label, waiting_for: length, overdue: true };
    LeaseView {
        holding: 1,
        resource: resource(),
        mode: Mode::Slot { of: 2 },
        holders: vec![holder],
        queue: vec![waiter],
        waiting: 1,
        cool_down: Some(length),
        restore_wait: Some(length),
        transitions: 9,
        alarm: Some(alarm()),
    }
}

fn gaps() -> GapsView {
    let length = Millis::new(1);
    let side = GapSide {
        token: Token::from_u64(7),
        label: Some(Label::new("web").unwrap()),
        how: Some(Ending::Expired),
    };
    let parts = GapCause::ALL.map(|cause| GapPart { cause, length });
    let gap = |ended_ago, after| GapView {
        began_ago: length,
        ended_ago,
        parts: parts.to_vec(),
        before: side.clone(),
        after,
    };
    let gaps =
        vec![gap(None, None), gap(Some(length), Some(GapSide { label: None, how: None, ..side.clone() }))];
    GapsView {
        names: vec![NameGaps { resource: resource(), gaps, known_for: length }],
        next: Some(resource()),
        outages: vec![OutageView { ended_ago: length, length: None }],
    }
}

fn alarm() -> AlarmView {
    let (token, by) = (Token::from_u64(99), Label::new("web").unwrap());
    AlarmView { resource: resource(), token, by, age: Millis::new(1) }
}

#[test]
fn answers_have_the_members_that_are_documented() {
    let key = SessionKey { id: SessionId::from_u64(3), nonce: Nonce([7; 16]) };
    let (ttl, acquire, renewal) = (Millis::new(500), CommandNumber::new(1), RenewalNumber::new(2));
    let advice = Some(Advice { renew_every: ttl, margin: ttl });
    let opened = SessionOpened { key, ttl, drift: Drift::DEFAULT, repeated: false, advice };
    fits("Opened", output::OpenedJson::from(&opened));
    let holdings = Holdings {
        leases: vec![HeldLease { grant: grant(), release_requested: true }],
        waits: vec![Waited { acquire, resources: vec![resource()] }],
    };
    fits("Renewed", output::RenewedJson::from(&SessionRenewed { renewal, holdings }));
    let acquired = Acquired::Granted { acquire, renewal, grants: vec![grant()] };
    fits("Acquired", output::AcquiredJson::from(&acquired));
    fits("Cancelled", output::CancelledJson::from(&Cancelled::AlreadyGranted(vec![grant()])));
    fits("LeaseAnswer", output::LeaseAnswer::from(&seen(None)));
    fits("LeaseAnswer", output::LeaseAnswer::from(&seen(Some(lease()))));
    let page = Page { items: vec![lease()], more: true };
    fits("LeasesAnswer", output::LeasesAnswer::from(&seen(page)));
    let session = SessionView {
        session: SessionId::from_u64(3),
        label: Label::new("web").unwrap(),
        ttl,
        remaining: ttl,
        age: ttl,
        renewed_ago: ttl,
        overdue: false,
        leases: 1,
        waits: 0,
    };
    fits("SessionsAnswer", output::SessionsAnswer::from(&seen(Page { items: vec![session], more: false })));
    fits("CheckAnswer", output::CheckAnswer::from(&seen(TokenCheck::Current)));
    fits("CheckAnswer", output::CheckAnswer::from(&seen(TokenCheck::Ended(Ending::Restored))));
    fits("CheckAnswer", output::CheckAnswer::from(&seen(TokenCheck::Ahead { newest: 7 })));
    fits("AlarmsAnswer", output::AlarmsAnswer::from(&seen(vec![alarm()])));
    let past = PastView {
        token: Token::from_u64(7),
        session: SessionId::from_u64(3),
        label: Label::new("web").unwrap(),
        held_for: ttl,
        ended_ago: ttl,
        how: Ending::Drained,
    };
    fits("HistoryAnswer", output::HistoryAnswer::from(&seen(vec![past])));
    fits("GapsAnswer", output::GapsAnswer::from(&seen(gaps())));
    fits("Revoked", output::RevokedJson { held_back_ms: 1 });
    let asked = Asked { token: Token::from_u64(7), holder: Label::new("web").unwrap() };
    fits("Asked", output::AskedJson::from(&asked));
    let value = leasehold_core::Value::new(b"x".to_vec()).unwrap();
    fits("RegisterAnswer", output::RegisterAnswer::from(&seen(Some((value, Token::from_u64(7))))));
    let status = Status {
        version: "1".into(),
        pid: 1,
        sessions: 1,
        resources: 1,
        applied: 1,
        log_time: ttl,
        cut: ttl,
    };
    fits("Status", output::StatusJson::from(&status));
    fits("Done", output::Done {});
    let member = Member { id: MemberId(1), name: "n1".into(), address: "10.0.0.1:7420".into() };
    let seen = MemberView {
        member,
        role: MemberRole::Learner,
        matched: 3,
        reachable: true,
        receiving_snapshot: false,
    };
    let view = ClusterView {
        incarnation: Incarnation(7),
        epoch: 0,
        version: 1,
        leader: MemberId(1),
        term: 2,
        committed: 5,
        members: vec![seen],
    };
    fits("Cluster", output::ClusterJson::new(&view, Some(Millis::new(1))));
    fits("Changed", output::ChangedJson::from(Revision::new(5)));
}

#[test]
#[should_panic(expected = "LeaseAnswer")]
fn a_member_that_is_not_documented_is_found() {
    fits("LeaseAnswer", json!({ "revision": "1", "lease": null, "more": true }));
}

#[test]
fn references_and_links_lead_somewhere() {
    let document = build();
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
    let operations: BTreeSet<&str> =
        text.split("\"operationId\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let paths = document["paths"].as_object().unwrap().values();
    let defined: BTreeSet<&str> = paths
        .flat_map(|path| path.as_object().unwrap().values())
        .filter_map(|operation| operation["operationId"].as_str())
        .collect();
    assert_eq!(operations, defined);
}

#[test]
fn every_refusal_of_a_plain_session_is_documented_somewhere() {
    let document = document();
    // These belong to session streams, to what this door does not offer, or to no path at all.
    let elsewhere = [
        "older-attach",
        "command-gap",
        "seen-ahead",
        "too-many-unseen",
        "no-such-successor",
        "no-offer",
        "no-room",
        "no-such-path",
        "too-many-requests",
    ];
    for code in CODES.iter().map(|code| code.name).filter(|code| !elsewhere.contains(code)) {
        assert!(document.contains(&format!("`{code}`")), "{code}");
    }
}

#[test]
fn the_reference_names_every_path_and_every_field() {
    let reference = include_str!("../../../../../docs/reference/http.md");
    for call in calls::all() {
        assert!(reference.contains(call.path), "{} is not in the reference", call.path);
        for field in documented(call.name) {
            let told = [format!("`{field}`"), format!("\"{field}\":"), format!("{field}=")];
            assert!(
                told.iter().any(|form| reference.contains(form)),
                "{field} of {} is not in it",
                call.path
            );
        }
        for code in call.codes {
            assert!(reference.contains(&format!("`{code}`")), "{code} of {} is not in it", call.path);
        }
    }
}
