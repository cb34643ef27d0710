//! Known ways to get the holder wrong, planted by tests and by the simulator only, so that both are known to find them.

#[cfg(not(test))]
use crate::planted::{Bug, planted};

/// One mistake. In what is shipped none can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The deadline counts from the arrival of the answer instead of the sending.
    DeadlineFromReceipt,
    /// A grant moves the deadline.
    GrantMovesDeadline,
    /// A hint moves the deadline.
    HintCountsAsRenewal,
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

    /// Whether this mistake is to be made: in this process, by everybody.
    #[cfg(not(test))]
    pub(crate) fn is(self, mistake: Mistake) -> bool {
        planted(match mistake {
            Mistake::DeadlineFromReceipt => Bug::DeadlineFromReceipt,
            Mistake::GrantMovesDeadline => Bug::GrantMovesDeadline,
            Mistake::HintCountsAsRenewal => Bug::HintCountsAsRenewal,
            Mistake::OneRenewalNumber => Bug::OneRenewalNumber,
            Mistake::CountedBeforeItems => Bug::CountedBeforeItems,
            Mistake::BeliefUntilReleaseAnswered => Bug::BeliefUntilReleaseAnswered,
            Mistake::OpenFromLastSending => Bug::OpenFromLastSending,
        })
    }
}
