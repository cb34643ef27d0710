//! A connection of the session stream, whatever carries it: what comes in, what goes out, and the watches it has begun.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold_core::protocol::{
    Change, Changes, Failure, Query, Request, RequestId, Response, ToClient, Watch,
};
use leasehold_node::{ConnectionId, Input};
use leasehold_wire::{HeardRequest, Hello};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::driver::{Outgoing, ToLoop};
use crate::hub::{Hub, Watcher};
use crate::inbox::{Ended, Inbox};
use crate::room::Room;
use crate::unread::{OnTheWay, Unread};

/// Watches of one connection, unless it was chosen otherwise.
pub(crate) const MAX_WATCHES: usize = 64;
/// Questions of a client that does not read which wait before nothing more is read from it: a program asks a few things at a time.
const MAX_POSTPONED: usize = 64;
/// Requests of one frame that reach the loop together at most: a turn takes in eight times as many.
const MAX_TOGETHER: usize = 1_024;
/// Batches of changes that wait for a client at most; its watchers pause meanwhile.
const MAX_WATCHED: usize = 4;
/// A watch without changes says at least this often how far the log has come.
const PROGRESS: Duration = Duration::from_secs(10);
/// Bytes of changes in one message at most, roughly: it must fit a frame.
const MAX_WATCHED_BYTES: usize = 1024 * 1024;

/// What the service says of itself when a connection begins. It changes: leaders do. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Present(Arc<Mutex<Hello>>);

impl Present {
    pub(crate) fn new(hello: Hello) -> Self {
        Self(Arc::new(Mutex::new(hello)))
    }

    /// What to say now.
    pub(crate) fn hello(&self) -> Hello {
        self.lock().clone()
    }

    pub(crate) fn set_state(&self, incarnation: &str, epoch: u16) {
        let mut hello = self.lock();
        incarnation.clone_into(&mut hello.incarnation);
        hello.epoch = epoch.into();
    }

    pub(crate) fn set_leader(&self, address: &str) {
        address.clone_into(&mut self.lock().leader);
    }

    /// The founders that this node has not met. More than a hello may carry are counted instead of named.
    pub(crate) fn set_missing(&self, names: &[String]) {
        let all = names.join(", ");
        let fits = all.len() <= leasehold_wire::MAX_HELLO_TEXT_BYTES;
        self.lock().missing = if fits { all } else { format!("{} nodes", names.len()) };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Hello> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every connection needs. Clones share it.
#[derive(Debug, Clone)]
pub struct Door {
    inbox: Inbox,
    hub: Arc<Hub>,
    present: Present,
    next: Arc<AtomicU64>,
    max_watches: usize,
    room: Room,
    /// How long a client may leave unread what was written for it.
    pub(crate) write_time: Duration,
}

impl Door {
    pub(crate) fn new(
        inbox: Inbox,
        hub: Arc<Hub>,
        present: Present,
        max_watches: usize,
        room: Room,
        write_time: Duration,
    ) -> Self {
        let next = Arc::new(AtomicU64::new(crate::inbox::first_id()));
        Self { inbox, hub, present, next, max_watches, room, write_time }
    }

    /// What the service says of itself when a connection begins.
    pub fn hello(&self) -> Hello {
        self.present.hello()
    }

    /// Begins a connection. Must be called within a runtime, on which its watches will run.
    ///
    /// # Errors
    /// When the service has stopped.
    pub fn open(&self) -> Result<(Inbound, Outbound), Ended> {
        let connection = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, answers) = mpsc::unbounded_channel();
        let (own, watched) = mpsc::channel(MAX_WATCHED);
        // Only the loop keeps these: when it lets go, the connection ends, also one whose client does not read.
        let (open, let_go) = oneshot::channel();
        let unread = Arc::new(Unread::new(self.room.clone()));
        let outgoing = Outgoing { sender, unread: Arc::clone(&unread), _open: open };
        self.inbox.send(ToLoop::Connected(connection, outgoing))?;
        let room = self.room.clone();
        let inbound =
            Inbound { door: self.clone(), connection, own, unread, postponed: None, watches: HashMap::new() };
        let outbound = Outbound { answers, room, taken: Vec::new(), watched, let_go: Some(let_go) };
        Ok((inbound, outbound))
    }
}

/// What comes in. Dropping it ends the connection.
#[derive(Debug)]
pub struct Inbound {
    door: Door,
    connection: ConnectionId,
    own: mpsc::Sender<Vec<ToClient>>,
    /// What is on its way out.
    unread: Arc<Unread>,
    postponed: Option<Postponed>,
    watches: HashMap<RequestId, AbortHandle>,
}

/// Questions that wait until their client has read more.
#[derive(Debug)]
struct Postponed {
    sender: mpsc::Sender<(RequestId, Query)>,
    task: AbortHandle,
}

impl Inbound {
    /// Takes in the requests of a frame, in order, together as far as they are nothing special.
    ///
    /// # Errors
    /// When the connection or the service has ended.
    pub async fn take_all(&mut self, requests: Vec<HeardRequest>) -> Result<(), Ended> {
        let mut together = Vec::with_capacity(requests.len().min(MAX_TOGETHER));
        for (id, request) in requests {
            match request {
                Ok(
                    request @ (Request::Renew { .. }
                    | Request::Command(_)
                    | Request::Open(_)
                    | Request::Attach { .. }),
                ) => together.push((id, request)),
                request => {
                    self.send_together(&mut together).await?;
                    self.take((id, request)).await?;
                }
            }
            if together.len() == MAX_TOGETHER {
                self.send_together(&mut together).await?;
            }
        }
        self.send_together(&mut together).await
    }

