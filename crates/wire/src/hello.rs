//! The opening of a connection: who speaks, and in which version.
//!
//! Each side sends the preface and its hello at once, without waiting for the other's. The service answers on the same port as HTTP,
//! so the preface begins with a NUL, which no HTTP method, no HTTP/2 preface and no TLS record does. Each side then judges the
//! other's version. The service sends its own hello even to a client that it will refuse, so that both can name both versions.
//!
//! What this does not do: it authenticates nobody. A pid and a release are for people, not for decisions.

use leasehold_core::TextError;
use leasehold_core::protocol::PROTOCOL_VERSION;
use prost::Message as _;

use crate::convert::{Checked, Wire, node_address, protocol_version, record};
use crate::error::{FieldError, OpeningError};
use crate::frame::{FrameReader, PREFIX_BYTES, append_frame, first_frame};
use crate::peer::PEER_PREFACE;
use crate::proto as pb;

/// The first bytes of a session stream, in both directions: a NUL, four letters, a line end that is changed by whatever treats the
/// stream as text, and the version of the framing itself. The version of what is said inside is in the hello.
pub const PREFACE: [u8; 8] = *b"\0LHSS\r\n\x01";
/// Longest hello. Whoever sends it is not known yet and gets no more memory than the texts need.
pub const MAX_HELLO_BYTES: usize = 1024;
/// In the place of the leader's address: whoever says this leads. A client that has reached it, through whatever proxy, is where it
/// wants to be.
pub const THIS_NODE: &str = ".";
/// Longest text in a hello: as long as a label.
pub const MAX_HELLO_TEXT_BYTES: usize = 256;

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Version of the protocol that the sender speaks.
    pub protocol: u32,
    /// Release of the program.
    pub program: String,
    /// The process.
    pub pid: u32,
    /// From the service, the name of this life of its state; from a client the one it knows, or nothing.
    pub incarnation: String,
    /// From the service: how often its state was restored.
    pub epoch: u32,
    /// From the service: where the node that leads is reached, as `host:port`; empty if it is not known.
    pub leader: String,
    /// From a node of a cluster that is not founded yet: the founders that it has not met, for people.
    pub missing: String,
}

impl Hello {
    /// The hello of this release, of a state that was never restored and a leader that is not known.
    pub fn new(program: &str, pid: u32, incarnation: &str) -> Self {
        Self {
            protocol: PROTOCOL_VERSION,
            program: program.into(),
            pid,
            incarnation: incarnation.into(),
            epoch: 0,
            leader: String::new(),
            missing: String::new(),
        }
    }

    /// The same, of a state that was restored so many times.
    #[must_use]
    pub fn with_epoch(self, epoch: u32) -> Self {
        Self { epoch, ..self }
    }

    /// The same, with the address of the leader; empty if it is not known.
    #[must_use]
    pub fn with_leader(self, leader: &str) -> Self {
        Self { leader: leader.into(), ..self }
    }

    /// The service's judgement of a client's hello.
    ///
    /// # Errors
    /// When the client speaks a later version than this release.
    pub const fn check_client(&self) -> Result<(), OpeningError> {
        let (client, service) = (self.protocol, PROTOCOL_VERSION);
        if client > service { Err(OpeningError::ClientTooNew { client, service }) } else { Ok(()) }
    }

    /// The client's judgement of the service's hello.
    ///
    /// # Errors
    /// When the service speaks an earlier version than this release. A later one is its business: it knows the earlier ones.
    pub const fn check_service(&self) -> Result<(), OpeningError> {
        let (client, service) = (PROTOCOL_VERSION, self.protocol);
        if service < client { Err(OpeningError::ServiceTooOld { client, service }) } else { Ok(()) }
    }

    fn decode(frame: &[u8]) -> Result<Self, OpeningError> {
        Self::from_message(pb::Hello::decode(frame).map_err(OpeningError::Unreadable)?)
    }

