//! Tokens, session ids and the numbers that order a session's streams.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Raised by every restore: the upper 16 bits of a token. At most [`Epoch::MAX`], so that tokens fit signed 64-bit columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Epoch(u16);

impl Epoch {
    /// The last epoch there is.
    pub const MAX: Self = Self(32_767);

    /// Epoch `number`, or nothing above [`Epoch::MAX`].
    pub const fn new(number: u16) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The number of this epoch.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The grant counter has used all 48 bits of its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the grant counter of this epoch is used up")]
pub struct TokensExhausted;

const NUMBER_BITS: u32 = 48;
const MAX_NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// A fencing token: restore epoch, then the number of the grant. A later grant always has the greater token.
///
/// Text and JSON carry it as a decimal string, because a JSON number is a double and loses the last digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(u64);

impl Token {
    /// The token of grant `number` in `epoch`.
    ///
    /// # Errors
    /// When the number needs more than 48 bits.
    pub fn new(epoch: Epoch, number: u64) -> Result<Self, TokensExhausted> {
        if number > MAX_NUMBER {
            return Err(TokensExhausted);
        }
        Ok(Self((u64::from(epoch.0) << NUMBER_BITS) | number))
    }

    /// The greatest that there can be: receivers keep tokens in signed columns.
    pub const MAX: Self = Self(u64::MAX >> 1);

    /// The token with this value, as found in text, on the wire or in a column.
    pub const fn from_u64(value: u64) -> Self {
        Self(value)
    }

    /// The value as receivers compare it.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The epoch in the upper 16 bits.
    pub const fn epoch(self) -> u64 {
        self.0 >> NUMBER_BITS
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.0)
    }
}

impl core::str::FromStr for Token {
    type Err = core::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Names a session. Drawn from the grant counter, so an id is never used twice, and an id at or below the counter that the
/// table does not know has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(u64);

impl SessionId {
    /// The id with this value.
    pub const fn from_u64(value: u64) -> Self {
        Self(value)
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<Token> for SessionId {
    fn from(drawn: Token) -> Self {
        Self(drawn.get())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.0)
    }
}

/// 128 random bits that a client draws once per session: a repeated open finds the session by it, and an attach proves with it
/// that the session is its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Nonce(pub [u8; 16]);

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(..)")
    }
}

macro_rules! rising_number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub struct $name(u64);

        impl $name {
            /// Before the first one.
            pub const NONE: Self = Self(0);

            /// The number with this value.
            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            /// The value.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one after this.
            pub fn next(self) -> Self {
                Self(self.0.checked_add(1).expect("a client cannot send 2^64 frames"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

rising_number! {
    /// The place of a command in a session's command stream: 1, 2, 3 and so on, chosen by the client.
    CommandNumber
}
rising_number! {
    /// The number that the client of a plain session gave to a call: rising, and the same when the call is sent again.
    CallNumber
}
rising_number! {
    /// The place of an answer or event in a session's other stream, numbered by the table as they arise.
    ItemNumber
}
rising_number! {
    /// The number of one sending of a renewal. Every sending has a new one.
    RenewalNumber
}
rising_number! {
    /// The number of a connection's attachment to its session. Frames of an older one are refused.
    AttachNumber
}

rising_number! {
    /// The place of an entry in the log, as watchers and readers name it. A later one has the greater number.
    Revision
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greater_epoch_beats_every_number_of_a_smaller_one() {
        let last = Token::new(Epoch::new(1).unwrap(), MAX_NUMBER).unwrap();
        let first = Token::new(Epoch::new(2).unwrap(), 1).unwrap();
        assert!(first > last);
    }

    #[test]
    fn tokens_fit_a_signed_column() {
        let greatest = Token::new(Epoch::MAX, MAX_NUMBER).unwrap();
        assert!(i64::try_from(greatest.get()).is_ok());
        assert!(Epoch::new(32_768).is_none());
    }

    #[test]
    fn the_counter_ends_with_an_error_and_not_in_the_next_epoch() {
        assert_eq!(Token::new(Epoch::default(), MAX_NUMBER + 1), Err(TokensExhausted));
    }
}
