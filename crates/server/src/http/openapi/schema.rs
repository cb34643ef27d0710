//! Pieces of schemas.

use leasehold_core::cluster::{MAX_ADDRESS_BYTES, MAX_MEMBER_NAME_BYTES};
use leasehold_core::limits::{
    MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_POLICY, MAX_REASON_BYTES, MAX_REGISTER_KEY_BYTES, MAX_VALUE_BYTES,
};
use serde_json::{Map, Value, json};

const NONCE_DIGITS: usize = 32;
const NUMBER_DIGITS: usize = 19;

/// An object that has all of these, and may have more in a later release.
pub(super) fn object<const N: usize>(properties: [(&str, Value); N]) -> Value {
    let required: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let required = json!(required);
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The same schema, or null.
pub(super) fn nullable(mut schema: Value) -> Value {
    if let Some(reference) = schema.get("$ref") {
        return json!({ "anyOf": [{ "$ref": reference }, { "type": "null" }] });
    }
    let kind = schema["type"].take();
    schema["type"] = json!([kind, "null"]);
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    }
    schema
}

pub(super) fn array(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn truth() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// A number that may not fit a double.
pub(super) fn number() -> Value {
    json!({ "type": "string", "pattern": format!("^[0-9]{{1,{NUMBER_DIGITS}}}$") })
}

pub(super) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// A length of time without a limit of its own.
pub(super) fn millis() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// A length of time that is at most a day.
pub(super) fn day() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": MAX_POLICY.get() })
}

/// Text without control characters.
fn plain_text(min: usize, max: usize, banned: &str) -> Value {
    let times = if min == 0 { "*" } else { "+" };
    let pattern = format!(r"^[^\x00-\x1f\x7f-\x9f{banned}]{times}$");
    json!({ "type": "string", "minLength": min, "maxLength": max, "pattern": pattern })
}

pub(super) fn resource() -> Value {
    plain_text(1, MAX_NAME_BYTES, "#")
}

pub(super) fn label() -> Value {
    plain_text(0, MAX_LABEL_BYTES, "")
}

pub(super) fn reason() -> Value {
    plain_text(0, MAX_REASON_BYTES, "")
}

pub(super) fn register_key() -> Value {
    plain_text(1, MAX_REGISTER_KEY_BYTES, "")
}

pub(super) fn prefix() -> Value {
    json!({ "type": "string", "maxLength": MAX_NAME_BYTES })
}

pub(super) fn value() -> Value {
    json!({ "type": "string", "maxLength": MAX_VALUE_BYTES })
}

pub(super) fn value_hex() -> Value {
    json!({ "type": "string", "maxLength": 2 * MAX_VALUE_BYTES, "pattern": "^([0-9a-fA-F]{2})*$" })
}

pub(super) fn session_key() -> Value {
    let pattern = format!("^[0-9]{{1,{NUMBER_DIGITS}}}-[0-9a-fA-F]{{{NONCE_DIGITS}}}$");
    json!({ "type": "string", "pattern": pattern })
}

pub(super) fn nonce() -> Value {
    json!({ "type": "string", "pattern": format!("^[0-9a-fA-F]{{{NONCE_DIGITS}}}$") })
}

pub(super) fn member_name() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_MEMBER_NAME_BYTES, "pattern": "^[A-Za-z0-9._-]+$" })
}

pub(super) fn member_address() -> Value {
    let port = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
    let pattern = format!("^[!#-+\\--.0-<>?A-~]+:{port}$");
    json!({ "type": "string", "minLength": 3, "maxLength": MAX_ADDRESS_BYTES, "pattern": pattern })
}

/// Hexadecimal digits.
pub(super) fn hex(digits: usize) -> Value {
    json!({ "type": "string", "pattern": format!("^[0-9a-f]{{{digits}}}$") })
}
