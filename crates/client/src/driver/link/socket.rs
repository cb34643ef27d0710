//! The socket of a connection, which nobody waits for: whoever wants to wait registers it in a runtime of their own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(feature = "embedded")]
use std::os::unix::net::UnixStream;

use tokio::io::Interest;

/// A socket that never blocks.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(feature = "embedded")]
    Unix(UnixStream),
}

impl Socket {
    /// What has arrived, as far as there is room; zero is the end.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Self::Tcp(stream) => (&*stream).read(buffer),
            #[cfg(feature = "embedded")]
            Self::Unix(stream) => (&*stream).read(buffer),
        })
    }

    /// Says how many of these bytes the system took.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = uninterrupted(|| match self {
            Self::Tcp(stream) => (&*stream).write(bytes),
            #[cfg(feature = "embedded")]
            Self::Unix(stream) => (&*stream).write(bytes),
        })?;
        if written == 0 && !bytes.is_empty() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) }
    }

    /// Ends the connection, whoever else has it.
    pub(super) fn shut_down(&self) {
        // One that has ended already is as good.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            #[cfg(feature = "embedded")]
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// A call that a signal interrupted did nothing.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A socket that is registered in the runtime in which this was made. It is another name of the same socket: each runtime has its own.
#[derive(Debug)]
pub(super) enum Registered {
    Tcp(tokio::net::TcpStream),
    #[cfg(feature = "embedded")]
    Unix(tokio::net::UnixStream),
}

impl Registered {
    /// Registers it. Of what is already there it tells at once.
    pub(super) fn new(socket: &Socket) -> io::Result<Self> {
        Ok(match socket {
            Socket::Tcp(stream) => Self::Tcp(tokio::net::TcpStream::from_std(stream.try_clone()?)?),
            #[cfg(feature = "embedded")]
            Socket::Unix(stream) => Self::Unix(tokio::net::UnixStream::from_std(stream.try_clone()?)?),
        })
    }

    /// Waits until something may be there.
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            #[cfg(feature = "embedded")]
            Self::Unix(stream) => stream.readable().await,
        }
    }

    /// Waits until it may take something.
    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.writable().await,
            #[cfg(feature = "embedded")]
            Self::Unix(stream) => stream.writable().await,
        }
    }

    /// Reads, as long as something may be there. Whoever has read all of it says so: the next that comes is waited for then.
    pub(super) fn read(&self, read: impl FnOnce() -> AllRead) {
        let read = || if read().0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) };
        // Only the error that was just made can come of it.
        let _: io::Result<()> = match self {
            Self::Tcp(stream) => stream.try_io(Interest::READABLE, read),
            #[cfg(feature = "embedded")]
            Self::Unix(stream) => stream.try_io(Interest::READABLE, read),
        };
    }
}

/// Whether nothing was left.
pub(super) struct AllRead(pub(super) bool);
