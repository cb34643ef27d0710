//! What a node counts, for metrics. Plain numbers: nothing here is read by the node itself.

use std::collections::BTreeMap;

use crate::meter::GapFigures;
use leasehold_core::protocol::{ClusterReply, Failure, Response};
use leasehold_core::{Answer, Command, Item, ItemKind, Op, Operator, Refusal, Reply, SessionId};

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operation {
    Open,
    Attach,
    Renew,
    Acquire,
    Cancel,
    SetValue,
    SetDraining,
    SetReady,
    WriteRegister,
    Offer,
    Accept,
    Release,
    Close,
    AskRelease,
    Revoke,
    ChangeKind,
    ClearAlarm,
    Read,
}

impl Operation {
    /// All, in their order.
    const ALL: [Self; 18] = [
        Self::Open,
        Self::Attach,
        Self::Renew,
        Self::Acquire,
        Self::Cancel,
        Self::SetValue,
        Self::SetDraining,
        Self::SetReady,
        Self::WriteRegister,
        Self::Offer,
        Self::Accept,
        Self::Release,
        Self::Close,
        Self::AskRelease,
        Self::Revoke,
        Self::ChangeKind,
        Self::ClearAlarm,
        Self::Read,
    ];

    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Attach => "attach",
            Self::Renew => "renew",
            Self::Acquire => "acquire",
            Self::Cancel => "cancel",
            Self::SetValue => "set-value",
            Self::SetDraining => "set-draining",
            Self::SetReady => "set-ready",
            Self::WriteRegister => "write-register",
            Self::Offer => "offer",
            Self::Accept => "accept",
            Self::Release => "release",
            Self::Close => "close",
            Self::AskRelease => "ask-release",
            Self::Revoke => "revoke",
            Self::ChangeKind => "change-kind",
            Self::ClearAlarm => "clear-alarm",
            Self::Read => "read",
        }
    }

    /// What a command asks for; nothing for the node's own.
    pub(crate) fn of(command: &Command) -> Option<Self> {
        Some(match command {
            Command::Open(_) => Self::Open,
            Command::Attach(_) => Self::Attach,
            Command::Renew { .. } | Command::RenewPlain { .. } => Self::Renew,
            Command::Session(command) => Self::of_op(&command.op),
            Command::Operator(operator) => Self::of_operator(operator),
            Command::NoRoom { .. } => Self::Acquire,
            Command::Tidy(_) | Command::System(_) | Command::Detached { .. } => return None,
        })
    }

    pub(crate) const fn of_op(op: &Op) -> Self {
        match op {
            Op::Acquire(_) => Self::Acquire,
            Op::Cancel { .. } | Op::CancelCall { .. } => Self::Cancel,
            Op::SetValue { .. } => Self::SetValue,
            Op::SetDraining { .. } => Self::SetDraining,
            Op::SetReady { .. } => Self::SetReady,
            Op::WriteRegister { .. } => Self::WriteRegister,
            Op::Offer(_) => Self::Offer,
            Op::Accept { .. } => Self::Accept,
            Op::Release { .. } => Self::Release,
            Op::Close => Self::Close,
        }
    }

    pub(crate) const fn of_operator(operator: &Operator) -> Self {
        match operator {
            Operator::AskRelease { .. } => Self::AskRelease,
            Operator::Revoke { .. } => Self::Revoke,
            Operator::ChangeKind { .. } => Self::ChangeKind,
            Operator::ClearAlarm { .. } => Self::ClearAlarm,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// As asked for; an acquire may be queued.
    Done,
    /// The table said no.
    Refused,
    /// Not taken in; no effect.
    Failed,
    /// Nobody can say.
    Unknown,
}

impl Outcome {
    /// All, in their order.
    const ALL: [Self; 4] = [Self::Done, Self::Refused, Self::Failed, Self::Unknown];

    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) const fn of_response(response: &Response) -> Self {
        match response {
            Response::Reply(reply) => Self::of_reply(reply),
            Response::Cluster(ClusterReply::Refused(_)) => Self::Refused,
            Response::Read { .. } | Response::Cluster(_) => Self::Done,
            Response::Failed(Failure::OutcomeUnknown) => Self::Unknown,
            Response::Failed(_) => Self::Failed,
        }
    }
}

impl Outcome {
    const fn of_reply(reply: &Reply) -> Self {
        match reply {
            Reply::Refused(_)
            | Reply::Plain { answer: Answer::Refused(_), .. }
            | Reply::PlainRepeated { answer: Answer::Refused(_), .. } => Self::Refused,
            Reply::NumberSettled { .. } => Self::Unknown,
            _ => Self::Done,
        }
    }
}

/// How often which size or time occurred: counts per upper bound, and the sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    bounds: &'static [u64],
    counts: Vec<u64>,
    above: u64,
    sum: u64,
}

impl Buckets {
    /// Nothing yet.
    pub fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len()], above: 0, sum: 0 }
    }

    /// Counts one.
    pub fn add(&mut self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        *self.counts.get_mut(place).unwrap_or(&mut self.above) += 1;
        self.sum = self.sum.saturating_add(value);
    }

    /// Each upper bound with how many were at or below it and above the one before.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bounds.iter().copied().zip(self.counts.iter().copied())
    }

    /// How many in all.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.above
    }

    /// The sum of all.
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