    /// What a message says.
    ///
    /// # Errors
    /// When a number is out of range, a text is too long or has control characters, or the leader's address cannot be one.
    pub fn from_message(hello: pb::Hello) -> Result<Self, OpeningError> {
        Ok(Self::from_wire(hello)?)
    }

    /// The message that says this.
    ///
    /// # Errors
    /// When a text is too long or has control characters, or the leader's address cannot be one.
    pub fn to_message(&self) -> Result<pb::Hello, OpeningError> {
        let message = self.to_wire();
        hello_text("hello.program", message.program.clone())?;
        hello_text("hello.incarnation", message.incarnation.clone())?;
        hello_text("hello.missing", message.missing.clone())?;
        leader_address("hello.leader", message.leader.clone())?;
        Ok(message)
    }
}

record! {
    Hello => Hello at "hello";
    protocol checked protocol_version, program checked hello_text, pid, incarnation checked hello_text, epoch,
    leader checked leader_address, missing checked hello_text,
}

/// Appends the preface and a hello to `out`, or leaves `out` as it was.
///
/// # Errors
/// When a text of the hello is too long or has control characters, or the leader's address cannot be one.
pub fn encode_opening(hello: &Hello, out: &mut Vec<u8>) -> Result<(), OpeningError> {
    let message = hello.to_message()?;
    out.extend_from_slice(&PREFACE);
    append_frame(out, MAX_HELLO_BYTES, |body| message.encode_raw(body))
        .expect("two texts of 256 bytes, an address and three numbers fit a hello");
    Ok(())
}

/// What the first bytes of a connection say, for a port that also serves HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstBytes {
    /// None have arrived, or too few to tell.
    Undecided,
    /// A session stream.
    SessionStream,
    /// A stream between nodes.
    PeerStream,
    /// Anything else.
    Other,
}

/// Looks at the first bytes of a connection without taking them. One byte is enough to rule out both of our streams for HTTP.
pub fn look_at_first_bytes(bytes: &[u8]) -> FirstBytes {
    let here = beginning(bytes);
    match here {
        _ if *here == PREFACE => FirstBytes::SessionStream,
        _ if *here == PEER_PREFACE => FirstBytes::PeerStream,
        _ if PREFACE.starts_with(here) || PEER_PREFACE.starts_with(here) => FirstBytes::Undecided,
        _ => FirstBytes::Other,
    }
}

/// What of a connection's first bytes can be its preface.
pub(crate) fn beginning(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(PREFACE.len())]
}

/// Puts the other side's opening together from bytes as they arrive, and hands over to a [`FrameReader`] for what comes behind it.
#[derive(Debug, Default)]
pub struct OpeningReader {
    bytes: FrameReader,
}

impl OpeningReader {
    /// A reader at the beginning of a connection.
    pub const fn new() -> Self {
        Self { bytes: FrameReader::new() }
    }

    /// Takes in bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.push(bytes);
    }

    /// The other side's hello, once it is all here. Versions are not judged: see [`Hello::check_client`] and
    /// [`Hello::check_service`].
    ///
    /// # Errors
    /// When this is no session stream, which is noticed at its first differing byte, or the hello cannot be.
    pub fn hello(&self) -> Result<Option<Hello>, OpeningError> {
        let Some(frame) = self.frame()? else { return Ok(None) };
        Hello::decode(frame).map(Some)
    }

    /// The connection has ended before the hello was here.
    pub fn finish(&self) -> OpeningError {
        OpeningError::CutOff { have: self.bytes.pending().len() }
    }

    /// The reader of what comes behind the hello, including what has arrived already.
    ///
    /// # Errors
    /// When the opening is not all here, or cannot be.
    pub fn into_frames(mut self) -> Result<FrameReader, OpeningError> {
        let Some(frame) = self.frame()? else { return Err(self.finish()) };
        let opening = PREFACE.len() + PREFIX_BYTES + frame.len();
        self.bytes.take(opening);
        Ok(self.bytes)
    }

    fn frame(&self) -> Result<Option<&[u8]>, OpeningError> {
        let here = self.bytes.pending();
        match look_at_first_bytes(here) {
            FirstBytes::Undecided => return Ok(None),
            FirstBytes::SessionStream => {}
            FirstBytes::PeerStream | FirstBytes::Other => {
                let found = beginning(here).escape_ascii().to_string();
                return Err(OpeningError::OtherProtocol { found });
            }
        }
        Ok(first_frame(&here[PREFACE.len()..], MAX_HELLO_BYTES)?)
    }
}

