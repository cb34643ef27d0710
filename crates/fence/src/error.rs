//! How a fenced write can end without being accepted, in kinds that are never mixed.

use std::error::Error as StdError;
use std::fmt;

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
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// It was sent, and nobody can say whether it was written.
    #[error("{receiver}: nobody can say whether it was written: {source}")]
    Unknown {
        /// Which receiver.
        receiver: String,
        /// What went wrong.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl Error {
    /// Nothing was written, for a reason that is no matter of tokens.
    pub fn failed(receiver: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Failed { receiver: receiver.into(), source: source.into() }
    }

    /// Nobody can say whether it was written.
    pub fn unknown(receiver: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Unknown { receiver: receiver.into(), source: source.into() }
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
