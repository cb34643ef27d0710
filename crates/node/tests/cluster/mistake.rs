//! Mistakes that are planted into the surroundings of the nodes: every one must be noticed.

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mistake {
    /// Nothing.
    #[default]
    None,
    /// Disks that forget whom their process voted for.
    ForgetsVotes,
    /// Disks that report a write as synced when the next one is.
    SyncsLate,
    /// Disks that write entries first, and in a batch of its own how far they are committed.
    EntriesFirst,
    /// Disks that write first how far entries are committed, and those in batches of their own.
    VotesFirst,
    /// A network that delivers a forwarded acquire twice.
    RepeatsRequests,
    /// A network that loses answers to forwarded calls and reports nothing.
    LosesReplies,
    /// Clients that count from the last word they heard.
    BelievesTooLong,
    /// A member that is wiped and comes back with its old id.
    WipedKeepsId,
    /// A clock of a node that runs half as fast again.
    FastClock,
}

impl Mistake {
    /// Whether members forget what they have said. A node that notices by itself comes back then, so that the checks are tried as well.
    pub(crate) const fn is_forgetful(self) -> bool {
        matches!(self, Self::SyncsLate | Self::WipedKeepsId)
    }
}
