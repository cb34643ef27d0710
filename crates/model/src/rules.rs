//! The rules of the protocol, each of which a bug can break.

/// A rule that something depends on and that is not kept. What can be planted in the product too is called the same in `leasehold_core::planted::Bug`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WrongRule {
    /// The holder's deadline counts from the arrival of the answer, not from the sending of what was confirmed.
    DeadlineFromReceipt,
    /// A session is overdue after the bare ttl, without the drift factor.
    NoDriftFactor,
    /// A release ends whatever its session holds, not only the lease whose token it names.
    ReleaseIgnoresToken,
    /// An expiry ends whatever is held, not only the lease whose token it names, and only when overdue.
    ExpiryUnguarded,
    /// A grant counts like a renewal that was sent when it arrived.
    GrantMovesDeadline,
    /// The holder's belief ends when its release is answered, not when it is sent.
    BeliefUntilReleaseAnswered,
    /// Commands are answered when they are appended, not when they are committed.
    AckedBeforeCommit,
    /// A new leader's clock runs on from its earlier leadership, not from the last `at` of its log.
    OldClockKept,
    /// A new leader gives every session a fresh ttl.
    FreshTtlPerFailover,
    /// A renewal brings a session back that has ended.
    EndedRevived,
    /// After a restore leases are granted at once, not after a ttl with its drift factor.
    RestoreWithoutWait,
    /// A restore does not raise the epoch: tokens go on from the backup.
    RestoreKeepsEpoch,
    /// The receiver takes every write and compares no token.
    FenceUnchecked,
}

impl WrongRule {
    /// All of them, in the order of declaration.
    pub const ALL: [WrongRule; 13] = [
        WrongRule::DeadlineFromReceipt,
        WrongRule::NoDriftFactor,
        WrongRule::ReleaseIgnoresToken,
        WrongRule::ExpiryUnguarded,
        WrongRule::GrantMovesDeadline,
        WrongRule::BeliefUntilReleaseAnswered,
        WrongRule::AckedBeforeCommit,
        WrongRule::OldClockKept,
        WrongRule::FreshTtlPerFailover,
        WrongRule::EndedRevived,
        WrongRule::RestoreWithoutWait,
        WrongRule::RestoreKeepsEpoch,
        WrongRule::FenceUnchecked,
    ];

    /// The wrong rule of that name, as `Debug` spells it.
    pub fn named(name: &str) -> Option<WrongRule> {
        WrongRule::ALL.into_iter().find(|bug| format!("{bug:?}").eq_ignore_ascii_case(name))
    }
}

/// Which rules are kept: all, or all but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    bug: Option<WrongRule>,
}

impl Rules {
    /// The protocol as it stands.
    pub const fn all() -> Rules {
        Rules { bug: None }
    }

    /// The protocol with one bug.
    pub const fn with(bug: WrongRule) -> Rules {
        Rules { bug: Some(bug) }
    }

    /// Whether a rule is broken by this bug.
    pub fn has(self, bug: WrongRule) -> bool {
        self.bug == Some(bug)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::planted::Bug;

    #[test]
    fn all_but_three_wrong_rules_are_planted_in_the_product_under_the_same_name() {
        let planted = |rule: &WrongRule| Bug::ALL.iter().any(|bug| format!("{bug:?}") == format!("{rule:?}"));
        let own: Vec<WrongRule> = WrongRule::ALL.into_iter().filter(|rule| !planted(rule)).collect();
        assert_eq!(own, [WrongRule::AckedBeforeCommit, WrongRule::EndedRevived, WrongRule::FenceUnchecked]);
    }
}
