//! Texts with a form of their own.

use leasehold_core::Nonce;
use serde::de::{Deserialize, Deserializer, Error};

pub(crate) use leasehold_api::{Hex, Number};
use leasehold_api::{SessionKey, parse_nonce};

/// The key of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key(pub(crate) SessionKey);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// A nonce in hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NonceDigits(pub(crate) Nonce);

impl<'de> Deserialize<'de> for NonceDigits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_nonce(&String::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}
