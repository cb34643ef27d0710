//! How a stream between members begins: a hello one way, a welcome the other.

use std::io;
use std::time::Duration;

use leasehold_core::protocol::MemberId;
use leasehold_wire::{
    PeerFrameReader, PeerHello, PeerOpeningReader, PeerPurpose, PeerVerdict, PeerWelcome, encode_peer_hello,
};
use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Shared;

/// A member that does not answer within this time is tried again.
pub(super) const OPENING_TIME: Duration = Duration::from_secs(1);
/// Data that is not acknowledged for so long breaks its connection: after a cut a new one is up at once, and an old one may wait for
/// many seconds until it tries again.
const UNACKNOWLEDGED: Duration = Duration::from_millis(1_500);
const READ_BYTES: usize = 64 * 1024;

/// Dials a member and introduces this node.
pub(super) async fn dial(
    shared: &Shared,
    address: &str,
    purpose: PeerPurpose,
    to: Option<MemberId>,
) -> io::Result<(TcpStream, PeerFrameReader, PeerWelcome)> {
    let opening = async {
        let mut stream = TcpStream::connect(address).await?;
        set_options(&stream)?;
        let mut bytes = Vec::new();
        encode_peer_hello(&shared.hello(purpose, to), &mut bytes).map_err(io::Error::other)?;
        stream.write_all(&bytes).await?;
        let mut reader = PeerOpeningReader::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if let Some(welcome) = reader.welcome().map_err(io::Error::other)? {
                let frames = reader.into_frames().map_err(io::Error::other)?;
                return Ok((stream, frames, welcome));
            }
            match stream.read(&mut buffer).await? {
                0 => return Err(io::Error::other(reader.finish())),
                count => reader.push(&buffer[..count]),
            }
        }
    };
    tokio::time::timeout(OPENING_TIME, opening).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Reads the hello of a member that has dialled this one.
pub(super) async fn hear(stream: &mut TcpStream) -> io::Result<(PeerHello, PeerFrameReader)> {
    set_options(stream)?;
    let opening = async {
        let mut reader = PeerOpeningReader::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if let Some(hello) = reader.hello().map_err(io::Error::other)? {
                let frames = reader.into_frames().map_err(io::Error::other)?;
                return Ok((hello, frames));
            }
            match stream.read(&mut buffer).await? {
                0 => return Err(io::Error::other(reader.finish())),
                count => reader.push(&buffer[..count]),
            }
        }
    };
    tokio::time::timeout(OPENING_TIME, opening).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Who listens at an address.
pub(super) async fn ask(shared: &Shared, address: &str) -> Result<PeerWelcome, String> {
    match dial(shared, address, PeerPurpose::Ask, None).await {
        Ok((_, _, welcome)) => match welcome.verdict {
            PeerVerdict::Accepted => Ok(welcome),
            PeerVerdict::Refused(refusal) => Err(refusal.to_string()),
        },
        Err(error) => Err(format!("nobody answers at {address} as a node: {error}")),
    }
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let millis = u32::try_from(UNACKNOWLEDGED.as_millis()).expect("it is short");
    sockopt::set_tcp_user_timeout(stream, millis)?;
    // A peer that vanished without a word while nothing was on its way.
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(stream, 2)?;
    Ok(())
}
