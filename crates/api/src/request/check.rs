//! Requests in the terms of the table: defaults, limits, and fields that exclude each other. Every error names its field.

use leasehold_core::cluster::{check_address, check_member_name};
use leasehold_core::limits::{MAX_NAME_BYTES, MAX_SLOTS, MAX_WAIT};
use leasehold_core::numbers::DEFAULT_TTL;
use leasehold_core::protocol::{self, GapsOf, MAX_PAGE};
use leasehold_core::{
    CallNumber, CommandNumber, Label, Millis, Mode, Numbered, Op, Policies, ResourceName, Revision,
    SessionId, Token, Value,
};

use super::{
    Acquire, AddMember, Cancel, Drain, Gaps, Leases, Member, ModeWord, Open, Sessions, SetValue, Transfer,
    Watch, WhenQueued, WriteRegister,
};
use crate::answer::{OpenSession, OwnNumbers};
use crate::{ApiError, Hex, Number, Object, bad_field};

/// Items of a page when the request does not say how many.
pub const DEFAULT_PAGE: usize = 100;

impl Open {
    /// With its defaults.
    pub fn check(self) -> OpenSession {
        let grace = self.grace_ms.map_or(Millis::ZERO, Millis::new);
        OpenSession {
            label: self.label.unwrap_or_else(|| label("")),
            ttl: self.ttl_ms.map_or(DEFAULT_TTL, Millis::new),
            numbers: OwnNumbers {
                renew_every: self.renew_every_ms.map(Millis::new),
                margin: self.margin_ms.map(Millis::new),
                round_trip: self.round_trip_ms.map(Millis::new),
            },
            policies: Policies {
                grace,
                hard: self.hard_ms.map_or(grace, Millis::new),
                delay: self.delay_ms.map_or(Millis::ZERO, Millis::new),
            },
            nonce: self.nonce,
        }
    }
}

impl Sessions {
    /// Where the page begins, and how long it is.
    ///
    /// # Errors
    /// When it has no such length.
    pub fn check(&self) -> Result<(Option<SessionId>, usize), ApiError> {
        Ok((self.after.map(|after| SessionId::from_u64(after.0)), page_size(self.limit)?))
    }
}

/// What a call is known by when it is sent again.
///
/// # Errors
/// When it has a number that cannot be, or contradicts itself.
pub fn numbered(number: Option<Number>, settled: Option<Number>) -> Result<Option<Numbered>, ApiError> {
    let settled = settled.map_or(0, |settled| settled.0);
    match number {
        None if settled > 0 => Err(bad_field("settled", "a call that says it has a number itself")),
        None => Ok(None),
        Some(Number(0)) => Err(bad_field("number", "0 is below the minimum of 1")),
        Some(Number(number)) if settled > number => {
            let why =
                format!("{settled} is above the number of this call, {number}, which would not be wanted");
            Err(bad_field("settled", why))
        }
        Some(Number(number)) => {
            let (number, settled) = (CallNumber::new(number), CallNumber::new(settled));
            Ok(Some(Numbered { number, settled }))
        }
    }
}

impl Cancel {
    /// What is to be cancelled.
    ///
    /// # Errors
    /// When it names none, or two.
    pub fn check(self) -> Result<Op, ApiError> {
        match (self.acquire, self.acquire_number) {
            (Some(acquire), None) => Ok(Op::Cancel { acquire: CommandNumber::new(acquire.0) }),
            (None, Some(call)) => Ok(Op::CancelCall { call: CallNumber::new(call.0) }),
            (Some(_), Some(_)) => {
                Err(bad_field("acquire_number", "give acquire or acquire_number, not both"))
            }
            (None, None) => Err(bad_field("acquire", "it is missing; give acquire or acquire_number")),
        }
    }
}

