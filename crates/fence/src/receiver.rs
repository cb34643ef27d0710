//! What all adapters have in common: they can be sealed and looked at.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::error::Error;
use crate::stamp::Stamp;

/// How many refusals a receiver keeps for each fence name: enough to see who came back, little enough to be no burden.
pub const KEPT_REFUSALS: usize = 16;

/// The answer of a receiver.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Whatever is protected. How writes are made is each adapter's own; this is what they share.
pub trait Receiver: Debug + Send + Sync {
    /// Where it is, for people and metrics: without passwords.
    fn place(&self) -> &str;

    /// Raises the fence to the stamp's token without writing anything. From then on smaller tokens are refused. Sealing twice is
    /// sealing once, so an unknown or failed seal may be tried again.
    ///
    /// # Errors
    /// [`Error::Stale`] when a greater token was seen; else as every write.
    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()>;

    /// What the receiver knows of a fence name. It may be old by the time it is read, and decides nothing.
    ///
    /// # Errors
    /// When the receiver cannot be asked.
    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen>;

    /// What is set such that the receiver may forget a token that it has acknowledged, or cannot compare one. Asked of the receiver, for
    /// people: nothing is refused for it. A receiver that answers nothing has found nothing, or has no such settings, or does not look.
    ///
    /// # Errors
    /// When the receiver cannot be asked. One that may not be asked for its settings says [`Hazard::NotKnown`].
    fn hazards(&self) -> Answer<'_, Vec<Hazard>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// What a receiver knows of a fence name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The highest token, if there is one.
    pub highest: Option<Mark>,
    /// The last refusals, the newest first; nothing if this receiver keeps none.
    pub refusals: Option<Vec<Refused>>,
}

/// The highest token that a receiver has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The token.
    pub token: u64,
    /// Who brought it, if it said so.
    pub holder: Option<String>,
}

/// A setting of a receiver, and what it does to the fence. Its words say what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Hazard {
    /// It is set such that the fence may be lost.
    #[error("{setting} is {found}: {so}; set it to {wanted}")]
    Setting {
        /// What the receiver calls it.
        setting: &'static str,
        /// How it is set.
        found: String,
        /// What follows.
        so: &'static str,
        /// How it should be set.
        wanted: &'static str,
    },
    /// The receiver does not tell.
    #[error("{setting} is not known: {why}; look at the server itself, it should be {wanted}")]
    NotKnown {
        /// What the receiver calls it.
        setting: &'static str,
        /// Why it is not known.
        why: String,
        /// How it should be set.
        wanted: &'static str,
    },
}

/// A write or seal that was refused for its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its token.
    pub token: u64,
    /// The highest token at that time.
    pub highest: u64,
    /// Who tried, if it said so.
    pub holder: Option<String>,
    /// When, by the receiver's own clock and in its own words.
    pub at: Option<String>,
}
