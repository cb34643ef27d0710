//! Text and bytes that clients choose, checked once where they enter.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{
    MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_REASON_BYTES, MAX_REGISTER_KEY_BYTES, MAX_VALUE_BYTES,
};

/// Why a text or value was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing where something is needed.
    #[error("{what} is empty; give at least 1 byte")]
    Empty {
        /// What was given.
        what: &'static str,
    },
    /// Longer than its limit.
    #[error("{what} of {bytes} bytes is above the maximum of {limit} bytes")]
    TooLong {
        /// What was given.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A character that has no place in it.
    #[error("{what} has the character {character:?} at byte {position}; control characters{} are not allowed", if *.hash_too { " and '#'" } else { "" })]
    BadCharacter {
        /// What was given.
        what: &'static str,
        /// The character.
        character: char,
        /// Where it stands.
        position: usize,
        /// Whether `#` is refused here as well.
        hash_too: bool,
    },
}

fn check(what: &'static str, text: &str, limit: usize, min: usize, hash_too: bool) -> Result<(), TextError> {
    if text.len() < min {
        return Err(TextError::Empty { what });
    }
    if text.len() > limit {
        return Err(TextError::TooLong { what, bytes: text.len(), limit });
    }
    // Nearly all texts are plain, and each is checked wherever it is read.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !(hash_too && byte == b'#')) {
        return Ok(());
    }
    let bad = text.char_indices().find(|(_, c)| c.is_control() || (hash_too && *c == '#'));
    match bad {
        Some((position, character)) => Err(TextError::BadCharacter { what, character, position, hash_too }),
        None => Ok(()),
    }
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $what:literal, max $limit:expr, min $min:literal, hash $hash:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes a text.
            ///
            /// # Errors
            /// When it is too short, too long, or has a character that is not allowed.
            pub fn new(text: &str) -> Result<Self, TextError> {
                check($what, text, $limit, $min, $hash)?;
                Ok(Self(text.into()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl core::str::FromStr for $name {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a string")
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::new(text).map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    };
}

checked_text! {
    /// The name of a resource: 1 to 512 bytes of UTF-8 without control characters and `#` (which marks slots).
    ResourceName, "resource name", max MAX_NAME_BYTES, min 1, hash true
}
checked_text! {
    /// What a holder calls itself, for people: host, pod, pid. It may be empty.
    Label, "label", max MAX_LABEL_BYTES, min 0, hash false
}
checked_text! {
    /// Why an operator did something, for the history.
    Reason, "reason", max MAX_REASON_BYTES, min 0, hash false
}
checked_text! {
    /// The key of a register within its resource.
    RegisterKey, "register key", max MAX_REGISTER_KEY_BYTES, min 1, hash false
}

/// Up to 64 KiB that a holder shows with its lease, or writes to a register.
#[derive(Clone, PartialEq, Eq, Default, Hash, Serialize)]
pub struct Value(Vec<u8>);

impl Value {
    /// Checks and takes bytes.
    ///
    /// # Errors
    /// When there are more than 64 KiB.
    pub fn new(bytes: Vec<u8>) -> Result<Self, TextError> {
        if bytes.len() > MAX_VALUE_BYTES {
            return Err(TextError::TooLong { what: "value", bytes: bytes.len(), limit: MAX_VALUE_BYTES });
        }
        Ok(Self(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match core::str::from_utf8(&self.0) {
            Ok(text) if text.len() <= 64 => write!(f, "{text:?}"),
            _ => write!(f, "{} bytes", self.0.len()),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_are_taken_up_to_their_limit() {
        for (length, taken) in [(0, false), (1, true), (511, true), (512, true), (513, false)] {
            assert_eq!(ResourceName::new(&"a".repeat(length)).is_ok(), taken, "{length} bytes");
        }
    }

    #[test]
    fn the_limit_counts_bytes_and_not_letters() {
        assert!(ResourceName::new(&"ä".repeat(256)).is_ok());
        assert!(ResourceName::new(&"ä".repeat(257)).is_err());
    }

    #[test]
    fn control_characters_and_hash_are_refused_with_their_position() {
        let error = ResourceName::new("jobs/a\0b").unwrap_err();
        assert_eq!(
            error.to_string(),
            "resource name has the character '\\0' at byte 6; control characters and '#' are not allowed"
        );
        assert!(ResourceName::new("a#1").is_err());
        assert!(Label::new("host#1").is_ok());
    }

    #[test]
    fn values_are_taken_up_to_their_limit() {
        for (length, taken) in [(0, true), (65_535, true), (65_536, true), (65_537, false)] {
            assert_eq!(Value::new(alloc::vec![0; length]).is_ok(), taken, "{length} bytes");
        }
    }
}
