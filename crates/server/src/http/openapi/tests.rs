//! The document against the code: the fields of every request, the codes, and answers as they are written.

use serde::de::DeserializeOwned;

use super::super::input;
use super::*;

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
