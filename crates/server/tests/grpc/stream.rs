//! The session stream as a call.

use std::time::Duration;

use leasehold_core::answer::{Answer, Item, ItemKind, Reply};
use leasehold_core::protocol::{Failure, Query, Request, RequestId, Response, ToClient, Watch};
use leasehold_core::{
    Acquire, Attach, AttachNumber, CommandNumber, ItemNumber, Label, Millis, Mode, Nonce, Op, Open, Policies,
    Request as ResourceRequest, ResourceName, Sequence, SessionCommand, SessionId, SessionKind, Token, Value,
};
use leasehold_wire::messages::{SessionIn, SessionMessage};
use leasehold_wire::{Hello, decode_server_frame, encode_client};
use prost::bytes::Bytes;
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};

use super::support::{Running, assert_status};

/// One call of the session stream, from the client's side.
struct Connection {
    to: Option<mpsc::Sender<SessionIn>>,
    from: Streaming<leasehold_wire::messages::SessionOut>,
    heard: Vec<ToClient>,
    next_id: u64,
}

impl Connection {
    /// Begins a call and says nothing.
    async fn silent(running: &Running) -> Self {
        let (to, mut outgoing) = mpsc::channel(64);
        let outgoing = futures_util::stream::poll_fn(move |cx| outgoing.poll_recv(cx));
        let from = running.client().await.session(outgoing).await.expect("the call begins").into_inner();
        Self { to: Some(to), from, heard: Vec::new(), next_id: 1 }
    }

    /// Begins a call as a good client does.
    async fn open(running: &Running) -> Self {
        let mut connection = Self::silent(running).await;
        connection.say(hello(1)).await;
        let hello = connection.service_hello().await;
        assert_eq!((hello.protocol, hello.pid), (1, std::process::id()));
        connection
    }

    async fn say(&self, message: SessionMessage) {
        let to = self.to.as_ref().expect("this side is open");
        to.send(SessionIn { message: Some(message) }).await.expect("the call goes on");
    }

    async fn next(&mut self) -> Result<Option<SessionMessage>, Status> {
        let message = tokio::time::timeout(Duration::from_secs(10), self.from.message()).await;
        Ok(message.expect("something comes")?.and_then(|message| message.message))
    }

    async fn service_hello(&mut self) -> Hello {
        match self.next().await.expect("the call goes on") {
            Some(SessionMessage::Hello(hello)) => Hello::from_message(hello).expect("a good hello"),
            other => panic!("{other:?}"),
        }
    }

