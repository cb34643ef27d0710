//! Gaps: the times in which nobody was known to act on a name, and why.
//!
//! A gap is told in parts, in the order of time. All lengths are log time, except those of outages, in which log time stands still. What
//! this cannot know: whether a holder that fell silent went on acting. So a gap has two lengths: *at most* counts from the holder's last
//! sign of life, *at least* leaves out the time for which it still had its lease by its own clock.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::answer::Ending;
use crate::id::Token;
use crate::name::{Label, ResourceName};
use crate::time::{LogTime, Millis};

/// Why nobody acted. In the order in which they follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GapCause {
    /// The holder had fallen silent, and its ttl was not over.
    Detection,
    /// The holder was overdue, and its grace kept the name from others.
    Grace,
    /// The lease was revoked, and its holder might not know.
    Revoke,
    /// A cool-down kept the name from everybody.
    CoolDown,
    /// The state had been restored, and nothing was granted.
    Restore,
    /// An alarm kept the name from everybody.
    Alarm,
    /// It could have been granted, and nobody live was waiting.
    Queue,
    /// The next holder had it, and was not ready.
    WarmUp,
    /// No node led, or the one that did stood still.
    Outage,
}

impl GapCause {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Detection,
        Self::Grace,
        Self::Revoke,
        Self::CoolDown,
        Self::Restore,
        Self::Alarm,
        Self::Queue,
        Self::WarmUp,
        Self::Outage,
    ];

    /// In one word, for people, programs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Detection => "detection",
            Self::Grace => "grace",
            Self::Revoke => "revoke",
            Self::CoolDown => "cool-down",
            Self::Restore => "restore",
            Self::Alarm => "alarm",
            Self::Queue => "queue",
            Self::WarmUp => "warm-up",
            Self::Outage => "outage",
        }
    }
}

/// One part of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapPart {
    /// Why nobody acted.
    pub cause: GapCause,
    /// For how long. An outage of zero is one whose length nobody knows.
    pub length: Millis,
}

/// A gap as people see it. Everything is counted to the moment at which it was looked at, with the outages since: log time stood still in
/// them, and whoever looks did not. One whose length nobody knows, or that is forgotten, is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GapView {
    /// How long ago it began: the last sign of life of the holder before.
    pub began_ago: Millis,
    /// How long ago it ended; nothing while it lasts.
    pub ended_ago: Option<Millis>,
    /// Its parts in the order of time, none of them empty but outages of unknown length.
    pub parts: Vec<GapPart>,
    /// For how long from its beginning the holder before it may have acted: what its last renewal had left to it when it was last heard
    /// of, and zero if it gave the lease back. Nothing where that was not counted: it may have been all of it.
    pub leeway: Option<Millis>,
    /// The lease that ended last before it.
    pub before: GapSide,
    /// The lease that ended it, or that is warming up.
    pub after: Option<GapSide>,
}

impl GapView {
    /// All parts together: at most so long nobody acted.
    pub fn length(&self) -> Millis {
        self.parts.iter().fold(Millis::ZERO, |sum, part| sum.saturating_add(part.length))
    }

    /// At least so long nobody acted.
    pub fn at_least(&self) -> Millis {
        self.leeway.map_or(Millis::ZERO, |leeway| self.length().saturating_sub(leeway))
    }

    /// All parts of one cause together.
    pub fn caused_by(&self, cause: GapCause) -> Millis {
        let parts = self.parts.iter().filter(|part| part.cause == cause);
        parts.fold(Millis::ZERO, |sum, part| sum.saturating_add(part.length))
    }
}

/// The lease at one side of a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GapSide {
    /// Its token.
    pub token: Token,
    /// What its holder called itself, if that is still known.
    pub label: Option<Label>,
    /// How it ended, if it has and that is still known.
    pub how: Option<Ending>,
}

/// The gaps of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameGaps {
    /// The name.
    pub resource: ResourceName,
    /// Newest first; one that lasts is the first.
    pub gaps: Vec<GapView>,
    /// How long ago the first holder was granted that is known of; before that there can be no gap.
    pub known_for: Millis,
}

/// A time in which nobody led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageView {
    /// How long ago it ended.
    pub ended_ago: Millis,
    /// About how long it was; nothing if nobody knows.
    pub length: Option<Millis>,
}

/// What whoever counts gaps is told by an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GapNote {
    /// Nobody acts on this name any more.
    Began {
        /// Which.
        resource: ResourceName,
        /// Since when.
        from: LogTime,
    },
    /// One more part of its gap is settled.
    Part {
        /// Of which name.
        resource: ResourceName,
        /// Why, and for how long.
        part: GapPart,
    },
    /// Somebody acts again.
    Over {
        /// On which name.
        resource: ResourceName,
    },
    /// The name is forgotten, and its gap with it.
    Forgotten {
        /// Which.
        resource: ResourceName,
    },
    /// Nobody led for about so long.
    Outage {
        /// For how long; nothing if nobody knows.
        length: Option<Millis>,
    },
}
