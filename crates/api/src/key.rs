//! The key of a plain session: its id and its nonce in one text, `ID-NONCE`.

use std::fmt;
use std::str::FromStr;

use leasehold_core::{Nonce, SessionId};

/// Hexadecimal digits of a nonce.
pub(crate) const NONCE_DIGITS: usize = 32;

/// Decimal digits of a token, an id or a revision at most.
pub(crate) const NUMBER_DIGITS: usize = 19;

/// Names a plain session and proves that it is the caller's own. A secret of its holder: only [`SessionKey::reveal`] shows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionKey {
    /// Which session; everybody may know it.
    pub id: SessionId,
    /// The proof; nobody else may know it.
    pub nonce: Nonce,
}

/// A text that is no session key. It does not repeat the text, which may be somebody's key with a typing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a session key is the session's id, a dash and 32 hexadecimal digits, as the answer to its open says"
)]
pub struct BadSessionKey;

/// A text that is no nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a nonce is 32 hexadecimal digits")]
pub struct BadNonce;

impl SessionKey {
    /// The text to give to the holder, and to nobody else.
    pub fn reveal(&self) -> String {
        let digits: String = self.nonce.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{digits}", self.id)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({}-..)", self.id)
    }
}

impl FromStr for SessionKey {
    type Err = BadSessionKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (id, digits) = text.split_once('-').ok_or(BadSessionKey)?;
        let id = parse_number(id).ok_or(BadSessionKey)?;
        let nonce = parse_nonce(digits).map_err(|BadNonce| BadSessionKey)?;
        Ok(Self { id: SessionId::from_u64(id), nonce })
    }
}

/// A number from its decimal digits and nothing else: a sign would be a second way to write the same. No token, id or revision
/// has more than [`NUMBER_DIGITS`], because all of them fit a signed 64-bit column.
pub(crate) fn parse_number(digits: &str) -> Option<u64> {
    let plain = (1..=NUMBER_DIGITS).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// Reads a nonce from 32 hexadecimal digits.
///
/// # Errors
/// When the text is anything else.
pub fn parse_nonce(digits: &str) -> Result<Nonce, BadNonce> {
    let bytes = parse_hex(digits).filter(|bytes| bytes.len() * 2 == NONCE_DIGITS).ok_or(BadNonce)?;
    Ok(Nonce(bytes.try_into().expect("32 digits are 16 bytes")))
}

/// Bytes from hexadecimal digits of either case; nothing if these are none, or an odd number of them.
pub(crate) fn parse_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "7-000102030405060708090a0b0c0d0eff";

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let key: SessionKey = KEY.parse().unwrap();
        assert_eq!(key.id.get(), 7);
        assert_eq!(key.nonce.0[15], 0xff);
        assert_eq!(key.reveal(), KEY);
    }

    #[test]
    fn digits_of_either_case_are_the_same_key() {
        assert_eq!(KEY.to_uppercase().parse::<SessionKey>(), KEY.parse());
    }

    #[test]
    fn debug_output_does_not_show_the_proof() {
        let key: SessionKey = KEY.parse().unwrap();
        assert_eq!(format!("{key:?}"), "SessionKey(7-..)");
    }

    #[test]
    fn anything_else_is_no_key_and_is_not_repeated() {
        let long = format!("{KEY}0");
        let cases = ["", "7", "7-", "-", "+7-000102030405060708090a0b0c0d0eff", &long, &KEY[..33]];
        for text in cases.into_iter().chain([
            "10000000000000000000-000102030405060708090a0b0c0d0eff",
            "7-000102030405060708090a0b0c0d0ezz",
            " 7-000102030405060708090a0b0c0d0eff",
            "7-ä00102030405060708090a0b0c0d0ef",
        ]) {
            let error = text.parse::<SessionKey>().expect_err(text);
            assert!(!error.to_string().contains("0d0e"), "{error}");
        }
    }
}
