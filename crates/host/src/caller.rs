//! Single requests to the node, for doors that keep no connection: HTTP and unary gRPC.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::protocol::MemberId;
use leasehold_core::protocol::{Failure, Query, Request, RequestId, Response};
use leasehold_core::{Millis, Revision};
use leasehold_node::payload::SnapshotImage;
use leasehold_node::{Buckets, GapPattern, Leaderless, Membership, NodeStats};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::driver::ToLoop;
use crate::hub::Hub;
use crate::inbox::Inbox;
use crate::room::{LONGEST_TURN, Page, Room};
use crate::unread::weight_of_answer;

/// Asks the node. Clones share everything.
#[derive(Debug, Clone)]
pub struct Caller {
    inbox: Inbox,
    hub: Arc<Hub>,
    next: Arc<AtomicU64>,
    room: Room,
}

/// Numbers of a running node.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// Whether it leads and answers.
    pub serving: bool,
    /// Whether it answers, by itself or through its leader.
    pub ready: bool,
    /// Who leads, as far as it knows.
    pub leader: Option<MemberId>,
    /// The members.
    pub membership: Membership,
    /// The longest ttl that the table allows.
    pub max_ttl: Millis,
    /// The rate error of clocks that the table goes by.
    pub drift: leasehold_core::Drift,
    /// What the node has counted.
    pub stats: NodeStats,
    /// Totals of the table since its log began.
    pub counters: leasehold_core::table::Counters,
    /// Sessions in the table.
    pub sessions: usize,
    /// Resources in the table.
    pub resources: usize,
    /// Alarms that are raised.
    pub alarms: usize,
    /// Waits in queues.
    pub waiting: usize,
    /// For how long nobody acted on the names of each pattern.
    pub leaderless: Vec<(GapPattern, Leaderless)>,
    /// How long nothing is granted, because the state was restored and holders from before may still act.
    pub restore_wait: Option<Millis>,
    /// Index of the last entry applied.
    pub applied: Revision,
    /// Log time of that entry, as a length since the log began.
    pub log_time: Millis,
    /// Time cut from log time by this process.
    pub cut: Millis,
    /// Session streams that are open.
    pub connections: usize,
    /// Microseconds of a write and its sync.
    pub sync_micros: Buckets,
    /// How steadily it runs.
    pub steadiness: Steadiness,
}

/// How steadily a loop and the clocks of its machine run.
#[derive(Debug, Clone)]
pub struct Steadiness {
    /// Microseconds by which turns of the loop came too late.
    pub late_micros: Buckets,
    /// The longest of the last one to two minutes.
    pub longest_pause: Duration,
    /// How far the two clocks of log time come apart, in parts per million.
    pub clock_disagreement_ppm: u64,
    /// How often the time of day was set.
    pub wall_steps: u64,
    /// By how much in all.
    pub wall_stepped: Duration,
}

impl Inspection {
    /// Whether nobody else decides.
    pub fn is_alone(&self) -> bool {
        matches!(&self.membership.members[..], [(only, _)] if only.id == self.membership.me)
    }
}

impl Caller {
    pub(crate) fn new(inbox: Inbox, hub: Arc<Hub>, room: Room) -> Self {
        Self { inbox, hub, next: Arc::new(AtomicU64::new(crate::inbox::first_id())), room }
    }

    /// Asks to be shown something. What comes with the answer is its room: it counts as unread as long as that lives.
    pub async fn read(&self, query: Query) -> (Response, Option<Page>) {
        let failed = |failure| (Response::Failed(failure), None);
        if query.is_listing() {
            let mut page = match self.room.page().await {
                Ok(page) => page,
                Err(failure) => return failed(failure),
            };
            let mut call = pin!(self.call(Request::Read(query)));
            let response = match timeout(LONGEST_TURN, call.as_mut()).await {
                Ok(response) => response,
                Err(_) => {
                    page.pass_turn();
                    call.await
                }
            };
            return (response, Some(page));
        }
        let response = self.call(Request::Read(query)).await;
        let Response::Read { answer, .. } = &response else { return (response, None) };
        match self.room.admit(weight_of_answer(answer)) {
            Ok(page) => (response, Some(page)),
            Err(failure) => failed(failure),
        }
    }

    /// For what all connections leave unread.
    pub const fn room(&self) -> &Room {
        &self.room
    }

    /// Asks the node. Dropping the future gives the request up: the wait of an acquire that is kept waiting is cancelled.
    pub async fn call(&self, request: Request) -> Response {
        let id = RequestId(self.next.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        if self.inbox.send_when_there_is_room(ToLoop::Call { id, request, reply }).await.is_err() {
            let why = "the service has stopped".into();
            return Response::Failed(Failure::Unavailable { why });
        }
        let mut waiting = Waiting { inbox: &self.inbox, id, answered: false };
        let response = answer.await;
        waiting.answered = true;
        response.unwrap_or(Response::Failed(Failure::OutcomeUnknown))
    }

    /// Changes of the table.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Everything that a backup needs, as of the last entry applied, to be made into bytes; nothing when the node has ended.
    pub async fn snapshot(&self) -> Option<Box<SnapshotImage>> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(ToLoop::Snapshot(reply)).ok()?;
        answer.await.ok()
    }

    /// Numbers for metrics; nothing when the node has ended.
    pub async fn inspect(&self) -> Option<Inspection> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(ToLoop::Inspect(reply)).ok()?;
        answer.await.ok().map(|inspection| *inspection)
    }
}

/// Gives a call up when it is dropped without an answer.
struct Waiting<'a> {
    inbox: &'a Inbox,
    id: RequestId,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            let _ = self.inbox.send(ToLoop::Abandon(self.id));
        }
    }
}
