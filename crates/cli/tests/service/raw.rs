//! Bytes to and from the port, without a client in between.

use std::net::SocketAddr;

use leasehold::core::protocol::{Request, RequestId};
use leasehold_wire::{Hello, encode_client, encode_opening};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// What a session stream begins with.
pub(crate) fn opening() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_opening(&Hello::new("test", std::process::id(), ""), &mut bytes).unwrap();
    bytes
}

/// One request as a frame.
pub(crate) fn frame(id: u64, request: Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_client(&[(RequestId(id), request)], &mut bytes).unwrap();
    bytes
}

/// A session stream after both openings.
pub(crate) async fn open_stream(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&opening()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    let length = u32::from_be_bytes(head[8..].try_into().unwrap());
    let mut hello = vec![0; length as usize];
    stream.read_exact(&mut hello).await.unwrap();
    stream
}

/// A connection that has asked for something over HTTP and stays open.
pub(crate) async fn open_http(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    // The rest of it is short, and comes in one piece with its beginning.
    let mut rest = [0; 4096];
    assert!(stream.read(&mut rest).await.unwrap() > 0);
    stream
}

/// The body of an answer that must be good.
pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let text = get_whole(address, path).await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {text:?}"));
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {text}");
    body.to_owned()
}

/// An answer, whatever it is, with its head.
pub(crate) async fn get_whole(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Server-sent events, one by one.
pub(crate) struct Messages {
    stream: BufReader<TcpStream>,
}

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) event: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Messages {
    /// Begins to watch a prefix, after the id that was seen last. Nothing if the service is not there.
    pub(crate) async fn watch(address: SocketAddr, prefix: &str, last: Option<u64>) -> Option<Self> {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        // Without chunks, so that a line of the answer is a line of the stream.
        let request = format!("GET /v1/watch?prefix={prefix} HTTP/1.0\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
        assert!(line.contains(" 200 "), "{line:?}");
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
        }
        Some(Self { stream })
    }

    /// The next message; nothing when the connection is over. A message that is cut off is none.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        let mut message = Message::default();
        let mut line = String::new();
        loop {
            line.clear();
            let count = self.stream.read_line(&mut line).await.ok()?;
            if count == 0 || !line.ends_with('\n') {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("event", event)) => message.event = event.to_owned(),
                Some(("id", id)) => message.id = id.to_owned(),
                Some(("data", data)) => message.data = data.to_owned(),
                Some(_) => panic!("{line:?} is not understood"),
                None => return Some(message),
            }
        }
    }
}