fn leader_address(at: &'static str, text: String) -> Checked<String> {
    if text.is_empty() || text == THIS_NODE { Ok(text) } else { node_address(at, text) }
}

pub(crate) fn hello_text(at: &'static str, text: String) -> Checked<String> {
    let (what, limit) = ("text", MAX_HELLO_TEXT_BYTES);
    let why = if text.len() > limit {
        TextError::TooLong { what, bytes: text.len(), limit }
    } else if let Some((position, character)) = text.char_indices().find(|(_, c)| c.is_control()) {
        TextError::BadCharacter { what, character, position, hash_too: false }
    } else {
        return Ok(text);
    };
    Err(FieldError::text(at, &text, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello::new("leasehold 0.1.0", 4711, "b2f1").with_epoch(3).with_leader("10.0.0.1:7420")
    }

    fn opening(hello: &Hello) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_opening(hello, &mut bytes).unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Option<Hello>, OpeningError> {
        let mut reader = OpeningReader::new();
        reader.push(bytes);
        reader.hello()
    }

    #[test]
    fn an_opening_comes_out_as_it_went_in_and_frames_behind_it_are_kept() {
        let mut bytes = opening(&hello());
        let whole = bytes.len();
        bytes.extend_from_slice(&[0, 0, 0, 2, 8, 9]);
        let mut reader = OpeningReader::new();
        for (at, byte) in bytes.iter().enumerate() {
            let expected = if at < whole { None } else { Some(hello()) };
            assert_eq!(reader.hello(), Ok(expected), "after {at} bytes");
            reader.push(&[*byte]);
        }
        let mut frames = reader.into_frames().unwrap();
        assert_eq!(frames.next_frame().unwrap().unwrap(), [8, 9]);
        frames.finish().unwrap();
    }

    #[test]
    fn other_protocols_are_told_apart_by_their_first_byte() {
        let others: [&[u8]; 9] = [
            b"PRI * HTTP/2.0\r\n",
            b"GET / HTTP/1.1\r\n",
            b"P",
            b"HTTP/1.1 400",
            b"\x16\x03\x01",
            b"\0\0\x12\x04",
            b"\0LHSS\r\n\x02",
            b"\0LHPR\r\n\x02",
            b"\0LHPS",
        ];
        for other in others {
            assert_eq!(look_at_first_bytes(other), FirstBytes::Other);
        }
        let error = read(b"GET / HTTP/1.1\r\n").unwrap_err();
        assert_eq!(error.to_string(), "not a session stream: it begins with GET / HT");
        for have in 0..PREFACE.len() {
            assert_eq!(look_at_first_bytes(&PREFACE[..have]), FirstBytes::Undecided);
            assert_eq!(look_at_first_bytes(&PEER_PREFACE[..have]), FirstBytes::Undecided);
        }
        assert_eq!(look_at_first_bytes(&opening(&hello())), FirstBytes::SessionStream);
        assert_eq!(look_at_first_bytes(&[&PEER_PREFACE[..], b"more"].concat()), FirstBytes::PeerStream);
        let error = read(&PEER_PREFACE).unwrap_err();
        assert_eq!(error.to_string(), "not a session stream: it begins with \\x00LHPR\\r\\n\\x01");
    }

    #[test]
    fn a_service_refuses_a_later_client_and_both_versions_are_named() {
        for (client, taken) in [(PROTOCOL_VERSION, true), (PROTOCOL_VERSION + 1, false)] {
            let heard = read(&opening(&Hello { protocol: client, ..hello() })).unwrap().unwrap();
            let verdict = heard.check_client();
            assert_eq!(verdict.is_ok(), taken);
            if let Err(error) = verdict {
                let expected = OpeningError::ClientTooNew { client, service: PROTOCOL_VERSION };
                assert_eq!(error, expected);
            }
        }
    }

    #[test]
    fn a_client_refuses_an_earlier_service_and_takes_a_later_one() {
        let earlier = Hello { protocol: PROTOCOL_VERSION - 1, ..hello() };
        let expected =
            OpeningError::ServiceTooOld { client: PROTOCOL_VERSION, service: PROTOCOL_VERSION - 1 };
        assert_eq!(earlier.check_service(), Err(expected));
        assert_eq!(Hello { protocol: PROTOCOL_VERSION + 1, ..hello() }.check_service(), Ok(()));
    }

    #[test]
    fn a_hello_without_a_version_is_refused() {
        let error = read(&opening(&Hello { protocol: 0, ..hello() })).unwrap_err();
        assert_eq!(error, FieldError::Absent { field: "hello.protocol" }.into());
    }

    #[test]
    fn texts_of_a_hello_are_taken_up_to_their_limit() {
        for (length, taken) in [(255, true), (256, true), (257, false)] {
            let long = Hello { program: "p".repeat(length), incarnation: "i".repeat(length), ..hello() };
            assert_eq!(encode_opening(&long, &mut Vec::new()).is_ok(), taken, "{length} bytes");
        }
        assert!(encode_opening(&Hello { program: "a\nb".into(), ..hello() }, &mut Vec::new()).is_err());
    }

    #[test]
    fn the_leader_is_an_address_or_nothing() {
        for (leader, taken) in [
            ("", true),
            ("a:1", true),
            (&format!("{}:7420", "h".repeat(255)), true),
            ("a", false),
            ("a:0", false),
        ] {
            assert_eq!(
                encode_opening(&hello().with_leader(leader), &mut Vec::new()).is_ok(),
                taken,
                "{leader:?}"
            );
        }
        let message = pb::Hello { protocol: 1, leader: "nowhere".into(), ..pb::Hello::default() };
        let error = Hello::from_message(message).unwrap_err();
        let why = "hello: hello.leader is not taken: node address \"nowhere\" is not host:port of at most 260 bytes";
        assert_eq!(error.to_string(), why);
    }

    #[test]
    fn a_hello_of_a_release_without_epoch_and_leader_is_taken_and_so_is_one_with_more() {
        let older = pb::Hello { protocol: 1, ..pb::Hello::default() };
        let heard = Hello::from_message(older).unwrap();
        assert_eq!((heard.epoch, heard.leader.as_str()), (0, ""));
        let mut newer = hello().to_message().unwrap().encode_to_vec();
        newer.extend_from_slice(&[0x7a, 1, b'x']); // field 15: "x"
        assert_eq!(Hello::decode(&newer), Ok(hello()));
    }

    #[test]
    fn a_hello_is_refused_by_its_announced_length() {
        for (length, taken) in
            [(MAX_HELLO_BYTES - 1, true), (MAX_HELLO_BYTES, true), (MAX_HELLO_BYTES + 1, false)]
        {
            let mut bytes = PREFACE.to_vec();
            bytes.extend_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
            assert_eq!(read(&bytes).is_ok(), taken, "{length} bytes");
        }
    }

    #[test]
    fn an_opening_that_ends_early_says_so() {
        let mut reader = OpeningReader::new();
        reader.push(&opening(&hello())[..10]);
        assert_eq!(reader.into_frames().unwrap_err(), OpeningError::CutOff { have: 10 });
    }
}