    /// How the call ends, after whatever else comes.
    async fn end(&mut self) -> Status {
        loop {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the call ended without a word"),
                Err(status) => return status,
            }
        }
    }

    async fn send(&mut self, request: Request) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let mut bytes = Vec::new();
        encode_client(&[(id, request)], &mut bytes).expect("a short frame");
        self.say(SessionMessage::Frame(Bytes::from(bytes).slice(4..))).await;
        id
    }

    /// The first message that is wanted; the others are kept for later.
    async fn first<T>(&mut self, wanted: impl Fn(&ToClient) -> Option<T>) -> T {
        loop {
            if let Some(place) = self.heard.iter().position(|message| wanted(message).is_some()) {
                return wanted(&self.heard.remove(place)).expect("it was wanted a moment ago");
            }
            match self.next().await.expect("the call goes on") {
                Some(SessionMessage::Frame(frame)) => {
                    self.heard.extend(decode_server_frame(&frame).expect("a good frame"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    async fn response(&mut self, to: RequestId) -> Response {
        self.first(|message| match message {
            ToClient::Response { id, response } if *id == to => Some(response.clone()),
            _ => None,
        })
        .await
    }

    async fn ask(&mut self, request: Request) -> Response {
        let id = self.send(request).await;
        self.response(id).await
    }

    async fn item(&mut self, of: SessionId) -> Item {
        self.first(|message| match message {
            ToClient::Items { session, items } if *session == of => {
                assert_eq!(items.len(), 1, "one thing at a time is done here");
                Some(items[0].clone())
            }
            _ => None,
        })
        .await
    }

    /// Opens a streamed session and attaches to it.
    async fn session(&mut self, nonce: u8) -> SessionId {
        let nonce = Nonce([nonce; 16]);
        let open = Open {
            nonce,
            label: Label::new("a").expect("a good label"),
            ttl: Millis::new(60_000),
            policies: Policies::default(),
            kind: SessionKind::Streamed,
        };
        let Response::Reply(Reply::Opened(opened)) = self.ask(Request::Open(open)).await else {
            panic!("a session opens");
        };
        let session = opened.session;
        let attach = Attach { session, attach: AttachNumber::new(1), seen: ItemNumber::new(0) };
        let attached = self.ask(Request::Attach { attach, nonce }).await;
        assert!(matches!(attached, Response::Reply(Reply::Attached { .. })), "{attached:?}");
        session
    }
}

fn hello(protocol: u64) -> SessionMessage {
    SessionMessage::Hello(leasehold_wire::messages::Hello {
        protocol,
        program: "test".into(),
        pid: 1,
        ..leasehold_wire::messages::Hello::default()
    })
}

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).expect("a good name")
}

fn command(session: SessionId, number: u64, seen: u64, op: Op) -> Request {
    let sequence = Sequence::Streamed {
        attach: AttachNumber::new(1),
        number: CommandNumber::new(number),
        seen: ItemNumber::new(seen),
    };
    Request::Command(SessionCommand { session, sequence, op })
}

fn acquire(wait: Option<u64>) -> Op {
    let requests = vec![ResourceRequest { resource: name("jobs"), mode: Mode::Exclusive }];
    Op::Acquire(Acquire { requests, value: Value::default(), wait: wait.map(Millis::new) })
}

fn granted(kind: &ItemKind) -> Token {
    match kind {
        ItemKind::Answer { answer: Answer::Granted(grants), .. } | ItemKind::WaitGranted { grants, .. } => {
            grants[0].token
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_grant_is_pushed_to_whoever_waits() {
    let running = Running::start();
    let (mut first, mut second) = (Connection::open(&running).await, Connection::open(&running).await);
    let (holder, waiter) = (first.session(1).await, second.session(2).await);
    first.send(command(holder, 1, 0, acquire(None))).await;
    let token = granted(&first.item(holder).await.kind);
    second.send(command(waiter, 1, 0, acquire(Some(60_000)))).await;
    let queued = second.item(waiter).await;
    assert!(
        matches!(queued.kind, ItemKind::Answer { answer: Answer::Queued { ahead: 0 }, .. }),
        "{queued:?}"
    );
    let release = Op::Release { resource: name("jobs"), token, drained: false };
    first.send(command(holder, 2, 1, release)).await;
    let released = first.item(holder).await;
    assert!(matches!(released.kind, ItemKind::Answer { answer: Answer::Released, .. }), "{released:?}");
    let pushed = second.item(waiter).await;
    assert_eq!(pushed.number, ItemNumber::new(2));
    assert!(granted(&pushed.kind) > token);
}

#[tokio::test]
async fn what_is_not_understood_is_answered_alone() {
    let running = Running::start();
    let mut connection = Connection::open(&running).await;
    let nothing: &[u8] = &[0x0a, 2, 0x08, 77]; // one message: id 77 and no request
    connection.say(SessionMessage::Frame(Bytes::from_static(nothing))).await;
    let response = connection.response(RequestId(77)).await;
    assert!(matches!(response, Response::Failed(Failure::BadRequest { .. })), "{response:?}");
    connection.session(1).await;
}

#[tokio::test]
async fn a_watch_runs_inside_the_stream_too() {
    let running = Running::start();
    let mut connection = Connection::open(&running).await;
    let session = connection.session(1).await;
    let watch = connection.send(Request::Watch(Watch { prefix: "jo".into(), after: None })).await;
    let watched = |message: &ToClient| match message {
        ToClient::Watched { watch: id, changes, .. } if *id == watch => Some(changes.changes.len()),
        _ => None,
    };
    assert_eq!(connection.first(watched).await, 0);
    connection.send(command(session, 1, 0, acquire(None))).await;
    assert_eq!(connection.first(watched).await, 1);
}

#[tokio::test]
async fn the_first_message_must_be_a_hello() {
    let running = Running::start();
    let mut connection = Connection::silent(&running).await;
    connection.say(SessionMessage::Frame(Bytes::new())).await;
    connection.service_hello().await;
    let status = connection.end().await;
    assert_eq!(
        (status.code(), status.message()),
        (Code::InvalidArgument, "the first message must be a hello")
    );
}

#[tokio::test]
async fn a_client_of_a_later_protocol_is_refused_with_both_versions() {
    let running = Running::start();
    let mut connection = Connection::silent(&running).await;
    connection.say(hello(2)).await;
    connection.service_hello().await;
    let status = connection.end().await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("version 2") && status.message().contains("up to 1"), "{status:?}");
}

#[tokio::test]
async fn a_frame_that_is_none_ends_the_call() {
    let running = Running::start();
    let mut connection = Connection::open(&running).await;
    connection.say(SessionMessage::Frame(Bytes::from_static(&[0x12, 0]))).await;
    assert_eq!(connection.end().await.code(), Code::InvalidArgument);
    let mut connection = Connection::open(&running).await;
    connection.say(hello(1)).await;
    assert_eq!(connection.end().await.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_client_that_asks_for_nothing_more_is_still_told_what_comes() {
    let running = Running::start();
    let mut connection = Connection::open(&running).await;
    let session = connection.session(1).await;
    connection.send(command(session, 1, 0, acquire(None))).await;
    connection.to = None;
    granted(&connection.item(session).await.kind);
}

#[tokio::test]
async fn a_service_that_stops_ends_the_call_with_a_word() {
    let running = Running::start();
    let mut connection = Connection::open(&running).await;
    connection.session(1).await;
    running.drain();
    assert_status(&connection.end().await, Code::Unavailable, "unavailable", "failed");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go_and_told_so_when_it_reads_again() {
    // A busy machine may have answered little when the client reads again, and then it was never kept waiting: it is silent for longer.
    for silence in [2, 8, 30] {
        if let Some(status) = end_after_silence(Duration::from_secs(silence)).await {
            return assert_status(&status, Code::Unavailable, "unavailable", "failed");
        }
    }
    panic!("it was told everything, each time");
}

/// How a call ends whose client asks for much, reads nothing for a while, and then all there is. Nothing if it was told everything.
async fn end_after_silence(silence: Duration) -> Option<Status> {
    let running = Running::with(|config| config.limits.write_timeout = Duration::from_millis(50));
    let mut connection = Connection::open(&running).await;
    let session = connection.session(1).await;
    let Op::Acquire(mut wanted) = acquire(None) else { unreachable!("an acquire was made") };
    wanted.value = Value::new(vec![1; 65_536]).expect("a value of the greatest length");
    connection.send(command(session, 1, 0, Op::Acquire(wanted))).await;
    connection.item(session).await;
    // Ten megabytes: more than HTTP/2 takes for a client that does not read.
    for _ in 0..160 {
        connection.send(Request::Read(Query::Lease(name("jobs")))).await;
    }
    tokio::time::sleep(silence).await;
    let mut answers = 0;
    while answers < 160 {
        match connection.next().await {
            Ok(Some(SessionMessage::Frame(frame))) => {
                answers += decode_server_frame(&frame).expect("a good frame").len();
            }
            Ok(other) => panic!("the call went on with {other:?} after {answers} answers"),
            Err(status) => {
                Connection::open(&running).await.session(2).await;
                return Some(status);
            }
        }
    }
    None
}
