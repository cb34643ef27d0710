//! What goes into a node and what comes out of it, what it begins with, and why it may end.

use std::sync::Arc;

use leasehold_core::Config;
use leasehold_core::protocol::{Changes, MemberId, Request, RequestId, ToClient};

use crate::anchor::{Machine, ResumeError};
use crate::hints::RENEWALS_AT_ONCE;
use crate::members::{CLUSTER_VERSION, Membership};
use crate::meter::GapPattern;
use crate::payload::{PayloadError, SnapshotImage};
use crate::peer::PeerMessage;
use crate::routes::ConnectionId;

/// What happened since the last turn.
#[derive(Debug)]
pub enum Input {
    /// A client asks for something.
    Request {
        /// Through which connection.
        connection: ConnectionId,
        /// The id that the connection gave it.
        id: RequestId,
        /// What.
        request: Request,
    },
    /// Whoever sent this request does not wait for its answer any more.
    Abandoned {
        /// Through which connection.
        connection: ConnectionId,
        /// The request.
        id: RequestId,
    },
    /// A client has ended its connection, or died: its side says so. [`Input::Disconnected`] follows.
    HungUp(ConnectionId),
    /// A connection is gone.
    Disconnected(ConnectionId),
    /// A write was synced, and with it all before it.
    Written {
        /// Its number.
        number: u64,
    },
    /// A snapshot is safe on disk.
    SnapshotSaved {
        /// The last entry it covers.
        index: u64,
    },
    /// The bytes of a snapshot that was to be made.
    SnapshotMade(SavedSnapshot),
    /// Another member says something.
    Peer {
        /// Who.
        from: MemberId,
        /// What.
        message: PeerMessage,
    },
    /// A connection to or from another member has ended, and with it what was under way on it.
    PeerLost(MemberId),
    /// A snapshot for another member has been sent, or could not be.
    SnapshotSent {
        /// To whom.
        to: MemberId,
        /// Whether all of it arrived.
        arrived: bool,
    },
    /// Another member knows this version of what may stand in the log.
    PeerKnows {
        /// Who.
        member: MemberId,
        /// The greatest version that it knows.
        version: u32,
    },
    /// There is room on the disk, or only what is kept for those who end things.
    Space {
        /// Whether there is.
        enough: bool,
    },
    /// Take in nothing more, and finish what was taken in. A leader hands over first.
    Drain,
}

/// What is to be done, in order.
#[derive(Debug)]
pub enum Output {
    /// Write to the log and sync, then say so with [`Input::Written`].
    Write(LogWrite),
    /// Send to a client.
    Send {
        /// Through which connection.
        connection: ConnectionId,
        /// What.
        message: ToClient,
    },
    /// An applied entry changed something that is watched. Comes before every answer that depends on it.
    Changed(Arc<Changes>),
    /// Make this into bytes and save it, then say so with [`Input::SnapshotSaved`]. Making it takes long: not on the thread of the loop.
    SaveSnapshot(Box<SnapshotImage>),
    /// Make this into bytes, as above, and give them back with [`Input::SnapshotMade`].
    MakeSnapshot(Box<SnapshotImage>),
    /// Send to another member.
    SendPeer {
        /// To whom.
        to: MemberId,
        /// What.
        message: PeerMessage,
    },
    /// End a client's connection: it must attach anew.
    Close(ConnectionId),
    /// The members are these now.
    Members(Arc<Membership>),
    /// A snapshot has taken the place of the table and its last changes: whoever watches goes on from those.
    Replaced,
}

/// One write to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogWrite {
    /// To be named when it is synced.
    pub number: u64,
    /// A snapshot that another member has sent: it takes the place of everything before, and is saved first.
    pub install: Option<SavedSnapshot>,
    /// The term and vote, if they changed.
    pub vote: Option<Vote>,
    /// Entries; they supersede what was there from the first of them on.
    pub entries: Vec<LogEntry>,
}

/// What a node must never forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vote {
    /// Its term.
    pub term: u64,
    /// Whom it voted for in that term; zero is nobody.
    pub vote: u64,
    /// How far the log is known to be committed.
    pub commit: u64,
}

