//! Reading typed fields out of a [`Node`], with errors that name the field.

use std::fmt::{self, Display};

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::Node;
use crate::plain::ApiError;

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

impl From<ReadError> for ApiError {
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
            "u64" => format!("a whole number from 0 to {}", u64::MAX),
            "u32" => format!("a whole number from 0 to {}", u32::MAX),
            "a string" => "a text in quotes".to_owned(),
            "a boolean" => "true or false".to_owned(),
            "a sequence" => "a list".to_owned(),
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

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        Self::custom(format_args!("{} is none of {}", quoted(found), known.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Bad { path: field.to_owned(), why: "it is missing".to_owned() }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Bad { path: field.to_owned(), why: "it is given twice".to_owned() }
    }
}

/// A short text as it is. A longer one is not repeated: it may be as long as a body, or somebody's key in the wrong field.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 20;
    if text.chars().nth(SHOWN).is_some() {
        return format!("a text of {} bytes", text.len());
    }
    format!("{text:?}")
}

/// What was found.
fn kind(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => match quoted(text) {
            shown if shown.starts_with('"') => format!("the text {shown}"),
            long => long,
        },
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
    fn found(&self) -> Unexpected<'_> {
        match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Number(value) => Unexpected::Unsigned(*value),
            Self::OtherNumber(shown) => Unexpected::Other(shown),
            Self::Text(text) | Self::Raw(text) => Unexpected::Str(text),
            Self::List(_) => Unexpected::Seq,
            Self::Map(_) => Unexpected::Map,
        }
    }

    fn visit_number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Self::Raw(text) => {
                // The parser would take a sign.
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                match text.parse() {
                    Ok(number) if digits => visitor.visit_u64(number),
                    _ => Err(Error::invalid_type(Unexpected::Other(&quoted(&text)), &visitor)),
                }
            }
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
            other => {
                let expected = format!("one of the texts {}", variants.join(", "));
                Err(Error::invalid_type(other.found(), &expected.as_str()))
            }
        }
    }

    /// Only an object: a list of the values without their names would be a second way to write the same.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self {
            Self::Map(_) => self.deserialize_any(visitor),
            other => {
                let expected = format!("an object with the fields {}", fields.join(", "));
                Err(Error::invalid_type(other.found(), &expected.as_str()))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
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
mod tests;
