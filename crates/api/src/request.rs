//! What each call takes. A field that is not in its type is refused; null is the same as left out.
//!
//! The types say what is written; `check` turns a request into what the table understands, or names the field that cannot be.

mod check;

use leasehold_core::{Label, Nonce, Reason, RegisterKey, ResourceName};
use serde::{Deserialize, Deserializer};

pub use self::check::{DEFAULT_PAGE, check_slots, label, numbered};
#[cfg(feature = "openapi")]
use crate::openapi;
use crate::text::{text, whole, whole_needed};
use crate::{Hex, Number, Object, TokenNumber, parse_nonce};

/// Requests. Behind the type of a field stands how it is read, where its type does not say it, and behind `as` how the document describes it.
macro_rules! requests {
    ($(
        $(#[$about:meta])*
        $name:ident {$(
            $(#[$said:meta])*
            $field:ident: $type:ty $([$($read:tt)+])? $(as $schema:tt)?
        ),* $(,)?}
    )+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $name {$(
            $(#[$said])*
            $(#[serde($($read)+)])?
            $(#[cfg_attr(feature = "openapi", schemars(schema_with = $schema))])?
            pub $field: $type,
        )*}
    )+};
}

requests! {
    /// A request without fields.
    #[derive(Default)]
    Nothing {}

    /// Opens a session.
    #[derive(Default)]
    Open {
        /// What the holder calls itself: host, pod, pid.
        label: Option<Label> [default] as "openapi::label",
        /// How long the session lives after a renewal, 10000 by default; the service may have a lower maximum than five minutes.
        ttl_ms: Option<u64> [default, deserialize_with = "whole"] as "openapi::ttl",
        /// How often the holder means to renew, a third of the ttl by default. A request with this, `margin_ms` or `round_trip_ms` has them judged.
        renew_every_ms: Option<u64> [default, deserialize_with = "whole"] as "openapi::day",
        /// How long before the end of the ttl the holder means to stop; by default a tenth of the ttl, and what drift needs at least.
        margin_ms: Option<u64> [default, deserialize_with = "whole"] as "openapi::day",
        /// The longest ordinary round trip, 100 by default.
        round_trip_ms: Option<u64> [default, deserialize_with = "whole"] as "openapi::day",
        /// How long an overdue session keeps its leases from all others, 0 by default.
        grace_ms: Option<u64> [default, deserialize_with = "whole"] as "openapi::day",
        /// How long an overdue session keeps its leases while no other client wants them; `grace_ms` by default, and at least that.
        hard_ms: Option<u64> [default, deserialize_with = "whole"] as "openapi::day",
        /// How long a resource stays free after an involuntary end, 0 by default.
        delay_ms: Option<u64> [default, deserialize_with = "whole"] as "openapi::day",
        /// 32 random hexadecimal digits: an open that is repeated with them finds the same session.
        nonce: Option<Nonce> [default, deserialize_with = "nonce"] as "openapi::nonce",
    }

    /// A page of sessions, in the order of their ids.
    #[derive(Default)]
    Sessions {
        /// Only ids after this one: `next` of the page before.
        after: Option<Number>,
        /// At most this many, 100 by default.
        limit: Option<u64> [default, deserialize_with = "whole"] as "openapi::page",
    }

    /// Acquires one resource, or several at once.
    #[derive(Default)]
    Acquire {
        /// One name; or `resources`.
        resource: Option<ResourceName> [default] as "openapi::resource",
        /// Several names, all or none, each named once.
        resources: Option<Vec<Object<Wanted>>> [default] as "openapi::wanted",
        /// How `resource` is held; `slots` if the field slots is given, `exclusive` otherwise.
        mode: Option<ModeWord>,
        /// How many slots the name has; implies mode `slots`.
        slots: Option<u32> [default, deserialize_with = "whole"] as "openapi::slots",
        /// Text to show with the lease; or `value_hex`.
        value: Option<String> [default] as "openapi::value",
        /// Bytes to show with the lease, as hexadecimal digits.
        value_hex: Option<Hex> [default] as "openapi::value_hex",
        /// How long to wait in line; without it, what is not free is refused.
        wait_ms: Option<u64> [default, deserialize_with = "whole"] as "openapi::day",
        /// `wait` (the default) answers when the wait is over, `return` answers at once with `queued`.
        when_queued: Option<WhenQueued>,
        /// A number for this call, from 1, greater than those before: sent again with it, the call is done once and answered the same.
        number: Option<Number>,
        /// No number below this one is wanted any more.
        settled: Option<Number>,
    }

    /// One resource of several.
    Wanted {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// How it is held.
        mode: Option<ModeWord>,
        /// How many slots the name has.
        slots: Option<u32> [default, deserialize_with = "whole"] as "openapi::slots",
    }

    /// Gives a lease back.
    Release {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// The token of the lease.
        token: TokenNumber,
        /// Whether the work was finished before, for the history.
        drained: Option<bool>,
        /// A number for this call, from 1, greater than those before: sent again with it, the call is done once and answered the same.
        number: Option<Number>,
        /// No number below this one is wanted any more.
        settled: Option<Number>,
    }

    /// Shows another value with a lease: `value` or `value_hex`.
    SetValue {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// The token of the lease.
        token: TokenNumber,
        /// Text to show.
        value: Option<String> [default] as "openapi::value",
        /// Bytes to show, as hexadecimal digits.
        value_hex: Option<Hex> [default] as "openapi::value_hex",
        /// A number for this call, from 1, greater than those before: sent again with it, the call is done once and answered the same.
        number: Option<Number>,
        /// No number below this one is wanted any more.
        settled: Option<Number>,
    }

    /// Shows that the work under a lease is being drained.
    Drain {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// The token of the lease.
        token: TokenNumber,
        /// How many pieces of work are still under way.
        in_flight: u32 [deserialize_with = "whole_needed"] as "openapi::small",
        /// How long that may still take at most.
        within_ms: u64 [deserialize_with = "whole_needed"] as "openapi::day_needed",
        /// A number for this call, from 1, greater than those before: sent again with it, the call is done once and answered the same.
        number: Option<Number>,
        /// No number below this one is wanted any more.
        settled: Option<Number>,
    }

    /// Says that the holder is warming up, or that it is ready.
    Ready {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// The token of the lease.
        token: TokenNumber,
        /// Whether it is ready, true by default; false says that it is warming up.
        ready: Option<bool>,
        /// A number for this call, from 1, greater than those before: sent again with it, the call is done once and answered the same.
        number: Option<Number>,
        /// No number below this one is wanted any more.
        settled: Option<Number>,
    }

    /// Ends a session.
    #[derive(Default)]
    Close {
        /// A number for this call, from 1, greater than those before: sent again with it, the call is done once and answered the same.
        number: Option<Number>,
        /// No number below this one is wanted any more.
        settled: Option<Number>,
    }

    /// Gives up a wait: `acquire` or `acquire_number`.
    #[derive(Default)]
    Cancel {
        /// The `acquire` of its answer, or of a renewal's list.
        acquire: Option<Number>,
        /// The `number` that it was sent with. If it has not arrived, it never is applied.
        acquire_number: Option<Number>,
        /// A number for this call, from 1, greater than those before: sent again with it, the call is done once and answered the same.
        number: Option<Number>,
        /// No number below this one is wanted any more.
        settled: Option<Number>,
    }

    /// One resource.
    Resource {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
    }

    /// A page of resources, in the order of their names.
    #[derive(Default)]
    Leases {
        /// Only names that begin with this.
        prefix: Option<String> [default] as "openapi::prefix",
        /// Only names after this one: `next` of the page before.
        after: Option<ResourceName> [default] as "openapi::resource",
        /// At most this many, 100 by default. A page with large values is cut short; `next` says so.
        limit: Option<u64> [default, deserialize_with = "whole"] as "openapi::page",
    }

    /// Gaps of one name, or of a page of names that have any.
    #[derive(Default)]
    Gaps {
        /// One name; then without `prefix`, `after` and `limit`.
        resource: Option<ResourceName> [default] as "openapi::resource",
        /// Only names that begin with this.
        prefix: Option<String> [default] as "openapi::prefix",
        /// Only names after this one: `next` of the page before.
        after: Option<ResourceName> [default] as "openapi::resource",
        /// At most this many, and never more than 100.
        limit: Option<u64> [default, deserialize_with = "whole"] as "openapi::page",
        /// Only gaps and outages that ended no longer ago than this.
        last_ms: Option<u64> [default, deserialize_with = "whole"],
    }

    /// Whether a token is current.
    Check {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// The token to judge.
        token: TokenNumber,
    }

    /// Ends a lease on an operator's word.
    Revoke {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// The token of the lease.
        token: TokenNumber,
        /// Why, for the history.
        reason: Reason as "openapi::reason",
        /// Who does it, for the history; the interface by default.
        by: Option<Label> [default] as "openapi::label",
        /// Grant to the next at once: then only the fence protects.
        now: Option<bool>,
    }

    /// Answers an alarm.
    ClearAlarm {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// The token that was shown: an alarm of another is not answered.
        token: TokenNumber,
        /// What was found, for the history.
        reason: Reason as "openapi::reason",
        /// Who does it, for the history; the interface by default.
        by: Option<Label> [default] as "openapi::label",
    }

    /// Asks the holder to release.
    AskRelease {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// Only the holder of this token.
        token: Option<TokenNumber>,
        /// Who asks, for the holder; the interface by default.
        by: Option<Label> [default] as "openapi::label",
    }

    /// Writes a register: `value`, `value_hex` or `remove`.
    WriteRegister {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// The token of the lease.
        token: TokenNumber,
        /// Which register of the resource.
        key: RegisterKey as "openapi::register_key",
        /// Text to write.
        value: Option<String> [default] as "openapi::value",
        /// Bytes to write, as hexadecimal digits.
        value_hex: Option<Hex> [default] as "openapi::value_hex",
        /// Removes the register; then no value is given.
        remove: Option<bool>,
        /// Removes the register when the lease ends.
        with_lease: Option<bool>,
        /// A number for this call, from 1, greater than those before: sent again with it, the call is done once and answered the same.
        number: Option<Number>,
        /// No number below this one is wanted any more.
        settled: Option<Number>,
    }

    /// One register.
    Register {
        /// The name.
        resource: ResourceName as "openapi::resource_needed",
        /// Which register of the resource.
        key: RegisterKey as "openapi::register_key",
    }

    /// Changes of names.
    #[derive(Default)]
    Watch {
        /// Only names that begin with this.
        prefix: Option<String> [default] as "openapi::prefix",
        /// Only later changes than this revision; the header `Last-Event-ID` wins over it.
        after: Option<Number>,
    }

    /// Adds a blank node as a learner.
    AddMember {
        /// What it is called.
        name: String as "openapi::member_needed",
        /// Where clients and other nodes reach it.
        address: String as "openapi::address",
    }

    /// One node.
    Member {
        /// Which one.
        name: String as "openapi::member_needed",
    }

    /// Hands leadership over.
    #[derive(Default)]
    Transfer {
        /// Which node leads next; without it the voter that is furthest.
        to: Option<String> [default] as "openapi::member",
    }

    /// A backup of a node.
    #[derive(Default)]
    Backup {
        /// `current` (the default) or `any`: whether it may be older than what the cluster has decided.
        age: Option<Age>,
    }
}

/// How a resource is held: by one, by all that share, or by one in each slot.
#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum ModeWord {
    Exclusive,
    Shared,
    Slots,
}

/// What a call does that is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum WhenQueued {
    Wait,
    Return,
}

/// How old a backup may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(inline))]
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
