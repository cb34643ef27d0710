//! Every call over HTTP: its method, its path, and what it can be refused with beyond what every call can.
//!
//! The router, the metrics and the OpenAPI document go by this table.

/// GET for what is only looked at; HEAD goes with it. POST for what changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Method {
    Get,
    Post,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// What it is called in metrics, logs and the document.
    pub name: &'static str,
    /// The method that it takes.
    pub method: Method,
    /// Its path. The one part in braces is the id of a session.
    pub path: &'static str,
    /// Whether it is made for a session, whose key is in the header [`SESSION_HEADER`].
    pub session: bool,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What else there is to know.
    pub description: &'static str,
    /// What it can be refused with, beyond what every call can.
    pub codes: &'static [&'static str],
}

/// Has the key of the session that a call is made for. `Authorization` stays free for who the caller is.
pub const SESSION_HEADER: &str = "leasehold-session";
/// With this parameter and the value `true`, fields that are not known are ignored instead of refused.
pub const IGNORE_UNKNOWN: &str = "ignore-unknown";

/// The call at a path, with an id in place of the braces.
pub fn at(method: Method, path: &str) -> Option<&'static Call> {
    at_path(path).find(|call| call.method == method)
}

/// Every call at a path.
pub fn at_path(path: &str) -> impl Iterator<Item = &'static Call> {
    CALLS.iter().filter(move |call| match call.path.split_once("{session}") {
        None => call.path == path,
        Some((before, behind)) => path
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(behind))
            .is_some_and(|id| !id.is_empty() && !id.contains('/')),
    })
}

const fn get(name: &'static str, path: &'static str, summary: &'static str) -> Call {
    Call { name, method: Method::Get, path, session: false, summary, description: "", codes: &[] }
}

const fn post(name: &'static str, path: &'static str, summary: &'static str) -> Call {
    Call { method: Method::Post, ..get(name, path, summary) }
}

