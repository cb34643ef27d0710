//! Known bugs that can be put back, one at a time, to show that something finds them: the one way to plant a bug.
//!
//! A bug is chosen at run time, for the whole process ([`choose`]) or for one thread ([`plant`]), and only in a build with feature
//! `planted`. Without it [`planted`] is a constant `false`, and nothing of any bug is in what is shipped.

#[cfg(feature = "planted")]
extern crate std;

#[cfg(feature = "planted")]
use core::cell::Cell;
#[cfg(feature = "planted")]
use core::sync::atomic::{AtomicU32, Ordering};

macro_rules! bugs {
    ($($found_by:ident { $($name:ident = $word:literal: $sentence:literal,)* })*) => {
        /// A bug. In the order of the places where it is put: table, client, node, log on disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $sentence] $name,)*)*
        }

        #[cfg(feature = "planted")]
        impl Bug {
            /// All of them.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)*)*];

            /// Its name on the command line.
            pub const fn word(self) -> &'static str {
                match self { $($(Self::$name => $word,)*)* }
            }

            /// What it is.
            pub const fn sentence(self) -> &'static str {
                match self { $($(Self::$name => $sentence,)*)* }
            }

            /// What finds it: the simulator's campaign, or the tests of a crate.
            pub const fn found_by(self) -> &'static str {
                match self { $($(Self::$name => stringify!($found_by),)*)* }
            }

            /// Those that a test is to hunt: all, or the one that `LEASEHOLD_BUG` names.
            pub fn hunted() -> impl Iterator<Item = Self> {
                let only = std::env::var("LEASEHOLD_BUG").ok();
                let asked = move |bug: &Self| only.as_ref().is_none_or(|only| only == bug.word());
                Self::ALL.iter().copied().filter(asked)
            }
        }
    };
}

