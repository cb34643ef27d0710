//! A query as pairs of names and values, and values as what a field takes.

use leasehold_api::{ApiError, bad_field, quoted};
use serde::de::value::{Error, MapDeserializer, StringDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::wording::Wrong;

pub(super) type Pairs = Vec<(String, String)>;

/// Reads a query: `name=value` joined by `&`, with percent signs and plus signs as forms have them.
pub(super) fn pairs(query: &str) -> Result<Pairs, ApiError> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decoded = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name).ok_or_else(|| badly_encoded(name))?;
        let value = decode(value).ok_or_else(|| badly_encoded(&name))?;
        Ok((name, value))
    });
    decoded.collect()
}

fn badly_encoded(field: &str) -> ApiError {
    bad_field(field, "it is not percent-encoded UTF-8")
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match (*first, behind) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, behind @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                rest = behind;
            }
            (b'%', _) => return None,
            (byte, _) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Typed fields from pairs.
pub(super) fn read<T: DeserializeOwned>(pairs: Pairs) -> Result<T, Wrong> {
    let fields = pairs.into_iter().map(|(name, value)| (name, Part(value)));
    serde_path_to_error::deserialize(MapDeserializer::<_, Error>::new(fields)).map_err(Wrong::from)
}

/// A value of a query: what it is depends on its field.
struct Part(String);

impl IntoDeserializer<'_, Error> for Part {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Part {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    /// Digits and nothing else: the parser would take a sign.
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let digits = self.0.bytes().all(|byte| byte.is_ascii_digit());
        match self.0.parse() {
            Ok(number) if digits => visitor.visit_u64(number),
            _ => {
                let why = format!("{} is not a whole number from 0 to {}", quoted(&self.0), u64::MAX);
                Err(Error::custom(why))
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let word: StringDeserializer<Error> = self.0.into_deserializer();
        word.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use leasehold_api::request;

    use super::*;

    #[test]
    fn a_query_is_decoded_and_repeats_are_kept() {
        let given = pairs("resource=jobs%2Fnight+1&a=&b&resource=%C3%A4").unwrap();
        let given: Vec<_> = given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(given, [("resource", "jobs/night 1"), ("a", ""), ("b", ""), ("resource", "ä")]);
        assert_eq!(pairs("").unwrap(), Pairs::new());
    }

    #[test]
    fn a_query_that_is_no_text_is_refused_with_its_field() {
        for query in ["a=%", "a=%2", "a=%zz", "a=%ff", "a=%C3%28"] {
            let error = pairs(query).expect_err(query);
            assert_eq!(error.message(), "a: it is not percent-encoded UTF-8");
        }
    }

    #[test]
    fn every_error_names_its_field() {
        let read = |query: &str| read::<request::Leases>(pairs(query).unwrap()).map_err(ApiError::from);
        assert_eq!(read("limit=5&prefix=a").unwrap().limit, Some(5));
        let number = "is not a whole number from 0 to 18446744073709551615";
        for (query, message) in [
            ("prefix=a&prefix=a", "prefix: it is given twice".to_owned()),
            ("limit=", format!("limit: \"\" {number}")),
            ("limit=%2B5", format!("limit: \"+5\" {number}")),
            ("limit=18446744073709551616", format!("limit: \"18446744073709551616\" {number}")),
            ("x=1", "field \"x\" is not known; there are: prefix, after, limit".to_owned()),
            ("after=", "after: resource name is empty; give at least 1 byte".to_owned()),
        ] {
            assert_eq!(read(query).unwrap_err().message(), message, "{query}");
        }
    }
}
