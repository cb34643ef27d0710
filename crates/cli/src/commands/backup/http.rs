//! One GET over HTTP/1.1, whole or not at all.
//!
//! A client for the one document that is too large for the session stream. It follows nothing, keeps no connection, and takes only an
//! answer that says how long it is and is as long as it says.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The port of a service that names none.
const PORT: u16 = 7420;
/// More than the head of any answer of ours.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How much of an answer that is no success is shown.
const MAX_SHOWN_BYTES: usize = 400;

/// The body at a path of the first node that answers.
pub(super) fn get_from_any(nodes: &str, path: &str, timeout: Duration) -> Result<Vec<u8>, String> {
    let mut troubles = Vec::new();
    for node in nodes.trim_end_matches('/').split(',') {
        let address = with_port(node.trim());
        match get(&address, path, timeout) {
            Ok(body) => return Ok(body),
            Err(error) => troubles.push(format!("{address}: {error}")),
        }
    }
    Err(troubles.join("; "))
}

fn with_port(node: &str) -> String {
    let port = node.rsplit_once(':').map(|(_, port)| port);
    match port {
        Some(port) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => node.to_owned(),
        _ => format!("{node}:{PORT}"),
    }
}

fn get(address: &str, path: &str, timeout: Duration) -> Result<Vec<u8>, String> {
    let answer = exchange(address, path, timeout).map_err(|error| error.to_string())?;
    let (status, body) = parse(&answer)?;
    if status != 200 {
        let shown = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN_BYTES)]).trim().to_owned();
        return Err(format!("it answered {status} {shown}"));
    }
    Ok(body)
}

fn exchange(address: &str, path: &str, timeout: Duration) -> io::Result<Vec<u8>> {
    let mut last = io::Error::other("the name stands for no address");
    for found in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, timeout) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                write!(
                    stream,
                    "GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: */*\r\nconnection: close\r\n\r\n"
                )?;
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer)?;
                return Ok(answer);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
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
    fn a_node_without_a_port_has_the_usual_one() {
        for (given, whole) in
            [("a", "a:7420"), ("a:1", "a:1"), ("[::1]", "[::1]:7420"), ("[::1]:2", "[::1]:2")]
        {
            assert_eq!(with_port(given), whole);
        }
    }
}
