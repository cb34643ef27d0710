//! The OpenAPI document of everything that this door answers, made once.
//!
//! It is written by hand in small pieces and not derived: limits come from the constants that the code checks, each status of each
//! call lists the codes that it can have, and a test holds the fields in here against the types that read and write them.

mod answers;
mod calls;
mod fields;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use self::calls::{Answer, Call, Methods};
use leasehold_api::code::{CODES, Kind};

/// The document, as it is sent.
pub(super) fn document() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| build().to_string());
    &TEXT
}

/// Every path of the document.
#[cfg(test)]
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    calls::all().into_iter().map(|call| call.path)
}

fn build() -> Value {
    let mut paths = Map::new();
    for call in calls::all() {
        paths.insert(call.path.to_owned(), path(&call));
    }
    let mut schemas = answers::all();
    schemas.insert("Error".to_owned(), error());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Leasehold",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "description": "Leases: time-bounded, exclusive authority over a named resource, each with a fencing token. \
                Tokens, revisions, ids and numbers are decimal strings; lengths of time are integers of milliseconds and end in `_ms`. \
                Fields that are not known are refused; null is the same as left out. Lengths of texts are counted in bytes of UTF-8.",
        },
        "servers": [{ "url": "/" }],
        "tags": [
            { "name": "session", "description": "Whoever holds leases has a session and renews it." },
            { "name": "lease" },
            { "name": "register", "description": "Small values beside a lease, written with its token." },
            { "name": "service" },
            { "name": "cluster", "description": "The nodes that keep the log." },
        ],
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn path(call: &Call) -> Value {
    let mut methods = Map::new();
    if call.methods != Methods::Post {
        let mut operation = operation(call, Methods::Get);
        operation["parameters"] = fields::parameters(&call.fields);
        methods.insert("get".to_owned(), operation);
    }
    if call.methods != Methods::Get {
        let mut operation = operation(call, Methods::Post);
        let body = call.body.clone().unwrap_or_else(|| fields::object(&call.fields));
        operation["requestBody"] = json!({
            "required": call.fields.iter().any(|field| field.required),
            "content": { "application/json": { "schema": body, "example": call.example } },
        });
        methods.insert("post".to_owned(), operation);
    }
    Value::Object(methods)
}

fn operation(call: &Call, method: Methods) -> Value {
    let id = match (call.methods, method) {
        (Methods::Both, Methods::Post) => format!("{}-by-post", call.name),
        _ => call.name.to_owned(),
    };
    json!({
        "operationId": id,
        "tags": [call.tag],
        "summary": call.summary,
        "description": call.description,
        "responses": responses(call, method),
    })
}

fn responses(call: &Call, method: Methods) -> Value {
    let mut responses = Map::new();
    let (kind, schema) = match call.answer {
        Answer::Json(name) => ("application/json", json!({ "$ref": format!("#/components/schemas/{name}") })),
        Answer::Text(kind) => (kind, json!({ "type": "string" })),
        Answer::Object => ("application/json", json!({ "type": "object" })),
    };
    let mut content = Map::new();
    content.insert(kind.to_owned(), json!({ "schema": schema }));
    let mut good = json!({ "description": "As asked for.", "headers": headers(), "content": content });
    if let Some(links) = &call.links {
        good["links"] = links.clone();
    }
    responses.insert("200".to_owned(), good);
    for (status, codes) in by_status(call, method) {
        let described: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        let narrowed = json!({ "properties": { "error": { "properties": { "code": { "enum": codes } } } } });
        let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Error" }, narrowed] });
        let response = json!({
            "description": described.join(", "),
            "headers": headers(),
            "content": { "application/json": { "schema": schema } },
        });
        responses.insert(status.to_string(), response);
    }
    Value::Object(responses)
}

fn headers() -> Value {
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": 64 });
    let description = "What this request is called in logs: the caller's own header of that name, or drawn.";
    json!({ "x-request-id": { "description": description, "required": true, "schema": schema } })
}

/// Codes of a call by their status: its own, those of every request, and those of every body.
fn by_status(call: &Call, method: Methods) -> BTreeMap<u16, BTreeSet<&'static str>> {
    let every = ["headers-too-large", "wrong-method"];
    let asking = ["unavailable", "outcome-unknown"];
    let reading = ["unknown-field", "bad-field"];
    let body = ["bad-json", "body-too-large", "request-timeout", "wrong-content-type"];
    let mut codes: BTreeSet<&'static str> = every.into_iter().chain(call.codes.iter().copied()).collect();
    if call.asks {
        codes.extend(asking.into_iter().chain(reading));
    }
    if method == Methods::Post {
        codes.extend(body);
    }
    let mut sorted: BTreeMap<u16, BTreeSet<&'static str>> = BTreeMap::new();
    for code in CODES.iter().filter(|code| codes.remove(code.name)) {
        sorted.entry(code.http).or_default().insert(code.name);
    }
    assert!(codes.is_empty(), "{codes:?} are no codes");
    sorted
}

fn error() -> Value {
    let codes: Vec<&str> = CODES.iter().map(|code| code.name).collect();
    let kinds = Kind::ALL.map(Kind::as_str);
    let error = schema::object([
        ("code", json!({ "type": "string", "enum": codes })),
        (
            "kind",
            json!({
                "type": "string",
                "enum": kinds,
                "description": "refused: no effect, now or later. failed: not taken in, no effect. unknown: nobody can say.",
            }),
        ),
        ("message", json!({ "type": "string", "description": "For people; it may change." })),
        ("request_id", json!({ "type": "string" })),
        ("details", json!({ "type": ["object", "null"], "description": "What depends on the code." })),
    ]);
    schema::object([("error", error)])
}

#[cfg(test)]
mod tests;
