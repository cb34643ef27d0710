//! Known bugs that can be put back, one at a time, to show that the simulator finds them.
//!
//! A bug is chosen at run time, once, and only in a build with feature `planted`. Without it [`planted`] is a constant `false`, and
//! nothing of any bug is in what is shipped.

#[cfg(feature = "planted")]
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

macro_rules! bugs {
    ($($name:ident = $word:literal: $sentence:literal,)*) => {
        /// A bug. In the order of the places where it is put: table, client, node, log on disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug {
            $(#[doc = $sentence] $name,)*
        }

        #[cfg(feature = "planted")]
        impl Bug {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name on the command line.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// What it is.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)* }
            }
        }
    };
}

bugs! {
    NoDriftFactor = "no-drift-factor": "The service waits for a ttl without the drift factor.",
    TtlOverflow = "ttl-overflow": "The drift factor is computed in 32 bits and overflows.",
    ExpiryUnguarded = "expiry-unguarded": "Tidying ends a session that a renewal has saved since it was named.",
    GraceIgnored = "grace-ignored": "An overdue session's leases go to waiters before its grace is over.",
    TokenPerResource = "token-per-resource": "Tokens count the grants of one resource and begin anew when it is forgotten.",
    TokenFromTime = "token-from-time": "Tokens are points in time.",
    OneTokenPerEntry = "one-token-per-entry": "All grants of one entry have one token.",
    CounterNotInSnapshot = "counter-not-in-snapshot": "After a snapshot the grant counter goes on from the greatest number in use.",
    RestoreKeepsEpoch = "restore-keeps-epoch": "A restore does not raise the epoch.",
    RestoreWithoutWait = "restore-without-wait": "After a restore leases are granted at once.",
    DeadWaiterGranted = "dead-waiter-granted": "A waiter is granted though its session is overdue.",
    ReleaseServesNobody = "release-serves-nobody": "A release does not wake the next waiter.",
    QueueReordered = "queue-reordered": "A snapshot swaps the first two waiters of a queue.",
    ReleaseWithoutOwner = "release-without-owner": "A release is taken from a session that is not the holder.",
    ReleaseIgnoresToken = "release-ignores-token": "A late release ends whatever lease the resource has now.",
    RetryExecutesTwice = "retry-executes-twice": "A command with a number that was applied is applied again.",
    AppliedTwiceAfterAttach = "applied-twice-after-attach": "An attach forgets the last command if its answer was not seen: it is applied twice.",
    LastCommandNotInSnapshot = "last-command-not-in-snapshot": "A snapshot forgets which commands were applied.",
    OrderByHints = "order-by-hints": "The order of grants in one entry depends on what a replica happens to remember.",
    EventDroppedAtAttach = "event-dropped-at-attach": "The newest unseen event is lost when a connection attaches.",
    RepeatedOpenRenews = "repeated-open-renews": "A repeated open renews the session.",
    RevokeAckedByRenewal = "revoke-acked-by-renewal": "A renewal counts as the acknowledgement of a revoke.",
    RevokeGrantsAtOnce = "revoke-grants-at-once": "A revoke does not wait for the holder.",
    NewcomerFirst = "newcomer-first": "A newcomer gets a free resource before those who wait for it.",
    DeadlineFromReceipt = "deadline-from-receipt": "The holder's deadline counts from the arrival of the answer.",
    GrantMovesDeadline = "grant-moves-deadline": "A grant moves the holder's deadline.",
    HintCountsAsRenewal = "hint-counts-as-renewal": "A wish for the next renewal counts as a renewal.",
    OneRenewalNumber = "one-renewal-number": "A renewal is repeated under its old number, and its last sending counts.",
    CountedBeforeItems = "counted-before-items": "A renewal's answer moves the deadline before unseen endings are processed.",
    BeliefUntilReleaseAnswered = "belief-until-release-answered": "The holder believes in a lease until its release is answered.",
    OpenFromLastSending = "open-from-last-sending": "The deadline counts from the last sending of a repeated open.",
    HolderStopsInSuspend = "holder-stops-in-suspend": "The holder counts only the clock that stands still in suspend.",
    ItemGapIgnored = "item-gap-ignored": "The client processes events behind a gap and never hears what was lost.",
    StampByDeposedLeader = "stamp-by-deposed-leader": "A leader that was deposed has the next one append an entry that it stamped itself.",
    RenewalAckedFromMemory = "renewal-acked-from-memory": "A renewal is answered before it is in the log.",
    RenewalAckedBeforeQuorum = "renewal-acked-before-quorum": "A renewal is answered when it is on the leader's own disk.",
    OldClockKept = "old-clock-kept": "A leader goes on with the clock of its earlier leadership.",
    FreshTtlPerFailover = "fresh-ttl-per-failover": "Every failover gives all sessions another ttl.",
    BaseFromOwnClock = "base-from-own-clock": "A new leader compares its own clock with the log of another.",
    StallCounted = "stall-counted": "Time in which the leader's loop stood still counts against sessions.",
    StampBeforeBatch = "stamp-before-batch": "An entry is stamped before the commands in it are read in.",
    TimeTruncatedPerTurn = "time-truncated-per-turn": "Log time is rounded down in every turn of the loop.",
    ReadyBeforeTerm = "ready-before-term": "Messages of a new term or vote go out before it is on disk.",
    AppendAckedBeforeSync = "append-acked-before-sync": "A follower acknowledges entries before they are synced.",
    VoteNotPersisted = "vote-not-persisted": "A vote is not written down.",
    RenewalOvertakesEvents = "renewal-overtakes-events": "A renewal's answer goes out before the events that arose before it, and names none.",
    ReadContextReused = "read-context-reused": "One quorum check answers reads that came after it.",
    ReadWithoutQuorum = "read-without-quorum": "A leader answers reads without asking whether it still leads.",
    ApplyIndexBehindState = "apply-index-behind-state": "A snapshot says that its last entry is not in it.",
    ServesBeforeOpening = "serves-before-opening": "A new leader judges requests before it has applied the log it found.",
    VersionRaisedEarly = "version-raised-early": "A new kind of entry is used before all members know it.",
    RemovedStillCounted = "removed-still-counted": "A removed member still counts for the majority.",
    ChangeDroppedAtSnapshot = "change-dropped-at-snapshot": "A snapshot loses the newest change for watchers.",
    AckBeforeSync = "ack-before-sync": "A batch is answered without a sync.",
    SegmentBeforeDirSync = "segment-before-dir-sync": "A new segment is used before the directory was synced.",
    HeadForgetsVote = "head-forgets-vote": "The vote is lost when old segments are removed.",
    NoDirSyncAfterRename = "no-dir-sync-after-rename": "A snapshot is recorded before the directory was synced.",
    RemoveBeforeRecord = "remove-before-record": "Old segments and snapshots go before the snapshot's record is synced.",
    TornTailIsDamage = "torn-tail-is-damage": "A torn tail counts as damage.",
    CutOnDamage = "cut-on-damage": "Damage counts as a torn tail and is cut off.",
    CutLeavesRest = "cut-leaves-rest": "A cut empties the first block of a torn batch only: stale blocks stay behind it.",
    ClosedSuccessorRemoved = "closed-successor-removed": "An empty last segment is removed although the one before is closed.",
    SpareKept = "spare-kept": "A segment made ahead by an earlier process is used as it is.",
    CutNotSynced = "cut-not-synced": "A cut is not synced.",
    LastBatchNotRewritten = "last-batch-not-rewritten": "The last batch is synced but not written again at recovery.",
    TidyBeforeSync = "tidy-before-sync": "Leftovers are removed at recovery before the last batch is synced.",
}

