//! Values with a form of their own: numbers as texts, bytes as digits, and whole numbers however JSON writes them.

use std::fmt;
use std::marker::PhantomData;

use leasehold_core::Token;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, Expected, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::key::{NUMBER_DIGITS, parse_hex, parse_number};

/// A number as a decimal text: a JSON number is a double for many readers and loses the last digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number(pub u64);

impl Number {
    /// Digits and nothing else.
    ///
    /// # Errors
    /// What was found instead, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{} is not a whole number of 1 to {NUMBER_DIGITS} decimal digits", quoted(text));
        parse_number(text).map(Self).ok_or_else(wrong)
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = text(deserializer, "a whole number as a text in quotes, such as \"17\"")?;
        Self::parse(&digits).map_err(D::Error::custom)
    }
}

/// A token that is shown, as a [`Number`]. No token is 2^63 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenNumber(Token);

impl TokenNumber {
    /// A number that can be a token.
    ///
    /// # Errors
    /// When it cannot be one, in words.
    pub fn new(number: u64) -> Result<Self, String> {
        let (token, most) = (Token::from_u64(number), Token::MAX);
        if token > most { Err(format!("{number} is above the maximum of {most}")) } else { Ok(Self(token)) }
    }

    /// The token.
    pub const fn token(self) -> Token {
        self.0
    }
}

impl<'de> Deserialize<'de> for TokenNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Number::deserialize(deserializer)?.0).map_err(D::Error::custom)
    }
}

/// A text, or words for what it should be.
pub(crate) fn text<'de, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<String, D::Error> {
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
}

/// Bytes in hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Hex(pub Vec<u8>);

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

/// Two digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A short text as it is. A longer one is not repeated: it may be as long as a body, or a session key in the wrong field.
pub fn quoted(text: &str) -> String {
    const SHOWN: usize = 20;
    if text.chars().nth(SHOWN).is_some() {
        return format!("a text of {} bytes", text.len());
    }
    format!("{text:?}")
}

/// Something read from an object, and from nothing else: a derived struct also takes a list of its values, which would be a second way to write
/// the same.
#[derive(Debug, Clone)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyMap<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(OnlyMap(PhantomData)).map(Self)
    }
}

/// For fields that are whole numbers. `10000.0` and `1e4` are whole too, and some writers of JSON know no others.
pub(crate) fn whole<'de, D: Deserializer<'de>, N: TryFrom<u64>>(
    deserializer: D,
) -> Result<Option<N>, D::Error> {
    Option::<Whole>::deserialize(deserializer)?.map(fitting).transpose()
}

/// The same for a field that must be there.
pub(crate) fn whole_needed<'de, D: Deserializer<'de>, N: TryFrom<u64>>(
    deserializer: D,
) -> Result<N, D::Error> {
    fitting(Whole::deserialize(deserializer)?)
}

fn fitting<N: TryFrom<u64>, E: Error>(whole: Whole) -> Result<N, E> {
    N::try_from(whole.0).map_err(|_| E::custom(format_args!("{} is not {SMALL}", whole.0)))
}

const SMALL: &str = "a whole number from 0 to 4294967295";

#[derive(Clone, Copy)]
struct Whole(u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeVisitor).map(Self)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {}", u64::MAX)
    }

    fn visit_u64<E>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value).map_err(|_| E::custom(format_args!("{value} is not {}", &self as &dyn Expected)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        let wrong = || E::custom(format_args!("{} is not {}", shown(value), &self as &dyn Expected));
        whole_double(value).ok_or_else(wrong)
    }
}

/// A double is exact up to here.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// What a number that no field takes is called in a message. Of a very large one the last digits are lost: it is not shown as if they
/// were those that were sent.
fn shown(value: f64) -> String {
    if value.abs() > EXACT { format!("a number near {value:e}") } else { value.to_string() }
}

fn whole_double(value: f64) -> Option<u64> {
    let whole = value.fract() == 0.0 && (0.0..=EXACT).contains(&value);
    whole.then(|| format!("{value:.0}").trim_start_matches('-').parse().ok()).flatten()
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

    #[test]
    fn a_token_is_below_the_sign_bit() {
        let most = (1 << 63) - 1;
        assert_eq!(TokenNumber::new(most).map(|number| number.token().get()), Ok(most));
        for above in [1 << 63, u64::MAX] {
            let why = TokenNumber::new(above).unwrap_err();
            assert_eq!(why, format!("{above} is above the maximum of {most}"));
        }
    }

    #[test]
    fn a_whole_number_is_whole_however_it_is_written() {
        let read = |text: &str| serde_json::from_str::<Whole>(text).map(|whole| whole.0);
        for (text, number) in
            [("1e4", 10_000), ("867.0", 867), ("0.0", 0), ("-0.0", 0), ("9007199254740992.0", 1 << 53)]
        {
            assert_eq!(read(text).unwrap(), number, "{text}");
        }
        for text in ["-1.0", "-1", "0.5", "1e300", "18446744073709551616", "9007199254740994.0", "\"5\""] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn digits_that_were_not_sent_are_not_shown() {
        let why =
            |text: &str| serde_json::from_str::<Whole>(text).map(|whole| whole.0).unwrap_err().to_string();
        let rest = "is not a whole number from 0 to 18446744073709551615 at line 1 column";
        assert_eq!(
            why("18446744073709551616").split(rest).next().unwrap(),
            "a number near 1.8446744073709552e19 "
        );
        assert_eq!(why("1e300").split(rest).next().unwrap(), "a number near 1e300 ");
        assert_eq!(why("-1").split(rest).next().unwrap(), "-1 ");
        assert_eq!(why("0.5").split(rest).next().unwrap(), "0.5 ");
    }

    #[test]
    fn a_list_is_no_object() {
        #[derive(Debug, serde::Deserialize)]
        struct One {
            a: String,
        }
        assert_eq!(serde_json::from_str::<Object<One>>(r#"{"a":"x"}"#).unwrap().0.a, "x");
        assert!(serde_json::from_str::<Object<One>>(r#"["x"]"#).is_err());
    }
}