const fn for_session(name: &'static str, path: &'static str, summary: &'static str) -> Call {
    Call { session: true, ..post(name, path, summary) }
}

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        description: "Begins a session, or finds it again by its nonce. The first ttl counts from the sending of the open that made it.",
        codes: &[
            "bad-request",
            "ttl-out-of-range",
            "bad-numbers",
            "bad-policies",
            "limit-reached",
            "tokens-exhausted",
        ],
        ..post("open", "/v1/sessions", "Opens a session")
    },
    Call {
        description: "In the order of their ids.",
        codes: &["too-much-unread"],
        ..get("sessions", "/v1/sessions", "Lists sessions")
    },
    Call {
        description: "The answer lists what the session has: the renewal counts for these leases and no others.",
        ..for_session("renew", "/v1/sessions/{session}/renew", "Renews a session")
    },
    for_session("close", "/v1/sessions/{session}/close", "Ends a session and all its leases"),
    Call {
        description: "All or none. A caller that hangs up while its call waits gives its wait up. The leases count from the sending of the renewal that is named, until a later renewal lists them.",
        codes: &[
            "session-overdue",
            "bad-request",
            "wrong-kind",
            "not-free",
            "wait-ended",
            "limit-reached",
            "tokens-exhausted",
        ],
        ..for_session("acquire", "/v1/leases/acquire", "Acquires one resource, or several at once")
    },
    Call {
        description: "Also the acknowledgement of a revoke. Never touches a later lease.",
        codes: &["not-holder", "token-ahead"],
        ..for_session("release", "/v1/leases/release", "Gives a lease back")
    },
    Call {
        codes: &["not-holder"],
        ..for_session("set-value", "/v1/leases/set-value", "Shows another value with a lease")
    },
    Call {
        description: "All who look or watch see how much is in flight and how long it may take. Decides nothing; goes with the lease.",
        codes: &["bad-request", "not-holder", "not-yet-in-use"],
        ..for_session("drain", "/v1/leases/drain", "Shows that the work under a lease is being drained")
    },
    Call {
        description: "The gap before a lease ends when its holder is ready, and that is its grant unless it says something else. Decides nothing; goes with the lease.",
        codes: &["not-holder", "not-yet-in-use"],
        ..for_session(
            "set-ready",
            "/v1/leases/ready",
            "Says that the holder is warming up, or that it is ready",
        )
    },
    Call {
        description: "What was granted before the cancel arrived is held, and listed in the answer.",
        codes: &["no-such-wait"],
        ..for_session("cancel", "/v1/leases/cancel", "Gives up a wait")
    },
    Call {
        description: "The lease is null when the resource was never held or is forgotten.",
        codes: &["too-much-unread"],
        ..get("get", "/v1/leases/get", "Looks at one resource")
    },
    Call {
        description: "In the order of their names. A page with large values is cut short; `next` says where to go on.",
        codes: &["too-much-unread"],
        ..get("list", "/v1/leases", "Lists resources")
    },
    get("check", "/v1/leases/check", "Checks whether a token is current"),
    Call {
        description: "Newest first, as far as they are remembered.",
        codes: &["too-much-unread"],
        ..get("history", "/v1/leases/history", "Lists the leases of the past on a resource")
    },
    Call {
        description: "Of one name, or of all that have any, in the order of their names; newest first. A gap is at most as long as it says. Outages are those of the whole service.",
        codes: &["too-much-unread"],
        ..get("gaps", "/v1/leases/gaps", "Lists the times in which no holder was known to act, and why")
    },
    Call {
        description: "Until the holder acknowledges it or its last renewal is overdue, the resource stays free, unless `now` is given: then only the fence protects.",
        codes: &["not-current"],
        ..post("revoke", "/v1/leases/revoke", "Ends a lease on an operator's word")
    },
    Call {
        description: "A plain session learns of it with its next renewal (`release_requested`).",
        codes: &["not-held", "not-current"],
        ..post("ask-release", "/v1/leases/ask-release", "Asks the holder to release")
    },
    Call {
        description: "In the order of their names. A token was shown that was never granted here; the resource is granted to no client until an operator has looked.",
        codes: &["too-much-unread"],
        ..get("alarms", "/v1/alarms", "Lists the alarms that are raised")
    },
    Call {
        description: "The resource is granted again. The token is the one that was shown: an alarm of another is not answered.",
        codes: &["no-such-alarm"],
        ..post("clear-alarm", "/v1/alarms/clear", "Answers an alarm")
    },
    Call {
        description: "Give value, value_hex or remove.",
        codes: &["not-current", "token-ahead", "limit-reached"],
        ..for_session("write-register", "/v1/registers/write", "Writes a register, if the token is current")
    },
    Call {
        description: "Null when it is not written, or went with its lease.",
        codes: &["too-much-unread"],
        ..get("read-register", "/v1/registers/get", "Reads a register")
    },
    get("status", "/v1/status", "Looks at the service itself"),
    Call {
        description: "Server-sent events: `started`, `changes`, `progress` and `error`, each with JSON. Every id is a revision to resume from with the header Last-Event-ID.",
        codes: &["revision-too-old", "revision-ahead", "too-many-watches"],
        ..get("watch", "/v1/watch", "Watches changes of leases, their values, registers and alarms")
    },
    Call {
        description: "As the leader sees them; any node answers.",
        ..get("cluster-status", "/v1/cluster/status", "Looks at the nodes")
    },
    Call {
        description: "Answered also without a leader. What it says may be old, and others may know more.",
        ..get("cluster-local", "/v1/cluster/local", "Looks at the nodes as this one knows them")
    },
    Call {
        description: "The node that listens at the address is asked who it is first: it must have been started with `serve --join` and that name.",
        codes: &[
            "node-unreachable",
            "wrong-node",
            "node-not-blank",
            "address-differs",
            "member-taken",
            "was-removed",
            "too-many-members",
            "change-under-way",
        ],
        ..post("cluster-add", "/v1/cluster/add", "Adds a blank node as a learner")
    },
    Call {
        codes: &["no-such-member", "not-caught-up", "is-voter", "change-under-way"],
        ..post("cluster-promote", "/v1/cluster/promote", "Makes a learner that has caught up a voter")
    },
    Call {
        description: "A leader hands over first and answers `handing-over`: ask again. Its directory is of no use to this cluster afterwards.",
        codes: &[
            "no-such-member",
            "last-voter",
            "no-majority-left",
            "handing-over",
            "nobody-to-take-over",
            "change-under-way",
        ],
        ..post("cluster-remove", "/v1/cluster/remove", "Removes a node for ever")
    },
    Call {
        description: "To the voter that is furthest, if none is named.",
        codes: &["no-such-member", "is-learner", "nobody-to-take-over"],
        ..post("cluster-transfer", "/v1/cluster/transfer", "Hands leadership over")
    },
    Call {
        description: "Answered with 503 while the node cannot know that it has everything, unless `age` is `any`. The header `x-checksum-crc32c` has the CRC-32C of the body in hexadecimal digits. The file holds the keys of sessions.",
        ..get("backup", "/v1/backup", "The state of this node as a backup")
    },
    get("openapi", "/openapi.json", "This document"),
    get("health", "/healthz", "The process is up"),
    Call { codes: &["unavailable"], ..get("ready", "/readyz", "The service takes in requests") },
    get("metrics", "/metrics", "Metrics for Prometheus"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_method_and_path() {
        let name = |method, path| at(method, path).map(|call| call.name);
        assert_eq!(name(Method::Post, "/v1/sessions"), Some("open"));
        assert_eq!(name(Method::Get, "/v1/sessions"), Some("sessions"));
        assert_eq!(name(Method::Post, "/v1/sessions/16/renew"), Some("renew"));
        for path in ["/v1/sessions//renew", "/v1/sessions/1/2/renew", "/v1/sessions/16", "/v1", ""] {
            assert_eq!(name(Method::Post, path), None, "{path}");
        }
        assert_eq!(name(Method::Get, "/v1/leases/acquire"), None);
    }

    #[test]
    fn every_call_is_listed_once_with_codes_that_exist() {
        for (place, call) in CALLS.iter().enumerate() {
            assert!(call.codes.iter().all(|code| crate::code::find(code).is_some()), "{}", call.name);
            let twice = |other: &Call| {
                other.name == call.name || (other.method, other.path) == (call.method, call.path)
            };
            assert!(!CALLS[..place].iter().any(twice), "{}", call.name);
        }
    }
}
