//! The node's loop, a task beside those of its connections, and its disk on a thread of its own.
//!
//! The loop wakes at least every 20 ms. It reads the clocks only after it has taken in everything that has arrived, and hands
//! out what the node says in order. It waits for nothing but small writes to a disk that is quick: queues are unbounded towards the loop, and
//! bounded in bytes towards a client: one that does not read is not read from, and its connection ends. It shares its thread with the connections, whose tasks do a bounded
//! piece of work each and never wait: a request that was read is at the loop without waking anybody.

mod disk;
mod notices;
mod pulse;
mod snapshots;
mod story;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Request, RequestId, Response, ToClient};
use leasehold_core::{Millis, Revision};
use leasehold_node::payload::SnapshotImage;
use leasehold_node::{CALLS, ConnectionId, Input, Membership, Node, Output, SavedSnapshot};
use leasehold_wal::Wal;
use tokio::runtime::Handle;
use tokio::sync::{mpsc as async_mpsc, oneshot};
use tokio::time::Sleep;

use crate::caller::Inspection;
use crate::directory::Locked;
use crate::disk::FileDisk;
use crate::door::Present;
use crate::hub::Hub;
use crate::inbox::{Arrivals, Inbox};
use crate::peers::{ToPeers, Work};
use crate::unread::{OnTheWay, Unread, refuse_large};

use disk::{Disk, SyncTimes};
use notices::Notices;
use pulse::Pulse;
use story::Story;

/// Inputs taken in by one turn at most: a flood must not keep the loop from reading the clocks.
const MAX_INPUTS_PER_TURN: usize = 8_192;
/// How often the loop makes sure that its lock file is still the one in the directory, in turns of at most 20 ms.
const TURNS_PER_LOCK_CHECK: u32 = 50;
/// What reaches the loop.
#[derive(Debug)]
pub(crate) enum ToLoop {
    /// A client has connected; responses go here.
    Connected(ConnectionId, Outgoing),
    /// Something for the node.
    Node(Input),
    /// What a client asks for in one frame, in order.
    Asked(ConnectionId, Vec<(RequestId, Request)>),
    /// A single request, and who waits for its answer.
    Call { id: RequestId, request: Request, reply: oneshot::Sender<Response> },
    /// Nobody waits for the answer to a single request any more.
    Abandon(RequestId),
    /// Numbers are wanted.
    Inspect(oneshot::Sender<Box<Inspection>>),
    /// A copy of everything is wanted.
    Snapshot(oneshot::Sender<Box<SnapshotImage>>),
    /// The bytes of a snapshot that is to be saved are made.
    Save(SavedSnapshot),
    /// The disk has failed, or this node may not go on: nothing more can be promised.
    Failed(String),
    /// Take in nothing more, finish what was taken in, and stop.
    Drain,
    /// Finish and stop.
    Stop,
}

impl ToLoop {
    /// How many things it asks the loop to do.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Asked(_, requests) => requests.len(),
            _ => 1,
        }
    }
}

/// Why the loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
    AsAsked,
    LockLost,
    Failed(String),
}

/// Starts the loop on a runtime, and its disk. The thread that is given back ends when both have ended and the lock is given up.
pub(crate) fn start(
    node: Node,
    wal: Wal<FileDisk>,
    locked: Locked,
    inbox: Arrivals,
    to_loop: Inbox,
    outside: Outside,
    runtime: &Handle,
) -> std::io::Result<JoinHandle<Stopped>> {
    let times = SyncTimes::new();
    let (disk, jobs) = disk::disk(wal, to_loop.clone(), times.clone());
    let own_inbox = to_loop.clone();
    let (tell, how) = std::sync::mpsc::channel();
    // The lock is given up by whoever ends last: if the loop panics, the disk may still be writing.
    let locked = Arc::new(locked);
    let disk_lock = Arc::clone(&locked);
    let ended = std::thread::Builder::new().name("leasehold-disk".into()).spawn(move || {
        let _alarm = Alarm(to_loop, "the disk thread panicked");
        jobs.run();
        // Whoever tells how the loop ended has let go of everything before.
        let stopped = how.recv().unwrap_or_else(|_| Stopped::Failed("the node's loop panicked".into()));
        drop(disk_lock);
        stopped
    })?;
    runtime.spawn(async move {
        // What is made later is dropped earlier, also in a panic: the disk ends, then the lock goes, and then that is told.
        let tell = tell;
        let locked = locked;
        let mut event_loop = Loop {
            node,
            inbox,
            disk,
            to_loop: own_inbox,
            connections: HashMap::new(),
            calls: HashMap::new(),
            hub: Arc::clone(&outside.hub),
            outside,
            leader: None,
            members_changed: true,
            notices: Notices::default(),
            story: Story::default(),
            pulse: Pulse::new(),
            alarm: Box::pin(tokio::time::sleep(Duration::ZERO)),
            rings: None,
            turned: leasehold_clock::read(),
            times,
        };
        let stopped = event_loop.run(&locked).await;
        event_loop.hub.end();
        drop(event_loop);
        drop(locked);
        // A service whose own thread is gone has nobody to tell.
        let _ = tell.send(stopped);
    });
    Ok(ended)
}