impl Acquire {
    /// What is asked for, and whether the answer waits until the wait is over.
    ///
    /// # Errors
    /// When fields contradict each other, or ask for what the table would refuse in any state.
    pub fn check(self) -> Result<(leasehold_core::Acquire, bool), ApiError> {
        let wanted = |place: &str, resource, mode, slots| {
            Ok(leasehold_core::Request { resource, mode: checked_mode(place, mode, slots)? })
        };
        let requests = match (self.resource, self.resources) {
            (Some(resource), None) => vec![wanted("", resource, self.mode, self.slots)?],
            (None, Some(_)) if self.mode.is_some() || self.slots.is_some() => {
                return Err(bad_field("mode", "with resources, each has its own mode and slots"));
            }
            (None, Some(several)) => several
                .into_iter()
                .enumerate()
                .map(|(i, Object(one))| {
                    wanted(&format!("resources[{i}]."), one.resource, one.mode, one.slots)
                })
                .collect::<Result<_, ApiError>>()?,
            (Some(_), Some(_)) => return Err(bad_field("resources", "give resource or resources, not both")),
            (None, None) => return Err(bad_field("resource", "it is missing; give resource or resources")),
        };
        let value = checked_value(self.value, self.value_hex)?.unwrap_or_default();
        let wait = check_wait("wait_ms", "wait", self.wait_ms.map(Millis::new))?;
        Ok((leasehold_core::Acquire { requests, value, wait }, self.when_queued != Some(WhenQueued::Return)))
    }
}

impl SetValue {
    /// The value to show.
    ///
    /// # Errors
    /// When there is none, or two.
    pub fn check(self) -> Result<(ResourceName, Token, Value), ApiError> {
        let missing = || bad_field("value", "it is missing; give value or value_hex");
        let value = checked_value(self.value, self.value_hex)?.ok_or_else(missing)?;
        Ok((self.resource, self.token.token(), value))
    }
}

impl Drain {
    /// How long the drain may take.
    ///
    /// # Errors
    /// When that is above a day.
    pub fn within(&self) -> Result<Millis, ApiError> {
        let within = Millis::new(self.within_ms);
        check_wait("within_ms", "drain", Some(within)).map(|_| within)
    }
}

impl Leases {
    /// Prefix, beginning and length of the page.
    ///
    /// # Errors
    /// When one of them cannot be.
    pub fn check(self) -> Result<(String, Option<ResourceName>, usize), ApiError> {
        Ok((checked_prefix(self.prefix)?, self.after, page_size(self.limit)?))
    }
}

impl Gaps {
    /// Whose gaps, and how far back.
    ///
    /// # Errors
    /// When one name and a page are asked for at once.
    pub fn check(self) -> Result<(GapsOf, Option<Millis>), ApiError> {
        let paged = [
            ("prefix", self.prefix.as_ref().is_some()),
            ("after", self.after.is_some()),
            ("limit", self.limit.is_some()),
        ];
        let of = match self.resource {
            Some(resource) => match paged.into_iter().find(|(_, given)| *given) {
                Some((field, _)) => {
                    return Err(bad_field(field, "with resource there is only that one name"));
                }
                None => GapsOf::Name(resource),
            },
            None => GapsOf::Page {
                prefix: checked_prefix(self.prefix)?,
                after: self.after,
                limit: page_size(self.limit)?,
            },
        };
        Ok((of, self.last_ms.map(Millis::new)))
    }
}

impl WriteRegister {
    /// What is written; nothing removes the register.
    ///
    /// # Errors
    /// When it is neither written nor removed, or both.
    pub fn value(&mut self) -> Result<Option<Value>, ApiError> {
        let value = checked_value(self.value.take(), self.value_hex.take())?;
        match (&value, self.remove.unwrap_or(false)) {
            (Some(_), true) => Err(bad_field("remove", "give a value or remove, not both")),
            (None, false) => Err(bad_field("value", "it is missing; give value, value_hex or remove")),
            _ => Ok(value),
        }
    }
}

impl Watch {
    /// What to watch; `resume` is what a client that connects again says it has seen, and is later than what it began with.
    ///
    /// # Errors
    /// When the prefix is too long.
    pub fn check(self, resume: Option<Number>) -> Result<protocol::Watch, ApiError> {
        let after = resume.or(self.after).map(|after| Revision::new(after.0));
        Ok(protocol::Watch { prefix: checked_prefix(self.prefix)?, after })
    }
}

