//! Texts with a form of their own.

use std::fmt;

use leasehold_core::Nonce;
use serde::de::{Deserialize, Deserializer, Error};

use crate::plain::{SessionKey, parse_hex, parse_nonce, parse_number};

/// A number as a decimal text: a JSON number is a double for many readers and loses the last digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) u64);

/// What a number must look like.
const NUMBER: &str = "it is not a whole number as a text of 1 to 19 decimal digits";

impl Number {
    /// Digits and nothing else.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        parse_number(text).map(Self).ok_or(NUMBER)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

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

/// Bytes in hexadecimal digits.
#[derive(Clone)]
pub(crate) struct Hex(pub(crate) Vec<u8>);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom("it is not an even number of hexadecimal digits");
        parse_hex(&digits).map(Self).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_that_fit() {
        assert_eq!(Number::parse("9999999999999999999"), Ok(Number(9_999_999_999_999_999_999)));
        assert_eq!(Number::parse("007"), Ok(Number(7)));
        for bad in ["", "+1", "-1", " 1", "1.0", "10000000000000000000", "½"] {
            assert!(Number::parse(bad).is_err(), "{bad}");
        }
    }
}
