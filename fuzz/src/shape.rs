//! What came of an input, made so short that two inputs with the same fate look alike.
//!
//! A fuzzer that sees no coverage needs another sign that an input is worth keeping. The words in which a decoder answers are one:
//! another refusal, or another kind of message, was reached by another path.

use std::fmt::{self, Debug, Write};

/// Longer words tell no more: what is long has lists in it.
const SEEN_BYTES: usize = 512;

/// The shape of an outcome: its words without numbers and texts, as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(u64);

impl Shape {
    /// The shape of a value, by what it is for a debugger.
    pub fn of(value: &impl Debug) -> Self {
        let mut words = Words { hash: 0xcbf2_9ce4_8422_2325, seen: 0, in_text: false };
        // It stops at an error of its own, when enough was seen.
        let _ = write!(words, "{value:?}");
        Self(words.hash)
    }

    /// The shape of a sentence, such as a refusal.
    pub fn of_words(sentence: &str) -> Self {
        Self::of(&format_args!("{}", sentence.replace('"', "")))
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0.rotate_left(5) ^ other.0)
    }
}

struct Words {
    hash: u64,
    seen: usize,
    in_text: bool,
}

impl Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'"' {
                self.in_text = !self.in_text;
            } else if !self.in_text && !byte.is_ascii_digit() {
                self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                self.seen += 1;
            }
        }
        if self.seen > SEEN_BYTES { Err(fmt::Error) } else { Ok(()) }
    }
}