bugs! {
    campaign {
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
        RepeatedWithPresentRenewal = "repeated-with-present-renewal": "A repeated acquire is answered with the present renewal, not with that of the first answer.",
        SettledNumberApplied = "settled-number-applied": "A call with a number that its client has settled is applied.",
        RepeatedOpenRenews = "repeated-open-renews": "A repeated open renews the session.",
        RevokeAckedByRenewal = "revoke-acked-by-renewal": "A renewal counts as the acknowledgement of a revoke.",
        RevokeGrantsAtOnce = "revoke-grants-at-once": "A revoke does not wait for the holder.",
        NewcomerFirst = "newcomer-first": "A newcomer gets a free resource before those who wait for it.",
        HardLimitIgnored = "hard-limit-ignored": "A session is over when its grace is, not at its hard limit.",
        OpenDrawsNothing = "open-draws-nothing": "An open takes its session id from the grant counter and does not raise it.",
        OlderAttachTaken = "older-attach-taken": "A command of an older connection of the session is taken.",
        StaleRenewalCounted = "stale-renewal-counted": "A renewal with a number that was counted is counted again.",
        RenewalsLast = "renewals-last": "The renewals of an entry count after its other commands.",
        CoolDownFromDiscovery = "cool-down-from-discovery": "A cool-down counts from the entry that finds the lease over.",
        SlotNotCooled = "slot-not-cooled": "A slot that cools down is granted.",
        CancelServesNobody = "cancel-serves-nobody": "A cancel does not wake the next waiter.",
        WaitEndsLate = "wait-ends-late": "A wait ends a millisecond late.",
        SharedOvertakes = "shared-overtakes": "A shared acquire joins the holders before an exclusive one that waits.",
        SharedFenceOwn = "shared-fence-own": "A shared lease that joins others is fenced by its own token.",
        UnitFirstInOneQueue = "unit-first-in-one-queue": "A unit is granted when it is the first in one of its queues.",
        UnitPassedByNewcomer = "unit-passed-by-newcomer": "A newcomer passes a unit that waits.",
        SettlingByHints = "settling-by-hints": "How far a command tidies up depends on what a replica happens to remember.",
        HintLostInSnapshot = "hint-lost-in-snapshot": "A resource that was not looked at since a snapshot does not become due.",
        PlaceNotInSnapshot = "place-not-in-snapshot": "After a snapshot places in queues are given out anew.",
        TidyingDropsHint = "tidying-drops-hint": "A leader that looks what is due forgets what was not tidied up.",
        RenewalMovesRevoke = "renewal-moves-revoke": "A renewal moves the point at which a revoked lease's place is free.",
        OfferAcceptedByOther = "offer-accepted-by-other": "An offer is accepted by a session that it was not made to.",
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
    core {
        RegisterOutlivesLease = "register-outlives-lease": "A register that goes with its lease stays.",
        HandoverToOverdue = "handover-to-overdue": "A handover goes to a successor whose session is overdue.",
        OverdueEarly = "overdue-early": "A session is overdue a millisecond early.",
        ServedBetweenRenewals = "served-between-renewals": "Waiters are served between two renewals of one entry.",
        ReviveForgetsTakers = "revive-forgets-takers": "Nothing ends when a session that came back is overdue again, though others wait.",
        RestoreWaitShort = "restore-wait-short": "Leases are granted at the last moment of the wait after a restore.",
        GapFromOverdue = "gap-from-overdue": "A gap begins when the holder is overdue, not at its last sign of life.",
        GapIgnoresHangUp = "gap-ignores-hang-up": "The end of a connection is no sign of life.",
        GapOlderConnection = "gap-older-connection": "The end of an older connection is a sign of life.",
        GapCoolsFromDiscovery = "gap-cools-from-discovery": "The cool-down in a gap counts from the entry that finds the lease over.",
        GapOutageTwice = "gap-outage-twice": "An outage is counted in two gaps.",
        GapWithoutWarmUp = "gap-without-warm-up": "The warm-up of the next holder is no part of a gap.",
        GapRevokeNotCut = "gap-revoke-not-cut": "The wait for a revoked holder does not end in the gap when the holder acknowledges.",
        GapEndsInWarmUp = "gap-ends-in-warm-up": "A holder that dies in its warm-up ends the gap.",
        GapRestoreAsQueue = "gap-restore-as-queue": "The wait after a restore is shown as a queue.",
        GapBeforeRelease = "gap-before-release": "A gap begins before another holder's release.",
        GapAllGrace = "gap-all-grace": "All of a gap up to the hard limit is shown as grace.",
        GapLapseGone = "gap-lapse-gone": "A holder that comes back from an outage longer than its ttl leaves no gap.",
        GapGrantIsNoSign = "gap-grant-is-no-sign": "A holder that is never heard of after its grant is left out of the gaps.",
        GapFromRevoke = "gap-from-revoke": "The gap of a revoked lease begins with the revoke, not with the last sign of life.",
        GapStandstillLast = "gap-standstill-last": "A standstill counts behind the renewals of the entry that tells of it.",
        GapSignNotInSnapshot = "gap-sign-not-in-snapshot": "A snapshot forgets which outages came before a sign of life.",
    }
    wal {
        InstalledKeepsEntries = "installed-keeps-entries": "An installed snapshot does not drop the entries before it.",
        ChainUnchecked = "chain-unchecked": "The checksum of the batch before is not compared.",
    }
    node {
        WritesEntriesFirst = "writes-entries-first": "A disk writes entries first, and in a batch of its own how far they are committed.",
        WritesVotesFirst = "writes-votes-first": "A disk writes first how far entries are committed, and those in batches of their own.",
        ForwardedTwice = "forwarded-twice": "A network delivers a forwarded acquire twice.",
        ForwardLost = "forward-lost": "A network loses answers to forwarded calls and reports nothing.",
        WipedKeepsId = "wiped-keeps-id": "A member that is wiped comes back with its old id.",
        OutageFromLeader = "outage-from-leader": "An outage counts from when a leader was last heard, though that was heard late.",
        FastClock = "fast-clock": "The clock of a node runs half as fast again.",
    }
    server {
        StrictNumbers = "strict-numbers": "The judge of timing settings wants a margin as long as the ttl.",
    }
}

/// The bug that was chosen, counted from one; zero for none.
#[cfg(feature = "planted")]
static CHOSEN: AtomicU32 = AtomicU32::new(0);

#[cfg(feature = "planted")]
std::thread_local! {
    /// The bug that was put back for this thread, counted alike.
    static HERE: Cell<u32> = const { Cell::new(0) };
}

/// Chooses a bug for everything in this process, or none.
#[cfg(feature = "planted")]
pub fn choose(bug: Option<Bug>) {
    CHOSEN.store(bug.map_or(0, |bug| bug as u32 + 1), Ordering::Relaxed);
}

/// Whether this bug was put back.
#[cfg(feature = "planted")]
pub fn planted(bug: Bug) -> bool {
    let number = bug as u32 + 1;
    CHOSEN.load(Ordering::Relaxed) == number || HERE.get() == number
}

/// A bug is back for this thread while this lives: tests run side by side in one process.
#[cfg(feature = "planted")]
#[must_use]
#[derive(Debug)]
pub struct Plant(());

/// Puts a bug back for this thread.
#[cfg(feature = "planted")]
pub fn plant(bug: Bug) -> Plant {
    HERE.set(bug as u32 + 1);
    Plant(())
}

#[cfg(feature = "planted")]
impl Drop for Plant {
    fn drop(&mut self) {
        HERE.set(0);
    }
}

/// Whether this bug was put back: never in this build.
#[cfg(not(feature = "planted"))]
#[inline]
pub const fn planted(_: Bug) -> bool {
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
