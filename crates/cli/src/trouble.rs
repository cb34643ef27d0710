//! Everything that ends a command before its end: what it says, under which code, with which exit code.

use std::path::PathBuf;

use leasehold::core::Mode;
use leasehold::{Error, Refusal, ResourceName, Revision, Token, Unreachable};
use leasehold_api::code::Kind;

use crate::codes;
use crate::exit::Exit;
use crate::supervise::StartError;

/// Why a command ends early. Messages say the next step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// What the store said.
    #[error("{}", words_of(.0))]
    Store(#[from] Error),
    /// The command line makes no sense in a way that the parser cannot see.
    #[error("{0}")]
    Misuse(String),
    /// A look at a directory that nobody has used yet.
    #[error("there is no store at {}; `leasehold run` or `leasehold hold` makes one", .0.display())]
    NoStore(PathBuf),
    /// The default directory cannot be trusted.
    #[error("{path} {why}; name a store with --store or LEASEHOLD_STORE", path = .path.display())]
    BadDirectory {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The resource was not had in time.
    #[error("{resource} was not acquired: {why}")]
    NotAcquired {
        /// Which resource.
        resource: ResourceName,
        /// Who holds it and for how long, as far as is known.
        why: String,
    },
    /// The name is held in another way than it was asked for.
    #[error("{}", wrong_kind(.names, *.has, *.asked))]
    WrongKind {
        /// Which names: one of them is of another kind.
        names: String,
        /// How it can be held.
        has: Mode,
        /// How it was asked for.
        asked: Mode,
    },
    /// A receiver could not be sealed, so there is no lease.
    #[error("{message}")]
    NotSealed {
        /// What the library said.
        error: Error,
        /// The same with what is known here: where the receiver comes from, and where the store is.
        message: String,
    },
    /// A receiver that is to be sealed or looked at is not there, so nothing was asked for.
    #[error("{0}")]
    NoReceiver(String),
    /// The store went away while a lease was asked for.
    #[error("{}", without_a_lease(.error, .so))]
    NoLease {
        /// What the store said last.
        error: Error,
        /// What follows for whoever asked.
        so: &'static str,
    },
    /// A lease that was had could not be given back.
    #[error("{message}")]
    NotReleased {
        /// What the store said last.
        error: Error,
        /// Which lease, and what becomes of it.
        message: String,
    },
    /// A watch that had begun is over.
    #[error("{}; go on with --after {after}", words_of(.error))]
    WatchEnded {
        /// Why.
        error: Error,
        /// The last revision that was told.
        after: Revision,
    },
    /// A lease ended while it was needed.
    #[error("{0}")]
    Lost(String),
    /// The holder was asked and has not released in time.
    #[error(
        "{holder} was asked but still holds {resource} with token {token}; wait longer with --wait, or end it with: \
         leasehold revoke {resource} --token {token} --reason TEXT"
    )]
    NoAnswer {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// What the holder calls itself.
        holder: String,
    },
    /// There is nobody to hand a lease to.
    #[error("{0}")]
    NoSuccessor(String),
    /// A successor that was named is not ready, so nothing was asked of the holder.
    #[error("{0}")]
    NotReady(String),
    /// The command could not be started.
    #[error("{0}")]
    Start(#[from] StartError),
    /// A signal came while nothing was held.
    #[error("ended by signal {0} while waiting")]
    Signal(i32),
    /// There is no alarm to answer.
    #[error("no alarm is raised for {0}; `leasehold alarms` lists those that are")]
    NoAlarm(ResourceName),
    /// The person at the terminal said no.
    #[error("nothing was done")]
    NotConfirmed,
    /// The service could not begin, or ended although nobody had asked it to.
    #[error("{0}")]
    Service(String),
    /// A service that was asked over HTTP said no.
    #[error("{message}")]
    Answered {
        /// Its code.
        code: String,
        /// Its kind, as the service says it: the code may be one that this release does not know.
        kind: Kind,
        /// Its words.
        message: String,
    },
    /// A backup, or the files of a service that does not run.
    #[error("{0}")]
    Files(String),
    /// A history of a run that cannot be judged, or not be written.
    #[error("{0}")]
    History(String),
    /// The result could not be written.
    #[error("cannot write the result: {0}")]
    Output(std::io::Error),
    /// The machine did not give what every program needs.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What a service says that takes in nothing now.
const NOT_NOW: &str = "unavailable";

impl Trouble {
    /// What was tried, for what the system says to it.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    /// What a service would say over HTTP.
    pub(crate) fn answered(code: &str, message: String) -> Self {
        Self::Answered { code: code.to_owned(), kind: codes::kind(code), message }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.codes().1
    }

    /// The code that programs compare, and the kind of answer.
    pub(crate) fn code(&self) -> (&str, Kind) {
        let (code, _) = self.codes();
        let kind = match self {
            Self::Answered { kind, .. } => *kind,
            _ => codes::kind(code),
        };
        (code, kind)
    }

    fn codes(&self) -> (&str, Exit) {
        match self {
            Self::Answered { code, .. } if code == NOT_NOW => (code, Exit::UNREACHABLE),
            Self::Answered { code, kind: Kind::Unknown, .. } => (code, Exit::UNKNOWN),
            Self::Answered { code, .. } => (code, Exit::FAILURE),
            Self::Store(error)
            | Self::NotSealed { error, .. }
            | Self::NoLease { error, .. }
            | Self::NotReleased { error, .. }
            | Self::WatchEnded { error, .. } => (codes::of_error(error), Exit::of_error(error)),
            Self::Misuse(_) => ("misuse", Exit::MISUSE),
            Self::NoStore(_) => ("no-store", Exit::UNREACHABLE),
            Self::BadDirectory { .. } => ("directory-unusable", Exit::UNREACHABLE),
            Self::NotAcquired { .. } => ("not-free", Exit::HELD),
            Self::WrongKind { .. } => ("wrong-kind", Exit::FAILURE),
            Self::NoReceiver(_) => ("not-sealed", Exit::NOT_SEALED),
            Self::Lost(_) => ("lost", Exit::LOST),
            Self::NoAnswer { .. } => ("no-answer", Exit::HELD),
            Self::Start(error) => (codes::of_start(error), Exit::of_start(error)),
            Self::Signal(signal) => ("signal", Exit::of_signal(*signal)),
            Self::NoAlarm(_) => ("no-such-alarm", Exit::FAILURE),
            Self::NoSuccessor(_) => ("no-such-successor", Exit::FAILURE),
            Self::NotReady(_) => ("not-taken-up", Exit::HELD),
            Self::NotConfirmed => ("not-confirmed", Exit::FAILURE),
            Self::Service(_) => ("service-failed", Exit::FAILURE),
            Self::Files(_) => ("files-unusable", Exit::FAILURE),
            Self::History(_) => ("history-unusable", Exit::UNJUDGED),
            Self::Output(_) => ("output-failed", Exit::FAILURE),
            Self::System { .. } => ("system", Exit::FAILURE),
        }
    }

    /// The same, if it is that the store went away: with what follows from that.
    pub(crate) fn without_a_lease(self, so: &'static str) -> Self {
        match self {
            // Nobody would think that anything was done with a directory that cannot be used.
            Self::Store(Error::Unreachable(Unreachable::Directory(_))) => self,
            Self::Store(error @ (Error::OutcomeUnknown | Error::Unreachable(_) | Error::Unavailable(_))) => {
                Self::NoLease { error, so }
            }
            other => other,
        }
    }

    /// Whether nobody reads the results any more, which is no news to anybody.
    pub(crate) fn is_closed_output(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

/// Every user of a name holds it in the same way, which the first one chose.
fn wrong_kind(names: &str, has: Mode, asked: Mode) -> String {
    let asked = match asked {
        Mode::Exclusive => "without --shared or --slots".to_owned(),
        Mode::Shared => "with --shared".to_owned(),
        Mode::Slot { of } => format!("with --slots {of}"),
    };
    let one_of = if names.contains(", ") { "one of " } else { "" };
    format!("{one_of}{names} is {has}; it was asked for {asked}")
}

fn without_a_lease(error: &Error, so: &str) -> String {
    match error {
        // Not the usual advice: whatever came of it belongs to a session that nobody renews any more.
        Error::OutcomeUnknown => {
            let then = "and a lease that it may have granted ends with its ttl";
            format!("the store did not answer any more; {so}, {then}")
        }
        other => format!("{}; {so}", words_of(other)),
    }
}

/// The store's words, with the next step where the words alone leave one at a loss.
fn words_of(error: &Error) -> String {
    let next = match error {
        Error::Unreachable(Unreachable::ServerSilent { stopped: true, pid, .. }) => {
            format!("; continue it with: kill -CONT {pid}")
        }
        Error::Unreachable(Unreachable::Directory(_)) => {
            "; make it usable, or name another store with --store".to_owned()
        }
        Error::Unreachable(Unreachable::NoLeader { .. }) => "; see `leasehold cluster status`".to_owned(),
        Error::Refused(Refusal::TtlOutOfRange { .. }) => "; choose a ttl in between".to_owned(),
        Error::Refused(Refusal::WrongKind { .. }) => {
            "; every user of a name says the same --shared or --slots".to_owned()
        }
        Error::Refused(Refusal::TokenAhead { .. }) => "; see `leasehold alarms`".to_owned(),
        Error::Refused(Refusal::NoSuchAlarm { raised: Some(raised), .. }) => {
            format!("; the one that is raised has token {raised}")
        }
        Error::RevisionTooOld { .. } => "; look with `leasehold list`, and watch without --after".to_owned(),
        Error::OutcomeUnknown => "; look with `leasehold get` before you try again".to_owned(),
        _ => String::new(),
    };
    format!("{error}{next}")
}
