//! Every call: what it takes, what it answers, and which codes it can have instead.

mod cluster;

use serde_json::{Value, json};

use super::fields::{self, Field};
use super::schema;

/// Which methods a path takes. HEAD goes with GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Methods {
    Get,
    Post,
    Both,
}

/// What is answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// JSON of the schema with this name.
    Json(&'static str),
    /// Some JSON object.
    Object,
    /// Text of this kind.
    Text(&'static str),
}

/// One path.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) path: &'static str,
    pub(super) name: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) methods: Methods,
    pub(super) fields: Vec<Field>,
    /// The body, where it is more than an object with the fields.
    pub(super) body: Option<Value>,
    pub(super) example: Value,
    pub(super) answer: Answer,
    /// What it can be refused with, beyond what every call can.
    pub(super) codes: &'static [&'static str],
    /// Whether the node is asked, with fields.
    pub(super) asks: bool,
    /// What can be called with the answer.
    pub(super) links: Option<Value>,
}

/// What can be wrong with the session of a command.
const SESSION: [&str; 3] = ["session-ended", "not-your-session", "wrong-session-kind"];
const KEY: &str = "12-000102030405060708090a0b0c0d0e0f";

/// All of them.
pub(super) fn all() -> Vec<Call> {
    let mut calls = sessions();
    calls.extend(leases());
    calls.extend(looks());
    calls.extend(operators());
    calls.extend(registers());
    calls.extend(service());
    calls.extend(cluster::all());
    calls
}

fn call(path: &'static str, name: &'static str, methods: Methods, answer: Answer) -> Call {
    Call {
        path,
        name,
        tag: "service",
        summary: "",
        description: "",
        methods,
        fields: Vec::new(),
        body: None,
        example: json!({}),
        answer,
        codes: &[],
        asks: true,
        links: None,
    }
}

fn post(path: &'static str, name: &'static str, answer: &'static str) -> Call {
    call(path, name, Methods::Post, Answer::Json(answer))
}

fn ask(path: &'static str, name: &'static str, answer: &'static str) -> Call {
    call(path, name, Methods::Both, Answer::Json(answer))
}

/// A link that passes the session on.
fn with_session(operation: &str) -> Value {
    json!({ "operationId": operation, "requestBody": { "session_key": "$response.body#/session_key" } })
}

/// A link that passes a lease on.
fn with_lease(operation: &str) -> Value {
    json!({
        "operationId": operation,
        "requestBody": {
            "session_key": "$request.body#/session_key",
            "resource": "$response.body#/leases/0/resource",
            "token": "$response.body#/leases/0/token",
        },
    })
}

fn sessions() -> Vec<Call> {
    vec![
        Call {
            tag: "session",
            summary: "Opens a session",
            description: "Begins a session, or finds it again by its nonce. The first ttl counts from the sending of the open that made it.",
            fields: fields::open(),
            example: json!({ "label": "web-1", "ttl_ms": 10_000 }),
            codes: &[
                "bad-request",
                "ttl-out-of-range",
                "bad-numbers",
                "bad-policies",
                "limit-reached",
                "tokens-exhausted",
            ],
            links: Some(json!({
                "renew": with_session("renew"),
                "acquire": with_session("acquire"),
                "close": with_session("close"),
            })),
            ..post("/v1/session/open", "open", "Opened")
        },
        Call {
            tag: "session",
            summary: "Renews a session",
            description: "The answer lists what the session has: the renewal counts for these leases and no others.",
            fields: vec![fields::session_key()],
            example: json!({ "session_key": KEY }),
            codes: &SESSION,
            ..post("/v1/session/renew", "renew", "Renewed")
        },
        Call {
            tag: "session",
            summary: "Ends a session and all its leases",
            fields: vec![fields::session_key()],
            example: json!({ "session_key": KEY }),
            codes: &SESSION,
            ..post("/v1/session/close", "close", "Done")
        },
        Call {
            tag: "session",
            summary: "Lists sessions",
            description: "In the order of their ids.",
            fields: fields::page(schema::number(), "Only ids after this one.").into(),
            example: json!({ "limit": 10 }),
            ..ask("/v1/session/list", "sessions", "SessionsAnswer")
        },
    ]
}

