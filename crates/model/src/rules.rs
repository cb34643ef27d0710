//! The rules of the protocol, each of which a bug can break.

/// A bug: a rule that something depends on is not kept. What `leasehold_core::planted` has too is called the same there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
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

impl Bug {
    /// All of them, in the order of declaration.
    pub const ALL: [Bug; 13] = [
        Bug::DeadlineFromReceipt,
        Bug::NoDriftFactor,
        Bug::ReleaseIgnoresToken,
        Bug::ExpiryUnguarded,
        Bug::GrantMovesDeadline,
        Bug::BeliefUntilReleaseAnswered,
        Bug::AckedBeforeCommit,
        Bug::OldClockKept,
        Bug::FreshTtlPerFailover,
        Bug::EndedRevived,
        Bug::RestoreWithoutWait,
        Bug::RestoreKeepsEpoch,
        Bug::FenceUnchecked,
    ];

    /// The bug of that name, as `Debug` spells it.
    pub fn named(name: &str) -> Option<Bug> {
        Bug::ALL.into_iter().find(|bug| format!("{bug:?}").eq_ignore_ascii_case(name))
    }
}

/// Which rules are kept: all, or all but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    bug: Option<Bug>,
}

impl Rules {
    /// The protocol as it stands.
    pub const fn all() -> Rules {
        Rules { bug: None }
    }

    /// The protocol with one bug.
    pub const fn with(bug: Bug) -> Rules {
        Rules { bug: Some(bug) }
    }

    /// Whether a rule is broken by this bug.
    pub fn has(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}