    async fn send_together(&self, together: &mut Vec<(RequestId, Request)>) -> Result<(), Ended> {
        if together.is_empty() {
            return Ok(());
        }
        let asked = ToLoop::Asked(self.connection, std::mem::take(together));
        self.door.inbox.send_when_there_is_room(asked).await
    }

    /// Takes in a request, or why it is not understood. Waits while the service has too much to do. What a client asks to be shown waits
    /// while it does not read what it was told; whatever keeps its leases, or gives them back, goes past that.
    ///
    /// # Errors
    /// When the connection or the service has ended.
    pub async fn take(&mut self, (id, request): HeardRequest) -> Result<(), Ended> {
        let failed = match request {
            Ok(Request::Watch(watch)) => match self.begin_watch(id, &watch) {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            },
            Ok(Request::StopWatch { watch }) => {
                if let Some(task) = self.watches.remove(&watch) {
                    task.abort();
                }
                return Ok(());
            }
            Ok(Request::Read(query)) if query.is_listing() || self.unread.is_much() => {
                return self.postpone(id, query).await;
            }
            Ok(request) => {
                let input = Input::Request { connection: self.connection, id, request };
                return self.door.inbox.send_when_there_is_room(ToLoop::Node(input)).await;
            }
            Err(why) => Failure::BadRequest { why },
        };
        let response = ToClient::Response { id, response: Response::Failed(failed) };
        self.own.send(vec![response]).await.map_err(|_| Ended)
    }

    /// The client has ended the connection, or died. That the connection is gone is said when this is dropped.
    pub fn hung_up(&self) {
        let _ = self.door.inbox.send(ToLoop::Node(Input::HungUp(self.connection)));
    }

    /// Takes in a question when its client has read more, and a page has room and its turn. Only behind many of them is anything else waited with: a client that stands still
    /// is ended by whoever writes to it.
    async fn postpone(&mut self, id: RequestId, query: Query) -> Result<(), Ended> {
        let postponed = self.postponed.get_or_insert_with(|| {
            let (sender, waiting) = mpsc::channel(MAX_POSTPONED);
            let to = Later {
                connection: self.connection,
                unread: Arc::clone(&self.unread),
                inbox: self.door.inbox.clone(),
                own: self.own.clone(),
            };
            let later = to.take_in(waiting);
            Postponed { sender, task: tokio::spawn(later).abort_handle() }
        });
        postponed.sender.send((id, query)).await.map_err(|_| Ended)
    }

    fn begin_watch(&mut self, id: RequestId, watch: &Watch) -> Result<(), Failure> {
        self.watches.retain(|_, task| !task.is_finished());
        let limit = self.door.max_watches;
        if self.watches.len() >= limit {
            return Err(Failure::TooManyWatches { limit });
        }
        if self.watches.contains_key(&id) {
            return Err(Failure::BadRequest { why: format!("request {} already watches", id.0) });
        }
        let watcher = self.door.hub.watch(watch)?;
        let task = tokio::spawn(keep_watching(watcher, id, self.own.clone()));
        self.watches.insert(id, task.abort_handle());
        Ok(())
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        for task in self.watches.values().chain(self.postponed.as_ref().map(|postponed| &postponed.task)) {
            task.abort();
        }
        let _ = self.door.inbox.send(ToLoop::Node(Input::Disconnected(self.connection)));
    }
}

/// What goes out.
#[derive(Debug)]
pub struct Outbound {
    answers: mpsc::UnboundedReceiver<(Vec<ToClient>, OnTheWay)>,
    room: Room,
    /// What was taken out and may not be written yet.
    taken: Vec<OnTheWay>,
    watched: mpsc::Receiver<Vec<ToClient>>,
    let_go: Option<oneshot::Receiver<()>>,
}

impl Outbound {
    /// The next messages; nothing when the connection is over. Answers go before changes. Whoever asks has written what was given before.
    pub async fn next(&mut self) -> Option<Vec<ToClient>> {
        self.taken.clear();
        tokio::select! {
            biased;
            answers = self.answers.recv() => answers.map(|answers| self.take(answers)),
            Some(watched) = self.watched.recv() => Some(watched),
        }
    }

