//! Schemas of values whose limits the types do not show. The limits are the constants that the code checks.

use std::borrow::Cow;

use leasehold_core::cluster::{MAX_ADDRESS_BYTES, MAX_MEMBER_NAME_BYTES};
use leasehold_core::limits::{
    LONGEST_MAX_TTL, MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_POLICY, MAX_REASON_BYTES, MAX_REGISTER_KEY_BYTES,
    MAX_SLOTS, MAX_UNIT, MAX_VALUE_BYTES, MIN_TTL,
};
use leasehold_core::protocol::MAX_PAGE;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Value, json};

use crate::key::{NONCE_DIGITS, NUMBER_DIGITS};
use crate::request::Wanted;
use crate::{Number, TokenNumber};

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": format!("^[0-9]{{1,{NUMBER_DIGITS}}}$") })
    }
}

impl JsonSchema for TokenNumber {
    fn schema_name() -> Cow<'static, str> {
        Number::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Number::json_schema(generator)
    }
}

/// Text without control characters.
fn plain(min: usize, max: usize, banned: &str) -> Schema {
    let times = if min == 0 { "*" } else { "+" };
    let pattern = format!(r"^[^\x00-\x1f\x7f-\x9f{banned}]{times}$");
    json_schema!({ "type": "string", "minLength": min, "maxLength": max, "pattern": pattern })
}

fn maybe(word: &str) -> Value {
    json!([word, "null"])
}

/// The same, or null.
fn or_null(mut schema: Schema) -> Schema {
    let word = schema.remove("type");
    schema.insert("type".to_owned(), json!([word, "null"]));
    schema
}

pub(crate) fn resource_needed(_: &mut SchemaGenerator) -> Schema {
    plain(1, MAX_NAME_BYTES, "#")
}

pub(crate) fn resource(_: &mut SchemaGenerator) -> Schema {
    or_null(plain(1, MAX_NAME_BYTES, "#"))
}

pub(crate) fn label(_: &mut SchemaGenerator) -> Schema {
    or_null(plain(0, MAX_LABEL_BYTES, ""))
}

pub(crate) fn reason(_: &mut SchemaGenerator) -> Schema {
    plain(0, MAX_REASON_BYTES, "")
}

pub(crate) fn register_key(_: &mut SchemaGenerator) -> Schema {
    plain(1, MAX_REGISTER_KEY_BYTES, "")
}

pub(crate) fn prefix(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": maybe("string"), "maxLength": MAX_NAME_BYTES })
}

pub(crate) fn value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": maybe("string"), "maxLength": MAX_VALUE_BYTES })
}

pub(crate) fn value_hex(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": maybe("string"), "maxLength": 2 * MAX_VALUE_BYTES, "pattern": "^([0-9a-fA-F]{2})*$" })
}

pub(crate) fn nonce(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": maybe("string"), "pattern": format!("^[0-9a-fA-F]{{{NONCE_DIGITS}}}$") })
}

pub(crate) fn ttl(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": maybe("integer"), "minimum": MIN_TTL.get(), "maximum": LONGEST_MAX_TTL.get() })
}

pub(crate) fn day(generator: &mut SchemaGenerator) -> Schema {
    or_null(day_needed(generator))
}

pub(crate) fn day_needed(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0, "maximum": MAX_POLICY.get() })
}

/// What fits 32 bits.
pub(crate) fn small(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
}

pub(crate) fn page(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": maybe("integer"), "minimum": 1, "maximum": MAX_PAGE })
}

pub(crate) fn slots(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": maybe("integer"), "minimum": 1, "maximum": MAX_SLOTS })
}

pub(crate) fn wanted(generator: &mut SchemaGenerator) -> Schema {
    let one = Wanted::json_schema(generator);
    json_schema!({ "type": maybe("array"), "items": one, "minItems": 1, "maxItems": MAX_UNIT, "uniqueItems": true })
}

pub(crate) fn session_key() -> Schema {
    json_schema!({ "type": "string", "pattern": format!("^[0-9]{{1,{NUMBER_DIGITS}}}-[0-9a-fA-F]{{{NONCE_DIGITS}}}$") })
}

pub(crate) fn member_needed(_: &mut SchemaGenerator) -> Schema {
    let name = "^[A-Za-z0-9._-]+$";
    json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX_MEMBER_NAME_BYTES, "pattern": name })
}

pub(crate) fn member(generator: &mut SchemaGenerator) -> Schema {
    or_null(member_needed(generator))
}

pub(crate) fn address(_: &mut SchemaGenerator) -> Schema {
    let port = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
    let pattern = format!("^[!#-+\\--.0-<>?A-~]+:{port}$");
    json_schema!({ "type": "string", "minLength": 3, "maxLength": MAX_ADDRESS_BYTES, "pattern": pattern })
}
