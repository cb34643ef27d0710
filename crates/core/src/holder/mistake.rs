//! Known ways to get the holder wrong, planted by tests only, so that the tests are known to find them.

/// One mistake. Outside of tests none can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The deadline counts from the arrival of the answer instead of the sending.
    DeadlineFromReceipt,
    /// A grant moves the deadline.
    GrantMovesDeadline,
    /// A renewal is repeated under its old number, and its last sending counts.
    OneRenewalNumber,
    /// A renewal's answer counts before the items that arose before it were processed.
    CountedBeforeItems,
    /// A release ends belief only when it is answered.
    BeliefUntilReleaseAnswered,
    /// A repeated open counts from its last sending.
    OpenFromLastSending,
}

/// The mistake that is planted, if any.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Planted {
    #[cfg(test)]
    pub(crate) mistake: Option<Mistake>,
}

impl Planted {
    /// Whether this mistake is to be made.
    #[cfg(test)]
    pub(crate) fn is(self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// Whether this mistake is to be made: never.
    #[cfg(not(test))]
    pub(crate) const fn is(self, _: Mistake) -> bool {
        false
    }
}
