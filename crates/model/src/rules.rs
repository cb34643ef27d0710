//! The rules of the protocol, each of which can be taken away.

/// A rule that something depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The holder's deadline counts from the sending of what was confirmed. Without: from the arrival of the answer.
    SendTime,
    /// A session is overdue after ttl with the drift factor. Without: after the bare ttl.
    DriftFactor,
    /// A release ends only the lease whose token it names. Without: whatever its session holds.
    ReleaseGuard,
    /// An expiry ends only the lease whose token it names, and only when overdue. Without: whatever is held.
    ExpireGuard,
    /// A grant moves no deadline. Without: it counts like a renewal that was sent when it arrived.
    GrantKeepsDeadline,
    /// The holder's belief ends when its release is sent. Without: when it is answered.
    BeliefEndsAtSend,
    /// Nothing is answered before it is committed. Without: when it is appended.
    CommitFirst,
    /// A new leader starts from the last `at` of its log. Without: its clock runs on from its earlier leadership.
    FreshClock,
    /// A new leader honours the renewals of its log as they stand. Without: it gives every session a fresh ttl.
    NoFreshTtl,
    /// A session that has ended stays ended. Without: a renewal brings it back.
    EndedStaysEnded,
    /// After a restore nothing is granted for a ttl with its drift factor. Without: at once.
    RestoreWait,
    /// A restore raises the epoch. Without: tokens go on from the backup.
    RestoreEpoch,
    /// The receiver compares tokens. Without: it takes every write.
    Fence,
}

impl Rule {
    /// Every rule, in the order of declaration.
    pub const ALL: [Rule; 13] = [
        Rule::SendTime,
        Rule::DriftFactor,
        Rule::ReleaseGuard,
        Rule::ExpireGuard,
        Rule::GrantKeepsDeadline,
        Rule::BeliefEndsAtSend,
        Rule::CommitFirst,
        Rule::FreshClock,
        Rule::NoFreshTtl,
        Rule::EndedStaysEnded,
        Rule::RestoreWait,
        Rule::RestoreEpoch,
        Rule::Fence,
    ];

    /// The rule of that name, as `Debug` spells it.
    pub fn named(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| format!("{rule:?}").eq_ignore_ascii_case(name))
    }
}

/// Which rules are kept: all, or all but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    broken: Option<Rule>,
}

impl Rules {
    /// The protocol as it stands.
    pub const fn all() -> Rules {
        Rules { broken: None }
    }

    /// The protocol without one rule.
    pub const fn without(rule: Rule) -> Rules {
        Rules { broken: Some(rule) }
    }

    /// Whether a rule is kept.
    pub fn keeps(self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }
}