    /// More messages for the same writing, if there are any now.
    pub fn try_next(&mut self) -> Option<Vec<ToClient>> {
        match self.answers.try_recv() {
            Ok(answers) => Some(self.take(answers)),
            Err(_) => self.watched.try_recv().ok(),
        }
    }

    fn take(&mut self, (answers, sent): (Vec<ToClient>, OnTheWay)) -> Vec<ToClient> {
        self.taken.push(sent);
        answers
    }

    /// What was given last counts until this is dropped, and no more when the next is asked for.
    pub fn taken(&mut self) -> Vec<OnTheWay> {
        std::mem::take(&mut self.taken)
    }

    /// For what all connections leave unread.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Ends when the service has let go of this connection: what is still to be sent gets a moment, and no more. Can be asked for
    /// once.
    pub fn let_go(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let let_go = self.let_go.take();
        async move {
            match let_go {
                Some(let_go) => drop(let_go.await),
                None => std::future::pending().await,
            }
        }
    }
}

/// Takes in questions that wait.
struct Later {
    connection: ConnectionId,
    unread: Arc<Unread>,
    inbox: Inbox,
    own: mpsc::Sender<Vec<ToClient>>,
}

impl Later {
    async fn take_in(self, mut questions: mpsc::Receiver<(RequestId, Query)>) {
        while let Some((id, query)) = questions.recv().await {
            self.unread.wait_until_less().await;
            let is_page = query.is_listing();
            if is_page {
                match self.unread.room.page().await {
                    Ok(page) => self.unread.begin_page(id, page),
                    Err(failure) => {
                        let refused = ToClient::Response { id, response: Response::Failed(failure) };
                        if self.own.send(vec![refused]).await.is_err() {
                            return;
                        }
                        continue;
                    }
                }
            }
            let question = Input::Request { connection: self.connection, id, request: Request::Read(query) };
            if self.inbox.send_when_there_is_room(ToLoop::Node(question)).await.is_err() {
                return;
            }
            if is_page {
                self.unread.wait_until_made().await;
            }
        }
    }
}

async fn keep_watching(mut watcher: Watcher, watch: RequestId, to: mpsc::Sender<Vec<ToClient>>) {
    let begin = Changes { revision: watcher.position(), changes: Vec::new() };
    if to.send(vec![ToClient::Watched { watch, changes: begin, more: false }]).await.is_err() {
        return;
    }
    loop {
        let taken = match watcher.next(PROGRESS).await {
            Ok(taken) => taken,
            Err(failure) => {
                let response = Response::Failed(failure);
                let _ = to.send(vec![ToClient::Response { id: watch, response }]).await;
                return;
            }
        };
        if taken.is_empty() {
            let progress = Changes { revision: watcher.position(), changes: Vec::new() };
            if to.send(vec![ToClient::Watched { watch, changes: progress, more: false }]).await.is_err() {
                return;
            }
        }
        for kept in taken {
            let matching = kept.changes.changes.iter().filter(|change| watcher.matches(change));
            for message in split(watch, kept.changes.revision, matching) {
                if to.send(vec![message]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The changes of one revision as messages that fit a frame each.
fn split<'a>(
    watch: RequestId,
    revision: leasehold_core::Revision,
    matching: impl Iterator<Item = &'a Change>,
) -> Vec<ToClient> {
    let (mut parts, mut bytes) = (vec![Vec::new()], 0);
    for change in matching {
        let weight = change.weight();
        if bytes + weight > MAX_WATCHED_BYTES && bytes > 0 {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += weight;
        parts.last_mut().expect("there is always one").push(change.clone());
    }
    let last = parts.len() - 1;
    let message = |(position, changes)| ToClient::Watched {
        watch,
        changes: Changes { revision, changes },
        more: position < last,
    };
    parts.into_iter().enumerate().map(message).collect()
}