/// One entry as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place.
    pub index: u64,
    /// The term it was proposed in.
    pub term: u64,
    /// Raft's kind of entry.
    pub kind: u8,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// What the files held.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Term and vote.
    pub vote: Vote,
    /// Entries after the snapshot.
    pub entries: Vec<LogEntry>,
    /// The newest snapshot.
    pub snapshot: Option<SavedSnapshot>,
}

/// A snapshot as it was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSnapshot {
    /// The last entry it covers.
    pub index: u64,
    /// The term of that entry.
    pub term: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Where the node runs.
#[derive(Debug, Clone)]
pub enum Place {
    /// In a directory that processes of one machine share: time without a server counts.
    Embedded {
        /// The clocks' machine.
        machine: Machine,
        /// End everything and wait, where the clocks cannot be compared.
        end_all_after_wait: bool,
    },
    /// As a service: time without a leader does not count.
    Served,
}

/// What a log without a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// New, or not old enough for one: this member is the only one.
    Alone,
    /// Blank: the others know who the members are, and will send a snapshot.
    Blank,
}

/// What a node begins with.
#[derive(Debug)]
pub struct Setup {
    /// Where it runs.
    pub place: Place,
    /// Who it is.
    pub member: MemberId,
    /// What it is if the files hold no snapshot.
    pub start: Start,
    /// The choices for a log that is new; an old one keeps its own.
    pub config: Config,
    /// What the files held.
    pub recovered: Recovered,
    /// Knobs.
    pub options: Options,
    /// The release and process, for the status.
    pub version: String,
    /// The process that serves.
    pub pid: u32,
    /// Seeds the election timeouts.
    pub seed: u64,
}

/// Knobs, with defaults that fit.
#[derive(Debug, Clone)]
pub struct Options {
    /// A snapshot is taken after this many entries.
    pub snapshot_entries: u64,
    /// Or after this many bytes of entries.
    pub snapshot_bytes: u64,
    /// The greatest version of what may stand in a log that this release knows.
    pub cluster_version: u32,
    /// Up to this many renewals at once are never too many: nobody is asked to renew at another time.
    pub renewals_at_once: usize,
    /// Whose clocks the node reads, where readings of an earlier process of the same boot are to be understood: for a service, to say for
    /// how long it was away. An embedded directory has this in its [`Place`].
    pub machine: Option<Machine>,
    /// Names whose gaps are counted apart, for metrics.
    pub gap_patterns: Vec<GapPattern>,
}

impl Default for Options {
    fn default() -> Self {
        // A restart reads the snapshot and what came after it: this keeps that to tens of milliseconds.
        Self {
            snapshot_entries: 8_192,
            snapshot_bytes: 8 * 1024 * 1024,
            cluster_version: CLUSTER_VERSION,
            renewals_at_once: RENEWALS_AT_ONCE,
            machine: None,
            gap_patterns: Vec::new(),
        }
    }
}

/// Why a node cannot begin or go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// Log time cannot go on.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The log or snapshot cannot be read.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The state contradicts itself.
    #[error("the files contradict themselves: {0}")]
    Invariant(String),
    /// Raft's word for it.
    #[error("consensus failed: {0}")]
    Raft(String),
    /// This replica is not what the others are.
    #[error(
        "the outcomes before entry {index} come to {ours:016x} here and to {theirs:016x} at the leader that proposed it: this replica \
         is not what the others are and must not go on; keep its directory for a look, remove the member and add it with an empty one"
    )]
    Diverged {
        /// The entry.
        index: u64,
        /// What they come to here.
        ours: u64,
        /// What they came to there.
        theirs: u64,
    },
    /// The log may hold what this release does not know.
    #[error("the cluster is of version {needs}, and this release knows up to {knows}: upgrade it")]
    TooOld {
        /// The version of the cluster.
        needs: u32,
        /// The greatest that is known here.
        knows: u32,
    },
    /// The others have removed this member.
    #[error(
        "this node was removed from its cluster; to take part again it needs an empty directory and `cluster add`"
    )]
    Removed,
}
