//! The OpenAPI document, written from the table of calls, the table of codes and the schemas that the types derive.
//!
//! OpenAPI 3.1 takes JSON Schema as it is, and so the schemas are derived by a crate that makes nothing else. Answers are described as they are
//! written (all members are there) and requests as they are read (what may be left out is not required).

mod schema;

use std::collections::{BTreeMap, BTreeSet};

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

pub(crate) use self::schema::*;
use crate::call::{CALLS, Call, IGNORE_UNKNOWN, Method, SESSION_HEADER};
use crate::code::{CODES, Kind};
use crate::{request, view};

/// What a call takes and gives.
enum Body {
    Json(fn(&mut SchemaGenerator) -> Schema, fn(&mut SchemaGenerator) -> Schema),
    Other(fn(&mut SchemaGenerator) -> Schema, &'static str),
    Aside(&'static str),
}

fn json<R: JsonSchema, A: JsonSchema>() -> Body {
    Body::Json(R::json_schema, SchemaGenerator::subschema_for::<A>)
}

fn body(name: &str) -> Body {
    match name {
        "open" => json::<request::Open, view::Opened>(),
        "sessions" => json::<request::Sessions, view::Sessions>(),
        "renew" => json::<request::Nothing, view::Renewed>(),
        "close" => json::<request::Close, view::Done>(),
        "acquire" => json::<request::Acquire, view::Acquired>(),
        "release" => json::<request::Release, view::Done>(),
        "set-value" => json::<request::SetValue, view::Done>(),
        "drain" => json::<request::Drain, view::Done>(),
        "set-ready" => json::<request::Ready, view::Done>(),
        "cancel" => json::<request::Cancel, view::Cancelled>(),
        "get" => json::<request::Resource, view::LeaseAnswer>(),
        "list" => json::<request::Leases, view::Leases>(),
        "check" => json::<request::Check, view::Check>(),
        "history" => json::<request::Resource, view::History>(),
        "gaps" => json::<request::Gaps, view::Gaps>(),
        "revoke" => json::<request::Revoke, view::Revoked>(),
        "ask-release" => json::<request::AskRelease, view::Asked>(),
        "alarms" => json::<request::Nothing, view::Alarms>(),
        "clear-alarm" => json::<request::ClearAlarm, view::Done>(),
        "write-register" => json::<request::WriteRegister, view::Done>(),
        "read-register" => json::<request::Register, view::RegisterAnswer>(),
        "status" => json::<request::Nothing, view::Status>(),
        "watch" => Body::Other(request::Watch::json_schema, "text/event-stream"),
        "cluster-status" => json::<request::Nothing, view::Cluster>(),
        "cluster-local" => json::<request::Nothing, view::LocalCluster>(),
        "cluster-add" => json::<request::AddMember, view::Changed>(),
        "cluster-promote" | "cluster-remove" => json::<request::Member, view::Changed>(),
        "cluster-transfer" => json::<request::Transfer, view::Transferred>(),
        "backup" => Body::Other(request::Backup::json_schema, "application/octet-stream"),
        "openapi" => Body::Aside("application/json"),
        "metrics" => Body::Aside("application/openmetrics-text"),
        "health" | "ready" => Body::Aside("text/plain"),
        other => panic!("{other} has no types in here"),
    }
}

/// The whole document.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut reading = settings.clone().for_deserialize().into_generator();
    let mut writing = settings.for_serialize().into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for call in CALLS {
        let method = if call.method == Method::Get { "get" } else { "post" };
        let described = operation(call, &mut reading, &mut writing);
        paths.entry(call.path).or_default().insert(method.to_owned(), described);
    }
    assert!(reading.definitions().is_empty(), "requests are described where they are");
    let mut schemas = writing.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Leasehold",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "description": "Leases: a lease gives one client exclusive rights to a name, with a fencing token, while the client renews it. \
                Tokens, revisions, ids and numbers are decimal strings; lengths of time are integers of milliseconds and end in `_ms`. \
                Fields that are not known are refused, unless `ignore-unknown=true` is a parameter; null is the same as left out. \
                Lengths of texts are counted in bytes of UTF-8.",
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn operation(call: &Call, reading: &mut SchemaGenerator, writing: &mut SchemaGenerator) -> Value {
    let body = body(call.name);
    let request = match body {
        Body::Json(request, _) | Body::Other(request, _) => Some(request(reading).to_value()),
        Body::Aside(_) => None,
    };
    let (kind, answer) = match body {
        Body::Json(_, answer) => ("application/json", answer(writing).to_value()),
        Body::Aside(kind @ "application/json") => (kind, json!({ "type": "object" })),
        Body::Other(_, kind) | Body::Aside(kind) => (kind, json!({ "type": "string" })),
    };
    let mut parameters = Vec::new();
    if call.path.contains("{session}") {
        let pattern = json!({ "type": "string", "pattern": "^[0-9]{1,19}$" });
        parameters.push(json!({ "name": "session", "in": "path", "required": true, "schema": pattern }));
    }
    if call.session {
        let description = "The key that the answer to the open of the session gave. A secret.";
        parameters.push(json!({
            "name": SESSION_HEADER, "in": "header", "required": true, "description": description, "schema": session_key(),
        }));
    }
    let mut described = json!({
        "operationId": call.name,
        "tags": [call.path.split('/').nth(2).unwrap_or("service")],
        "summary": call.summary,
        "responses": responses(call, kind, &answer, request.is_some()),
    });
    if !call.description.is_empty() {
        described["description"] = call.description.into();
    }
    if let Some(mut schema) = request {
        let ignore = json!({ "type": "string", "enum": ["true", "false"] });
        parameters
            .push(json!({ "name": IGNORE_UNKNOWN, "in": "query", "required": false, "schema": ignore }));
        strip(&mut schema);
        match call.method {
            Method::Get => parameters.extend(query(&schema)),
            Method::Post => {
                described["requestBody"] =
                    json!({ "required": true, "content": { "application/json": { "schema": schema } } });
            }
        }
    }
    described["parameters"] = parameters.into();
    described
}

/// The name and the words of the type are said by the call.
fn strip(schema: &mut Value) {
    for word in ["title", "description", "$schema"] {
        schema.as_object_mut().expect("a request is an object").remove(word);
    }
}

/// The members of a request as parameters. In a query nothing is null.
fn query(schema: &Value) -> Vec<Value> {
    let members = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let parameter = |(name, mut member): (String, Value)| {
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|word| word != "null");
            if let [only] = &types[..] {
                member["type"] = only.clone();
            }
        }
        if let Some(Value::Array(words)) = member.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        if let Some(choice) = member.get("anyOf").and_then(|choices| choices.get(0)).cloned() {
            let said = member.get("description").cloned();
            member = choice;
            if let Some(said) = said {
                member["description"] = said;
            }
        }
        let required = required.contains(&name.as_str().into());
        json!({ "name": name, "in": "query", "required": required, "schema": member })
    };
    members.into_iter().map(parameter).collect()
}

