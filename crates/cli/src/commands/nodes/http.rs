//! One request over HTTP/1.1, whose answer is taken whole or not at all.
//!
//! A client for what the session stream does not carry. It follows nothing, keeps no connection, and takes only an answer that says how
//! long it is and is as long as it says.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A node that takes no connection within this time is left for the next.
const CONNECT_TIME: Duration = Duration::from_millis(500);
/// More than the head of any answer of ours.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Longest answer to a call: a page about nine nodes is far shorter. A document may be as long as it likes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request<'a> {
    /// The document at a path.
    Get(&'a str),
    /// A call with these fields.
    Post(&'a str, &'a Value),
}

/// What came of one attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The status and the body.
    Answer(u16, Vec<u8>),
    /// It was never sent.
    NotSent(String),
    /// It may have been taken in, and no answer came.
    Lost(String),
    /// It may have been taken in, and what came is no whole answer.
    Broken(String),
}

/// Asks once. `patience` is for each step: a long answer may take longer, as long as it goes on.
pub(super) async fn exchange(address: &str, request: Request<'_>, patience: Duration) -> Attempt {
    let connect = timeout(CONNECT_TIME.min(patience), TcpStream::connect(address)).await;
    let mut stream = match connect.unwrap_or_else(|_| Err(silent("nobody took the connection"))) {
        Ok(stream) => stream,
        Err(error) => return Attempt::NotSent(error.to_string()),
    };
    let sent = timeout(patience, stream.write_all(head_and_body(address, request).as_bytes())).await;
    // A request that is not whole is not taken in.
    if let Err(error) = sent.unwrap_or_else(|_| Err(silent("it did not read the request"))) {
        return Attempt::NotSent(error.to_string());
    }
    let limit = match request {
        Request::Get(_) => usize::MAX,
        Request::Post(..) => MAX_ANSWER_BYTES,
    };
    match read_all(&mut stream, patience, limit).await {
        Err(error) => Attempt::Lost(error.to_string()),
        Ok(bytes) => match parse(&bytes) {
            Ok((status, body)) => Attempt::Answer(status, body),
            Err(why) => Attempt::Broken(why),
        },
    }
}

fn head_and_body(address: &str, request: Request<'_>) -> String {
    let common = format!("host: {address}\r\naccept: */*\r\nconnection: close\r\n");
    match request {
        Request::Get(path) => format!("GET {path} HTTP/1.1\r\n{common}\r\n"),
        Request::Post(path, fields) => {
            let (body, kind) = (fields.to_string(), "content-type: application/json");
            let length = body.len();
            format!("POST {path} HTTP/1.1\r\n{common}{kind}\r\ncontent-length: {length}\r\n\r\n{body}")
        }
    }
}

/// Everything until the other side hangs up.
async fn read_all(stream: &mut TcpStream, patience: Duration, limit: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    loop {
        let read = timeout(patience, stream.read(&mut buffer)).await;
        match read.unwrap_or_else(|_| Err(silent(&format!("no answer within {patience:?}"))))? {
            0 => return Ok(bytes),
            count if bytes.len() + count > limit => {
                return Err(io::Error::other(format!("its answer is longer than {limit} bytes")));
            }
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn silent(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

fn parse(answer: &[u8]) -> Result<(u16, Vec<u8>), String> {
    const NO_HTTP: &str = "it does not speak HTTP";
    let within = &answer[..answer.len().min(MAX_HEAD_BYTES)];
    let end = within.windows(4).position(|window| window == b"\r\n\r\n").ok_or(NO_HTTP)?;
    let head = std::str::from_utf8(&answer[..end]).map_err(|_| NO_HTTP)?;
    let body = &answer[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).and_then(|rest| rest.get(..3));
    let status: u16 = status.and_then(|status| status.parse().ok()).ok_or(NO_HTTP)?;
    let mut length = None;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            return Ok((status, chunks(body)?));
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse::<usize>().ok();
        }
    }
    let length = length.ok_or("its answer does not say how long it is")?;
    let body = body
        .get(..length)
        .ok_or_else(|| format!("its answer ended after {} of {length} bytes; ask again", body.len()))?;
    Ok((status, body.to_vec()))
}

fn chunks(mut rest: &[u8]) -> Result<Vec<u8>, String> {
    const BROKEN: &str = "its answer ended in the middle; ask again";
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n").ok_or(BROKEN)?;
        let size = std::str::from_utf8(&rest[..end]).ok();
        let size = size.map(|size| size.split(';').next().unwrap_or_default().trim());
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok()).ok_or(BROKEN)?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Ok(body);
        }
        let whole = size.checked_add(2).and_then(|whole| rest.get(..whole)).ok_or(BROKEN)?;
        body.extend_from_slice(&whole[..size]);
        rest = &rest[size + 2..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_whole_or_not_at_all() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(parse(plain), Ok((200, b"hello".to_vec())));
        let chunked =
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
        assert_eq!(parse(chunked), Ok((200, b"hello".to_vec())));
        for whole in [&plain[..], &chunked[..chunked.len() - 4]] {
            for end in 0..whole.len() {
                assert!(parse(&whole[..end]).is_err(), "{:?}", String::from_utf8_lossy(&whole[..end]));
            }
        }
    }

    #[test]
    fn an_answer_without_a_length_is_not_believed() {
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\nhello").unwrap_err().contains("how long"));
    }

    #[test]
    fn a_call_says_how_long_its_fields_are() {
        let asked = head_and_body("a:1", Request::Post("/v1/x", &serde_json::json!({ "to": "é" })));
        assert!(asked.starts_with("POST /v1/x HTTP/1.1\r\nhost: a:1\r\n"), "{asked}");
        assert!(asked.ends_with("content-length: 11\r\n\r\n{\"to\":\"é\"}"), "{asked}");
    }
}
