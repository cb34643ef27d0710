//! Session streams through a door: watches beside requests, each bounded.

use std::time::Duration;

use leasehold_core::command::{Attach, SessionKind};
use leasehold_core::protocol::{Change, Failure, Query, Request, RequestId, Response, ToClient, Watch};
use leasehold_core::{
    Answer, AttachNumber, CommandNumber, ItemKind, ItemNumber, Label, Millis, Nonce, Op, Open, Policies,
    Reply, ResourceName, Revision, Sequence, SessionCommand, SessionId,
};
use leasehold_host::{ServedOptions, serve};
use leasehold_wire::{decode_server_frame, encode_client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::peer::{Peer, names};
use crate::person::{PATIENCE, Person, acquire, look, served, until_waiting};

/// As the door's own limit.
const MAX_WATCHES: usize = 64;

#[tokio::test]
async fn a_watch_shows_what_matches_and_ends_when_it_is_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    let person = Person::open(served.caller()).await;
    let mut peer = Peer::new(served.door()).await;
    let (all, _) = peer.watch("", None).await;
    let token = person.take("a/1").await;
    let (changes, more) = peer.watched(all).await;
    assert_eq!((names(&changes.changes), more), (vec!["a/1"], false));
    assert_eq!(changes.revision, look(served.caller(), "a/1").await.0);

    // The second one from before: it sees the past, and then only what matches.
    let (some, begin) = peer.watch("b/", Some(Revision::new(0))).await;
    assert_eq!(begin, Revision::new(0));
    peer.send(Request::StopWatch { watch: all }).await;
    assert!(matches!(peer.ask(Request::Read(Query::Status)).await, Response::Read { .. }));
    person.release("a/1", token).await;
    person.take("b/1").await;
    let (changes, _) = peer.watched(some).await;
    assert_eq!(
        names(&changes.changes),
        ["b/1"],
        "nothing of the watch that was ended, nothing that does not match"
    );
}

#[tokio::test]
async fn a_watch_after_a_revision_that_cannot_be_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    Person::open(served.caller()).await;
    let mut peer = Peer::new(served.door()).await;
    let watch = Watch { prefix: String::new(), after: Some(Revision::new(1 << 40)) };
    let response = peer.ask(Request::Watch(watch)).await;
    assert!(matches!(response, Response::Failed(Failure::RevisionAhead { .. })), "{response:?}");
}

#[tokio::test]
async fn a_connection_has_so_many_watches_and_one_that_ends_makes_room() {
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    Person::open(served.caller()).await;
    let mut peer = Peer::new(served.door()).await;
    let mut watches = Vec::new();
    for _ in 0..MAX_WATCHES {
        watches.push(peer.watch("", None).await.0);
    }
    let all = || Request::Watch(Watch { prefix: String::new(), after: None });
    assert_eq!(peer.ask(all()).await, Response::Failed(Failure::TooManyWatches { limit: MAX_WATCHES }));
    peer.send(Request::StopWatch { watch: watches[10] }).await;
    peer.send(Request::StopWatch { watch: RequestId(99_999) }).await;
    // One id names one watch, and a refusal costs nothing.
    peer.send_as(watches[20], all()).await;
    let response = peer.response(watches[20]).await;
    assert!(matches!(response, Response::Failed(Failure::BadRequest { .. })), "{response:?}");
    peer.watch("", None).await;
    assert_eq!(peer.ask(all()).await, Response::Failed(Failure::TooManyWatches { limit: MAX_WATCHES }));
}

/// A streamed session through a peer, enough of it for this.
struct Streamed {
    session: SessionId,
    commands: u64,
}

impl Streamed {
    async fn open(peer: &mut Peer) -> Self {
        let nonce = Nonce([7; 16]);
        let open = Open {
            nonce,
            label: Label::new(&"l".repeat(256)).unwrap(),
            ttl: Millis::new(60_000),
            policies: Policies::default(),
            kind: SessionKind::Streamed,
        };
        let Response::Reply(Reply::Opened(opened)) = peer.ask(Request::Open(open)).await else {
            panic!("opened");
        };
        let attach = Attach { session: opened.session, attach: AttachNumber::new(1), seen: ItemNumber::NONE };
        peer.ask(Request::Attach { attach, nonce }).await;
        Self { session: opened.session, commands: 0 }
    }

    fn command(&mut self, op: Op) -> Request {
        self.commands += 1;
        let (attach, number) = (AttachNumber::new(1), CommandNumber::new(self.commands));
        let sequence = Sequence::Streamed { attach, number, seen: ItemNumber::new(self.commands - 1) };
        Request::Command(SessionCommand { session: self.session, sequence, op })
    }
}

