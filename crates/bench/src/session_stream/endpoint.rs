//! Sockets of both kinds behind one name, for the blocking and the tokio contenders alike.
//!
//! Nagle's algorithm is off everywhere: a small frame must not wait for the acknowledgement of the last one.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};

use super::plan::Transport;

/// A listening socket.
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens in `dir` or on a free port of loopback; also returns the address for [`connect`].
    pub(crate) fn bind(transport: Transport, dir: &Path) -> anyhow::Result<(Listener, String)> {
        match transport {
            Transport::Unix => {
                let path = dir.join("s");
                let listener = UnixListener::bind(&path)?;
                Ok((Listener::Unix(listener), path.display().to_string()))
            }
            Transport::Tcp => {
                let listener = TcpListener::bind(("127.0.0.1", 0))?;
                let address = listener.local_addr()?.to_string();
                Ok((Listener::Tcp(listener), address))
            }
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Unix(l) => Ok(Stream::Unix(l.accept()?.0)),
            Listener::Tcp(l) => {
                let (stream, _) = l.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

/// A connected socket.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Connects to the address that [`Listener::bind`] gave.
pub(crate) fn connect(transport: Transport, address: &str) -> io::Result<Stream> {
    match transport {
        Transport::Unix => Ok(Stream::Unix(UnixStream::connect(address)?)),
        Transport::Tcp => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        }
    }
}

/// Either half of a socket on tokio.
pub(crate) type ReadHalf = Box<dyn AsyncRead + Unpin + Send>;
/// Either half of a socket on tokio.
pub(crate) type WriteHalf = Box<dyn AsyncWrite + Unpin + Send>;

impl Stream {
    pub(crate) fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Unix(s) => s.try_clone().map(Stream::Unix),
            Stream::Tcp(s) => s.try_clone().map(Stream::Tcp),
        }
    }

    /// Hands the socket to tokio, in two halves.
    pub(crate) fn into_tokio(self) -> io::Result<(ReadHalf, WriteHalf)> {
        match self {
            Stream::Unix(s) => {
                s.set_nonblocking(true)?;
                let (r, w) = tokio::net::UnixStream::from_std(s)?.into_split();
                Ok((Box::new(r), Box::new(w)))
            }
            Stream::Tcp(s) => {
                s.set_nonblocking(true)?;
                let (r, w) = tokio::net::TcpStream::from_std(s)?.into_split();
                Ok((Box::new(r), Box::new(w)))
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(s) => s.read(buf),
            Stream::Tcp(s) => s.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(s) => s.write(buf),
            Stream::Tcp(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
