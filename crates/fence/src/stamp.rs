//! What a write carries: under which name it is fenced, and with which token.

use std::fmt;

use crate::error::NoAuthority;

/// The longest fence name: a name of Leasehold (512 bytes), `#` and the number of a slot fit, and it still is a key everywhere.
pub const MAX_FENCE_NAME_BYTES: usize = 544;
/// The longest name of a holder: as long as a label of Leasehold.
pub const MAX_HOLDER_BYTES: usize = 256;
/// The greatest token: signed 64-bit columns hold it.
pub const LARGEST_TOKEN: u64 = i64::MAX as u64;

/// What a write carries: a fence name and a token, and for people who holds it.
///
/// Stamps with one name and token are equal for every receiver, whoever is said to hold them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stamp {
    name: String,
    token: u64,
    holder: Option<String>,
}

/// A stamp that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadStamp {
    /// The name has no length.
    #[error("a fence name is empty; it is the name of what is protected, such as reports/nightly")]
    EmptyName,
    /// The name, or the holder's, is too long.
    #[error("{what} of {bytes} bytes is above the limit of {limit} bytes")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The greatest length.
        limit: usize,
    },
    /// A character that terminals and logs would obey.
    #[error("{what} {text:?} has a control character; leave it out")]
    ControlCharacter {
        /// What has it.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// The token is not between 1 and [`LARGEST_TOKEN`].
    #[error("token {token} is not between 1 and {LARGEST_TOKEN}")]
    Token {
        /// What was given.
        token: u64,
    },
}

impl Stamp {
    /// A stamp.
    ///
    /// # Errors
    /// When the name is empty, too long or has control characters, or when the token is 0 or above [`LARGEST_TOKEN`].
    pub fn new(name: impl Into<String>, token: u64) -> Result<Self, BadStamp> {
        let name = name.into();
        if name.is_empty() {
            return Err(BadStamp::EmptyName);
        }
        bounded("fence name", &name, MAX_FENCE_NAME_BYTES)?;
        if token == 0 || token > LARGEST_TOKEN {
            return Err(BadStamp::Token { token });
        }
        Ok(Self { name, token, holder: None })
    }

    /// The same stamp with the name of whoever holds it, for people that look at refusals.
    ///
    /// # Errors
    /// When that name is too long or has control characters.
    pub fn held_by(mut self, holder: impl Into<String>) -> Result<Self, BadStamp> {
        let holder = holder.into();
        bounded("holder", &holder, MAX_HOLDER_BYTES)?;
        self.holder = Some(holder).filter(|holder| !holder.is_empty());
        Ok(self)
    }

    /// The fence name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The token.
    pub const fn token(&self) -> u64 {
        self.token
    }

    /// The token for a signed column.
    pub const fn signed_token(&self) -> i64 {
        self.token.cast_signed()
    }

    /// Who holds it, as it calls itself.
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} of {}", self.token, self.name)
    }
}

fn bounded(what: &'static str, text: &str, limit: usize) -> Result<(), BadStamp> {
    if text.len() > limit {
        return Err(BadStamp::TooLong { what, bytes: text.len(), limit });
    }
    if text.chars().any(char::is_control) {
        return Err(BadStamp::ControlCharacter { what, text: text.to_owned() });
    }
    Ok(())
}

/// Whoever may act, and can say so at this moment. Adapters ask for every write, never once for many.
pub trait Authority {
    /// The stamp to write with now.
    ///
    /// # Errors
    /// When the authority has lapsed. Nothing may be sent then.
    fn stamp(&self) -> Result<Stamp, NoAuthority>;
}

/// A stamp that was remembered vouches for itself: the receiver alone decides.
impl Authority for Stamp {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Ok(self.clone())
    }
}

impl<A: Authority + ?Sized> Authority for &A {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        (**self).stamp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_that_a_signed_column_holds() {
        assert_eq!(Stamp::new("a", 0), Err(BadStamp::Token { token: 0 }));
        assert_eq!(Stamp::new("a", 1).unwrap().signed_token(), 1);
        assert_eq!(Stamp::new("a", LARGEST_TOKEN).unwrap().signed_token(), i64::MAX);
        assert_eq!(Stamp::new("a", LARGEST_TOKEN + 1), Err(BadStamp::Token { token: 1 << 63 }));
    }

    #[test]
    fn names_are_bounded_and_have_no_control_characters() {
        assert_eq!(Stamp::new("", 1), Err(BadStamp::EmptyName));
        for (length, fits) in [(543, true), (544, true), (545, false)] {
            assert_eq!(Stamp::new("x".repeat(length), 1).is_ok(), fits, "{length}");
        }
        let said = Stamp::new("a\u{1b}[2J", 1).unwrap_err().to_string();
        assert_eq!(said, "fence name \"a\\u{1b}[2J\" has a control character; leave it out");
    }

    #[test]
    fn holders_are_bounded_and_an_empty_one_is_none() {
        let stamp = Stamp::new("a", 1).unwrap();
        for (length, fits) in [(255, true), (256, true), (257, false)] {
            assert_eq!(stamp.clone().held_by("x".repeat(length)).is_ok(), fits, "{length}");
        }
        assert_eq!(stamp.held_by("").unwrap().holder(), None);
    }
}
