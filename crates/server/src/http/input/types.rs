//! Texts with a form of their own.

use std::fmt;

use leasehold_core::Nonce;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::http::fields::quoted;
use crate::plain::{NUMBER_DIGITS, SessionKey, parse_hex, parse_nonce, parse_number};

/// A number as a decimal text: a JSON number is a double for many readers and loses the last digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) u64);

impl Number {
    /// Digits and nothing else. The error says what was found instead.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{} is not a whole number of 1 to {NUMBER_DIGITS} decimal digits", quoted(text));
        parse_number(text).map(Self).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = text(deserializer, "a whole number as a text in quotes, such as \"17\"")?;
        Self::parse(&digits).map_err(D::Error::custom)
    }
}

/// A text, or words for what it should be.
fn text<'de, D: Deserializer<'de>>(deserializer: D, expected: &'static str) -> Result<String, D::Error> {
    deserializer.deserialize_string(Text(expected))
}

struct Text(&'static str);

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_string<E>(self, text: String) -> Result<String, E> {
        Ok(text)
    }
}

/// The key of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key(pub(crate) SessionKey);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a session key as a text in quotes")?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// A nonce in hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NonceDigits(pub(crate) Nonce);

impl<'de> Deserialize<'de> for NonceDigits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_nonce(&text(deserializer, "32 hexadecimal digits as a text in quotes")?)
            .map(Self)
            .map_err(D::Error::custom)
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
        let digits = text(deserializer, "hexadecimal digits as a text in quotes")?;
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
            let why = Number::parse(bad).unwrap_err();
            assert_eq!(why, format!("{bad:?} is not a whole number of 1 to 19 decimal digits"));
        }
        // It may be a key that stands in the wrong field.
        let why = Number::parse("7-000102030405060708090a0b0c0d0e0f").unwrap_err();
        assert!(why.starts_with("a text of 34 bytes is not"), "{why}");
    }
}
