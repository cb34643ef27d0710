//! One request over HTTP/1.1 to whichever node of a service answers.
//!
//! A node that does not answer, or says that it takes in nothing now, is left for the next one until the time is over. What was sent
//! whole to a node that then said nothing has an unknown outcome, and is not sent again.

use std::io;
use std::time::Duration;

use leasehold::core::Millis;
use leasehold::{DEFAULT_PORT, Error, Unreachable};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::place::Place;
use crate::trouble::Trouble;

/// A node that takes no connection within this time is left for the next.
const CONNECT_TIME: Duration = Duration::from_millis(500);
/// Between two rounds over all nodes.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest answer: a page about nine nodes is far shorter.
const MAX_ANSWER_BYTES: u64 = 1024 * 1024;

/// The nodes of a service.
#[derive(Debug)]
pub(super) struct Nodes {
    url: String,
    addresses: Vec<String>,
    timeout: Duration,
}

/// What came of one attempt.
enum Attempt {
    Answer(u16, Value),
    /// It was never sent.
    NotSent(String),
    /// It may have been taken in.
    Lost(String),
}

impl Nodes {
    /// The nodes that an address names.
    pub(super) fn of(place: &Place, timeout: Duration) -> Result<Self, Trouble> {
        let url = place.url().to_owned();
        let Some(hosts) = url.strip_prefix("leasehold://") else {
            return Err(Trouble::Misuse(format!(
                "{url} is a directory of this machine, which no nodes keep: name a service with --store leasehold://HOST:PORT"
            )));
        };
        let addresses = hosts.trim_end_matches('/').split(',').map(with_port).collect();
        Ok(Self { url, addresses, timeout })
    }

    /// The answer of the first node that gives one.
    pub(super) async fn ask(&self, path: &str, body: &Value) -> Result<Value, Trouble> {
        let began = leasehold_clock::read();
        // A look can be repeated elsewhere, whatever became of it.
        let looks = path.ends_with("/status");
        loop {
            let mut last = Trouble::Misuse("the store names no nodes".to_owned());
            let mut troubles = Vec::new();
            for address in &self.addresses {
                match self.attempt(address, path, body).await {
                    Attempt::Answer(200, answer) => return Ok(answer),
                    Attempt::Answer(503, answer) => last = refused(&answer),
                    Attempt::Answer(504, answer) if looks => last = refused(&answer),
                    Attempt::Answer(_, answer) => return Err(refused(&answer)),
                    Attempt::Lost(why) if looks => troubles.push(format!("{address}: {why}")),
                    Attempt::Lost(_) => return Err(Error::OutcomeUnknown.into()),
                    Attempt::NotSent(why) => troubles.push(format!("{address}: {why}")),
                }
            }
            let waited = leasehold_clock::read().since(began).greater();
            if waited >= self.timeout {
                if troubles.len() < self.addresses.len() {
                    return Err(last);
                }
                let (store, waited) = (self.url.clone(), Millis::from_duration(waited).duration());
                let last = Some(troubles.join("; "));
                return Err(Error::Unreachable(Unreachable::NoConnection { store, waited, last }).into());
            }
            sleep(PAUSE).await;
        }
    }

    /// What each of them answers, or why it does not. Each is asked once.
    pub(super) async fn ask_each(&self, path: &str, body: &Value) -> Vec<(String, Result<Value, String>)> {
        let mut answers = Vec::new();
        for address in &self.addresses {
            let answer = match self.attempt(address, path, body).await {
                Attempt::Answer(200, answer) => Ok(answer),
                Attempt::Answer(_, answer) => Err(refused(&answer).to_string()),
                Attempt::Lost(why) | Attempt::NotSent(why) => Err(why),
            };
            answers.push((address.clone(), answer));
        }
        answers
    }

    async fn attempt(&self, address: &str, path: &str, body: &Value) -> Attempt {
        let connect = timeout(CONNECT_TIME.min(self.timeout), TcpStream::connect(address)).await;
        let mut stream = match connect.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(stream) => stream,
            Err(error) => return Attempt::NotSent(error.to_string()),
        };
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        // A request that is not whole is not taken in.
        if let Err(error) = stream.write_all(request.as_bytes()).await {
            return Attempt::NotSent(error.to_string());
        }
        let mut bytes = Vec::new();
        let mut limited = stream.take(MAX_ANSWER_BYTES);
        match timeout(self.timeout, limited.read_to_end(&mut bytes)).await {
            Err(_) => Attempt::Lost(format!("no answer within {:?}", self.timeout)),
            Ok(Err(error)) => Attempt::Lost(error.to_string()),
            Ok(Ok(_)) => match parse(&bytes) {
                Some((status, answer)) => Attempt::Answer(status, answer),
                None => Attempt::Lost("its answer is not one of a service".to_owned()),
            },
        }
    }
}

fn with_port(node: &str) -> String {
    let node = node.trim();
    let port = node.rsplit_once(':').map(|(_, port)| port);
    match port {
        Some(port) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => node.to_owned(),
        _ => format!("{node}:{DEFAULT_PORT}"),
    }
}

/// The status and the JSON of a whole answer. Its connection is closed behind it, so all that came is the body.
fn parse(answer: &[u8]) -> Option<(u16, Value)> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, serde_json::from_slice(&answer[end + 4..]).ok()?))
}

/// An error as a service says it.
fn refused(answer: &Value) -> Trouble {
    let text = |name: &str| answer["error"][name].as_str().unwrap_or_default();
    let message = text("message").to_owned();
    match text("code") {
        "outcome-unknown" => Error::OutcomeUnknown.into(),
        code => Trouble::answered(code, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_off_is_none() {
        let whole = b"HTTP/1.1 409 Conflict\r\ncontent-length: 11\r\n\r\n{\"error\":1}";
        assert_eq!(parse(whole), Some((409, serde_json::json!({ "error": 1 }))));
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end]), None, "{end}");
        }
    }

    #[test]
    fn what_a_service_refuses_keeps_its_code() {
        let said =
            serde_json::json!({ "error": { "code": "last-voter", "kind": "refused", "message": "no" } });
        assert_eq!(refused(&said).code().0, "last-voter");
        let said = serde_json::json!({ "error": { "code": "outcome-unknown" } });
        assert!(matches!(refused(&said), Trouble::Store(Error::OutcomeUnknown)));
    }
}
