//! Single requests to the node, for doors that keep no connection: HTTP and unary gRPC.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::protocol::MemberId;
use leasehold_core::protocol::{Failure, Request, RequestId, Response};
use leasehold_core::{Millis, Revision};
use leasehold_node::payload::SnapshotImage;
use leasehold_node::{Buckets, GapPattern, Leaderless, Membership, NodeStats};
use tokio::sync::oneshot;

use crate::driver::ToLoop;
use crate::hub::Hub;
use crate::inbox::Inbox;

/// Asks the node. Clones share everything.
#[derive(Debug, Clone)]
pub struct Caller {
    inbox: Inbox,
    hub: Arc<Hub>,
    next: Arc<AtomicU64>,
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
    pub(crate) fn new(inbox: Inbox, hub: Arc<Hub>) -> Self {
        Self { inbox, hub, next: Arc::new(AtomicU64::new(crate::inbox::first_id())) }
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