/// The bug that was chosen, counted from one; zero for none.
#[cfg(feature = "planted")]
static CHOSEN: AtomicU32 = AtomicU32::new(0);

/// Chooses a bug for everything in this process, or none.
#[cfg(feature = "planted")]
pub fn choose(bug: Option<Bug>) {
    CHOSEN.store(bug.map_or(0, |bug| bug as u32 + 1), Ordering::Relaxed);
}

/// Whether this bug was put back.
#[cfg(feature = "planted")]
pub fn planted(bug: Bug) -> bool {
    CHOSEN.load(Ordering::Relaxed) == bug as u32 + 1
}

/// Whether this bug was put back: never in this build.
#[cfg(not(feature = "planted"))]
pub const fn planted(_: Bug) -> bool {
    false
}

/// Whether the judge of numbers is stricter than it says: no bug of the simulator, but a change that everybody who asks must notice.
#[cfg(feature = "planted")]
static STRICT_NUMBERS: AtomicBool = AtomicBool::new(false);

/// Has [`Numbers::check`](crate::numbers::Numbers::check) want a margin as long as the ttl, in this process, or what it always wants.
#[cfg(feature = "planted")]
pub fn choose_strict_numbers(strict: bool) {
    STRICT_NUMBERS.store(strict, Ordering::Relaxed);
}

/// Whether the judge of numbers is stricter than it says.
#[cfg(feature = "planted")]
pub fn strict_numbers() -> bool {
    STRICT_NUMBERS.load(Ordering::Relaxed)
}

/// Whether the judge of numbers is stricter than it says: never in this build.
#[cfg(not(feature = "planted"))]
pub const fn strict_numbers() -> bool {
    false
}

#[cfg(all(test, feature = "planted"))]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_bug_has_a_name_of_its_own() {
        let words: BTreeSet<&str> = Bug::ALL.iter().map(|bug| bug.word()).collect();
        assert_eq!(words.len(), Bug::ALL.len());
    }
}