/// Commands of an entry.
const BATCH_BOUNDS: &[u64] = &[0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 65_536];
/// Microseconds from the proposal of an entry to its application.
const COMMIT_BOUNDS: &[u64] = &[
    50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 204_800, 409_600,
    1_638_400, 6_553_600,
];

/// Milliseconds by which a lease outlived its end.
const LATE_BOUNDS: &[u64] = &[0, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 300_000];

/// Everything that a node counts.
#[derive(Debug, Clone)]
pub struct NodeStats {
    /// Requests by what was asked for and what came of it.
    pub operations: BTreeMap<(Operation, Outcome), u64>,
    /// The same while it is counted: every request is.
    pub(crate) counted: [[u64; Outcome::ALL.len()]; Operation::ALL.len()],
    /// Commands in an entry of the log.
    pub batch_commands: Buckets,
    /// Microseconds from the proposal of an entry to its application.
    pub commit_micros: Buckets,
    /// Entries applied by this process.
    pub entries: u64,
    /// Bytes of their payloads.
    pub entry_bytes: u64,
    /// Snapshots taken.
    pub snapshots: u64,
    /// Commands that wait to be proposed.
    pub queued: usize,
    /// What they weigh, roughly.
    pub queued_bytes: usize,
    /// Acquires whose callers are kept waiting.
    pub held_calls: usize,
    /// Changes of leases and registers since this process began.
    pub changes: u64,
    /// Questions about tokens that were never granted.
    pub ahead_checks: u64,
    /// Commands that showed such a token, and were refused.
    pub ahead_commands: u64,
    /// Milliseconds from the end of a dead holder's lease to the entry that found it.
    pub expiry_late_millis: Buckets,
    /// For how long nobody acted on which names, and why.
    pub gaps: GapFigures,
}

impl Default for NodeStats {
    fn default() -> Self {
        Self {
            operations: BTreeMap::new(),
            counted: [[0; Outcome::ALL.len()]; Operation::ALL.len()],
            batch_commands: Buckets::new(BATCH_BOUNDS),
            commit_micros: Buckets::new(COMMIT_BOUNDS),
            entries: 0,
            entry_bytes: 0,
            snapshots: 0,
            queued: 0,
            queued_bytes: 0,
            held_calls: 0,
            changes: 0,
            ahead_checks: 0,
            ahead_commands: 0,
            expiry_late_millis: Buckets::new(LATE_BOUNDS),
            gaps: GapFigures::default(),
        }
    }
}

impl NodeStats {
    pub(crate) fn count(&mut self, operation: Operation, outcome: Outcome) {
        self.counted[operation as usize][outcome as usize] += 1;
    }

    /// What was counted so far, without what did not occur.
    pub(crate) fn operations(&self) -> BTreeMap<(Operation, Outcome), u64> {
        let all = Operation::ALL.iter().flat_map(|asked| Outcome::ALL.iter().map(|came| (*asked, *came)));
        let counted = all.map(|of| (of, self.counted[of.0 as usize][of.1 as usize]));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Counts the commands of an entry that clients asked for.
    pub(crate) fn count_entry<'a>(
        &mut self,
        commands: impl Iterator<Item = (&'a Command, &'a Reply)>,
        items: &[(SessionId, Item)],
    ) {
        // The answer to a streamed command is an item.
        let refused = items
            .iter()
            .filter(|(_, item)| matches!(&item.kind, ItemKind::Answer { answer: Answer::Refused(_), .. }));
        let refused: std::collections::BTreeSet<_> = refused
            .filter_map(|(session, item)| match &item.kind {
                ItemKind::Answer { command, answer } => {
                    self.ahead_commands += u64::from(is_ahead(answer));
                    Some((*session, *command))
                }
                _ => None,
            })
            .collect();
        for (command, reply) in commands {
            self.ahead_commands +=
                u64::from(matches!(reply, Reply::Plain { answer, .. } if is_ahead(answer)));
            let Some(operation) = Operation::of(command) else { continue };
            let outcome = match (command, reply) {
                (Command::Session(command), Reply::Applied { number })
                    if refused.contains(&(command.session, *number)) =>
                {
                    Outcome::Refused
                }
                (Command::NoRoom { .. }, _) => Outcome::Refused,
                (_, reply) => Outcome::of_reply(reply),
            };
            self.count(operation, outcome);
        }
    }
}

const fn is_ahead(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(Refusal::TokenAhead { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_counted_has_a_place_of_its_own() {
        for (place, operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(*operation as usize, place);
        }
        for (place, outcome) in Outcome::ALL.iter().enumerate() {
            assert_eq!(*outcome as usize, place);
        }
        let mut stats = NodeStats::default();
        stats.count(Operation::Read, Outcome::Unknown);
        assert_eq!(
            stats.operations().into_iter().collect::<Vec<_>>(),
            [((Operation::Read, Outcome::Unknown), 1)]
        );
    }

    #[test]
    fn a_value_is_counted_under_the_first_bound_that_is_not_below_it() {
        let mut buckets = Buckets::new(&[1, 10, 100]);
        for value in [0, 1, 2, 10, 11, 100, 101] {
            buckets.add(value);
        }
        assert_eq!(buckets.counts().collect::<Vec<_>>(), [(1, 2), (10, 2), (100, 2)]);
        assert_eq!((buckets.count(), buckets.sum()), (7, 225));
    }
}
