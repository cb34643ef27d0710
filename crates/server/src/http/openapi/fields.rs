//! Fields of requests: the same ones are members of a body and parameters of a query.

use leasehold_core::limits::{LONGEST_MAX_TTL, MAX_SLOTS, MAX_UNIT, MIN_TTL};
use leasehold_core::numbers::DEFAULT_TTL;
use leasehold_core::protocol::MAX_PAGE;
use serde_json::{Map, Value, json};

use super::super::input::{DEFAULT_PAGE, NAMELESS};
use super::schema;

/// One field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) required: bool,
    schema: Value,
    description: &'static str,
}

impl Field {
    /// The same field where it may be left out.
    pub(super) fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    fn with_default(mut self, default: impl Into<Value>) -> Self {
        self.schema["default"] = default.into();
        self
    }
}

fn required(name: &'static str, schema: Value, description: &'static str) -> Field {
    Field { name, required: true, schema, description }
}

fn optional(name: &'static str, schema: Value, description: &'static str) -> Field {
    required(name, schema, description).optional()
}

/// A body with these fields and no others.
pub(super) fn object(fields: &[Field]) -> Value {
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let member = |field: &Field| {
        let schema = field.schema.clone();
        let mut schema = if field.required { schema } else { schema::nullable(schema) };
        schema["description"] = field.description.into();
        (field.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = fields.iter().map(member).collect();
    let mut object = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// A query with these fields.
pub(super) fn parameters(fields: &[Field]) -> Value {
    let parameter = |field: &Field| {
        json!({
            "name": field.name,
            "in": "query",
            "required": field.required,
            "description": field.description,
            "schema": field.schema,
        })
    };
    fields.iter().map(parameter).collect()
}

pub(super) fn session_key() -> Field {
    required(
        "session_key",
        schema::session_key(),
        "As the answer to the open of the session gave it. A secret.",
    )
}

pub(super) fn resource() -> Field {
    required("resource", schema::resource(), "The name of a resource.")
}

pub(super) fn token() -> Field {
    required("token", schema::number(), "The token of a lease.")
}

pub(super) fn register_key() -> Field {
    required("key", schema::register_key(), "The key of a register of the resource.")
}

pub(super) fn reason() -> Field {
    required("reason", schema::reason(), "Why, for the history.")
}

pub(super) fn by() -> Field {
    optional("by", schema::label(), "Who does it, for the history.").with_default(NAMELESS)
}

pub(super) fn in_flight() -> Field {
    let schema = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    required("in_flight", schema, "How many pieces of work are still under way.")
}

pub(super) fn within() -> Field {
    required("within_ms", schema::day(), "How long that may still take at most.")
}

pub(super) fn ready() -> Field {
    optional("ready", schema::truth(), "Whether it is ready; false says that it is warming up.")
        .with_default(true)
}

/// The fields of a question about gaps.
pub(super) fn gaps() -> Vec<Field> {
    let [after, limit] =
        page(schema::resource(), "Only names after this one, such as `next` of the answer before.");
    vec![
        optional("resource", schema::resource(), "One name; then without prefix, after and limit."),
        optional(
            "prefix",
            schema::prefix(),
            "Only names that begin with this, and only those that have gaps.",
        ),
        after,
        Field {
            description: "At most so many, and never more than 100; `next` says where to go on.",
            ..limit
        },
        optional("last_ms", schema::millis(), "Only gaps and outages that ended no longer ago than this."),
    ]
}

pub(super) fn acquire() -> Field {
    required("acquire", schema::number(), "The number of the acquire that waits.")
}

/// The fields of an open.
pub(super) fn open() -> Vec<Field> {
    let mut ttl = schema::millis();
    ttl["minimum"] = MIN_TTL.get().into();
    ttl["maximum"] = LONGEST_MAX_TTL.get().into();
    vec![
        optional("label", schema::label(), "What the holder calls itself: host, pod, pid.").with_default(""),
        optional(
            "ttl_ms",
            ttl,
            "How long the session lives after a renewal; the service may have a lower maximum.",
        )
        .with_default(DEFAULT_TTL.get()),
        optional(
            "renew_every_ms",
            schema::day(),
            "How often the holder means to renew. Who gives this, margin_ms or round_trip_ms has them judged; by default a third of the ttl.",
        ),
        optional(
            "margin_ms",
            schema::day(),
            "How long before the end of the ttl the holder means to stop; by default a tenth of the ttl, and what drift needs at least.",
        ),
        optional("round_trip_ms", schema::day(), "The longest ordinary round trip; 100 by default."),
        optional("grace_ms", schema::day(), "So long an overdue session keeps its leases from everybody.")
            .with_default(0),
        optional(
            "hard_ms",
            schema::day(),
            "So long an overdue session keeps its leases while nobody else wants them; at least grace_ms, and that by default.",
        ),
        optional("delay_ms", schema::day(), "So long a resource goes to nobody after an involuntary end.")
            .with_default(0),
        optional("nonce", schema::nonce(), "Random; who repeats an open with it finds the same session."),
    ]
}

/// The fields of an acquire of one resource.
pub(super) fn acquire_one() -> Vec<Field> {
    let mut fields = vec![session_key(), resource(), mode(), slots()];
    fields.extend(acquire_any());
    fields
}

/// The fields of an acquire of several.
pub(super) fn acquire_many() -> Vec<Field> {
    let wanted = object(&[resource(), mode(), slots()]);
    let resources =
        json!({ "type": "array", "items": wanted, "minItems": 1, "maxItems": MAX_UNIT, "uniqueItems": true });
    let mut fields = vec![session_key(), required("resources", resources, "All or none; each named once.")];
    fields.extend(acquire_any());
    fields
}

fn acquire_any() -> [Field; 4] {
    let [value, value_hex] = value();
    let when_queued = "`wait` answers when the wait is over, `return` answers at once with `queued`.";
    [
        value,
        value_hex,
        optional(
            "wait_ms",
            schema::day(),
            "How long to wait in line; without it what is not free is refused.",
        ),
        optional("when_queued", schema::words(&["wait", "return"]), when_queued).with_default("wait"),
    ]
}

fn mode() -> Field {
    let description = "By one, by any number that also share, or by one in each slot. Without it: slots if the field \
        slots is given, exclusive otherwise.";
    optional("mode", schema::words(&["exclusive", "shared", "slots"]), description)
}

fn slots() -> Field {
    let schema = json!({ "type": "integer", "minimum": 1, "maximum": MAX_SLOTS });
    optional("slots", schema, "How many slots the name has; for mode slots, and it implies that mode.")
}

/// A value in one of two forms.
pub(super) fn value() -> [Field; 2] {
    [
        optional("value", schema::value(), "Text to show; or value_hex."),
        optional("value_hex", schema::value_hex(), "Bytes to show, as hexadecimal digits; or value."),
    ]
}

pub(super) fn flag(name: &'static str, description: &'static str) -> Field {
    optional(name, schema::truth(), description).with_default(false)
}

/// Where a page begins and how long it is.
pub(super) fn page(after: Value, description: &'static str) -> [Field; 2] {
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": MAX_PAGE });
    [
        optional("after", after, description),
        optional("limit", limit, "At most so many; `more` says whether there are more.")
            .with_default(DEFAULT_PAGE),
    ]
}

pub(super) fn prefix() -> Field {
    optional("prefix", schema::prefix(), "Only names that begin with this.").with_default("")
}

pub(super) fn after_revision() -> Field {
    let description = "Only later changes than this revision; the header Last-Event-ID wins over it.";
    optional("after", schema::number(), description)
}

pub(super) fn member_name(description: &'static str) -> Field {
    required("name", schema::member_name(), description)
}

pub(super) fn member_address() -> Field {
    required("address", schema::member_address(), "Where clients and other nodes reach it.")
}

pub(super) fn age() -> Field {
    let words = schema::words(&["current", "any"]);
    optional("age", words, "Whether it may be older than what the cluster has decided.")
        .with_default("current")
}

pub(super) fn successor() -> Field {
    optional("to", schema::member_name(), "Who leads next.")
}
