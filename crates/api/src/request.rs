//! What each call takes. A field that is not in its type is refused; null is the same as left out.
//!
//! The types say what is written; `check` turns a request into what the table understands, or names the field that cannot be.

mod check;

use leasehold_core::{Label, Nonce, Reason, RegisterKey, ResourceName};
use serde::{Deserialize, Deserializer};

pub use self::check::{DEFAULT_PAGE, check_slots, label};
use crate::text::{text, whole, whole_needed};
use crate::{Hex, Number, Object, parse_nonce};

/// A request without fields.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Opens a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// What the holder calls itself: host, pod, pid.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::label"))]
    pub label: Option<Label>,
    /// How long the session lives after a renewal, 10000 by default; the service may have a lower maximum than five minutes.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::ttl"))]
    pub ttl_ms: Option<u64>,
    /// How often the holder means to renew, a third of the ttl by default. A request with this, `margin_ms` or `round_trip_ms` has them judged.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::day"))]
    pub renew_every_ms: Option<u64>,
    /// How long before the end of the ttl the holder means to stop; by default a tenth of the ttl, and what drift needs at least.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::day"))]
    pub margin_ms: Option<u64>,
    /// The longest ordinary round trip, 100 by default.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::day"))]
    pub round_trip_ms: Option<u64>,
    /// How long an overdue session keeps its leases from all others, 0 by default.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::day"))]
    pub grace_ms: Option<u64>,
    /// How long an overdue session keeps its leases while no other client wants them; `grace_ms` by default, and at least that.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::day"))]
    pub hard_ms: Option<u64>,
    /// How long a resource stays free after an involuntary end, 0 by default.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::day"))]
    pub delay_ms: Option<u64>,
    /// 32 random hexadecimal digits: an open that is repeated with them finds the same session.
    #[serde(default, deserialize_with = "nonce")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::nonce"))]
    pub nonce: Option<Nonce>,
}

/// A page of sessions, in the order of their ids.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Only ids after this one: `next` of the page before.
    pub after: Option<Number>,
    /// At most this many, 100 by default.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::page"))]
    pub limit: Option<u64>,
}

/// Acquires one resource, or several at once.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Acquire {
    /// One name; or `resources`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource"))]
    pub resource: Option<ResourceName>,
    /// Several names, all or none, each named once.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::wanted"))]
    pub resources: Option<Vec<Object<Wanted>>>,
    /// How `resource` is held; `slots` if the field slots is given, `exclusive` otherwise.
    pub mode: Option<ModeWord>,
    /// How many slots the name has; implies mode `slots`.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::slots"))]
    pub slots: Option<u32>,
    /// Text to show with the lease; or `value_hex`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::value"))]
    pub value: Option<String>,
    /// Bytes to show with the lease, as hexadecimal digits.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::value_hex"))]
    pub value_hex: Option<Hex>,
    /// How long to wait in line; without it, what is not free is refused.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::day"))]
    pub wait_ms: Option<u64>,
    /// `wait` (the default) answers when the wait is over, `return` answers at once with `queued`.
    pub when_queued: Option<WhenQueued>,
}

/// One resource of several.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// How it is held.
    pub mode: Option<ModeWord>,
    /// How many slots the name has.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::slots"))]
    pub slots: Option<u32>,
}

/// How a resource is held: by one, by all that share, or by one in each slot.
#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(inline))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum ModeWord {
    Exclusive,
    Shared,
    Slots,
}

/// What a call does that is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(inline))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum WhenQueued {
    Wait,
    Return,
}

/// Gives a lease back.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// The token of the lease.
    pub token: Number,
    /// Whether the work was finished before, for the history.
    pub drained: Option<bool>,
}

/// Shows another value with a lease: `value` or `value_hex`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetValue {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// The token of the lease.
    pub token: Number,
    /// Text to show.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::value"))]
    pub value: Option<String>,
    /// Bytes to show, as hexadecimal digits.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::value_hex"))]
    pub value_hex: Option<Hex>,
}

/// Shows that the work under a lease is being drained.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// The token of the lease.
    pub token: Number,
    /// How many pieces of work are still under way.
    #[serde(deserialize_with = "whole_needed")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::small"))]
    pub in_flight: u32,
    /// How long that may still take at most.
    #[serde(deserialize_with = "whole_needed")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::day_needed"))]
    pub within_ms: u64,
}

