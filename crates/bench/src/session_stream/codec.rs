//! Length-prefixed frames: four bytes of length, big-endian, then one protobuf message.
//!
//! Refuses a length above `MAX_FRAME` before it reserves anything. Does not check what is inside.

use bytes::{Buf, BufMut, BytesMut};
use prost::Message;

/// Longest frame taken: a peer that claims more is broken or hostile, and must not make us reserve memory.
pub(crate) const MAX_FRAME: usize = 1 << 20;

/// Bytes of the length before each message.
const PREFIX: usize = 4;

/// Appends one frame to `out`.
pub(crate) fn put(message: &impl Message, out: &mut BytesMut) {
    let len = message.encoded_len();
    assert!(len <= MAX_FRAME, "frame of {len} bytes is above the limit of {MAX_FRAME}");
    out.reserve(PREFIX + len);
    out.put_u32(u32::try_from(len).expect("the limit of a frame fits 32 bits"));
    message.encode_raw(out);
}

/// Takes one whole frame off the front of `buffer`, or nothing if it is not all there yet.
pub(crate) fn take<M: Message + Default>(buffer: &mut BytesMut) -> anyhow::Result<Option<M>> {
    let Some(prefix) = buffer.first_chunk::<PREFIX>() else { return Ok(None) };
    let len = usize::try_from(u32::from_be_bytes(*prefix))?;
    anyhow::ensure!(len <= MAX_FRAME, "frame of {len} bytes is above the limit of {MAX_FRAME}");
    if buffer.len() < PREFIX + len {
        return Ok(None);
    }
    buffer.advance(PREFIX);
    Ok(Some(M::decode(buffer.split_to(len))?))
}

#[cfg(test)]
mod tests {
    use super::super::messages::{OpFrame, work_frame};
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_however_the_bytes_arrive() {
        let frames = [work_frame(1, 10, 1), work_frame(2, 20, 16)];
        let mut bytes = BytesMut::new();
        for frame in &frames {
            put(frame, &mut bytes);
        }
        let mut arrived = BytesMut::new();
        let mut taken: Vec<OpFrame> = Vec::new();
        for byte in bytes {
            arrived.put_u8(byte);
            taken.extend(take::<OpFrame>(&mut arrived).unwrap());
        }
        assert_eq!(taken, frames);
        assert!(arrived.is_empty());
    }

    #[test]
    fn a_length_above_the_limit_is_refused_before_its_bytes_arrive() {
        let mut bytes = BytesMut::new();
        bytes.put_u32(u32::MAX);
        assert!(take::<OpFrame>(&mut bytes).is_err());
    }
}
