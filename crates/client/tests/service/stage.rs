//! A server made by hand: it says hello, answers questions about itself, and leaves watches to the test.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::core::protocol::{
    Change, Changes, ClusterView, Failure, Incarnation, Member, MemberId, MemberRole, MemberView, Query,
    ReadAnswer, Request, RequestId, Response, Status, ToClient, Watch,
};
use leasehold::core::{Label, Millis, RegisterKey, ResourceName, Revision, SessionId, Token, Value};
use leasehold::{ConnectOptions, Store};
use leasehold_wire::{Hello, OpeningReader, decode_client_frame, encode_opening, encode_server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The revision at which the server says it is.
pub(crate) const REVISION: u64 = 1_041;
/// The life of its state that it names, unless told otherwise.
const LIFE: Incarnation = Incarnation(7);
/// Nothing of these tests takes longer, on a machine that is busy with other things.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// The server.
pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    watches: mpsc::UnboundedReceiver<Conversation>,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    /// Connections taken so far.
    taken: AtomicUsize,
    /// Who it says leads; itself, unless told otherwise.
    leader: Mutex<String>,
    /// Which life of its state it names, and of which epoch.
    life: Mutex<(String, u32)>,
    /// Which members it names, when it is asked for them.
    members: Mutex<Vec<String>>,
    /// How often it was asked for them.
    asked_for_members: AtomicUsize,
    /// Answers no questions any more, and hangs up on nobody.
    silent: AtomicBool,
}

/// A watch that was asked for. Dropping it hangs up.
pub(crate) struct Conversation {
    pub(crate) asked: Watch,
    id: RequestId,
    say: mpsc::UnboundedSender<ToClient>,
    written: Arc<AtomicUsize>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::at("127.0.0.1:0").await
    }

    pub(crate) async fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        *shared.leader.lock().unwrap() = address.to_string();
        *shared.life.lock().unwrap() = (LIFE.to_string(), 0);
        let (sender, watches) = mpsc::unbounded_channel();
        let for_all = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                for_all.taken.fetch_add(1, Ordering::SeqCst);
                connections.spawn(talk(stream, Arc::clone(&for_all), sender.clone()));
            }
        });
        Self { address, watches, shared, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("leasehold://{}", self.address)
    }

    pub(crate) async fn store(&self) -> Store {
        self.patient(Duration::from_secs(5)).await
    }

    pub(crate) async fn patient(&self, patience: Duration) -> Store {
        connect(&self.url(), patience).await.unwrap()
    }

    pub(crate) fn taken(&self) -> usize {
        self.shared.taken.load(Ordering::SeqCst)
    }

    pub(crate) fn silence(&self, silent: bool) {
        self.shared.silent.store(silent, Ordering::SeqCst);
    }

    /// What it says from now on of who leads.
    pub(crate) fn say_leader(&self, leader: &str) {
        leader.clone_into(&mut self.shared.leader.lock().unwrap());
    }

    /// What it says from now on of its state.
    pub(crate) fn say_life(&self, incarnation: &str, epoch: u32) {
        *self.shared.life.lock().unwrap() = (incarnation.to_owned(), epoch);
    }

    /// Whom it names as members from now on, if it is asked.
    pub(crate) fn say_members(&self, members: &[&Self]) {
        let addresses = members.iter().map(|member| member.address.to_string());
        *self.shared.members.lock().unwrap() = addresses.collect();
    }

    /// Waits until it was asked for its members and has answered.
    pub(crate) async fn named_its_members(&self) {
        let asked = async {
            while self.shared.asked_for_members.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        soon(asked).await;
        // The answer is on its way, and nothing to be seen from outside tells that it has arrived.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    /// The next watch that is asked for.
    pub(crate) async fn watch(&mut self) -> Conversation {
        soon(self.watches.recv()).await.unwrap()
    }

    /// The server is gone, with all its connections.
    pub(crate) async fn stop(self) {
        self.accepting.abort();
        let _ = self.accepting.await;
    }
}

pub(crate) async fn connect(url: &str, patience: Duration) -> Result<Store, leasehold::Error> {
    Store::connect_with(url, ConnectOptions::new().patience(patience)).await
}

pub(crate) async fn soon<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, call).await.expect("it does not take that long")
}

impl Conversation {
    pub(crate) fn say(&self, revision: u64, changes: Vec<Change>, more: bool) {
        let changes = Changes { revision: Revision::new(revision), changes };
        let _ = self.say.send(ToClient::Watched { watch: self.id, changes, more });
    }

    /// Says where the watch begins.
    pub(crate) fn begin(&self, revision: u64) {
        self.say(revision, Vec::new(), false);
    }

