//! The events themselves: small, and cheap to push.

use leasehold_core::{Command, Op, Sequence, SessionId, Token};

use super::{ClientId, LogId, Machine, NodeId, Place, ResourceId, TrueTime, hash};

/// What an application asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// One exclusive lease.
    Exclusive {
        /// Of what.
        resource: ResourceId,
        /// For how many milliseconds it waits, if it does.
        wait: Option<u32>,
    },
    /// A lease in another mode, or several.
    Others {
        /// The first resource.
        resource: ResourceId,
        /// How many resources.
        count: u16,
        /// For how many milliseconds it waits, if it does.
        wait: Option<u32>,
    },
    /// An end to a wait.
    Cancel {
        /// The number of the acquire.
        acquire: u64,
    },
    /// Gives a lease back.
    Release {
        /// Of what.
        resource: ResourceId,
        /// Which lease.
        token: Token,
    },
    /// An end to the session.
    Close,
    /// Anything else.
    Other,
}

/// What an application hears of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A lease; one event for each lease of a unit.
    Granted {
        /// Of what.
        resource: ResourceId,
        /// Which lease.
        token: Token,
    },
    /// It waits.
    Queued,
    /// The wait ended without a lease, or was cancelled.
    WaitOver,
    /// The lease is given back.
    Released,
    /// Not free: this lease is in the way.
    Held {
        /// Its token.
        token: Token,
    },
    /// Refused for any other reason.
    Refused,
    /// Done.
    Done,
    /// Never sent: no effect.
    NotSent,
    /// Nobody can say.
    Unknown,
}

/// Names what was sent, so that it can be found in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKey {
    /// An open, by its nonce.
    Open([u8; 16]),
    /// An attach.
    Attach(SessionId, u64),
    /// A renewal of a streamed session, by its number.
    Renew(SessionId, u64),
    /// A command of a streamed session: attach number, then its own.
    Command(SessionId, u64, u64),
    /// The renewals of a plain session, all of them.
    PlainRenew(SessionId),
    /// A command of a plain session, by a hash of what it says: see [`RequestKey::of`].
    Plain(SessionId, u64),
    /// What an operator asks, by a hash of what it says: see [`RequestKey::of`].
    Operator(u64),
}

impl RequestKey {
    /// The key of a command, as the log has it; nothing for what nodes say themselves.
    pub fn of(command: &Command) -> Option<Self> {
        Some(match command {
            Command::Open(open) => Self::Open(open.nonce.0),
            Command::Attach(attach) => Self::Attach(attach.session, attach.attach.get()),
            Command::Renew { session, number, .. } => Self::Renew(*session, number.get()),
            Command::RenewPlain { session } => Self::PlainRenew(*session),
            Command::Session(command) => match (command.sequence, &command.op) {
                (Sequence::Streamed { attach, number, .. }, _) => {
                    Self::Command(command.session, attach.get(), number.get())
                }
                // Nodes give up the waits of callers that went away.
                (Sequence::Plain, Op::Cancel { .. }) => return None,
                (Sequence::Numbered(numbered), op) => {
                    Self::Plain(command.session, hash(format!("{numbered:?} {op:?}").as_bytes()))
                }
                (Sequence::Plain, op) => Self::Plain(command.session, hash(format!("{op:?}").as_bytes())),
            },
            Command::Operator(operator) => Self::Operator(hash(format!("{operator:?}").as_bytes())),
            // The place in the stream is used up all the same.
            Command::NoRoom { session, sequence: Sequence::Streamed { attach, number, .. } } => {
                Self::Command(*session, attach.get(), number.get())
            }
            Command::NoRoom { .. } | Command::Tidy(_) | Command::System(_) | Command::Detached { .. } => {
                return None;
            }
        })
    }
}

