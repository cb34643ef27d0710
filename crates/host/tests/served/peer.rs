//! A client of the session stream over memory, that speaks frames by hand.

use std::collections::VecDeque;

use leasehold_core::Revision;
use leasehold_core::protocol::{Change, Changes, Request, RequestId, Response, ToClient, Watch};
use leasehold_host::Door;
use leasehold_wire::{FrameReader, Hello, OpeningReader, decode_server_frame, encode_client, encode_opening};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::person::PATIENCE;

/// What lies between the two: about as much as a socket takes.
const PIPE: usize = 64 * 1024;

pub(crate) struct Peer {
    pub(crate) stream: DuplexStream,
    pub(crate) frames: FrameReader,
    waiting: VecDeque<ToClient>,
    next: u64,
}

impl Peer {
    /// Connected, and both have said who they are.
    pub(crate) async fn new(door: &Door) -> Self {
        let (mut stream, theirs) = tokio::io::duplex(PIPE);
        let (read, write) = tokio::io::split(theirs);
        let door = door.clone();
        tokio::spawn(async move { door.serve(read, write).await });
        let mut bytes = Vec::new();
        encode_opening(&Hello::new("test", std::process::id(), ""), &mut bytes).unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut opening = OpeningReader::new();
        let mut buffer = [0; 4096];
        while opening.hello().unwrap().is_none() {
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the service hung up before its hello");
            opening.push(&buffer[..count]);
        }
        let frames = opening.into_frames().unwrap();
        Self { stream, frames, waiting: VecDeque::new(), next: 0 }
    }

    pub(crate) async fn send(&mut self, request: Request) -> RequestId {
        self.next += 1;
        let id = RequestId(self.next);
        self.send_as(id, request).await;
        id
    }

    /// Sends under an id of the test's choice.
    pub(crate) async fn send_as(&mut self, id: RequestId, request: Request) {
        let mut bytes = Vec::new();
        encode_client(&[(id, request)], &mut bytes).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// The next message, or nothing at the end of the connection.
    pub(crate) async fn receive(&mut self) -> Option<ToClient> {
        let mut buffer = vec![0; PIPE];
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            while let Some(frame) = self.frames.next_frame().unwrap() {
                self.waiting.extend(decode_server_frame(frame).unwrap());
            }
            if self.waiting.is_empty() {
                let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer)).await;
                match read.expect("something comes in time") {
                    Ok(0) | Err(_) => return None,
                    Ok(count) => self.frames.push(&buffer[..count]),
                }
            }
        }
    }

    /// The response to a request; whatever else comes before is dropped.
    pub(crate) async fn response(&mut self, wanted: RequestId) -> Response {
        loop {
            match self.receive().await.expect("the connection ended before the response") {
                ToClient::Response { id, response } if id == wanted => return response,
                _ => {}
            }
        }
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Response {
        let id = self.send(request).await;
        self.response(id).await
    }

    /// Begins to watch, and gives back where.
    pub(crate) async fn watch(&mut self, prefix: &str, after: Option<Revision>) -> (RequestId, Revision) {
        let watch = self.send(Request::Watch(Watch { prefix: prefix.to_owned(), after })).await;
        let (changes, more) = self.watched(watch).await;
        assert!(changes.changes.is_empty() && !more, "a watch begins by saying where");
        (watch, changes.revision)
    }

    /// The next message of a watch, and whether more of the same revision follow. Nothing else may come.
    pub(crate) async fn watched(&mut self, wanted: RequestId) -> (Changes, bool) {
        match self.receive().await.expect("the connection ended") {
            ToClient::Watched { watch, changes, more } if watch == wanted => (changes, more),
            other => panic!("not of watch {}: {other:?}", wanted.0),
        }
    }
}

/// The names of what changed.
pub(crate) fn names(changes: &[Change]) -> Vec<&str> {
    changes.iter().map(|change| change.resource().as_str()).collect()
}
