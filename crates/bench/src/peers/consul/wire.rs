//! As much of HTTP/1.1 as the API of Consul needs: requests on a connection that stays open, one after the other.

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// What is read at once at most; answers are far smaller.
const CHUNK: usize = 8 * 1024;
/// No answer that is asked for here is longer.
const LONGEST: usize = 1 << 20;

/// A connection. It does one thing at a time, and whoever shares it waits.
#[derive(Debug)]
pub struct Connection {
    address: String,
    stream: Mutex<Stream>,
}

#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    /// What was read and not taken yet.
    read: BytesMut,
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// As HTTP counts.
    pub status: u16,
    /// What a blocking query goes on from; zero where there is none.
    pub index: u64,
    /// Mostly JSON.
    pub body: Vec<u8>,
}

impl Connection {
    /// Connects to `HOST:PORT`.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn open(address: &str) -> Result<Self> {
        let socket = TcpStream::connect(address).await;
        let socket = socket.with_context(|| format!("nobody listens on {address}"))?;
        socket.set_nodelay(true)?;
        let stream = Mutex::new(Stream { socket, read: BytesMut::new() });
        Ok(Self { address: address.to_owned(), stream })
    }

    /// Asks something, and waits for the answer. A future of this that is dropped half way leaves the connection useless.
    ///
    /// # Errors
    /// When the connection ends first, or says something else than HTTP.
    pub async fn request(&self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let (address, length) = (&self.address, body.len());
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}");
        let mut stream = self.stream.lock().await;
        let Stream { socket, read } = &mut *stream;
        socket.write_all(request.as_bytes()).await?;
        loop {
            if let Some(answer) = take_answer(read)? {
                return Ok(answer);
            }
            ensure!(read.len() < LONGEST, "an answer of more than {LONGEST} bytes");
            read.reserve(CHUNK);
            ensure!(socket.read_buf(read).await? > 0, "the server closed the connection");
        }
    }
}

/// The next whole answer, if there is one.
fn take_answer(read: &mut BytesMut) -> Result<Option<Answer>> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(end) = read.windows(END.len()).position(|some| some == END) else { return Ok(None) };
    let head = std::str::from_utf8(&read[..end]).context("an answer whose head is no text")?;
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status = status.with_context(|| format!("an answer that begins with {first:?}"))?;
    let (mut length, mut index) = (None, 0);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse::<usize>()?);
        } else if name.eq_ignore_ascii_case("x-consul-index") {
            index = value.trim().parse()?;
        }
    }
    // It sends longer ones in pieces, and none of those is asked for.
    let Some(length) = length else { bail!("an answer that does not say how long it is: {head}") };
    let begin = end + END.len();
    if read.len() < begin + length {
        return Ok(None);
    }
    read.advance(begin);
    let body = read.split_to(length).to_vec();
    Ok(Some(Answer { status, index, body }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_one_by_one_and_only_when_whole() {
        let mut read = BytesMut::from(
            &b"HTTP/1.1 200 OK\r\nX-Consul-Index: 17\r\ncontent-length: 4\r\n\r\ntrueHTTP/1.1 404 Not Found\r\nContent-Le"[..],
        );
        let first = Answer { status: 200, index: 17, body: b"true".to_vec() };
        assert_eq!(take_answer(&mut read).unwrap(), Some(first));
        assert_eq!(take_answer(&mut read).unwrap(), None);
        read.extend_from_slice(b"ngth: 2\r\n\r\n[");
        assert_eq!(take_answer(&mut read).unwrap(), None);
        read.extend_from_slice(b"]");
        let second = Answer { status: 404, index: 0, body: b"[]".to_vec() };
        assert_eq!(take_answer(&mut read).unwrap(), Some(second));
        assert!(read.is_empty());
    }

    #[test]
    fn what_is_no_answer_is_told() {
        let taken = |text: &str| take_answer(&mut BytesMut::from(text)).unwrap_err().to_string();
        assert!(taken("SSH-2.0-x\r\n\r\n").contains("SSH-2.0-x"));
        assert!(taken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").contains("chunked"));
    }
}
