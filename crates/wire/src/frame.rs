//! Frames: four bytes of length, big-endian, then the messages.
//!
//! The reader promises that a frame comes out whole and exactly as it was sent, however the bytes arrive, and that it never holds
//! more than one unfinished frame within the limit plus what was pushed last. It does not look inside.

use crate::error::FrameError;

/// Longest frame, without its prefix. The largest single request (64 names and a value of 64 KiB) fits it forty times, so that
/// everything that waits can leave in one; and a peer that sends half a frame and stops holds no more memory than this.
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of the length before each frame.
pub(crate) const PREFIX_BYTES: usize = 4;
/// The reader gives back memory above this once it is empty: one long frame must not cost its connection megabytes for life.
const KEPT_BYTES: usize = 64 * 1024;
/// How a message begins inside a frame: field 1, with a length.
const MESSAGE_KEY: u8 = 1 << 3 | 2;

/// Appends one frame to `out`, or leaves `out` as it was.
pub(crate) fn append_frame(
    out: &mut Vec<u8>,
    limit: usize,
    fill: impl FnOnce(&mut Vec<u8>),
) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    fill(out);
    let bytes = out.len() - start - PREFIX_BYTES;
    if bytes > limit {
        out.truncate(start);
        return Err(FrameError::TooLong { bytes, limit });
    }
    let prefix = u32::try_from(bytes).expect("every limit of a frame fits 32 bits").to_be_bytes();
    out[start..start + PREFIX_BYTES].copy_from_slice(&prefix);
    Ok(())
}

/// Appends one message to the body of a frame.
pub(crate) fn append_message(out: &mut Vec<u8>, message: &impl prost::Message) {
    out.push(MESSAGE_KEY);
    message.encode_length_delimited(out).expect("a vector grows as needed");
}

/// The bytes of each message in the body of a frame, in order. After an error there is nothing more.
pub(crate) struct Messages<'a> {
    rest: &'a [u8],
    position: usize,
}

impl<'a> Messages<'a> {
    /// The messages of `frame`.
    pub(crate) fn of(frame: &'a [u8]) -> Self {
        Self { rest: frame, position: 0 }
    }

    fn take(&mut self) -> Result<(usize, &'a [u8]), FrameError> {
        let position = self.position;
        let Some((&MESSAGE_KEY, mut rest)) = self.rest.split_first() else {
            return Err(FrameError::NotAMessage { position });
        };
        let length =
            prost::decode_length_delimiter(&mut rest).map_err(|_| FrameError::MessageCutOff { position })?;
        let (message, rest) = rest.split_at_checked(length).ok_or(FrameError::MessageCutOff { position })?;
        self.rest = rest;
        self.position += 1;
        Ok((position, message))
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<(usize, &'a [u8]), FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let taken = self.take();
        if taken.is_err() {
            self.rest = &[];
        }
        Some(taken)
    }
}

/// Puts frames together from bytes as they arrive.
///
/// After each [`push`](Self::push), take frames until there is none: a length above the limit is noticed there, as soon as its
/// four bytes are here and before the frame itself is. An error is final; it is given again however often one asks.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Where the next frame begins in `buffer`.
    start: usize,
}

impl FrameReader {
    /// A reader at the beginning of a stream.
    pub const fn new() -> Self {
        Self { buffer: Vec::new(), start: 0 }
    }

    /// Takes in bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        // What was taken is dropped here and not in `next_frame`, so that frames can be handed out without a copy. At most one
        // unfinished frame is moved, and it is moved once: the next time it begins at 0.
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
        }
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame without its prefix, or nothing if it is not all here yet.
    ///
    /// # Errors
    /// When the length of the frame is above [`MAX_FRAME_BYTES`].
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let Some(frame) = first_frame(self.pending(), MAX_FRAME_BYTES)? else { return Ok(None) };
        let whole = PREFIX_BYTES + frame.len();
        Ok(Some(&self.take(whole)[PREFIX_BYTES..]))
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// When it ended inside a frame.
    pub fn finish(&self) -> Result<(), FrameError> {
        let rest = self.pending();
        if rest.is_empty() {
            return Ok(());
        }
        let need = PREFIX_BYTES + announced(rest).unwrap_or(0);
        Err(FrameError::HalfFrame { have: rest.len(), need })
    }

    /// What arrived and was not taken yet.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Takes the first `bytes` of what is pending.
    pub(crate) fn take(&mut self, bytes: usize) -> &[u8] {
        debug_assert!(bytes <= self.pending().len(), "only what is here can be taken");
        let from = self.start;
        self.start += bytes;
        &self.buffer[from..self.start]
    }
}

