//! What can go wrong, in three kinds that are never mixed: refused (no effect, now or later), failed (the store could not be
//! reached, or the call made no sense; no effect either), and unknown (sent, and nobody can say).

use std::path::PathBuf;
use std::time::Duration;

use crate::drain::Unfinished;
use leasehold_core::client::{SessionEnd, SubmitError};
use leasehold_core::command::PolicyError;
use leasehold_core::holder::NoGuard;
use leasehold_core::numbers::NumbersError;
use leasehold_core::{Refusal, ResourceName, Revision, TextError, Unavailable, WaitEnding};
use leasehold_fence::{Error as FenceError, Stamp};

/// Why a call did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The service refused: no effect, now or later.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// Somebody else has it, and nobody was asked to wait, or the wait is over.
    #[error("{resource} is not free: {}", describe(.why))]
    NotFree {
        /// Which resource.
        resource: ResourceName,
        /// Why.
        why: Unavailable,
    },
    /// The wait ended without a lease.
    #[error("the wait ended without a lease: {}", match .0 {
        WaitEnding::TimedOut => "its time was over",
        WaitEnding::OfferEnded => "the offer was withdrawn",
        WaitEnding::KindChanged => "an operator changed the kind of the resource",
        WaitEnding::Cancelled => "it was cancelled",
    })]
    WaitEnded(WaitEnding),
    /// The offer was accepted for a wait of the same session that was there before: the lease goes to that one.
    #[error("the session waits for this resource already; the lease that was accepted goes to that wait")]
    AlreadyWaiting,
    /// A receiver could not be sealed with the token of a lease that was just granted. Nobody may act under it, so it was given back.
    #[error("{receiver} could not be sealed with {stamp}, so the lease was given back: {source}; {}", after_seal(.receiver, .source))]
    NotSealed {
        /// Which receiver.
        receiver: String,
        /// Under which name, with which token.
        stamp: Box<Stamp>,
        /// Why: [stale](FenceError::Stale) if tokens fell, [lapsed](FenceError::NoAuthority) if the lease was lost meanwhile, else what the
        /// receiver answered last.
        source: Box<FenceError>,
    },
    /// Nobody who could take it over was found, or the successor did not take up the offer in time. The lease is held as before.
    #[error("no successor took up the offer of {resource} within {waited:?}; it is held as before")]
    NotTakenUp {
        /// Which resource.
        resource: ResourceName,
        /// How long was waited.
        waited: Duration,
    },
    /// The session is over. What it had asked for before this call is not affected by this call.
    #[error("the session has ended: {0}")]
    SessionEnded(SessionEnd),
    /// The command was sent, and nobody can say whether it took effect: the session ended before an answer came, or the store was
    /// out of reach for too long. Its lease, if there is one, ends with the session.
    #[error("the outcome is unknown: no answer came")]
    OutcomeUnknown,
    /// The call was given up before it was answered. What it may still bring is given back.
    #[error("cancelled")]
    Cancelled,
    /// The changes after that revision are not kept any more, so some were missed. Look at the present state, then watch after its
    /// revision.
    #[error("changes after revision {after} are not kept any more; the oldest to watch after is {oldest}")]
    RevisionTooOld {
        /// After which revision changes were asked for.
        after: Revision,
        /// The first after which all changes are kept.
        oldest: Revision,
    },
    /// That revision does not exist: it is another store's, or this one was set back.
    #[error(
        "revision {after} is ahead of the newest, {newest}: it is of another store, or this one was set back"
    )]
    RevisionAhead {
        /// After which revision changes were asked for.
        after: Revision,
        /// The newest.
        newest: Revision,
    },
    /// The store cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The service takes in nothing now; no effect.
    #[error("the service is not available: {0}")]
    Unavailable(String),
    /// A name, label or value that cannot be.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Numbers that do not fit together.
    #[error(transparent)]
    Numbers(#[from] NumbersError),
    /// Policies that do not fit together.
    #[error(transparent)]
    Policies(#[from] PolicyError),
    /// A store address that is not understood.
    #[error("store {url:?} is not understood: {why}")]
    BadUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Too many calls at once, or a call on something that is being closed.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The lease may not be acted upon now, or not for so long.
    #[error(transparent)]
    NoGuard(#[from] NoGuard),
    /// A drain ran out of its budget. What was drained is held as before.
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
    /// The orchestrator would kill the process before its work could finish and its lease be given back.
    #[error(
        "a grace period of {grace:?} is below the {needed:?} that a drain needs: {work_bound:?} for the work, the rest to give the lease back; \
         raise the grace period, or shorten the work"
    )]
    GraceTooShort {
        /// The time between SIGTERM and SIGKILL.
        grace: Duration,
        /// How long one piece of work takes at most.
        work_bound: Duration,
        /// What is needed at least.
        needed: Duration,
    },
    /// The machine did not give what every program needs: a thread, randomness.
    #[error("the system refused: {0}")]
    System(std::io::Error),
}

