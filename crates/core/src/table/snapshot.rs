//! Snapshots: the whole table as bytes, with a version.

use alloc::vec::Vec;

use super::LeaseTable;
use crate::command::{DecodeError, decode_versioned, encode_versioned};

/// The version of the snapshot format that is written here.
const SNAPSHOT_VERSION: u8 = 1;

impl LeaseTable {
    /// The table as bytes. Equal tables give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_versioned(SNAPSHOT_VERSION, self)
    }

    /// Reads a table that [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes were written by a later release or are not a snapshot.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut table: Self = decode_versioned("snapshot", SNAPSHOT_VERSION, bytes)?;
        table.rebuild_index();
        Ok(table)
    }
}
