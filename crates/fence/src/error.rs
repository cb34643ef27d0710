//! How a fenced write can end without being accepted, in kinds that are never mixed.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, ErrorKind};
use std::iter;

use crate::stamp::Stamp;

/// Whatever goes wrong beside the fence: errors of a driver or client, of a further fence, or your own.
pub type Trouble = Box<dyn StdError + Send + Sync>;

/// Why a fenced write was not accepted, or nobody can say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The authority has lapsed: nothing was sent.
    #[error(transparent)]
    NoAuthority(#[from] NoAuthority),
    /// The receiver has seen a greater token: nothing was written, now or later.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// Nothing was written, for another reason. It may be tried again.
    #[error("{receiver}: nothing was written: {source}")]
    Failed {
        /// Which receiver.
        receiver: String,
        /// Whether trying again may help.
        cause: Cause,
        /// Why.
        source: Trouble,
    },
    /// It was sent, and nobody can say whether it was written.
    #[error("{receiver}: nobody can say whether it was written: {source}")]
    Unknown {
        /// Which receiver.
        receiver: String,
        /// What went wrong.
        source: Trouble,
    },
}

impl Error {
    /// Nothing was written, for a reason that is no matter of tokens. If an error of the network is what it comes from, the receiver is away.
    pub fn failed(receiver: impl Into<String>, source: impl Into<Trouble>) -> Self {
        Self::because(None, receiver, source)
    }

    /// As [`Error::failed`], where it is known whether trying again may help.
    pub(crate) fn because(
        cause: Option<Cause>,
        receiver: impl Into<String>,
        source: impl Into<Trouble>,
    ) -> Self {
        let source = source.into();
        let found = || if comes_from_network(&*source) { Cause::Away } else { Cause::Passing };
        Self::Failed { receiver: receiver.into(), cause: cause.unwrap_or_else(found), source }
    }

    /// Nothing was written, because the receiver could not be reached.
    pub fn away(receiver: impl Into<String>, source: impl Into<Trouble>) -> Self {
        Self::because(Some(Cause::Away), receiver, source)
    }

    /// Nothing was written, for a reason that stays until somebody mends it: it is not tried again by itself.
    pub fn lasting(receiver: impl Into<String>, source: impl Into<Trouble>) -> Self {
        Self::because(Some(Cause::Lasting), receiver, source)
    }

    /// Nobody can say whether it was written.
    pub fn unknown(receiver: impl Into<String>, source: impl Into<Trouble>) -> Self {
        Self::Unknown { receiver: receiver.into(), source: source.into() }
    }

    /// Whether the receiver could not be reached, or did not answer.
    pub const fn is_away(&self) -> bool {
        matches!(self, Self::Failed { cause: Cause::Away, .. } | Self::Unknown { .. })
    }

    /// Whether time alone changes nothing about it.
    pub const fn is_lasting(&self) -> bool {
        matches!(self, Self::Failed { cause: Cause::Lasting, .. })
    }

    /// Which end this is.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::NoAuthority(_) => Outcome::Lapsed,
            Self::Stale(_) => Outcome::Stale,
            Self::Failed { .. } => Outcome::Failed,
            Self::Unknown { .. } => Outcome::Unknown,
        }
    }
}

/// What nothing was written for, as far as it matters to whoever may try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The receiver could not be reached: it may be there again soon.
    Away,
    /// It answered, and may answer otherwise later: a lock that others have, a conflict.
    Passing,
    /// It answered, and will not answer otherwise until somebody mends it: a table, a database or a bucket that is missing, another name.
    Lasting,
}

/// An error, and under it whatever it comes from.
pub(crate) fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |error| (*error).source())
}

/// Whether an error of the network stands at its root, under whatever a driver has put around it.
fn comes_from_network(source: &(dyn StdError + 'static)) -> bool {
    let mut of_system = causes(source).filter_map(|error| error.downcast_ref::<io::Error>());
    of_system.any(|error| is_of_network(error.kind()))
}

const fn is_of_network(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::NotConnected
            | ErrorKind::AddrNotAvailable
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
            | ErrorKind::TimedOut
    )
}

/// A write, or a seal, with a token below one that the receiver has seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("token {token} of {name} is stale{}; nothing was written", match .highest {
    Some(highest) => format!(": the receiver has seen {highest}"),
    None => String::new(),
})]
pub struct Stale {
    /// The fence name.
    pub name: String,
    /// The token that was refused.
    pub token: u64,
    /// The highest one that the receiver has seen, if it tells.
    pub highest: Option<u64>,
}

impl Stale {
    /// The refusal of a stamp by a receiver that has seen `highest`, if it tells. For adapters.
    pub fn of(stamp: &Stamp, highest: Option<u64>) -> Self {
        Self { name: stamp.name().to_owned(), token: stamp.token(), highest }
    }
}

/// The authority has lapsed: whoever wanted to write may not act any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("may not act on {name}: {why}; nothing was sent")]
pub struct NoAuthority {
    /// The fence name.
    pub name: String,
    /// Why, in words.
    pub why: String,
}

/// The five ends of a seal or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing was sent: the authority had lapsed.
    Lapsed,
    /// It was written.
    Accepted,
    /// Refused for its token.
    Stale,
    /// Nothing was written, for another reason.
    Failed,
    /// Nobody can say.
    Unknown,
}

impl Outcome {
    /// The end of a call.
    pub const fn of<T>(result: &Result<T, Error>) -> Self {
        match result {
            Ok(_) => Self::Accepted,
            Err(error) => error.outcome(),
        }
    }

    /// As metrics and JSON have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lapsed => "lapsed",
            Self::Accepted => "accepted",
            Self::Stale => "stale",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("as a driver says it")]
    struct Around(#[source] io::Error);

    #[test]
    fn a_receiver_is_away_if_the_network_says_so_at_the_root() {
        let refused = || io::Error::from(ErrorKind::ConnectionRefused);
        assert!(Error::failed("db", refused()).is_away());
        assert!(Error::failed("db", Around(refused())).is_away());
        assert!(Error::unknown("db", "no answer").is_away());
        for answered in [
            Error::failed("db", "locked"),
            Error::failed("db", io::Error::from(ErrorKind::PermissionDenied)),
            Error::lasting("db", refused()),
        ] {
            assert!(!answered.is_away(), "{answered}");
        }
    }

    #[test]
    fn what_somebody_has_to_mend_is_failed_like_all_others() {
        let missing = Error::lasting("db", "there is no table");
        assert!(missing.is_lasting() && !Error::failed("db", "locked").is_lasting());
        assert_eq!(missing.outcome(), Outcome::Failed);
        assert_eq!(missing.to_string(), "db: nothing was written: there is no table");
    }
}