fn responses(call: &Call, kind: &str, answer: &Value, reads: bool) -> Value {
    let mut responses = Map::new();
    let content = json!({ kind: { "schema": answer } });
    responses.insert(
        "200".to_owned(),
        json!({ "description": "As asked for.", "headers": headers(200), "content": &content }),
    );
    if call.name == "acquire" {
        let description = "The session waits; the same call with the same `number` goes on waiting.";
        responses.insert(
            "202".to_owned(),
            json!({ "description": description, "headers": headers(202), "content": content }),
        );
    }
    for (status, codes) in by_status(call, reads) {
        let described: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        let narrowed = json!({ "properties": { "code": { "enum": codes } } });
        let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Problem" }, narrowed] });
        let response = json!({
            "description": described.join(", "),
            "headers": headers(status),
            "content": { "application/problem+json": { "schema": schema } },
        });
        responses.insert(status.to_string(), response);
    }
    Value::Object(responses)
}

fn headers(status: u16) -> Value {
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": 64 });
    let description = "What this request is called in logs: the caller's own header of that name, or drawn.";
    let mut headers =
        json!({ "x-request-id": { "description": description, "required": true, "schema": schema } });
    if [429, 503].contains(&status) {
        let schema = json!({ "type": "string", "pattern": "^[0-9]+$" });
        headers["retry-after"] = json!({ "description": "Seconds to wait before asking again.", "required": true, "schema": schema });
    }
    headers
}

/// Codes of a call by their status: its own, those of every request, of every session and of every body.
fn by_status(call: &Call, reads: bool) -> BTreeMap<u16, BTreeSet<&'static str>> {
    let mut codes: BTreeSet<&str> = ["headers-too-large", "wrong-method"].into();
    codes.extend(call.codes);
    if reads {
        codes.extend(["unknown-field", "bad-field", "unavailable", "outcome-unknown"]);
    }
    if call.session {
        codes.extend(["session-ended", "not-your-session", "wrong-session-kind"]);
        if call.name != "renew" {
            codes.extend(["number-reused", "number-settled", "limit-reached", "not-yet-in-use"]);
        }
    }
    if call.method == Method::Post {
        codes.extend(["bad-json", "body-too-large", "request-timeout", "wrong-content-type"]);
    }
    let mut sorted: BTreeMap<u16, BTreeSet<&'static str>> = BTreeMap::new();
    for code in CODES.iter().filter(|code| codes.contains(code.name)) {
        sorted.entry(code.http).or_default().insert(code.name);
    }
    sorted
}

fn problem() -> Value {
    let codes: Vec<&str> = CODES.iter().map(|code| code.name).collect();
    let kinds = Kind::ALL.map(Kind::as_str);
    json!({
        "type": "object",
        "description": "A problem as RFC 9457 has it. What else is in it depends on the code.",
        "required": ["type", "title", "status", "detail", "code", "kind", "request_id"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "For people; it may change." },
            "code": { "type": "string", "enum": codes },
            "kind": {
                "type": "string",
                "enum": kinds,
                "description": "refused: no effect, now or later. failed: not taken in, no effect. unknown: it may have happened, or may happen yet.",
            },
            "request_id": { "type": "string" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_somewhere() {
        let document = document();
        let text = document.to_string();
        let references: Vec<&str> =
            text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(references.len() > 30, "{references:?}");
        for reference in references {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
    }

    #[test]
    fn what_must_be_given_is_required_and_answers_have_every_member() {
        let document = document();
        let release = "/paths/~1v1~1leases~1release/post/requestBody/content/application~1json/schema";
        let release = document.pointer(release).unwrap();
        assert_eq!(release["required"], json!(["resource", "token"]));
        assert_eq!(release["additionalProperties"], false);
        let holder = document.pointer("/components/schemas/Holder").unwrap();
        let members = holder["properties"].as_object().unwrap();
        assert_eq!(holder["required"].as_array().unwrap().len(), members.len());
    }

    #[test]
    fn every_refusal_of_a_plain_session_is_documented_somewhere() {
        let text = document().to_string();
        // These belong to session streams, to what HTTP does not offer, or to no path at all.
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
            assert!(text.contains(&format!("`{code}`")), "{code}");
        }
    }
}