/// Tells the loop when a thread panics that it waits for: it would do so for ever.
struct Alarm(Inbox, &'static str);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(ToLoop::Failed(self.1.into()));
        }
    }
}

/// What the loop tells others of, beside its answers.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(crate) hub: Arc<Hub>,
    /// What clients are told when they connect.
    pub(crate) present: Present,
    /// The other members; a directory that processes of one machine share has none.
    pub(crate) peers: Option<ToPeers>,
}

struct Loop {
    node: Node,
    inbox: Arrivals,
    disk: Disk,
    /// For those who make something for it.
    to_loop: Inbox,
    connections: HashMap<ConnectionId, Outgoing>,
    /// Who waits for the answers to single requests.
    calls: HashMap<RequestId, oneshot::Sender<Response>>,
    hub: Arc<Hub>,
    outside: Outside,
    /// Whether the members are others than at the last look.
    members_changed: bool,
    /// Who led at the last look.
    leader: Option<leasehold_core::protocol::MemberId>,
    /// What the log was told of the table.
    notices: Notices,
    /// What the log was told of the cluster.
    story: Story,
    pulse: Pulse,
    /// Wakes the loop when nothing arrives,
    alarm: Pin<Box<Sleep>>,
    /// at this point, if it has not yet.
    rings: Option<Reading>,
    /// When the last turn began.
    turned: Reading,
    times: SyncTimes,
}

/// The way to a client. Its connection ends when the loop drops this.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) sender: async_mpsc::UnboundedSender<(Vec<ToClient>, OnTheWay)>,
    /// What is on the way.
    pub(crate) unread: Arc<Unread>,
    /// Noticed by the connection even while it cannot write.
    pub(crate) _open: oneshot::Sender<()>,
}

/// A client is gone, or does not read.
struct NotRead;

impl Outgoing {
    fn send(&self, mut messages: Vec<ToClient>) -> Result<(), NotRead> {
        refuse_large(&mut messages, &self.unread.room);
        let sent = self.unread.add(&messages).ok_or(NotRead)?;
        self.sender.send((messages, sent)).map_err(|_| NotRead)
    }
}