/// One entry that ends two thousand leases with long names: more than a message holds. It comes in parts of one revision.
#[tokio::test]
async fn a_batch_that_does_not_fit_a_message_comes_in_parts() {
    const UNITS: usize = 32;
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = served(directory.path());
    let mut owner = Peer::new(served.door()).await;
    let mut streamed = Streamed::open(&mut owner).await;
    for unit in 0..UNITS {
        let resources: Vec<String> =
            (0..64).map(|slot| format!("{}/{unit:02}/{slot:02}", "n".repeat(500))).collect();
        owner.send(streamed.command(acquire(&resources, None, Vec::new()))).await;
        match owner.receive().await.unwrap() {
            ToClient::Items { items, .. } => assert!(
                matches!(&items[0].kind, ItemKind::Answer { answer: Answer::Granted(grants), .. } if grants.len() == 64)
            ),
            other => panic!("{other:?}"),
        }
    }
    let mut watcher = Peer::new(served.door()).await;
    let (watch, begin) = watcher.watch("", None).await;
    let close = streamed.command(Op::Close);
    assert_eq!(owner.ask(close).await, Response::Reply(Reply::Closed));
    let (mut ended, mut parts) = (Vec::new(), 0);
    loop {
        let (changes, more) = watcher.watched(watch).await;
        assert!(changes.revision > begin && changes.revision == look(served.caller(), "x").await.0);
        let bytes: usize = changes.changes.iter().map(Change::weight).sum();
        assert!(bytes <= 1024 * 1024, "{bytes} bytes in one message");
        ended.extend(names(&changes.changes).into_iter().map(str::to_owned));
        parts += 1;
        if !more {
            break;
        }
    }
    assert!(parts > 1, "all of it fitted one message");
    ended.sort();
    ended.dedup();
    assert_eq!(ended.len(), UNITS * 64);
}

#[tokio::test]
async fn plain_waits_of_a_stream_end_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    let (first, second) = (Person::open(served.caller()).await, Person::open(served.caller()).await);
    first.take("job").await;
    let mut peer = Peer::new(served.door()).await;
    peer.send(second.held("job")).await;
    until_waiting(served.caller(), "job", 1).await;
    drop(peer);
    until_waiting(served.caller(), "job", 0).await;
}

