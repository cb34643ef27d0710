//! Connections that do not wait forever, for the few words that are exchanged with a server.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

/// A server that takes longer to answer is asked again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connects to a port of 127.0.0.1.
pub(crate) fn connect(port: u16) -> Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, PATIENCE)
        .with_context(|| format!("nobody listens on {address}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Reads as many bytes as are wanted.
pub(crate) fn take(stream: &mut TcpStream, count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).with_context(|| format!("no {count} bytes came"))?;
    Ok(bytes)
}

/// The body of the answer to a request over HTTP, if it was granted.
pub(crate) fn http(port: u16, head: &str, body: &str) -> Result<String> {
    let mut stream = connect(port)?;
    let length = body.len();
    let request = format!(
        "{head}\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).context("the answer does not end")?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
    let status = head.split(' ').nth(1);
    anyhow::ensure!(
        status == Some("200"),
        "the answer is {}: {body}",
        head.lines().next().unwrap_or_default()
    );
    Ok(body.to_owned())
}

/// Nothing that is asked for here is longer.
#[cfg(feature = "jvm")]
const LONGEST: usize = 1 << 20;

/// Reads the length of what follows: four bytes, the greatest first.
#[cfg(feature = "jvm")]
pub(crate) fn length(stream: &mut TcpStream) -> Result<usize> {
    let bytes = take(stream, 4)?;
    let length = bytes.iter().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
    anyhow::ensure!(length <= LONGEST, "an answer of {length} bytes is longer than {LONGEST}");
    Ok(length)
}
