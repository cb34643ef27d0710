//! The opening of a connection between nodes: a preface and a hello one way, a preface and a welcome the other.
//!
//! Both frames have a limit of their own: whoever sends them is not known yet.

use prost::Message;

use super::frame::{HEADER_BYTES, PeerFrameReader, append_frame, first_frame};
use super::hello::{PeerHello, PeerWelcome};
use crate::convert::Wire;
use crate::error::OpeningError;
use crate::frame::FrameReader;
use crate::hello::beginning;

/// The first bytes of a stream between nodes, in both directions. As those of a session stream, with other letters; the last is the
/// version of the framing itself.
pub const PEER_PREFACE: [u8; 8] = *b"\0LHPR\r\n\x01";
/// Longest hello or welcome of a node. As many members as there may be fit it, with their founders beside them.
pub const MAX_PEER_OPENING_BYTES: usize = 8 * 1024;

/// Appends the preface and a hello to `out`, or leaves `out` as it was: what a node sends that dials.
///
/// # Errors
/// When a field cannot be what it says, or the hello would be above [`MAX_PEER_OPENING_BYTES`].
pub fn encode_peer_hello(hello: &PeerHello, out: &mut Vec<u8>) -> Result<(), OpeningError> {
    append_opening(hello, out)
}

/// Appends the preface and a welcome to `out`, or leaves `out` as it was: what a node sends that was dialled.
///
/// # Errors
/// When a field cannot be what it says, or the welcome would be above [`MAX_PEER_OPENING_BYTES`].
pub fn encode_peer_welcome(welcome: &PeerWelcome, out: &mut Vec<u8>) -> Result<(), OpeningError> {
    append_opening(welcome, out)
}

fn append_opening<T: Wire<Message: Message + Clone>>(
    said: &T,
    out: &mut Vec<u8>,
) -> Result<(), OpeningError> {
    let message = said.to_wire();
    // What the other side would not take is not sent.
    T::from_wire(message.clone())?;
    let start = out.len();
    out.extend_from_slice(&PEER_PREFACE);
    let appended = append_frame(out, MAX_PEER_OPENING_BYTES, |body| message.encode_raw(body));
    if appended.is_err() {
        out.truncate(start);
    }
    Ok(appended?)
}

/// Puts the other node's opening together from bytes as they arrive, and hands over to a [`PeerFrameReader`] for what comes
/// behind it.
#[derive(Debug, Default)]
pub struct PeerOpeningReader {
    bytes: FrameReader,
}

impl PeerOpeningReader {
    /// A reader at the beginning of a connection.
    pub const fn new() -> Self {
        Self { bytes: FrameReader::new() }
    }

    /// Takes in bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.push(bytes);
    }

    /// The hello of the node that dialled, once it is all here.
    ///
    /// # Errors
    /// When this is no stream between nodes, which is noticed at its first differing byte, or the hello cannot be.
    pub fn hello(&self) -> Result<Option<PeerHello>, OpeningError> {
        self.read()
    }

    /// The welcome of the node that was dialled, once it is all here.
    ///
    /// # Errors
    /// When this is no stream between nodes, which is noticed at its first differing byte, or the welcome cannot be.
    pub fn welcome(&self) -> Result<Option<PeerWelcome>, OpeningError> {
        self.read()
    }

    /// The connection has ended before the opening was here.
    pub fn finish(&self) -> OpeningError {
        OpeningError::CutOff { have: self.bytes.pending().len() }
    }

    /// The reader of what comes behind the opening, including what has arrived already.
    ///
    /// # Errors
    /// When the opening is not all here, or cannot be.
    pub fn into_frames(mut self) -> Result<PeerFrameReader, OpeningError> {
        let Some(body) = self.frame()? else { return Err(self.finish()) };
        let opening = PEER_PREFACE.len() + HEADER_BYTES + body.len();
        self.bytes.take(opening);
        Ok(PeerFrameReader::of(self.bytes))
    }

    fn read<T: Wire<Message: Message + Default>>(&self) -> Result<Option<T>, OpeningError> {
        let Some(body) = self.frame()? else { return Ok(None) };
        let message = T::Message::decode(body).map_err(OpeningError::Unreadable)?;
        Ok(Some(T::from_wire(message)?))
    }

    fn frame(&self) -> Result<Option<&[u8]>, OpeningError> {
        let here = self.bytes.pending();
        let first = beginning(here);
        if !PEER_PREFACE.starts_with(first) {
            return Err(OpeningError::NoPeer { found: first.escape_ascii().to_string() });
        }
        let Some(behind) = here.strip_prefix(&PEER_PREFACE) else { return Ok(None) };
        Ok(first_frame(behind, MAX_PEER_OPENING_BYTES)?)
    }
}
