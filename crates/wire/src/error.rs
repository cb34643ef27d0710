//! What can be wrong with bytes from the other side. Nothing here is a panic, and nothing is replaced by a default.

use leasehold_core::TextError;
use leasehold_core::protocol::MemberError;
use prost::DecodeError;

/// How much of a refused text an error repeats: enough to recognise it, too little to fill a log.
const SHOWN_CHARS: usize = 48;

/// A field that cannot be what it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Nothing where something is needed, or a variant that this release does not know.
    #[error("{field} is absent, or of a kind that this release does not know")]
    Absent {
        /// Which field.
        field: &'static str,
    },
    /// The zero of an enum.
    #[error("{field} is unspecified")]
    Unspecified {
        /// Which field.
        field: &'static str,
    },
    /// A value of an enum that this release does not know.
    #[error("{field} has the value {value}, which this release does not know")]
    UnknownValue {
        /// Which field.
        field: &'static str,
        /// The value.
        value: i32,
    },
    /// A text that its type does not take.
    #[error("{field} {shown:?} is not taken: {why}")]
    Text {
        /// Which field.
        field: &'static str,
        /// Its beginning.
        shown: String,
        /// What is wrong with it.
        why: TextError,
    },
    /// A value that its type does not take. Its bytes are not shown: there are too many of them.
    #[error("{field} is not taken: {why}")]
    Value {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        why: TextError,
    },
    /// A name, address or id that no node can have.
    #[error("{field} is not taken: {why}")]
    Member {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        why: MemberError,
    },
    /// A number above what its type holds.
    #[error("{field} of {value} is above the maximum of {limit}")]
    TooGreat {
        /// Which field.
        field: &'static str,
        /// The number.
        value: u64,
        /// The greatest that is taken.
        limit: u64,
    },
    /// Bytes that must be exactly so many. They are not shown: a nonce is a secret.
    #[error("{field} has {bytes} bytes and must have {expected}")]
    WrongLength {
        /// Which field.
        field: &'static str,
        /// How many there are.
        bytes: usize,
        /// How many there must be.
        expected: usize,
    },
}

impl FieldError {
    /// A text that was not taken, cut to what an error may show.
    pub(crate) fn text(field: &'static str, text: &str, why: TextError) -> Self {
        Self::Text { field, shown: beginning(text), why }
    }

    /// A name or address that was not taken, cut to what an error may show.
    pub(crate) fn member(field: &'static str, why: MemberError) -> Self {
        let why = match why {
            MemberError::Name { name } => MemberError::Name { name: beginning(&name) },
            MemberError::Address { address } => MemberError::Address { address: beginning(&address) },
            MemberError::NoId => MemberError::NoId,
        };
        Self::Member { field, why }
    }
}

fn beginning(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

/// A frame that cannot be sent or taken. The connection it came from has nothing more to say that could be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than a frame may be.
    #[error("frame of {bytes} bytes is above the maximum of {limit} bytes")]
    TooLong {
        /// Its length without the prefix.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Changed on its way.
    #[error("frame of {bytes} bytes carries the checksum {announced:08x}, and its bytes have {computed:08x}")]
    WrongChecksum {
        /// Its length without the prefix.
        bytes: usize,
        /// What it carries.
        announced: u32,
        /// What its bytes have.
        computed: u32,
    },
    /// The stream ended inside a frame.
    #[error("stream ended inside a frame: {have} bytes are here and {need} are needed")]
    HalfFrame {
        /// Bytes of the frame that arrived, with the prefix.
        have: usize,
        /// Bytes that it takes, with the prefix; only the prefix itself as long as that is not complete.
        need: usize,
    },
    /// Something between the messages of a frame.
    #[error("message {position} of the frame does not begin as a message")]
    NotAMessage {
        /// Counted from 0.
        position: usize,
    },
    /// A message longer than what is left of its frame.
    #[error("message {position} of the frame runs over its end")]
    MessageCutOff {
        /// Counted from 0.
        position: usize,
    },
    /// A message that is not one, and of which not even the request id can be read.
    #[error("message {position} of the frame cannot be read: {why}")]
    Unreadable {
        /// Counted from 0.
        position: usize,
        /// The decoder's word for it.
        why: DecodeError,
    },
    /// A message from the service with a field that cannot be.
    #[error("message {position} of the frame cannot be: {why}")]
    BadField {
        /// Counted from 0.
        position: usize,
        /// Which field, and why.
        why: FieldError,
    },
}

/// An opening that does not lead to a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// Not our stream at all.
    #[error("not a session stream: it begins with {found}")]
    OtherProtocol {
        /// The first bytes, at most as many as the preface has, with unprintable ones escaped.
        found: String,
    },
    /// Not a node of ours at all.
    #[error("not a stream between nodes: it begins with {found}")]
    NoPeer {
        /// The first bytes, at most as many as the preface has, with unprintable ones escaped.
        found: String,
    },
    /// The connection ended before the hello was complete.
    #[error("connection ended after {have} bytes, inside its opening")]
    CutOff {
        /// Bytes that arrived.
        have: usize,
    },
    /// The frame that holds the hello.
    #[error("hello: {0}")]
    Frame(#[from] FrameError),
    /// Not a hello.
    #[error("hello cannot be read: {0}")]
    Unreadable(DecodeError),
    /// A field of the hello.
    #[error("hello: {0}")]
    Field(#[from] FieldError),
    /// The client is ahead of the service.
    #[error(
        "client speaks protocol version {client}, this service only up to {service}: upgrade the service"
    )]
    ClientTooNew {
        /// The client's version.
        client: u32,
        /// The service's version.
        service: u32,
    },
    /// The service is behind the client.
    #[error("service speaks protocol version {service}, this client needs {client}: upgrade the service")]
    ServiceTooOld {
        /// The client's version.
        client: u32,
        /// The service's version.
        service: u32,
    },
}
