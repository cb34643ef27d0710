//! Reading typed fields out of a [`Node`], with errors that name the field.

use std::fmt::{self, Display};

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::Node;
use crate::plain::Fault;

/// Why fields could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    Unknown { path: String, known: &'static [&'static str] },
    Bad { path: String, why: String },
}

impl ReadError {
    /// The same, seen from one level further out.
    fn inside(mut self, outer: &str) -> Self {
        let (Self::Unknown { path, .. } | Self::Bad { path, .. }) = &mut self;
        let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        *path = format!("{outer}{dot}{path}");
        self
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unknown { path, known } => Self::UnknownField { field: shortened(path), known },
            ReadError::Bad { path, why } => Self::BadField { field: shortened(path), why },
        }
    }
}

/// A name that somebody made up may be as long as a body.
fn shortened(text: String) -> String {
    const SHOWN: usize = 100;
    if text.chars().nth(SHOWN).is_none() {
        return text;
    }
    text.chars().take(SHOWN).chain("...".chars()).collect()
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for ReadError {}

impl Error for ReadError {
    fn custom<T: Display>(why: T) -> Self {
        Self::Bad { path: String::new(), why: why.to_string() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = match expected.to_string().as_str() {
            "u64" => "a whole number".to_owned(),
            "u32" => format!("a whole number up to {}", u32::MAX),
            "a string" => "a text".to_owned(),
            "a boolean" => "true or false".to_owned(),
            other => other.to_owned(),
        };
        Self::custom(format_args!("{} is not {expected}", kind(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::Unknown { path: field.to_owned(), known }
    }

    fn unknown_variant(_found: &str, known: &'static [&'static str]) -> Self {
        Self::custom(format_args!("it is none of {}", known.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Bad { path: field.to_owned(), why: "it is missing".to_owned() }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Bad { path: field.to_owned(), why: "it is given twice".to_owned() }
    }
}

/// What was found. A text is not repeated: it may be long, or secret.
fn kind(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(_) => "a text".to_owned(),
        Unexpected::Unit => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Other(what) => what.to_owned(),
        _ => "this".to_owned(),
    }
}

impl Node {
    fn visit_number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Self::Raw(text) if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => {
                match text.parse() {
                    Ok(number) => visitor.visit_u64(number),
                    Err(_) => Err(Error::custom("it is above the maximum of 18446744073709551615")),
                }
            }
            Self::Raw(_) => Err(Error::custom("it is not a whole number")),
            other => other.deserialize_any(visitor),
        }
    }
}

impl<'de> Deserializer<'de> for Node {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Number(value) => visitor.visit_u64(value),
            Self::OtherNumber(shown) => Err(Error::invalid_type(Unexpected::Other(&shown), &visitor)),
            Self::Text(text) | Self::Raw(text) => visitor.visit_string(text),
            Self::List(list) => visitor.visit_seq(Elements { rest: list.into_iter(), position: 0 }),
            Self::Map(map) => visitor.visit_map(Members { rest: map.into_iter(), current: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Self::Null => visitor.visit_none(),
            some => visitor.visit_some(some),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.visit_number(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.visit_number(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self {
            Self::Text(text) | Self::Raw(text) => {
                let word: StringDeserializer<ReadError> = text.into_deserializer();
                word.deserialize_enum(name, variants, visitor)
            }
            other => other.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The elements of a list.
struct Elements {
    rest: std::vec::IntoIter<Node>,
    position: usize,
}

impl<'de> SeqAccess<'de> for Elements {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(node) = self.rest.next() else { return Ok(None) };
        let position = self.position;
        self.position += 1;
        seed.deserialize(node).map(Some).map_err(|error| error.inside(&format!("[{position}]")))
    }
}

/// The members of an object.
struct Members {
    rest: std::vec::IntoIter<(String, Node)>,
    current: Option<(String, Node)>,
}

impl<'de> MapAccess<'de> for Members {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.current = self.rest.next();
        let Some((name, _)) = &self.current else { return Ok(None) };
        let name: StringDeserializer<ReadError> = name.clone().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        let (name, node) = self.current.take().expect("a value is asked for after its key");
        seed.deserialize(node).map_err(|error| error.inside(&name))
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::ResourceName;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        resource: ResourceName,
        limit: Option<u64>,
        #[serde(default)]
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        small: u32,
        mode: Option<Word>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Shared,
        Exclusive,
    }

    fn read(node: Node) -> Result<Outer, Fault> {
        Outer::deserialize(node).map_err(Fault::from)
    }

    fn json(text: &str) -> Result<Outer, Fault> {
        read(Node::from_json(text.as_bytes()).unwrap())
    }

    #[test]
    fn json_and_query_give_the_same() {
        let outer = json(r#"{"resource":"a","limit":5,"inner":[{"small":1,"mode":"shared"}]}"#).unwrap();
        assert_eq!((outer.resource.as_str(), outer.limit), ("a", Some(5)));
        assert!(matches!(outer.inner[0], Inner { small: 1, mode: Some(Word::Shared) }));
        let outer = read(Node::from_query("limit=5&resource=a").unwrap()).unwrap();
        assert_eq!((outer.resource.as_str(), outer.limit), ("a", Some(5)));
    }

    #[test]
    fn nothing_and_null_are_the_same_for_what_may_be_left_out() {
        assert_eq!(json(r#"{"resource":"a","limit":null}"#).unwrap().limit, None);
        assert_eq!(json(r#"{"resource":"a"}"#).unwrap().limit, None);
        assert!(json(r#"{"resource":null}"#).is_err());
    }

    #[test]
    fn every_error_names_its_field() {
        for (text, message) in [
            ("{}", "resource: it is missing"),
            (r#"{"resource":"a","resource":"b"}"#, "resource: it is given twice"),
            (r#"{"resource":""}"#, "resource: resource name is empty; give at least 1 byte"),
            (r#"{"resource":"a","limit":"5"}"#, "limit: a text is not a whole number"),
            (r#"{"resource":"a","limit":-5}"#, "limit: -5 is not a whole number"),
            (r#"{"resource":"a","limit":1.5}"#, "limit: 1.5 is not a whole number"),
            (r#"{"resource":"a","x":1}"#, "field \"x\" is not known; there are: resource, limit, inner"),
            (r#"{"resource":"a","inner":[{"small":1},{}]}"#, "inner[1].small: it is missing"),
            (
                r#"{"resource":"a","inner":[{"small":4294967296}]}"#,
                "inner[0].small: 4294967296 is not a whole number up to 4294967295",
            ),
            (
                r#"{"resource":"a","inner":[{"small":1,"mode":"x"}]}"#,
                "inner[0].mode: it is none of shared, exclusive",
            ),
            (
                r#"{"resource":"a","inner":[{"y":1}]}"#,
                "field \"inner[0].y\" is not known; there are: small, mode",
            ),
        ] {
            assert_eq!(json(text).unwrap_err().message(), message, "{text}");
        }
    }

    #[test]
    fn queries_are_held_to_the_same() {
        for (query, message) in [
            ("resource=a&resource=a", "resource: it is given twice"),
            ("resource=a&limit=", "limit: it is not a whole number"),
            ("resource=a&limit=%2B5", "limit: it is not a whole number"),
            (
                "resource=a&limit=18446744073709551616",
                "limit: it is above the maximum of 18446744073709551615",
            ),
            ("resource=a&x=1", "field \"x\" is not known; there are: resource, limit, inner"),
        ] {
            assert_eq!(read(Node::from_query(query).unwrap()).unwrap_err().message(), message, "{query}");
        }
    }

    #[test]
    fn a_name_that_somebody_made_up_is_not_repeated_at_full_length() {
        let message = json(&format!(r#"{{"{}":1}}"#, "n".repeat(10_000))).unwrap_err().message();
        assert!(message.len() < 300, "{}", message.len());
    }
}