impl Loop {
    async fn run(&mut self, locked: &Locked) -> Stopped {
        let mut turns_until_check = TURNS_PER_LOCK_CHECK;
        let mut has_yielded = true;
        let membership = self.node.membership();
        self.story = Story::of(&membership.members);
        self.show_members(&membership);
        loop {
            let mut inputs = Vec::new();
            if let Some(stopped) = self.gather(&mut inputs).await {
                return stopped;
            }
            turns_until_check -= 1;
            if turns_until_check == 0 {
                turns_until_check = TURNS_PER_LOCK_CHECK;
                if !locked.is_linked() {
                    return Stopped::LockLost;
                }
            }
            let now = leasehold_clock::read();
            self.turned = now;
            self.pulse.turns(now);
            self.pulse.look(&mut self.node, now);
            let taken = inputs.len();
            let wrote;
            let said = match self.node.turn(now, inputs) {
                Ok(outputs) => {
                    let said = outputs.len();
                    let turned = leasehold_clock::read();
                    wrote = self.carry_out(outputs);
                    (said, turned)
                }
                Err(fatal) => return Stopped::Failed(fatal.to_string()),
            };
            pulse::warn_of_a_long_turn(now, taken, said);
            if self.node.is_drained() {
                return Stopped::AsAsked;
            }
            // Others on this thread have their turn, whatever arrives from elsewhere. What was just written is answered before that, once:
            // somebody waits for it, and for a look at all sockets beside.
            let answers_first = wrote && has_yielded;
            has_yielded = !answers_first;
            if has_yielded && !self.inbox.is_empty() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits for the first input, but not past the node's next wake, and takes in all that has arrived.
    async fn gather(&mut self, inputs: &mut Vec<Input>) -> Option<Stopped> {
        let sleep = self.node.sleep().duration();
        self.pulse.sleeps(sleep);
        // An alarm that rings too early costs a turn; one that is set anew in every turn costs the runtime a call of the system each time.
        let wake = self.turned.plus(sleep);
        if self.rings.is_none_or(|rings| !rings.is_before(wake)) {
            self.alarm.set(tokio::time::sleep(sleep));
            // Not from the beginning of the turn, which may have been long: it would ring later than is noted.
            self.rings = Some(leasehold_clock::read().plus(sleep));
        }
        let mut next = tokio::select! {
            biased;
            first = self.inbox.recv() => match first {
                Some(first) => Some(first),
                None => return Some(Stopped::AsAsked),
            },
            () = &mut self.alarm => {
                self.rings = None;
                None
            }
        };
        let mut taken = 0;
        while let Some(message) = next {
            taken += 1;
            match message {
                ToLoop::Connected(connection, outgoing) => {
                    self.connections.insert(connection, outgoing);
                }
                ToLoop::Node(Input::Disconnected(connection)) => {
                    self.connections.remove(&connection);
                    inputs.push(Input::Disconnected(connection));
                }
                ToLoop::Node(input) => inputs.push(input),
                ToLoop::Asked(connection, requests) => {
                    taken += requests.len() - 1;
                    let input = |(id, request)| Input::Request { connection, id, request };
                    inputs.extend(requests.into_iter().map(input));
                }
                ToLoop::Call { id, request, reply } => {
                    self.calls.insert(id, reply);
                    inputs.push(Input::Request { connection: CALLS, id, request });
                }
                ToLoop::Abandon(id) => {
                    if self.calls.remove(&id).is_some() {
                        inputs.push(Input::Abandoned { connection: CALLS, id });
                    }
                }
                ToLoop::Inspect(reply) => {
                    let _ = reply.send(Box::new(self.inspect()));
                }
                ToLoop::Snapshot(reply) => {
                    let _ = reply.send(Box::new(self.node.image()));
                }
                ToLoop::Save(snapshot) => self.disk.save(snapshot),
                ToLoop::Drain => inputs.push(Input::Drain),
                ToLoop::Failed(why) => return Some(Stopped::Failed(why)),
                ToLoop::Stop => return Some(Stopped::AsAsked),
            }
            if taken >= MAX_INPUTS_PER_TURN {
                break;
            }
            // That nobody can send any more is seen at the next wait.
            next = self.inbox.try_recv();
        }
        None
    }

    /// Does what the node says, in order. Says whether something is on disk by that and can be answered.
    fn carry_out(&mut self, mut outputs: Vec<Output>) -> bool {
        let mut wrote = false;
        // Nobody waits for anything but this write, and no other node for a sign of life.
        if self.node.is_only_member()
            && matches!(outputs.as_slice(), [Output::Write(_)])
            && let Some(Output::Write(write)) = outputs.pop()
        {
            wrote = self.disk.write_at_once(write);
        }
        let mut outgoing: Vec<(ConnectionId, Vec<ToClient>)> = Vec::new();
        let mut places: HashMap<ConnectionId, usize> = HashMap::new();
        let (mut changed, mut answers, mut closed) = (Vec::new(), Vec::new(), Vec::new());
        for output in outputs {
            match output {
                Output::Write(write) => self.disk.write(write),
                Output::SaveSnapshot(image) => snapshots::make(image, &self.to_loop, ToLoop::Save),
                Output::MakeSnapshot(image) => {
                    snapshots::make(image, &self.to_loop, |made| ToLoop::Node(Input::SnapshotMade(made)));
                }
                Output::Changed(changes) => changed.push(changes),
                Output::Send { connection: CALLS, message } => {
                    if let ToClient::Response { id, response } = message {
                        answers.push((id, response));
                    }
                }
                Output::Send { connection, message } => {
                    let place = *places.entry(connection).or_insert_with(|| {
                        outgoing.push((connection, Vec::new()));
                        outgoing.len() - 1
                    });
                    outgoing[place].1.push(message);
                }
                Output::SendPeer { to, message } => {
                    if let Some(peers) = &self.outside.peers {
                        peers.send(Work::Send(to, message));
                    }
                }
                Output::Close(connection) => closed.push(connection),
                Output::Members(membership) => {
                    self.show_members(&membership);
                    self.story.members(&membership.members, self.notices.is_current());
                    if let Some(peers) = &self.outside.peers {
                        peers.send(Work::Members(membership));
                    }
                }
                Output::Replaced => {
                    // What was applied before in this turn is part of it.
                    changed.clear();
                    self.notices.replaced();
                    self.hub.replace(self.node.changes());
                }
            }
        }
        // Before any answer that depends on them: whoever has an answer and then watches has seen what it changed.
        let applied = Revision::new(self.node.applied());
        let leads = self.node.is_serving();
        let (oldest, current) = (self.node.changes().oldest(), leads || self.node.is_caught_up());
        self.hub.publish(&changed, oldest, applied, current, leads);
        self.notices.say(self.node.table(), current, &changed);
        self.show_leader();
        for (id, response) in answers {
            if let Some(reply) = self.calls.remove(&id) {
                // A caller that has just gone away has said so.
                let _ = reply.send(response);
            }
        }
        for (connection, messages) in outgoing {
            let to_client = self.connections.get(&connection);
            if to_client.is_some_and(|to_client| to_client.send(messages).is_err()) {
                // Gone, or not reading: the connection ends, and the client attaches anew.
                if let Some(to_client) = self.connections.remove(&connection)
                    && !to_client.sender.is_closed()
                {
                    tracing::warn!("a client leaves too much unread: its connection ends");
                }
            }
        }
        // Last: what was said before still goes out.
        for connection in closed {
            self.connections.remove(&connection);
        }
        wrote
    }

    fn show_members(&mut self, membership: &Membership) {
        self.members_changed = true;
        let incarnation = membership.incarnation;
        let text = if incarnation.is_known() { incarnation.to_string() } else { String::new() };
        self.outside.present.set_state(&text, membership.epoch);
    }

    fn show_leader(&mut self) {
        let leader = self.node.leader();
        self.story.leads(leader.is_some(), leasehold_clock::read());
        if leader == self.leader && !std::mem::take(&mut self.members_changed) {
            return;
        }
        let is_new = std::mem::replace(&mut self.leader, leader) != leader;
        let membership = self.node.membership();
        let member = leader.and_then(|leader| membership.member(leader));
        let mine = leader == Some(membership.me);
        if is_new && membership.members.len() > 1 {
            let name = member.map_or("nobody", |member| member.name.as_str());
            tracing::info!(leader = name, this_node = mine, "leadership");
        }
        let address = member.map_or("", |member| member.address.as_str());
        self.outside.present.set_leader(if mine { leasehold_wire::THIS_NODE } else { address });
    }

    fn inspect(&self) -> Inspection {
        let table = self.node.table();
        let (sessions, resources) = table.sizes();
        Inspection {
            serving: self.node.is_serving(),
            ready: self.node.is_serving() || (self.node.leader().is_some() && self.node.is_caught_up()),
            leader: self.node.leader(),
            membership: self.node.membership(),
            max_ttl: table.config().max_ttl,
            drift: table.config().drift,
            stats: self.node.stats(),
            counters: table.counters(),
            sessions,
            resources,
            alarms: table.alarms().count(),
            waiting: table.waiting(),
            leaderless: self.node.leaderless(),
            restore_wait: table.restore_wait(),
            applied: Revision::new(self.node.applied()),
            log_time: Millis::new(table.last_at().get()),
            cut: self.node.cut(),
            connections: self.connections.len(),
            sync_micros: self.times.get(),
            steadiness: self.pulse.show(),
        }
    }
}
