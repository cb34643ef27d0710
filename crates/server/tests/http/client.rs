//! As little HTTP as these tests need, on a plain socket, so that what is wrong on purpose can be sent too.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than anything here may take on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(30);

/// One response, whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let kind = if self.status < 400 { "application/json" } else { "application/problem+json" };
        assert_eq!(self.header("content-type"), Some(kind), "{self:?}");
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// What was asked for.
    #[track_caller]
    pub(crate) fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// A problem in the form that all have; gives back what depends on its code.
    #[track_caller]
    pub(crate) fn fault(&self, status: u16, code: &str, kind: &str) -> Value {
        let mut body = self.json();
        let found = (self.status, body["code"].as_str(), body["kind"].as_str());
        assert_eq!(found, (status, Some(code), Some(kind)), "{body}");
        assert_eq!(body["status"], status, "{body}");
        assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{body}");
        assert!(body["title"].as_str().is_some_and(|title| !title.is_empty()), "{body}");
        assert_eq!(body["request_id"].as_str(), self.header("x-request-id"), "{body}");
        assert_eq!(self.header("cache-control"), Some("no-store"));
        assert_eq!(self.header("retry-after").is_some(), [429, 503].contains(&status), "{self:?}");
        let more = body.as_object_mut().expect("a problem is an object");
        for member in ["type", "title", "status", "detail", "code", "kind", "request_id"] {
            assert!(more.remove(member).is_some(), "{member} is missing in {self:?}");
        }
        if more.is_empty() { Value::Null } else { body }
    }

    #[track_caller]
    pub(crate) fn message(&self) -> String {
        self.json()["detail"].as_str().expect("a problem has a detail").to_owned()
    }
}

/// One connection.
pub(crate) struct Connection {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the service listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a time limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket takes a time limit");
        stream.set_nodelay(true).expect("a socket takes the option");
        Self { stream: BufReader::new(stream) }
    }

    /// Sends bytes as they are. A service that has hung up already is found by who reads.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub(crate) fn send_request(&mut self, method: &str, target: &str, headers: &[&str], body: &[u8]) {
        let mut text = format!("{method} {target} HTTP/1.1\r\nHost: test\r\n");
        if !body.is_empty() || method == "POST" {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for header in headers {
            text.push_str(header);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body);
        self.send(&bytes);
    }

    pub(crate) fn ask(&mut self, method: &str, target: &str, headers: &[&str], body: &[u8]) -> Reply {
        self.send_request(method, target, headers, body);
        self.reply(method == "HEAD").expect("the connection ended before the response")
    }

    /// Status and headers of the next response; nothing at the end of the connection.
    pub(crate) fn head(&mut self) -> Option<(u16, BTreeMap<String, String>)> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{first:?} is no status line"));
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line().expect("the connection ended in the middle of the headers");
            let Some((name, value)) = line.split_once(':') else { return Some((status, headers)) };
            let earlier = headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            assert_eq!(earlier, None, "{name} comes twice");
        }
    }

    /// The next response; nothing at the end of the connection.
    pub(crate) fn reply(&mut self, only_head: bool) -> Option<Reply> {
        let (status, headers) = self.head()?;
        let mut body = Vec::new();
        if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") && !only_head {
            while let Some(chunk) = self.chunk() {
                body.extend(chunk);
            }
        } else if let Some(length) = headers.get("content-length").filter(|_| !only_head && status != 100) {
            body = vec![0; length.parse().expect("a length is a number")];
            self.stream.read_exact(&mut body).expect("the body is as long as was said");
        }
        Some(Reply { status, headers, body })
    }

    /// The next chunk of a body that comes in chunks; nothing after the last.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.line()?;
        let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("{size:?} is no size"));
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }

    /// The next line without its end; nothing at the end of the connection.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no response in {PATIENCE:?}: {error}"),
        }
    }

    /// Whether the service ends the connection without another word.
    pub(crate) fn ends(&mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// One message of a watch.
#[derive(Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) event: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: Value,
}

/// A watch that has begun.
pub(crate) struct Watch {
    connection: Connection,
    rest: String,
}

impl Watch {
    /// Begins to watch, which must be possible. Gives back where it begins.
    #[track_caller]
    pub(crate) fn begin(address: SocketAddr, target: &str, headers: &[&str]) -> (Self, u64) {
        let mut connection = Connection::new(address);
        connection.send_request("GET", target, headers, b"");
        let (status, headers) = connection.head().expect("a response");
        assert_eq!(status, 200);
        assert_eq!(headers["content-type"], "text/event-stream");
        let mut watch = Self { connection, rest: String::new() };
        let started = watch.next().expect("a watch says where it begins");
        assert_eq!(started.event, "started");
        (watch, started.id.expect("it has an id"))
    }

    /// The next message; nothing at the end.
    pub(crate) fn next(&mut self) -> Option<Message> {
        loop {
            if let Some((message, rest)) = self.rest.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines =
                        message.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    let first = lines.next().map(str::to_owned);
                    assert_eq!(lines.next(), None, "{name} comes twice in {message:?}");
                    first
                };
                let message = Message {
                    event: field("event").expect("a message has a kind"),
                    id: field("id").map(|id| id.parse().expect("an id is a revision")),
                    data: serde_json::from_str(&field("data").expect("a message has data")).expect("JSON"),
                };
                if let Some(id) = message.id {
                    assert_eq!(message.data["revision"], id.to_string(), "{message:?}");
                }
                self.rest = rest.to_owned();
                return Some(message);
            }
            let chunk = self.connection.chunk()?;
            self.rest.push_str(std::str::from_utf8(&chunk).expect("messages are text"));
        }
    }

    /// The next message with changes: its revision and its events.
    #[track_caller]
    pub(crate) fn changes(&mut self) -> (u64, Vec<Value>) {
        loop {
            let message = self.next().expect("the watch goes on");
            match message.event.as_str() {
                "changes" => {
                    let events = message.data["events"].as_array().expect("a list").clone();
                    return (message.id.expect("changes have an id"), events);
                }
                "progress" => {}
                _ => panic!("{message:?}"),
            }
        }
    }

    /// The next change, which must be alone in its revision.
    #[track_caller]
    pub(crate) fn change(&mut self) -> Value {
        let (_, mut events) = self.changes();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }
}
