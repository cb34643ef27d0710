//! What stands in a field of a line, before anybody knows what should.

use std::borrow::Cow;
use std::fmt;

use leasehold_core::Token;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Whatever stands in a field.
#[derive(Debug, Default)]
pub(super) enum Field<'a> {
    /// Nothing: there is no such field.
    #[default]
    Missing,
    Text(Cow<'a, str>),
    Whole(u64),
    Flag(bool),
    Null,
    /// Something that no field takes, in words.
    Other(Cow<'static, str>),
}

/// Of a text that is no help, so many characters are shown.
const SHOWN: usize = 40;

impl<'a> Field<'a> {
    /// What is read from it, if anything stands in it.
    pub(super) fn if_any<T>(self, read: impl FnOnce(Self) -> Result<T, String>) -> Result<Option<T>, String> {
        if matches!(self, Self::Missing | Self::Null) { Ok(None) } else { read(self).map(Some) }
    }

    /// A text, or a number taken for its digits.
    pub(super) fn name(self, name: &str) -> Result<Cow<'a, str>, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Whole(number) => Ok(Cow::Owned(number.to_string())),
            other => Err(other.instead_of(name, "a text or a whole number")),
        }
    }

    pub(super) fn text(self, name: &str) -> Result<Cow<'a, str>, String> {
        match self {
            Self::Text(text) => Ok(text),
            other => Err(other.instead_of(name, "a text")),
        }
    }

    pub(super) fn whole(&self, name: &str, unit: &str) -> Result<u64, String> {
        match self {
            Self::Whole(number) => Ok(*number),
            other => Err(other.instead_of(name, &format!("a whole number of {unit}"))),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self {
            Self::Flag(flag) => Ok(*flag),
            Self::Missing | Self::Null => Ok(false),
            other => Err(other.instead_of(name, "true or false")),
        }
    }

    pub(super) fn token(&self, name: &str) -> Result<Token, String> {
        let expected = "a token in quotes, a number below 2^64 such as \"17\",";
        match self {
            Self::Text(text) => text.parse().map_err(|_| self.instead_of(name, expected)),
            other => Err(other.instead_of(name, expected)),
        }
    }

    /// A token or nothing, where null must be said: a field that was forgotten is no answer.
    pub(super) fn token_or_null(&self, name: &str) -> Result<Option<Token>, String> {
        match self {
            Self::Null => Ok(None),
            Self::Missing => Err(self.instead_of(name, "a token in quotes, or null,")),
            other => other.token(name).map(Some),
        }
    }

    /// What is wrong with it.
    pub(super) fn instead_of(&self, name: &str, expected: &str) -> String {
        let found = match self {
            Self::Text(text) if text.chars().count() > SHOWN => {
                format!("the text {:?} and more", text.chars().take(SHOWN).collect::<String>())
            }
            Self::Text(text) => format!("the text {text:?}"),
            Self::Whole(number) => format!("the number {number}"),
            Self::Flag(flag) => flag.to_string(),
            Self::Null => "null".to_owned(),
            Self::Missing => "missing".to_owned(),
            Self::Other(words) => words.clone().into_owned(),
        };
        format!("`{name}` is {found}; {expected} was expected")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Field<'de>, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Field<'de>, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Field<'de>, E> {
        Ok(Field::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Field<'de>, E> {
        Ok(Field::Other(format!("the negative number {number}").into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Field<'de>, E> {
        let how =
            if number.fract() == 0.0 { "with an exponent, or greater than 2^64" } else { "with a fraction" };
        Ok(Field::Other(format!("the number {number:?}, {how}").into()))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Field<'de>, E> {
        Ok(Field::Flag(flag))
    }

    fn visit_unit<E>(self) -> Result<Field<'de>, E> {
        Ok(Field::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Field<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Other("a list".into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other("an object".into()))
    }
}