fn leases() -> Vec<Call> {
    vec![
        Call {
            tag: "lease",
            summary: "Acquires one resource, or several at once",
            description: "All or none. A caller that hangs up while it is kept waiting gives its wait up. The leases count from the sending of the renewal that is named, until a later renewal lists them.",
            fields: fields::acquire_one(),
            body: Some(json!({
                "oneOf": [fields::object(&fields::acquire_one()), fields::object(&fields::acquire_many())]
            })),
            example: json!({ "session_key": KEY, "resource": "jobs/night", "value": "10.0.0.7:80", "wait_ms": 1_000 }),
            codes: &[
                "session-ended",
                "not-your-session",
                "wrong-session-kind",
                "session-overdue",
                "bad-request",
                "wrong-kind",
                "not-free",
                "wait-ended",
                "limit-reached",
                "tokens-exhausted",
            ],
            links: Some(json!({
                "release": with_lease("release"),
                "set-value": with_lease("set-value"),
                "drain": with_lease("drain"),
                "set-ready": with_lease("set-ready"),
                "write-register": with_lease("write-register"),
            })),
            ..post("/v1/lease/acquire", "acquire", "Acquired")
        },
        Call {
            tag: "lease",
            summary: "Gives a lease back",
            description: "Also the acknowledgement of a revoke. Never touches a later lease.",
            fields: vec![
                fields::session_key(),
                fields::resource(),
                fields::token(),
                fields::flag("drained", "Whether the work was finished before."),
            ],
            example: json!({ "session_key": KEY, "resource": "jobs/night", "token": "17" }),
            codes: &["session-ended", "not-your-session", "wrong-session-kind", "not-holder", "token-ahead"],
            ..post("/v1/lease/release", "release", "Done")
        },
        Call {
            tag: "lease",
            summary: "Shows another value with a lease",
            description: "Give value or value_hex.",
            fields: [fields::session_key(), fields::resource(), fields::token()]
                .into_iter()
                .chain(fields::value())
                .collect(),
            example: json!({ "session_key": KEY, "resource": "jobs/night", "token": "17", "value": "10.0.0.7:80" }),
            codes: &["session-ended", "not-your-session", "wrong-session-kind", "not-holder"],
            ..post("/v1/lease/set-value", "set-value", "Done")
        },
        Call {
            tag: "lease",
            summary: "Shows that the work under a lease is being drained",
            description: "Whoever looks or watches sees how much is in flight and how long it may take. Decides nothing; goes with the lease.",
            fields: vec![
                fields::session_key(),
                fields::resource(),
                fields::token(),
                fields::in_flight(),
                fields::within(),
            ],
            example: json!({
                "session_key": KEY, "resource": "jobs/night", "token": "17", "in_flight": 3, "within_ms": 20_000
            }),
            codes: &[
                "session-ended",
                "not-your-session",
                "wrong-session-kind",
                "bad-request",
                "not-holder",
                "not-yet-in-use",
            ],
            ..post("/v1/lease/drain", "drain", "Done")
        },
        Call {
            tag: "lease",
            summary: "Says that the holder is warming up, or that it is ready",
            description: "The gap before a lease ends when its holder is ready, and that is its grant unless it says something else. Decides nothing; goes with the lease.",
            fields: vec![fields::session_key(), fields::resource(), fields::token(), fields::ready()],
            example: json!({ "session_key": KEY, "resource": "jobs/night", "token": "17", "ready": false }),
            codes: &[
                "session-ended",
                "not-your-session",
                "wrong-session-kind",
                "not-holder",
                "not-yet-in-use",
            ],
            ..post("/v1/lease/ready", "set-ready", "Done")
        },
        Call {
            tag: "lease",
            summary: "Gives up a wait",
            description: "What was granted before the cancel arrived is held, and listed in the answer.",
            fields: vec![fields::session_key(), fields::acquire()],
            example: json!({ "session_key": KEY, "acquire": "3" }),
            codes: &["session-ended", "not-your-session", "wrong-session-kind", "no-such-wait"],
            ..post("/v1/lease/cancel", "cancel", "Cancelled")
        },
    ]
}

fn looks() -> Vec<Call> {
    let of_resource = || vec![fields::resource()];
    let mut list = vec![fields::prefix()];
    list.extend(fields::page(schema::resource(), "Only names after this one."));
    vec![
        Call {
            tag: "lease",
            summary: "Looks at one resource",
            description: "The lease is null when the resource was never held or is forgotten.",
            fields: of_resource(),
            example: json!({ "resource": "jobs/night" }),
            ..ask("/v1/lease/get", "get", "LeaseAnswer")
        },
        Call {
            tag: "lease",
            summary: "Lists resources",
            description: "In the order of their names. A page with large values is cut short; `more` says so.",
            fields: list,
            example: json!({ "prefix": "jobs/", "limit": 10 }),
            ..ask("/v1/lease/list", "list", "LeasesAnswer")
        },
        Call {
            tag: "lease",
            summary: "Checks whether a token is current",
            fields: vec![fields::resource(), fields::token()],
            example: json!({ "resource": "jobs/night", "token": "17" }),
            ..ask("/v1/lease/check", "check", "CheckAnswer")
        },
        Call {
            tag: "lease",
            summary: "Lists the leases of the past on a resource",
            description: "Newest first, as far as they are remembered.",
            fields: of_resource(),
            example: json!({ "resource": "jobs/night" }),
            ..ask("/v1/lease/history", "history", "HistoryAnswer")
        },
        Call {
            tag: "lease",
            summary: "Lists the times in which nobody was known to act, and why",
            description: "Of one name, or of all that have any, in the order of their names; newest first. A gap is at most as long as it says. Outages are those of the whole service.",
            fields: fields::gaps(),
            example: json!({ "prefix": "jobs/", "last_ms": 3_600_000 }),
            ..ask("/v1/lease/gaps", "gaps", "GapsAnswer")
        },
        Call {
            tag: "lease",
            summary: "Lists the alarms that are raised",
            description: "In the order of their names. A token was shown that was never granted here; the resource goes to nobody until an operator has looked.",
            ..ask("/v1/lease/alarms", "alarms", "AlarmsAnswer")
        },
    ]
}