    pub(crate) fn fail(&self, failure: Failure) {
        let _ = self.say.send(ToClient::Response { id: self.id, response: Response::Failed(failure) });
    }

    /// Messages that have gone into the socket.
    pub(crate) fn written(&self) -> usize {
        self.written.load(Ordering::SeqCst)
    }

    /// Comes back when the client has hung up.
    pub(crate) async fn hung_up(&self) {
        soon(self.say.closed()).await;
    }
}

async fn talk(mut stream: TcpStream, shared: Arc<Shared>, watches: mpsc::UnboundedSender<Conversation>) {
    let mut bytes = Vec::new();
    let hello = {
        let (leader, (life, epoch)) = (shared.leader.lock().unwrap(), &*shared.life.lock().unwrap());
        Hello::new("stage", std::process::id(), life).with_epoch(*epoch).with_leader(&leader)
    };
    encode_opening(&hello, &mut bytes).unwrap();
    let mut opening = OpeningReader::new();
    let mut buffer = vec![0; 65_536];
    while opening.hello().unwrap().is_none() {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => opening.push(&buffer[..count]),
        }
    }
    let mut frames = opening.into_frames().unwrap();
    // Until there is a watch, nobody can say anything on this connection.
    let (mut kept, mut sayings) = {
        let (say, sayings) = mpsc::unbounded_channel();
        (Some(say), sayings)
    };
    let written = Arc::new(AtomicUsize::new(0));
    loop {
        while let Some(frame) = frames.next_frame().unwrap() {
            for (id, request) in decode_client_frame(frame).unwrap() {
                match request.unwrap() {
                    Request::Watch(asked) => {
                        let say = kept.take().expect("a connection carries one watch");
                        let _ = watches.send(Conversation { asked, id, say, written: Arc::clone(&written) });
                    }
                    Request::Read(Query::Status) if !shared.silent.load(Ordering::SeqCst) => {
                        encode_server(&[ToClient::Response { id, response: status() }], &mut bytes).unwrap();
                    }
                    Request::Read(Query::Cluster) => {
                        let response = cluster(&shared);
                        encode_server(&[ToClient::Response { id, response }], &mut bytes).unwrap();
                        shared.asked_for_members.fetch_add(1, Ordering::SeqCst);
                    }
                    _ => {}
                }
            }
        }
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
        tokio::select! {
            read = stream.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => frames.push(&buffer[..count]),
            },
            said = sayings.recv() => {
                let Some(message) = said else { return };
                encode_server(&[message], &mut bytes).unwrap();
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                bytes.clear();
                written.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

fn cluster(shared: &Shared) -> Response {
    let member = |(id, address): (u64, &String)| MemberView {
        member: Member::new(MemberId(id), &format!("n{id}"), address).unwrap(),
        role: MemberRole::Voter,
        matched: REVISION,
        reachable: true,
        receiving_snapshot: false,
    };
    let view = ClusterView {
        incarnation: LIFE,
        epoch: 0,
        version: 1,
        leader: MemberId(1),
        term: 1,
        committed: REVISION,
        members: (1..).zip(shared.members.lock().unwrap().iter()).map(member).collect(),
    };
    Response::Read { revision: Revision::new(REVISION), answer: ReadAnswer::Cluster(view) }
}

fn status() -> Response {
    let status = Status {
        version: "0".into(),
        pid: std::process::id(),
        sessions: 0,
        resources: 0,
        applied: REVISION,
        log_time: Millis::ZERO,
        cut: Millis::ZERO,
    };
    Response::Read { revision: Revision::new(REVISION), answer: ReadAnswer::Status(status) }
}

/// A change that is told apart by its token.
pub(crate) fn change(token: u64) -> Change {
    Change::RegisterWritten {
        resource: ResourceName::new("jobs/a").unwrap(),
        key: RegisterKey::new("cursor").unwrap(),
        token: Token::from_u64(token),
        removed: false,
    }
}

/// A change with many bytes.
pub(crate) fn long_change(token: u64) -> Change {
    Change::Granted {
        grant: leasehold::core::Grant {
            resource: ResourceName::new("jobs/a").unwrap(),
            token: Token::from_u64(token),
            fence: Token::from_u64(token),
            slot: None,
        },
        shared: false,
        session: SessionId::from_u64(1),
        label: Label::new("holder").unwrap(),
        value: Some(Value::new(vec![7; 4_096]).unwrap()),
    }
}

pub(crate) fn batch(revision: u64, tokens: &[u64]) -> Changes {
    Changes { revision: Revision::new(revision), changes: tokens.iter().copied().map(change).collect() }
}
