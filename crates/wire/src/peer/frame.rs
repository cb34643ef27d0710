//! Frames between nodes: four bytes of length and four of checksum, both big-endian, then the body.
//!
//! The checksum is over the body. TCP has one of its own that lets about one damaged packet in 65 536 through; here such a packet would
//! become an entry of the log on one node and not on the others.

use crate::error::FrameError;
use crate::frame::{FrameReader, announced};

/// Longest body of a frame between nodes. A reply to a client of the longest kind, or several batches of entries, fit it; and
/// a node that sends half a frame and stops holds no more memory than this.
pub const MAX_PEER_FRAME_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of the length and the checksum before each body.
pub(super) const HEADER_BYTES: usize = 8;
/// Where the checksum begins.
const CHECKSUM_AT: usize = 4;

/// Appends one frame to `out`, or leaves `out` as it was.
pub(super) fn append_frame(
    out: &mut Vec<u8>,
    limit: usize,
    fill: impl FnOnce(&mut Vec<u8>),
) -> Result<(), FrameError> {
    let start = out.len();
    let body = start + HEADER_BYTES;
    out.extend_from_slice(&[0; HEADER_BYTES]);
    fill(out);
    let bytes = out.len() - body;
    if bytes > limit {
        out.truncate(start);
        return Err(FrameError::TooLong { bytes, limit });
    }
    let length = u32::try_from(bytes).expect("every limit of a frame fits 32 bits").to_be_bytes();
    let checksum = crc32c::crc32c(&out[body..]).to_be_bytes();
    out[start..start + CHECKSUM_AT].copy_from_slice(&length);
    out[start + CHECKSUM_AT..body].copy_from_slice(&checksum);
    Ok(())
}

/// The body of the frame at the beginning of `pending`, or nothing if it is not all there yet.
pub(super) fn first_frame(pending: &[u8], limit: usize) -> Result<Option<&[u8]>, FrameError> {
    let Some(bytes) = announced(pending) else { return Ok(None) };
    if bytes > limit {
        return Err(FrameError::TooLong { bytes, limit });
    }
    let Some((header, behind)) = pending.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let Some(body) = behind.get(..bytes) else { return Ok(None) };
    let [_, _, _, _, checksum @ ..] = *header;
    let (announced, computed) = (u32::from_be_bytes(checksum), crc32c::crc32c(body));
    if announced != computed {
        return Err(FrameError::WrongChecksum { bytes, announced, computed });
    }
    Ok(Some(body))
}

/// Puts frames between nodes together from bytes as they arrive.
///
/// After each [`push`](Self::push), take frames until there is none: a length above the limit is noticed there, as soon as its
/// four bytes are here and before the frame itself is. An error is final; it is given again however often one asks.
#[derive(Debug, Default)]
pub struct PeerFrameReader {
    bytes: FrameReader,
}

impl PeerFrameReader {
    /// A reader at the beginning of a stream of frames.
    pub const fn new() -> Self {
        Self { bytes: FrameReader::new() }
    }

    /// A reader of what has arrived already, and what comes behind it.
    pub(super) const fn of(bytes: FrameReader) -> Self {
        Self { bytes }
    }