/// Says that the holder is warming up, or that it is ready.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// The token of the lease.
    pub token: Number,
    /// Whether it is ready, true by default; false says that it is warming up.
    pub ready: Option<bool>,
}

/// Gives up a wait.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The number of the acquire that waits.
    pub acquire: Number,
}

/// One resource.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
}

/// A page of resources, in the order of their names.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Leases {
    /// Only names that begin with this.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::prefix"))]
    pub prefix: Option<String>,
    /// Only names after this one: `next` of the page before.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource"))]
    pub after: Option<ResourceName>,
    /// At most this many, 100 by default. A page with large values is cut short; `next` says so.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::page"))]
    pub limit: Option<u64>,
}

/// Gaps of one name, or of a page of names that have any.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gaps {
    /// One name; then without `prefix`, `after` and `limit`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource"))]
    pub resource: Option<ResourceName>,
    /// Only names that begin with this.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::prefix"))]
    pub prefix: Option<String>,
    /// Only names after this one: `next` of the page before.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource"))]
    pub after: Option<ResourceName>,
    /// At most this many, and never more than 100.
    #[serde(default, deserialize_with = "whole")]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::page"))]
    pub limit: Option<u64>,
    /// Only gaps and outages that ended no longer ago than this.
    #[serde(default, deserialize_with = "whole")]
    pub last_ms: Option<u64>,
}

/// Whether a token is current.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// The token to judge.
    pub token: Number,
}

/// Ends a lease on an operator's word.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Revoke {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// The token of the lease.
    pub token: Number,
    /// Why, for the history.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::reason"))]
    pub reason: Reason,
    /// Who does it, for the history; the interface by default.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::label"))]
    pub by: Option<Label>,
    /// Grant to the next at once: then only the fence protects.
    pub now: Option<bool>,
}

/// Answers an alarm.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClearAlarm {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// The token that was shown: an alarm of another is not answered.
    pub token: Number,
    /// What was found, for the history.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::reason"))]
    pub reason: Reason,
    /// Who does it, for the history; the interface by default.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::label"))]
    pub by: Option<Label>,
}

/// Asks the holder to release.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AskRelease {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// Only the holder of this token.
    pub token: Option<Number>,
    /// Who asks, for the holder; the interface by default.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::label"))]
    pub by: Option<Label>,
}

/// Writes a register: `value`, `value_hex` or `remove`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteRegister {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// The token of the lease.
    pub token: Number,
    /// Which register of the resource.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::register_key"))]
    pub key: RegisterKey,
    /// Text to write.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::value"))]
    pub value: Option<String>,
    /// Bytes to write, as hexadecimal digits.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::value_hex"))]
    pub value_hex: Option<Hex>,
    /// Removes the register; then no value is given.
    pub remove: Option<bool>,
    /// Removes the register when the lease ends.
    pub with_lease: Option<bool>,
}

/// One register.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The name.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::resource_needed"))]
    pub resource: ResourceName,
    /// Which register of the resource.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::register_key"))]
    pub key: RegisterKey,
}

/// Changes of names.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// Only names that begin with this.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::prefix"))]
    pub prefix: Option<String>,
    /// Only later changes than this revision; the header `Last-Event-ID` wins over it.
    pub after: Option<Number>,
}

/// Adds a blank node as a learner.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AddMember {
    /// What it is called.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::member_needed"))]
    pub name: String,
    /// Where clients and other nodes reach it.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::address"))]
    pub address: String,
}

/// One node.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Which one.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::member_needed"))]
    pub name: String,
}

/// Hands leadership over.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Which node leads next; without it the voter that is furthest.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::member"))]
    pub to: Option<String>,
}

/// A backup of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// `current` (the default) or `any`: whether it may be older than what the cluster has decided.
    pub age: Option<Age>,
}

/// How old a backup may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(inline))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Age {
    Current,
    Any,
}

fn nonce<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nonce>, D::Error> {
    struct Digits(Nonce);
    impl<'de> Deserialize<'de> for Digits {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let digits = text(deserializer, "32 hexadecimal digits as a text in quotes")?;
            parse_nonce(&digits).map(Self).map_err(serde::de::Error::custom)
        }
    }
    Ok(Option::<Digits>::deserialize(deserializer)?.map(|digits| digits.0))
}
