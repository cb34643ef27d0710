//! A connection, whatever carries it: its opening, in which both sides say who they are, and what comes in on it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::protocol::{Request, RequestId, ToClient};
use leasehold_wire::{
    FrameReader, Hello, OpeningError, OpeningReader, decode_server_frame, encode_client, encode_opening,
};

use super::socket::{AllRead, Registered, Socket};
use crate::error::Unreachable;

const READ_BYTES: usize = 64 * 1024;
/// Between two tries to write, where nothing can be registered.
const WITHOUT_DESCRIPTOR: Duration = Duration::from_millis(10);

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

/// What comes in on a connection, for whoever waits for it in this runtime.
pub(crate) struct Incoming {
    socket: Arc<Socket>,
    registered: Registered,
    reader: Reader,
}

/// What has come in on a connection and was not handed out yet.
#[derive(Debug)]
pub(super) struct Reader {
    frames: FrameReader,
    buffer: Vec<u8>,
}

/// What goes out on a connection. Whoever has it may write, from any thread.
#[derive(Debug)]
pub(crate) struct Outgoing {
    socket: Arc<Socket>,
}

impl Connection {
    /// Says hello, with the life of the state that is known, and waits for the other side's. Which life that one names makes no
    /// difference here.
    pub(super) async fn open(socket: Socket, known: &str) -> io::Result<Self> {
        let socket = Arc::new(socket);
        let outgoing = Outgoing { socket: Arc::clone(&socket) };
        let mut bytes = Vec::new();
        let program = concat!("leasehold ", env!("CARGO_PKG_VERSION"));
        let own = Hello::new(program, std::process::id(), known);
        encode_opening(&own, &mut bytes).map_err(io::Error::other)?;
        outgoing.send(&bytes).await?;
        let registered = Registered::new(&socket)?;
        let mut opening = OpeningReader::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if let Some(hello) = opening.hello().map_err(io::Error::other)? {
                hello.check_service().map_err(io::Error::other)?;
                let frames = opening.into_frames().map_err(io::Error::other)?;
                let incoming = Incoming { socket, registered, reader: Reader { frames, buffer } };
                return Ok(Self { hello, met: None, incoming, outgoing });
            }
            match read(&socket, &registered, &mut buffer).await? {
                0 => {
                    let why = "the other side closed the connection before it said hello";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
                count => opening.push(&buffer[..count]),
            }
        }
    }
}

/// Reads once, when something is there.
async fn read(socket: &Socket, registered: &Registered, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        registered.readable().await?;
        let mut read = Err(io::ErrorKind::WouldBlock.into());
        registered.read(|| {
            read = socket.read(buffer);
            // Less than there is room for is all. What comes later is told later.
            AllRead(read.as_ref().map_or(true, |count| *count < buffer.len()))
        });
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

/// A node that knows of no leader.
#[derive(Debug, Clone)]
pub(crate) struct Leaderless {
    pub(crate) place: String,
    /// The founders that it has not met.
    pub(crate) missing: Option<String>,
}

impl Connection {
    /// Where a node was met that knows of no leader: it says hello, and can do no more before there is one.
    pub(super) fn leaderless(&self) -> Option<Leaderless> {
        let met = self.met.as_ref().filter(|_| self.hello.leader.is_empty())?;
        let missing = Some(self.hello.missing.clone()).filter(|missing| !missing.is_empty());
        Some(Leaderless { place: met.place.clone(), missing })
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
        loop {
            if let Some(messages) = self.reader.frame()? {
                return Ok(messages);
            }
            match read(&self.socket, &self.registered, &mut self.reader.buffer).await {
                Ok(0) | Err(_) => return Err(None),
                Ok(count) => self.reader.frames.push(&self.reader.buffer[..count]),
            }
        }
    }

    /// What is to be read, and what was read and not handed out. It is registered in no runtime from then on.
    pub(super) fn into_parts(self) -> (Arc<Socket>, Reader) {
        (self.socket, self.reader)
    }
}

impl Reader {
    /// The messages of the next frame that is here.
    ///
    /// # Errors
    /// When it cannot be understood.
    pub(super) fn frame(&mut self) -> Result<Option<Vec<ToClient>>, Unreachable> {
        let protocol = |error: &dyn std::fmt::Display| Unreachable::Protocol(error.to_string());
        let frame = self.frames.next_frame().map_err(|error| protocol(&error))?;
        frame.map(decode_server_frame).transpose().map_err(|error| protocol(&error))
    }

    /// Reads once; says how many bytes came, and whether there may be more.
    pub(super) fn fill(&mut self, socket: &Socket) -> io::Result<(usize, bool)> {
        let count = socket.read(&mut self.buffer)?;
        self.frames.push(&self.buffer[..count]);
        Ok((count, count == self.buffer.len()))
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
        self.socket.write(bytes)
    }

    /// Waits until it takes bytes again. That is seldom, so the socket is registered for it only then; without a descriptor for that it is
    /// tried again.
    async fn writable(&self) -> io::Result<()> {
        match Registered::new(&self.socket) {
            Ok(registered) => registered.writable().await,
            Err(_) => {
                tokio::time::sleep(WITHOUT_DESCRIPTOR).await;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
impl From<Socket> for Outgoing {
    fn from(socket: Socket) -> Self {
        Self { socket: Arc::new(socket) }
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