impl AddMember {
    /// The name and the address.
    ///
    /// # Errors
    /// When one of them cannot be.
    pub fn check(self) -> Result<(String, String), ApiError> {
        check_address(&self.address).map_err(|error| bad_field("address", error))?;
        Ok((member_name("name", self.name)?, self.address))
    }
}

impl Member {
    /// The name.
    ///
    /// # Errors
    /// When it cannot be one.
    pub fn check(self) -> Result<String, ApiError> {
        member_name("name", self.name)
    }
}

impl Transfer {
    /// Who leads next.
    ///
    /// # Errors
    /// When it cannot be a name.
    pub fn check(self) -> Result<Option<String>, ApiError> {
        self.to.map(|to| member_name("to", to)).transpose()
    }
}

fn member_name(field: &str, name: String) -> Result<String, ApiError> {
    check_member_name(&name).map_err(|error| bad_field(field, error))?;
    Ok(name)
}

fn checked_mode(place: &str, mode: Option<ModeWord>, slots: Option<u32>) -> Result<Mode, ApiError> {
    let field = format!("{place}slots");
    match (mode, slots) {
        (None | Some(ModeWord::Exclusive), None) => Ok(Mode::Exclusive),
        (Some(ModeWord::Shared), None) => Ok(Mode::Shared),
        (None | Some(ModeWord::Slots), Some(of)) => check_slots(&field, Mode::Slot { of }),
        (Some(ModeWord::Slots), None) => {
            Err(bad_field(field, "it is missing; mode slots needs their number"))
        }
        (Some(_), Some(_)) => Err(bad_field(field, "only mode slots has a number of them")),
    }
}

/// Whether a name may have that many slots.
///
/// # Errors
/// When it may not, under the name of the field.
pub fn check_slots(field: &str, mode: Mode) -> Result<Mode, ApiError> {
    match mode {
        Mode::Slot { of } if !(1..=MAX_SLOTS).contains(&of) => Err(ApiError::Impossible {
            field: field.to_owned(),
            why: format!("{of} is outside 1 to {MAX_SLOTS} slots"),
        }),
        fitting => Ok(fitting),
    }
}

fn check_wait(field: &str, what: &str, wait: Option<Millis>) -> Result<Option<Millis>, ApiError> {
    match wait {
        Some(wait) if wait > MAX_WAIT => {
            let why = format!("{what} of {wait} is above the maximum of {MAX_WAIT}");
            Err(ApiError::Impossible { field: field.to_owned(), why })
        }
        fitting => Ok(fitting),
    }
}

fn checked_value(text: Option<String>, hex: Option<Hex>) -> Result<Option<Value>, ApiError> {
    let (field, bytes) = match (text, hex) {
        (Some(_), Some(_)) => return Err(bad_field("value_hex", "give value or value_hex, not both")),
        (Some(text), None) => ("value", text.into_bytes()),
        (None, Some(hex)) => ("value_hex", hex.0),
        (None, None) => return Ok(None),
    };
    Value::new(bytes).map(Some).map_err(|error| bad_field(field, error))
}

fn checked_prefix(prefix: Option<String>) -> Result<String, ApiError> {
    let prefix = prefix.unwrap_or_default();
    if prefix.len() > MAX_NAME_BYTES {
        let why = format!("prefix of {} bytes is above the maximum of {MAX_NAME_BYTES} bytes", prefix.len());
        return Err(bad_field("prefix", why));
    }
    Ok(prefix)
}

fn page_size(limit: Option<u64>) -> Result<usize, ApiError> {
    let Some(limit) = limit else { return Ok(DEFAULT_PAGE) };
    let fitting = usize::try_from(limit).ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    fitting.ok_or_else(|| bad_field("limit", format!("limit of {limit} is outside 1 to {MAX_PAGE}")))
}

/// A short word as a label.
pub fn label(word: &str) -> Label {
    Label::new(word).expect("a short word is a label")
}

#[cfg(test)]
mod tests;