/// The frame at the beginning of `pending`, without its prefix, or nothing if it is not all there yet.
pub(crate) fn first_frame(pending: &[u8], limit: usize) -> Result<Option<&[u8]>, FrameError> {
    let Some(bytes) = announced(pending) else { return Ok(None) };
    if bytes > limit {
        return Err(FrameError::TooLong { bytes, limit });
    }
    Ok(pending[PREFIX_BYTES..].get(..bytes))
}

/// The length that a frame announces, once its prefix is complete.
pub(crate) fn announced(pending: &[u8]) -> Option<usize> {
    let prefix = pending.first_chunk::<PREFIX_BYTES>()?;
    // A length that does not fit the machine's word is above every limit, so the greatest one stands for it.
    Some(usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_of(bytes: usize) -> Result<Vec<u8>, FrameError> {
        let mut out = Vec::new();
        append_frame(&mut out, MAX_FRAME_BYTES, |body| body.resize(body.len() + bytes, 7))?;
        Ok(out)
    }

    #[test]
    fn frames_are_sent_and_taken_up_to_the_limit() {
        for (bytes, taken) in
            [(MAX_FRAME_BYTES - 1, true), (MAX_FRAME_BYTES, true), (MAX_FRAME_BYTES + 1, false)]
        {
            let sent = frame_of(bytes);
            assert_eq!(sent.is_ok(), taken, "sending {bytes} bytes");
            let mut reader = FrameReader::new();
            reader.push(&u32::try_from(bytes).unwrap().to_be_bytes());
            assert_eq!(reader.next_frame().is_ok(), taken, "the announcement of {bytes} bytes");
            if let Ok(sent) = sent {
                reader.push(&sent[PREFIX_BYTES..]);
                assert_eq!(reader.next_frame().unwrap().unwrap().len(), bytes);
            }
        }
    }

    #[test]
    fn a_frame_that_is_too_long_leaves_what_was_written_before() {
        let mut out = vec![1, 2, 3];
        let error = append_frame(&mut out, 4, |body| body.extend_from_slice(&[0; 5])).unwrap_err();
        assert_eq!(error, FrameError::TooLong { bytes: 5, limit: 4 });
        assert_eq!(out, [1, 2, 3]);
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_the_bytes_arrive() {
        let bodies: [&[u8]; 4] = [b"first", b"", b"third one", b"4"];
        let mut bytes = Vec::new();
        for body in bodies {
            append_frame(&mut bytes, MAX_FRAME_BYTES, |out| out.extend_from_slice(body)).unwrap();
        }
        for step in 1..=bytes.len() {
            let mut reader = FrameReader::new();
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
    fn the_end_of_the_stream_inside_a_frame_is_an_error() {
        let bytes = frame_of(3).unwrap();
        for have in 0..bytes.len() {
            let mut reader = FrameReader::new();
            reader.push(&bytes[..have]);
            assert_eq!(reader.next_frame().unwrap(), None);
            let need = if have < PREFIX_BYTES { PREFIX_BYTES } else { bytes.len() };
            let expected = if have == 0 { Ok(()) } else { Err(FrameError::HalfFrame { have, need }) };
            assert_eq!(reader.finish(), expected);
        }
    }

    #[test]
    fn a_refused_length_is_refused_again_and_nothing_behind_it_is_read() {
        let mut reader = FrameReader::new();
        reader.push(&u32::MAX.to_be_bytes());
        assert!(reader.next_frame().is_err());
        reader.push(&frame_of(1).unwrap());
        assert!(reader.next_frame().is_err());
    }

    #[test]
    fn memory_of_a_long_frame_is_given_back() {
        let mut reader = FrameReader::new();
        reader.push(&frame_of(MAX_FRAME_BYTES).unwrap());
        assert!(reader.next_frame().unwrap().is_some());
        reader.push(&frame_of(1).unwrap());
        assert!(reader.buffer.capacity() <= 2 * KEPT_BYTES, "{} bytes are kept", reader.buffer.capacity());
    }
}
