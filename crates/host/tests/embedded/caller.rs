//! A client that speaks the session stream by hand.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use leasehold_core::command::SessionKind;
use leasehold_core::protocol::{Query, ReadAnswer, Request, RequestId, Response, ToClient};
use leasehold_core::table::LeaseView;
use leasehold_core::{
    Acquire, Answer, Attach, AttachNumber, CommandNumber, Grant, Item, ItemKind, ItemNumber, Label, Millis,
    Mode, Nonce, Op, Open, Policies, Reply, ResourceName, Sequence, SessionCommand, SessionId, Token, Value,
};
use leasehold_wire::{FrameReader, Hello, OpeningReader, decode_server_frame, encode_client, encode_opening};

/// Longer than anything here may take on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that has not said anything yet.
pub(crate) fn dial(directory: &Path) -> UnixStream {
    let (path, _keep) = leasehold_host::connect_path(directory).unwrap();
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A connection that has said hello.
pub(crate) struct Caller {
    pub(crate) stream: UnixStream,
    frames: FrameReader,
    waiting: Vec<ToClient>,
    items: Vec<(SessionId, Item)>,
    next: u64,
}

impl Caller {
    pub(crate) fn new(directory: &Path) -> Self {
        let mut stream = dial(directory);
        let mut bytes = Vec::new();
        encode_opening(&Hello::new("test", std::process::id(), ""), &mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut opening = OpeningReader::new();
        let mut buffer = [0; 4096];
        while opening.hello().unwrap().is_none() {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the server hung up before its hello");
            opening.push(&buffer[..count]);
        }
        let frames = opening.into_frames().unwrap();
        Self { stream, frames, waiting: Vec::new(), items: Vec::new(), next: 0 }
    }

    /// Sends requests as one frame.
    pub(crate) fn send(&mut self, requests: Vec<Request>) -> Vec<RequestId> {
        let numbered: Vec<(RequestId, Request)> = requests
            .into_iter()
            .map(|request| {
                self.next += 1;
                (RequestId(self.next), request)
            })
            .collect();
        let mut bytes = Vec::new();
        encode_client(&numbered, &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
        numbered.into_iter().map(|(id, _)| id).collect()
    }

    /// The next message, or nothing at the end of the connection.
    pub(crate) fn receive(&mut self) -> Option<ToClient> {
        let mut buffer = vec![0; 65_536];
        while self.waiting.is_empty() {
            while let Some(frame) = self.frames.next_frame().unwrap() {
                self.waiting.extend(decode_server_frame(frame).unwrap());
            }
            if self.waiting.is_empty() {
                match self.stream.read(&mut buffer) {
                    Ok(0) => return None,
                    Ok(count) => self.frames.push(&buffer[..count]),
                    Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                    Err(error) => panic!("no answer in {PATIENCE:?}: {error}"),
                }
            }
        }
        Some(self.waiting.remove(0))
    }

    /// The response to a request; items on the way are kept.
    pub(crate) fn response(&mut self, wanted: RequestId) -> Response {
        loop {
            match self.receive().expect("the connection ended before the response") {
                ToClient::Response { id, response } if id == wanted => return response,
                ToClient::Response { id, response } => panic!("a response to {id:?}: {response:?}"),
                ToClient::Items { session, items } => {
                    self.items.extend(items.into_iter().map(|item| (session, item)));
                }
                ToClient::Hint { .. } => {}
                ToClient::Watched { .. } => panic!("nothing is watched"),
            }
        }
    }

    pub(crate) fn ask(&mut self, request: Request) -> Response {
        let id = self.send(vec![request])[0];
        self.response(id)
    }

    pub(crate) fn lease(&mut self, name: &str) -> Option<LeaseView> {
        match self.ask(Request::Read(Query::Lease(resource(name)))) {
            Response::Read { answer: ReadAnswer::Lease(lease), .. } => lease.map(|lease| *lease),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn applied(&mut self) -> u64 {
        match self.ask(Request::Read(Query::Status)) {
            Response::Read { answer: ReadAnswer::Status(status), .. } => status.applied,
            other => panic!("{other:?}"),
        }
    }

    /// Opens a session and attaches to it.
    pub(crate) fn member(&mut self, nonce: u8, ttl: Millis) -> Member {
        let nonce = Nonce([nonce; 16]);
        let open = Open {
            nonce,
            label: Label::new("caller").unwrap(),
            ttl,
            policies: Policies::default(),
            kind: SessionKind::Streamed,
        };
        let session = match self.ask(Request::Open(open)) {
            Response::Reply(Reply::Opened(opened)) => opened.session,
            other => panic!("{other:?}"),
        };
        let mut member = Member { session, nonce, attach: 0, command: 0, seen: ItemNumber::NONE };
        member.attach(self);
        member
    }

    /// The next item of a session.
    pub(crate) fn item(&mut self, member: &mut Member) -> Item {
        loop {
            if let Some(place) = self.items.iter().position(|(session, _)| *session == member.session) {
                let (_, item) = self.items.remove(place);
                assert_eq!(item.number, member.seen.next(), "items come in order, each once");
                member.seen = item.number;
                return item;
            }
            match self.receive().expect("the connection ended before the item") {
                ToClient::Items { session, items } => {
                    self.items.extend(items.into_iter().map(|item| (session, item)));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The answer to the last command of a session.
    pub(crate) fn answer(&mut self, member: &mut Member) -> Answer {
        match self.item(member).kind {
            ItemKind::Answer { command, answer } if command.get() == member.command => answer,
            other => panic!("{other:?} is not the answer to command {}", member.command),
        }
    }

    pub(crate) fn acquire(&mut self, member: &mut Member, name: &str, wait: Option<Millis>) -> Answer {
        let request = member.acquire(name, wait);
        self.send(vec![request]);
        self.answer(member)
    }

    /// Acquires what is known to be free.
    pub(crate) fn take(&mut self, member: &mut Member, name: &str) -> Grant {
        match self.acquire(member, name, None) {
            Answer::Granted(mut grants) => grants.remove(0),
            other => panic!("{other:?}"),
        }
    }
}

/// A session as its client knows it.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) session: SessionId,
    pub(crate) nonce: Nonce,
    pub(crate) attach: u64,
    pub(crate) command: u64,
    pub(crate) seen: ItemNumber,
}

impl Member {
    /// Attaches a connection; gives back the last command that the service has applied. Everything unseen follows.
    pub(crate) fn attach(&mut self, caller: &mut Caller) -> CommandNumber {
        self.attach += 1;
        let attach =
            Attach { session: self.session, attach: AttachNumber::new(self.attach), seen: self.seen };
        match caller.ask(Request::Attach { attach, nonce: self.nonce }) {
            Response::Reply(Reply::Attached { last_command, .. }) => last_command,
            other => panic!("{other:?}"),
        }
    }

    /// The next command.
    pub(crate) fn command(&mut self, op: Op) -> Request {
        self.command += 1;
        let sequence = Sequence::Streamed {
            attach: AttachNumber::new(self.attach),
            number: CommandNumber::new(self.command),
            seen: self.seen,
        };
        Request::Command(SessionCommand { session: self.session, sequence, op })
    }

    pub(crate) fn acquire(&mut self, name: &str, wait: Option<Millis>) -> Request {
        let request = leasehold_core::Request { resource: resource(name), mode: Mode::Exclusive };
        let value = Value::new(Vec::new()).unwrap();
        self.command(Op::Acquire(Acquire { requests: vec![request], value, wait }))
    }

    pub(crate) fn acquire_with(&mut self, name: &str, value: Vec<u8>) -> Request {
        let request = leasehold_core::Request { resource: resource(name), mode: Mode::Exclusive };
        let value = Value::new(value).unwrap();
        self.command(Op::Acquire(Acquire { requests: vec![request], value, wait: None }))
    }

    pub(crate) fn release(&mut self, name: &str, token: Token) -> Request {
        self.command(Op::Release { resource: resource(name), token, drained: false })
    }
}

pub(crate) fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).unwrap()
}

/// The token of the only holder of a resource.
pub(crate) fn token_of(lease: &LeaseView) -> Token {
    assert_eq!(lease.holders.len(), 1, "{lease:?}");
    lease.holders[0].token
}
