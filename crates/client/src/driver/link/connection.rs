//! A connection, whatever carries it: its opening, in which both sides say who they are, and what comes in on it.

use std::io;

use leasehold_core::protocol::{Request, RequestId, ToClient};
use leasehold_wire::{
    FrameReader, Hello, OpeningError, OpeningReader, decode_server_frame, encode_client, encode_opening,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::tcp;
#[cfg(feature = "embedded")]
use tokio::net::unix;

use crate::error::Unreachable;

const READ_BYTES: usize = 64 * 1024;

/// A connection whose opening is done.
pub(crate) struct Connection {
    /// Who is there.
    pub(super) hello: Hello,
    /// Where that is, if it is on a network.
    pub(super) met: Option<Met>,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
}

/// Where the other side of a connection was met.
pub(super) struct Met {
    /// Its name and address, for people.
    pub(super) place: String,
    /// Whether that is this machine.
    pub(super) near: bool,
}

/// What comes in on a connection.
pub(crate) struct Incoming {
    read: Box<dyn AsyncRead + Send + Unpin>,
    frames: FrameReader,
    buffer: Vec<u8>,
}

/// What goes out on a connection. Whoever has it may write, from any thread.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Tcp(tcp::OwnedWriteHalf),
    #[cfg(feature = "embedded")]
    Unix(unix::OwnedWriteHalf),
}

impl From<tcp::OwnedWriteHalf> for Outgoing {
    fn from(half: tcp::OwnedWriteHalf) -> Self {
        Self::Tcp(half)
    }
}

#[cfg(feature = "embedded")]
impl From<unix::OwnedWriteHalf> for Outgoing {
    fn from(half: unix::OwnedWriteHalf) -> Self {
        Self::Unix(half)
    }
}

impl Connection {
    /// Says hello, with the life of the state that is known, and waits for the other side's. Which life that one names makes no
    /// difference here.
    pub(super) async fn open<R>(mut read: R, write: impl Into<Outgoing>, known: &str) -> io::Result<Self>
    where
        R: AsyncRead + Send + Unpin + 'static,
    {
        let outgoing = write.into();
        let mut bytes = Vec::new();
        let program = concat!("leasehold ", env!("CARGO_PKG_VERSION"));
        let own = Hello::new(program, std::process::id(), known);
        encode_opening(&own, &mut bytes).map_err(io::Error::other)?;
        outgoing.send(&bytes).await?;
        let mut opening = OpeningReader::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if let Some(hello) = opening.hello().map_err(io::Error::other)? {
                hello.check_service().map_err(io::Error::other)?;
                let frames = opening.into_frames().map_err(io::Error::other)?;
                let incoming = Incoming { read: Box::new(read), frames, buffer };
                return Ok(Self { hello, met: None, incoming, outgoing });
            }
            match read.read(&mut buffer).await? {
                0 => {
                    let why = "the other side closed the connection before it said hello";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
                count => opening.push(&buffer[..count]),
            }
        }
    }
}

impl Connection {
    /// Where a node was met that knows of no leader: it says hello, and can do no more before there is one.
    pub(super) fn leaderless(&self) -> Option<String> {
        let met = self.met.as_ref().filter(|_| self.hello.leader.is_empty())?;
        Some(met.place.clone())
    }
}

/// Whether the other side was understood to be somebody else, or of another version.
pub(super) fn is_opening_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<OpeningError>)
}

impl Incoming {
    /// The messages of the next frame. Nothing is lost when this is given up before it is done.
    ///
    /// # Errors
    /// When the connection has ended, with the reason if it is the other side's doing.
    pub(crate) async fn next(&mut self) -> Result<Vec<ToClient>, Option<Unreachable>> {
        let protocol = |error: &dyn std::fmt::Display| Some(Unreachable::Protocol(error.to_string()));
        loop {
            if let Some(frame) = self.frames.next_frame().map_err(|error| protocol(&error))? {
                return decode_server_frame(frame).map_err(|error| protocol(&error));
            }
            match self.read.read(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err(None),
                Ok(count) => self.frames.push(&self.buffer[..count]),
            }
        }
    }
}

impl Outgoing {
    /// Sends bytes that [`encode`] made.
    pub(crate) async fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_send(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends as many of them as the system takes at once, and says how many that are.
    pub(super) fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Self::Tcp(half) => half.try_write(bytes),
            #[cfg(feature = "embedded")]
            Self::Unix(half) => half.try_write(bytes),
        };
        match written {
            Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
            written => written,
        }
    }

    async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(half) => half.writable().await,
            #[cfg(feature = "embedded")]
            Self::Unix(half) => half.writable().await,
        }
    }
}

/// One frame if it fits, else one for each request, which always fits: names and values are bounded.
pub(crate) fn encode(requests: &[(RequestId, Request)], bytes: &mut Vec<u8>) {
    if encode_client(requests, bytes).is_err() {
        for request in requests {
            let _ = encode_client(std::slice::from_ref(request), bytes);
        }
    }
}
