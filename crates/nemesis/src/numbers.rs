//! What a node says about itself: its metrics, over HTTP, from the node alone.
//!
//! Nothing is forwarded for it, so it tells how each node stands, also one that knows nobody.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

/// A node that does not answer in this time does not answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Whether it leads and answers.
    pub serving: bool,
    /// The last entry that it has applied.
    pub revision: u64,
}

/// Asks the node at `address`.
///
/// # Errors
/// When it does not answer, or says something else.
pub fn ask(address: &str) -> Result<Numbers> {
    read(&metrics(address)?).with_context(|| format!("{address} has no metrics"))
}

/// One metric without labels of the node at `address`.
///
/// # Errors
/// When it does not answer, or has no such metric.
pub fn metric(address: &str, name: &str) -> Result<f64> {
    let text = metrics(address)?;
    value(&text, name).with_context(|| format!("{address} has no {name}"))
}

/// What a node answers to a GET of `path`: its status and its body.
///
/// # Errors
/// When it does not answer.
pub fn get(address: &str, path: &str, patience: Duration) -> Result<(u16, Vec<u8>)> {
    let to: SocketAddr = address.parse().with_context(|| format!("{address:?} is no address"))?;
    let mut stream =
        TcpStream::connect_timeout(&to, patience).with_context(|| format!("{address} is away"))?;
    stream.set_read_timeout(Some(patience))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).with_context(|| format!("{address} does not answer"))?;
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let head = head.with_context(|| format!("{address} ended the connection before its answer"))?;
    let body = answer.split_off(head + 4);
    let status = String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.with_context(|| format!("{address} gave no status"))?, body))
}

fn metrics(address: &str) -> Result<String> {
    let (_, body) = get(address, "/metrics", PATIENCE)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn value<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse().ok())
}

fn read(text: &str) -> Result<Numbers> {
    let number =
        |name: &str| -> Result<u64> { value(text, name).with_context(|| format!("{name} is missing")) };
    Ok(Numbers { serving: number("leasehold_serving")? == 1, revision: number("leasehold_revision")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_whole_name() {
        let text = "HTTP/1.1 200 OK\r\n\r\n# TYPE leasehold_serving gauge\nleasehold_serving 1\nleasehold_revision_x 3\nleasehold_revision 17\n";
        assert_eq!(read(text).unwrap(), Numbers { serving: true, revision: 17 });
        assert!(read("leasehold_serving 1\n").is_err());
    }
}