/// It asks and never listens. What waits for it is bounded; then the service lets go of it.
#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let directory = tempfile::tempdir().unwrap();
    let options = ServedOptions { write_timeout: Duration::from_secs(1), ..ServedOptions::default() };
    let served = serve(directory.path(), options).unwrap();
    let person = Person::open(served.caller()).await;
    let mut deaf = Peer::new(served.door()).await;
    let mut frame = Vec::new();
    encode_client(&[(RequestId(1), Request::Read(Query::Status))], &mut frame).unwrap();
    let mut asked = 0_u64;
    let asking = async {
        while deaf.stream.write_all(&frame).await.is_ok() {
            asked += 1;
            if asked.is_multiple_of(1_000) {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("it is let go in time");
    println!("let go after {asked} questions");
    // Some ten thousand answers wait, some sixteen thousand questions for the loop, and some thousands lie in the pipe.
    assert!(asked < 60_000, "{asked} questions were taken in and no answer was read");
    assert_eq!(served.caller().inspect().await.unwrap().connections, 0);
    person.take("job").await;
}

/// Many times as much as may wait for it: nothing more is read from it until it has read, and nothing of it is lost.
#[tokio::test]
async fn a_client_that_reads_late_is_answered_everything_once_and_keeps_its_connection() {
    const QUESTIONS: u64 = 100_000;
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    let mut late = Peer::new(served.door()).await;
    let mut questions = Vec::new();
    for id in 1..=QUESTIONS {
        encode_client(&[(RequestId(id), Request::Read(Query::Status))], &mut questions).unwrap();
    }
    let (mut read, mut write) = tokio::io::split(late.stream);
    let asking = tokio::spawn(async move {
        write.write_all(&questions).await.unwrap();
        write
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!asking.is_finished(), "all questions were taken in and no answer was read");
    let mut heard = std::collections::BTreeSet::new();
    let mut buffer = vec![0; 64 * 1024];
    while (heard.len() as u64) < QUESTIONS {
        let count =
            tokio::time::timeout(PATIENCE, read.read(&mut buffer)).await.expect("more comes").unwrap();
        assert!(count > 0, "it hung up after {} answers", heard.len());
        late.frames.push(&buffer[..count]);
        while let Some(frame) = late.frames.next_frame().unwrap() {
            for message in decode_server_frame(frame).unwrap() {
                let ToClient::Response { id, .. } = message else { panic!("{message:?}") };
                assert!(heard.insert(id), "request {} was answered twice", id.0);
            }
        }
    }
    asking.await.unwrap();
    assert_eq!(served.caller().inspect().await.unwrap().connections, 1);
}

/// Its questions wait until it has read more. A session is opened, and could be renewed, all the same.
#[tokio::test]
async fn what_keeps_a_lease_goes_past_questions_whose_answers_nobody_reads() {
    // Some more than weigh as much as may be left unread, and fewer more than may wait.
    const QUESTIONS: u64 = 510;
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    let person = Person::open(served.caller()).await;
    let resource = "job".to_owned();
    crate::person::token(&person.op(acquire(std::slice::from_ref(&resource), None, vec![1; 4_096])).await);
    let mut late = Peer::new(served.door()).await;
    for id in 1..=QUESTIONS {
        late.send_as(RequestId(id), Request::Read(Query::Lease(ResourceName::new(&resource).unwrap()))).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let open = Open {
        nonce: Nonce([77; 16]),
        label: Label::new("late").unwrap(),
        ttl: Millis::new(10_000),
        policies: Policies::default(),
        kind: SessionKind::Streamed,
    };
    late.send_as(RequestId(QUESTIONS + 1), Request::Open(open)).await;
    let opening = async {
        while served.caller().inspect().await.unwrap().sessions < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, opening).await.expect("it is opened while nobody reads");
    let mut heard = std::collections::BTreeSet::new();
    while (heard.len() as u64) < QUESTIONS + 1 {
        let message = tokio::time::timeout(PATIENCE, late.receive()).await.expect("more comes").unwrap();
        let ToClient::Response { id, .. } = message else { panic!("{message:?}") };
        assert!(heard.insert(id), "request {} was answered twice", id.0);
    }
}

/// A watcher whose client does not read costs a bounded amount and holds up nobody, and goes on where it was.
#[tokio::test]
async fn a_watch_that_is_not_read_waits_and_goes_on_without_a_gap() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = served(directory.path());
    let person = Person::open(served.caller()).await;
    let mut peer = Peer::new(served.door()).await;
    let (watch, _) = peer.watch("", None).await;
    // Far more than the pipe and the queue hold together.
    let mut expected = Vec::new();
    for number in 0..150 {
        let resource = format!("job-{number:03}");
        let response = person.op(acquire(std::slice::from_ref(&resource), None, vec![1; 4_096])).await;
        crate::person::token(&response);
        expected.push(resource);
    }
    let mut seen = Vec::new();
    while seen.len() < expected.len() {
        let (changes, more) = peer.watched(watch).await;
        assert!(!more);
        seen.extend(names(&changes.changes).into_iter().map(str::to_owned));
    }
    assert_eq!(seen, expected);
    tokio::time::timeout(Duration::from_millis(50), peer.receive()).await.expect_err("nothing comes twice");
}

/// Nothing is asked, and nothing read: changes alone must not keep a connection for ever.
#[tokio::test]
async fn a_watch_that_is_never_read_is_let_go_after_its_time() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = ServedOptions { write_timeout: Duration::from_millis(100), ..ServedOptions::default() };
    let served = serve(directory.path(), options).unwrap();
    let person = Person::open(served.caller()).await;
    let mut deaf = Peer::new(served.door()).await;
    deaf.watch("", None).await;
    for number in 0..150 {
        let resources = [format!("job-{number:03}")];
        crate::person::token(&person.op(acquire(&resources, None, vec![1; 4_096])).await);
    }
    let letting_go = async {
        while served.caller().inspect().await.unwrap().connections > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, letting_go).await.expect("it is let go in time");
    assert_eq!(served.caller().hub().watchers(), 0, "its watch goes with it");
}

#[tokio::test]
async fn a_service_has_so_many_watches_in_all() {
    let directory = tempfile::tempdir().unwrap();
    let options = ServedOptions { max_watches: 2, ..ServedOptions::default() };
    let served = serve(directory.path(), options).unwrap();
    Person::open(served.caller()).await;
    let (mut one, mut other) = (Peer::new(served.door()).await, Peer::new(served.door()).await);
    one.watch("", None).await;
    other.watch("", None).await;
    let all = || Request::Watch(Watch { prefix: String::new(), after: None });
    assert_eq!(one.ask(all()).await, Response::Failed(Failure::TooManyWatches { limit: 2 }));
    drop(other);
    let making_room = async {
        while served.caller().hub().watchers() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, making_room).await.expect("a watch goes with its connection");
    one.watch("", None).await;
}
