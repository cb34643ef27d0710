//! Bytes with a version, for what is kept: entries and snapshots.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// An entry that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a later release.
    #[error("{what} has format version {found}; this release reads up to {known}: upgrade it")]
    NewerVersion {
        /// Entry or snapshot.
        what: &'static str,
        /// The version found.
        found: u8,
        /// The newest version known here.
        known: u8,
    },
    /// Not what was written.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Entry or snapshot.
        what: &'static str,
        /// The decoder's word for it.
        why: postcard::Error,
    },
    /// Nothing at all.
    #[error("{what} is empty")]
    Empty {
        /// Entry or snapshot.
        what: &'static str,
    },
}

/// The bytes of `value` behind others, which may have room for them already.
///
/// # Panics
/// When something in `value` cannot be serialized: nothing of this crate's is like that.
pub fn encode_behind<T: Serialize>(bytes: Vec<u8>, value: &T) -> Vec<u8> {
    postcard::serialize_with_flavor(value, Behind(bytes))
        .expect("these types have no failing serializers and a vector grows as needed")
}

/// Bytes that grow by what is serialized. Postcard's own for a vector that has something in it adds byte by byte.
struct Behind(Vec<u8>);

impl postcard::ser_flavors::Flavor for Behind {
    type Output = Vec<u8>;

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// Reads what [`encode_behind`] wrote behind a version byte.
pub(crate) fn decode_versioned<T: for<'de> Deserialize<'de>>(
    what: &'static str,
    known: u8,
    bytes: &[u8],
) -> Result<T, DecodeError> {
    match bytes.split_first() {
        None => Err(DecodeError::Empty { what }),
        Some((&found, _)) if found > known => Err(DecodeError::NewerVersion { what, found, known }),
        Some((_, body)) => match postcard::take_from_bytes(body) {
            Ok((value, [])) => Ok(value),
            Ok(_) => Err(DecodeError::Damaged { what, why: postcard::Error::DeserializeBadEncoding }),
            Err(why) => Err(DecodeError::Damaged { what, why }),
        },
    }
}
