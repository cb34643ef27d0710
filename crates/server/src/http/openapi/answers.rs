//! Schemas of answers.

use leasehold_core::gap::GapCause;
use serde_json::{Map, Value};

use super::schema::{array, count, hex, millis, nullable, number, object, reference, text, truth, words};
use leasehold_api::word::ENDINGS;

/// Digits of the id of a node.
const MEMBER_DIGITS: usize = 16;
/// Digits of the name of a life of the state.
const INCARNATION_DIGITS: usize = 32;

/// All of them by name.
pub(super) fn all() -> Map<String, Value> {
    let named = [
        ("Done", object([])),
        ("Opened", opened()),
        ("Renewed", renewed()),
        ("Grant", object(grant())),
        ("Acquired", acquired()),
        ("Cancelled", cancelled()),
        ("Holder", holder()),
        ("Alarm", alarm()),
        ("Lease", lease()),
        ("Session", session()),
        ("Ending", object(ending())),
        ("LeaseAnswer", seen([("lease", nullable(reference("Lease")))])),
        ("LeasesAnswer", seen([("leases", array(&reference("Lease"))), ("more", truth())])),
        ("SessionsAnswer", seen([("sessions", array(&reference("Session"))), ("more", truth())])),
        ("CheckAnswer", check()),
        ("HistoryAnswer", seen([("history", array(&past()))])),
        ("GapsAnswer", gaps()),
        ("AlarmsAnswer", seen([("alarms", array(&reference("Alarm")))])),
        ("Revoked", object([("held_back_ms", millis())])),
        ("Asked", object([("token", number()), ("label", text())])),
        ("RegisterAnswer", seen([("register", nullable(register()))])),
        ("Status", status()),
        ("Member", member()),
        ("Cluster", cluster()),
        ("LocalCluster", local_cluster()),
        ("Changed", object([("revision", number())])),
        ("Transferred", object([("leader", nullable(text())), ("leader_id", hex(MEMBER_DIGITS))])),
    ];
    named.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn opened() -> Value {
    object([
        ("session", number()),
        ("session_key", text()),
        ("ttl_ms", millis()),
        ("drift_ppm", count()),
        ("repeated", truth()),
        ("renewal", nullable(number())),
        ("renew_every_ms", nullable(millis())),
        ("margin_ms", nullable(millis())),
    ])
}

fn renewed() -> Value {
    let [resource, token, fence, slot] = grant();
    let held = object([resource, token, fence, slot, ("release_requested", truth())]);
    let wait = object([("acquire", number()), ("resources", array(&text()))]);
    object([("renewal", number()), ("leases", array(&held)), ("waits", array(&wait))])
}

fn grant() -> [(&'static str, Value); 4] {
    [("resource", text()), ("token", number()), ("fence_token", number()), ("slot", nullable(count()))]
}

fn acquired() -> Value {
    object([
        ("outcome", words(&["granted", "queued"])),
        ("acquire", number()),
        ("renewal", number()),
        ("leases", array(&reference("Grant"))),
        ("ahead", nullable(count())),
    ])
}

fn cancelled() -> Value {
    object([("outcome", words(&["cancelled", "already-granted"])), ("leases", array(&reference("Grant")))])
}

fn lease() -> Value {
    let waiter = object([
        ("label", text()),
        ("session", number()),
        ("waiting_for_ms", millis()),
        ("overdue", truth()),
    ]);
    object([
        ("resource", text()),
        ("held", truth()),
        ("mode", words(&["exclusive", "shared", "slots"])),
        ("slots", nullable(count())),
        ("holders", array(&reference("Holder"))),
        ("holding", count()),
        ("queue", array(&waiter)),
        ("waiting", count()),
        ("cool_down_ms", nullable(millis())),
        ("restore_wait_ms", nullable(millis())),
        ("transitions", count()),
        ("alarm", nullable(reference("Alarm"))),
    ])
}

fn alarm() -> Value {
    object([("resource", text()), ("token", number()), ("by", text()), ("age_ms", millis())])
}

fn holder() -> Value {
    object([
        ("label", text()),
        ("session", number()),
        ("token", number()),
        ("fence_token", number()),
        ("slot", nullable(count())),
        ("shared", truth()),
        ("state", words(&["held", "overdue", "revoked"])),
        ("ttl_ms", millis()),
        ("remaining_ms", millis()),
        ("held_for_ms", millis()),
        ("renewed_ago_ms", millis()),
        ("value", nullable(text())),
        ("value_hex", nullable(text())),
        ("value_left_out", truth()),
        ("draining", nullable(object([("in_flight", count()), ("remaining_ms", millis())]))),
        ("readiness", nullable(readiness())),
        ("offer", nullable(offer())),
    ])
}

fn readiness() -> Value {
    object([("state", words(&["warming-up", "ready"])), ("ready_after_ms", nullable(millis()))])
}

fn offer() -> Value {
    object([("to", number()), ("label", text()), ("ready", truth()), ("remaining_ms", millis())])
}

fn session() -> Value {
    object([
        ("session", number()),
        ("label", text()),
        ("overdue", truth()),
        ("ttl_ms", millis()),
        ("remaining_ms", millis()),
        ("age_ms", millis()),
        ("renewed_ago_ms", millis()),
        ("leases", count()),
        ("waits", count()),
    ])
}

fn ending() -> [(&'static str, Value); 5] {
    [
        ("ended", words(&ENDINGS)),
        ("by", nullable(text())),
        ("reason", nullable(text())),
        ("successor", nullable(number())),
        ("taken_by", nullable(number())),
    ]
}

fn past() -> Value {
    let [ended, by, reason, successor, taken_by] = ending();
    object([
        ("token", number()),
        ("label", text()),
        ("session", number()),
        ("held_for_ms", millis()),
        ("ended_ago_ms", millis()),
        ended,
        by,
        reason,
        successor,
        taken_by,
    ])
}

fn gaps() -> Value {
    let side =
        object([("token", number()), ("label", nullable(text())), ("ending", nullable(reference("Ending")))]);
    let part =
        object([("cause", words(&GapCause::ALL.map(GapCause::word))), ("length_ms", nullable(millis()))]);
    let gap = object([
        ("began_ago_ms", millis()),
        ("ended_ago_ms", nullable(millis())),
        ("length_ms", millis()),
        ("parts", array(&part)),
        ("before", side.clone()),
        ("after", nullable(side)),
    ]);
    let name = object([("resource", text()), ("known_for_ms", millis()), ("gaps", array(&gap))]);
    let outage = object([("ended_ago_ms", millis()), ("length_ms", nullable(millis()))]);
    seen([("names", array(&name)), ("next", nullable(text())), ("outages", array(&outage))])
}

fn check() -> Value {
    let states = words(&["current", "ended", "not-known", "ahead"]);
    seen([("state", states), ("ending", nullable(reference("Ending"))), ("newest", nullable(number()))])
}

fn register() -> Value {
    object([("value", nullable(text())), ("value_hex", nullable(text())), ("token", number())])
}

fn status() -> Value {
    object([
        ("version", text()),
        ("pid", count()),
        ("sessions", count()),
        ("resources", count()),
        ("revision", number()),
        ("log_time_ms", millis()),
        ("log_time_cut_ms", millis()),
    ])
}

fn member() -> Value {
    object([
        ("name", text()),
        ("id", hex(MEMBER_DIGITS)),
        ("address", text()),
        ("role", words(&["voter", "learner"])),
        ("leader", truth()),
        ("reachable", truth()),
        ("matched", number()),
        ("behind", count()),
        ("receiving_snapshot", truth()),
    ])
}

fn cluster() -> Value {
    object([
        ("incarnation", hex(INCARNATION_DIGITS)),
        ("epoch", count()),
        ("version", count()),
        ("leader", nullable(text())),
        ("term", number()),
        ("committed", number()),
        ("restore_wait_ms", nullable(millis())),
        ("members", array(&reference("Member"))),
    ])
}

fn local_cluster() -> Value {
    let member = object([
        ("name", text()),
        ("id", hex(MEMBER_DIGITS)),
        ("address", text()),
        ("role", words(&["voter", "learner"])),
    ]);
    object([
        ("name", nullable(text())),
        ("id", hex(MEMBER_DIGITS)),
        ("advertised", text()),
        ("incarnation", hex(INCARNATION_DIGITS)),
        ("epoch", count()),
        ("leader", nullable(text())),
        ("ready", truth()),
        ("applied", number()),
        ("restore_wait_ms", nullable(millis())),
        ("members", array(&member)),
    ])
}

/// Something read at a revision.
fn seen<const N: usize>(properties: [(&str, Value); N]) -> Value {
    let mut schema = object(properties);
    schema["properties"]["revision"] = number();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.push("revision".into());
    }
    schema
}