/// Why a node stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Killed.
    Crashed,
    /// Asked to.
    Drained,
    /// An error of its disk.
    DiskError,
    /// It refuses damaged files.
    Damaged,
    /// It was removed from its cluster.
    Removed,
    /// It found that it is not what the others are.
    Diverged,
    /// Its release does not know what stands in the log.
    TooOld,
    /// It panicked, or failed in another way that nothing done to it explains.
    Failed,
}

/// What is done to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Its process is stopped and goes on later; its clocks go on.
    Paused,
    /// Its clocks run wrongly, stand still or disagree.
    Clock,
    /// It is cut off, or messages are lost, late or doubled.
    Network,
    /// Its disk is slow or stuck.
    SlowDisk,
    /// Its disk refuses writes.
    FullDisk,
    /// Bits or blocks were changed behind its back.
    Damage,
    /// Its files are those of an earlier time, or copies.
    RolledBack,
    /// Its files are gone.
    Wiped,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A client has a session.
    SessionOpened {
        /// Which client.
        client: ClientId,
        /// Which session.
        session: SessionId,
        /// Its ttl.
        ttl_ms: u64,
        /// ttl - margin: how long a confirmed sending carries.
        usable_ms: u64,
        /// When the nonce was first sent.
        first_sent: TrueTime,
    },
    /// The service has told a client that its session is over.
    SessionRefused {
        /// Which session.
        session: SessionId,
    },
    /// A client's session is over for the client.
    SessionOver {
        /// Which session.
        session: SessionId,
    },
    /// A client's process died for good, with the sessions it had. Say this before [`Event::SessionOver`]. Another process may go
    /// on under the same id, with sessions of its own.
    Died {
        /// Which client.
        client: ClientId,
    },
    /// An application submits a command.
    Asked {
        /// In which session.
        session: SessionId,
        /// Its number.
        command: u64,
        /// What.
        what: Asked,
    },
    /// An application hears what became of a command; a wait is told of twice.
    Told {
        /// In which session.
        session: SessionId,
        /// Its number.
        command: u64,
        /// What.
        what: Told,
    },
    /// An application asks for the holder of a resource.
    ReadAsked {
        /// Which client.
        client: ClientId,
        /// Names the read; unique in the run.
        read: u64,
        /// Of what.
        resource: ResourceId,
    },
    /// It hears it.
    ReadTold {
        /// Which read.
        read: u64,
        /// Of which log.
        log: LogId,
        /// As of which entry.
        revision: u64,
        /// The token of the first holder shown.
        holder: Option<Token>,
    },
    /// A renewal leaves the client. Its answer comes through `Record::replied`.
    RenewalSent {
        /// Of which session.
        session: SessionId,
        /// Which sending.
        number: u64,
    },
    /// A plain session hears that a renewal counted. Its number is given where it counts, so its sending is known only now.
    PlainRenewed {
        /// Of which session.
        session: SessionId,
        /// Which number it got.
        number: u64,
        /// When it left the client.
        sent: TrueTime,
    },
    /// A plain session hears of a lease of its own, by an answer or a list.
    PlainKnows {
        /// Of which session.
        session: SessionId,
        /// Which lease.
        token: Token,
    },
    /// A release, close or handover that gives up this lease was submitted: belief ends here.
    LetGo {
        /// Of which session.
        session: SessionId,
        /// Which lease.
        token: Token,
    },
    /// What `guard` says about a lease from now on; see `Record::belief`.
    Belief {
        /// Of which session.
        session: SessionId,
        /// Of what.
        place: Place,
        /// Which lease.
        token: Token,
        /// Yes up to here; nothing is no.
        until: Option<TrueTime>,
    },
    /// A frame left a client, or was copied on its way.
    RequestSent {
        /// Which.
        key: RequestKey,
    },
    /// A frame was answered with a failure.
    RequestFailed {
        /// Which.
        key: RequestKey,
        /// Whether the answer says that it has no effect.
        definite: bool,
    },
    /// A node applied an entry.
    Applied {
        /// Of which log.
        log: LogId,
        /// Which node.
        node: NodeId,
        /// The entry.
        index: u64,
        /// Its term.
        term: u64,
        /// A hash of its kind and bytes.
        bytes: u64,
    },
    /// A node took a snapshot in place of everything up to this entry.
    Installed {
        /// Of which log.
        log: LogId,
        /// Which node.
        node: NodeId,
        /// The last entry covered.
        index: u64,
    },
    /// Entries of one term are synced on a node's disk.
    Durable {
        /// Of which log.
        log: LogId,
        /// Which node.
        node: NodeId,
        /// The first.
        first: u64,
        /// The last.
        last: u64,
        /// Their term.
        term: u64,
    },
    /// A leader stamped an entry and sent it to its log.
    Stamped {
        /// Of which log.
        log: LogId,
        /// Which node.
        node: NodeId,
        /// The entry.
        index: u64,
        /// Its term.
        term: u64,
        /// Since when nothing was on its way to the disk.
        free: TrueTime,
        /// Nanoseconds since the turn of its loop before this one.
        idle: u64,
    },
    /// A node's loop stood still, or something was on its way to its disk for long; this is over now.
    Stood {
        /// Which node.
        node: NodeId,
        /// Since when.
        since: TrueTime,
        /// How much of it does not count in log time, in nanoseconds.
        lost: u64,
    },
    /// A node was asked to stop: from now on it begins nothing.
    Draining {
        /// Which node.
        node: NodeId,
    },
    /// Something happened after which a leader, whichever it is, may hand over.
    HandingOver,
    /// What a node's table comes to behind an entry: [`hash`] of its bytes. Push at restarts, installs and the end.
    State {
        /// Of which log.
        log: LogId,
        /// Which node.
        node: NodeId,
        /// Behind which entry.
        index: u64,
        /// The hash.
        hash: u64,
    },
    /// By whom a node counts what is decided, from now on: sets kept in `Record::voter_sets`.
    Voters {
        /// Of which log.
        log: LogId,
        /// Which node.
        node: NodeId,
        /// Behind which entry.
        index: u64,
        /// The place of the set.
        set: u32,
    },
    /// A node leads.
    Leads {
        /// Which node.
        node: NodeId,
        /// In which term.
        term: u64,
    },
    /// A node leads no more.
    LeadsNoMore {
        /// Which node.
        node: NodeId,
        /// The term in which it led.
        term: u64,
    },
    /// A node begins to run.
    Started {
        /// Which node.
        node: NodeId,
    },
    /// A node stands still.
    Stopped {
        /// Which node.
        node: NodeId,
        /// Why.
        why: Stopped,
    },
    /// A receiver judged a write.
    Write {
        /// Of what.
        place: Place,
        /// Whether this receiver checks tokens.
        fenced: bool,
        /// The token shown.
        token: Token,
        /// Whose.
        session: SessionId,
        /// When the guard for it was given; a pause after that counts as time under way.
        sent: TrueTime,
        /// Whether it was taken.
        accepted: bool,
    },
    /// A fenced receiver judged a seal.
    Sealed {
        /// Of what.
        place: Place,
        /// The token shown.
        token: Token,
        /// Whose.
        session: SessionId,
        /// Whether it was taken.
        accepted: bool,
    },
    /// Something is done to a machine, or no longer done.
    Fault {
        /// To which.
        machine: Machine,
        /// What.
        what: Fault,
        /// Whether the promises cover it.
        within: bool,
        /// Whether it begins; a fault of one moment begins and never ends.
        begins: bool,
    },
    /// Another life of the state begins.
    Restored {
        /// Its log.
        log: LogId,
        /// Its epoch.
        epoch: u16,
        /// Whether what the operator said was true (no restore forgotten, holders stopped where said so).
        truthful: bool,
    },
    /// From here on no fault is under way and every machine runs.
    FaultsStopped,
    /// The run is over.
    Ended,
}
