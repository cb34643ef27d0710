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
    let to: SocketAddr = address.parse().with_context(|| format!("{address:?} is no address"))?;
    let mut stream =
        TcpStream::connect_timeout(&to, PATIENCE).with_context(|| format!("{address} is away"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text).with_context(|| format!("{address} does not answer"))?;
    read(&text).with_context(|| format!("{address} has no metrics"))
}

fn read(text: &str) -> Result<Numbers> {
    let number = |name: &str| -> Result<u64> {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse().ok()).with_context(|| format!("{name} is missing"))
    };
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