/// Why a store cannot be reached.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// The directory cannot be used at all.
    #[error("{0}")]
    Directory(String),
    /// Another process holds the directory and does not answer.
    #[error(
        "{} is served by process {pid}, which {} and did not answer for {waited:?}",
        .path.display(),
        if *.stopped { "is stopped" } else { "runs" }
    )]
    ServerSilent {
        /// The directory.
        path: PathBuf,
        /// The process that holds its lock.
        pid: u32,
        /// Whether it is stopped by a signal or a debugger.
        stopped: bool,
        /// How long was waited.
        waited: Duration,
    },
    /// No connection for so long.
    #[error("no connection to {store} for {waited:?}{}", .last.as_ref().map(|last| format!(": {last}")).unwrap_or_default())]
    NoConnection {
        /// Which store.
        store: String,
        /// How long was waited.
        waited: Duration,
        /// The last thing that went wrong.
        last: Option<String>,
    },
    /// A node answers, but no leader is known to it: more than half of the voters are down or cannot reach each other, or its cluster is
    /// not founded yet.
    #[error("{place} answers, but no leader was known there for {waited:?}: {}", without_leader(.missing.as_deref()))]
    NoLeader {
        /// Which node.
        place: String,
        /// How long was waited.
        waited: Duration,
        /// The founders that this node has not met, if its cluster is not founded yet.
        missing: Option<String>,
    },
    /// Another life of the state is at a known address, and not a later one: an old copy, or another cluster. Sessions of the one that was
    /// known end by their ttl.
    #[error(
        "{place} has another state: incarnation {found} of epoch {found_epoch}, where {known} of epoch {known_epoch} was known; only a restore, which raises the epoch, may replace it"
    )]
    OtherLife {
        /// Where.
        place: String,
        /// The incarnation that was known.
        known: String,
        /// How often that one was restored.
        known_epoch: u32,
        /// The incarnation that was met.
        found: String,
        /// How often that one was restored.
        found_epoch: u32,
    },
    /// The other side does not speak the same protocol.
    #[error("{0}")]
    Protocol(String),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFree { resource, why } => Self::NotFree { resource, why },
            other => Self::Refused(other),
        }
    }
}

fn without_leader(missing: Option<&str>) -> String {
    match missing {
        None => "nothing is granted or confirmed without one".to_owned(),
        Some(missing) => {
            format!(
                "its cluster is founded when all its nodes have met once, and {missing} did not answer yet"
            )
        }
    }
}

/// What to do when a receiver could not be sealed.
fn after_seal(receiver: &str, why: &FenceError) -> String {
    match why {
        FenceError::Stale(stale) => {
            let highest = stale.highest.map_or_else(|| "TOKEN".to_owned(), |highest| highest.to_string());
            format!(
                "tokens fell: greater ones came from another store, or from this one before it was set back. Use that store, or raise the \
                 tokens of this one: leasehold data recover --data DIR --above {highest} (add --holders-are-stopped if no holder runs, else nothing is \
                 granted for its longest ttl)"
            )
        }
        FenceError::NoAuthority(_) => "ask for the lease again".to_owned(),
        away if away.is_away() => format!("see that {receiver} answers, then ask for the lease again"),
        _ => "mend that, then ask for the lease again".to_owned(),
    }
}

/// Why a resource is not free, in words.
pub(crate) fn describe(why: &Unavailable) -> String {
    match why {
        Unavailable::Held { holder, token, overdue } => {
            let who = if holder.as_str().is_empty() { "somebody" } else { holder.as_str() };
            let late = if *overdue { ", which is overdue" } else { "" };
            format!("held by {who} with token {token}{late}")
        }
        Unavailable::Queue { waiting } => format!("{waiting} were first"),
        Unavailable::RevokePending { token, remaining } => {
            format!("token {token} was revoked and its holder may not know for another {remaining}")
        }
        Unavailable::CoolDown { remaining } => format!("it cools down for another {remaining}"),
        Unavailable::RestoreWait { remaining } => {
            format!("nothing is granted for another {remaining} after a restore")
        }
        Unavailable::Alarm { token } => {
            format!("token {token} was shown, which was never granted here, and an operator must look")
        }
    }
}