fn operators() -> Vec<Call> {
    vec![
        Call {
            tag: "lease",
            summary: "Ends somebody's lease",
            description: "Until the holder acknowledges it or its last renewal is overdue, the resource goes to nobody, unless `now` is given: then only the fence protects.",
            fields: vec![
                fields::resource(),
                fields::token(),
                fields::reason(),
                fields::by(),
                fields::flag("now", "Grant to the next at once."),
            ],
            example: json!({ "resource": "jobs/night", "token": "17", "reason": "stuck", "by": "alice" }),
            codes: &["not-current"],
            ..post("/v1/lease/revoke", "revoke", "Revoked")
        },
        Call {
            tag: "lease",
            summary: "Answers an alarm",
            description: "The resource is granted again. The token is the one that was shown: an alarm of another is not answered.",
            fields: vec![fields::resource(), fields::token(), fields::reason(), fields::by()],
            example: json!({ "resource": "jobs/night", "token": "99", "reason": "typing error", "by": "alice" }),
            codes: &["no-such-alarm"],
            ..post("/v1/lease/clear-alarm", "clear-alarm", "Done")
        },
        Call {
            tag: "lease",
            summary: "Asks the holder to release",
            description: "A plain session learns of it with its next renewal (`release_requested`).",
            fields: vec![fields::resource(), fields::token().optional(), fields::by()],
            example: json!({ "resource": "jobs/night", "by": "alice" }),
            codes: &["not-held", "not-current"],
            ..post("/v1/lease/ask-release", "ask-release", "Asked")
        },
    ]
}

fn registers() -> Vec<Call> {
    let write = [fields::session_key(), fields::resource(), fields::token(), fields::register_key()];
    let flags = [
        fields::flag("remove", "Removes the register; then no value is given."),
        fields::flag("with_lease", "Removes it when the lease ends."),
    ];
    vec![
        Call {
            tag: "register",
            summary: "Writes a register, if the token is current",
            description: "Give value, value_hex or remove.",
            fields: write.into_iter().chain(fields::value()).chain(flags).collect(),
            example: json!({
                "session_key": KEY, "resource": "jobs/night", "token": "17", "key": "cursor", "value": "4711"
            }),
            codes: &[
                "session-ended",
                "not-your-session",
                "wrong-session-kind",
                "not-current",
                "token-ahead",
                "limit-reached",
            ],
            ..post("/v1/register/write", "write-register", "Done")
        },
        Call {
            tag: "register",
            summary: "Reads a register",
            description: "Null when it is not written, or went with its lease.",
            fields: vec![fields::resource(), fields::register_key()],
            example: json!({ "resource": "jobs/night", "key": "cursor" }),
            ..ask("/v1/register/read", "read-register", "RegisterAnswer")
        },
    ]
}

fn service() -> Vec<Call> {
    let text = Answer::Text("text/plain");
    vec![
        Call {
            summary: "Looks at the service itself",
            ..call("/v1/status", "status", Methods::Get, Answer::Json("Status"))
        },
        Call {
            summary: "Watches changes of leases, their values, registers and alarms",
            description: "Server-sent events: `started`, `changes`, `progress` and `error`, each with JSON. Every id is a revision to resume from with the header Last-Event-ID.",
            fields: vec![fields::prefix(), fields::after_revision()],
            codes: &["revision-too-old", "revision-ahead", "too-many-watches"],
            ..call("/v1/watch", "watch", Methods::Get, Answer::Text("text/event-stream"))
        },
        Call {
            summary: "This document",
            asks: false,
            ..call("/openapi.json", "openapi", Methods::Get, Answer::Object)
        },
        Call { summary: "The process is up", asks: false, ..call("/healthz", "health", Methods::Get, text) },
        Call {
            summary: "The service takes in requests",
            asks: false,
            codes: &["unavailable"],
            ..call("/readyz", "ready", Methods::Get, text)
        },
        Call {
            summary: "Metrics for Prometheus",
            asks: false,
            ..call("/metrics", "metrics", Methods::Get, Answer::Text("application/openmetrics-text"))
        },
    ]
}