    /// Takes in bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.push(bytes);
    }

    /// The body of the next whole frame, for [`decode_peer_frame`](crate::decode_peer_frame), or nothing if it is not all here yet.
    ///
    /// # Errors
    /// When the length of the frame is above [`MAX_PEER_FRAME_BYTES`], or the checksum is not that of the body.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let Some(body) = first_frame(self.bytes.pending(), MAX_PEER_FRAME_BYTES)? else { return Ok(None) };
        let whole = HEADER_BYTES + body.len();
        Ok(Some(&self.bytes.take(whole)[HEADER_BYTES..]))
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// When it ended inside a frame.
    pub fn finish(&self) -> Result<(), FrameError> {
        let rest = self.bytes.pending();
        if rest.is_empty() {
            return Ok(());
        }
        // As long as the header is not all here, only the header itself is known to be needed.
        let body = if rest.len() < HEADER_BYTES { 0 } else { announced(rest).unwrap_or(0) };
        Err(FrameError::HalfFrame { have: rest.len(), need: HEADER_BYTES.saturating_add(body) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_of(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        append_frame(&mut out, MAX_PEER_FRAME_BYTES, |out| out.extend_from_slice(body)).unwrap();
        out
    }

    #[test]
    fn frames_are_sent_and_taken_up_to_the_limit() {
        for (bytes, taken) in [(MAX_PEER_FRAME_BYTES, true), (MAX_PEER_FRAME_BYTES + 1, false)] {
            let mut out = b"before".to_vec();
            let sent =
                append_frame(&mut out, MAX_PEER_FRAME_BYTES, |body| body.resize(body.len() + bytes, 7));
            assert_eq!(sent.is_ok(), taken, "sending {bytes} bytes");
            let mut reader = PeerFrameReader::new();
            reader.push(&u32::try_from(bytes).unwrap().to_be_bytes());
            let heard = reader.next_frame().map(|frame| frame.is_some());
            if taken {
                assert_eq!(heard, Ok(false));
                reader.push(&out["before".len() + CHECKSUM_AT..]);
                assert_eq!(reader.next_frame().unwrap().unwrap().len(), bytes);
            } else {
                assert_eq!(out, b"before");
                assert_eq!(heard, Err(FrameError::TooLong { bytes, limit: MAX_PEER_FRAME_BYTES }));
            }
        }
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_the_bytes_arrive() {
        let bodies: [&[u8]; 4] = [b"first", b"", b"third one", b"4"];
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| frame_of(body)).collect();
        for step in 1..=bytes.len() {
            let mut reader = PeerFrameReader::new();
            let mut taken = Vec::new();
            for chunk in bytes.chunks(step) {
                reader.push(chunk);
                while let Some(frame) = reader.next_frame().unwrap() {
                    taken.push(frame.to_vec());
                }
            }
            assert_eq!(taken, bodies, "in steps of {step}");
            reader.finish().unwrap();
        }
    }

    #[test]
    fn every_changed_bit_of_checksum_and_body_is_noticed_and_stays_noticed() {
        let sent = frame_of(b"an entry");
        for bit in CHECKSUM_AT * 8..sent.len() * 8 {
            let mut bytes = sent.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut reader = PeerFrameReader::new();
            reader.push(&bytes);
            let error = reader.next_frame().unwrap_err();
            assert!(matches!(error, FrameError::WrongChecksum { bytes: 8, .. }), "bit {bit}: {error}");
            reader.push(&sent);
            assert_eq!(reader.next_frame(), Err(error));
        }
    }

    #[test]
    fn a_wrong_checksum_names_both_values() {
        let mut bytes = frame_of(b"123456789");
        bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&[0, 0, 0, 1]);
        let mut reader = PeerFrameReader::new();
        reader.push(&bytes);
        // The second is the value that the checksum's own definition gives for these nine digits.
        let expected = "frame of 9 bytes carries the checksum 00000001, and its bytes have e3069283";
        assert_eq!(reader.next_frame().unwrap_err().to_string(), expected);
    }

    #[test]
    fn the_end_of_the_stream_inside_a_frame_is_an_error() {
        let bytes = frame_of(b"abc");
        for have in 0..bytes.len() {
            let mut reader = PeerFrameReader::new();
            reader.push(&bytes[..have]);
            assert_eq!(reader.next_frame().unwrap(), None);
            let need = if have < HEADER_BYTES { HEADER_BYTES } else { bytes.len() };
            let expected = if have == 0 { Ok(()) } else { Err(FrameError::HalfFrame { have, need }) };
            assert_eq!(reader.finish(), expected);
        }
    }
}
