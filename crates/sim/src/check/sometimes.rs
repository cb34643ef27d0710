//! "Sometimes" counters: situations that a campaign must reach. Checks that hold because nothing ever happened prove nothing, so a
//! campaign that never reached one of these fails and names it.
//!
//! Most are read from the record by [`observe`]; those that only the world can see it counts itself, in
//! [`Record::reached`](crate::record::Record::reached).

mod clients;
mod logs;

use super::Run;

macro_rules! situations {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// A situation that a campaign must reach.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Situation {
            $($(#[doc = $doc])* $name,)*
        }

        impl Situation {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// What it is, for people.
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc,)*).trim_ascii(),)*
                }
            }
        }
    };
}

situations! {
    /// A session that was overdue was renewed, and lived on.
    RenewalRescues,
    /// A renewal stood in the entry that was to end its session.
    RenewalInEntryOfExpiry,
    /// A renewal came when its session was over.
    RenewalTooLate,
    /// A renewal came behind a later one.
    StaleRenewal,
    /// A renewal that came with many others was answered with a wish for the next one.
    RenewalSpread,
    /// A session expired.
    SessionExpired,
    /// An entry was full of what was due, and left a session behind.
    ExpiryLeftBehind,
    /// A session was closed with leases.
    SessionClosedWithLeases,
    /// A waiter was served.
    WaiterServed,
    /// A waiter whose session was overdue was passed over.
    WaiterPassedOver,
    /// A waiter got its lease because its session was live again.
    RevivedWaiterServed,
    /// A wait ran out.
    WaitTimedOut,
    /// A wait was cancelled.
    WaitCancelled,
    /// A cancel came too late.
    CancelTooLate,
    /// Several resources were granted at once.
    UnitGranted,
    /// Several resources were waited for and granted at once.
    UnitServed,
    /// A shared lease joined a group.
    SharedGroup,
    /// A slot was granted.
    SlotGranted,
    /// All slots of a name were taken at once.
    SlotsFull,
    /// A lease was handed over to a successor that had accepted.
    HandedOver,
    /// An offer ended without a handover.
    OfferEnded,
    /// A holder was told that its offer was accepted.
    OfferAccepted,
    /// A holder showed that it drains.
    DrainingShown,
    /// A lease was taken between grace and the hard limit.
    Taken,
    /// A cool-down kept somebody from a lease.
    CoolDown,
    /// A lease was revoked.
    Revoked,
    /// A lease was revoked without waiting for its holder.
    RevokedAtOnce,
    /// A holder acknowledged a revoke.
    RevokeAcknowledged,
    /// The kind of a resource was changed.
    KindChanged,
    /// A register or value was written with a token that was not current, and refused.
    OldTokenRefused,
    /// An open was repeated.
    OpenRepeated,
    /// A command was sent again after it had been applied.
    CommandRepeated,
    /// A command left a gap.
    CommandGap,
    /// A frame of an older attachment was refused.
    OlderAttach,
    /// A client attached anew and got items that it had missed.
    MissedItemsDelivered,
    /// The answer to a renewal arrived before items that it names.
    RenewalWaitsForItems,
    /// Belief ran out.
    Lapsed,
    /// A lapsed lease was believed in again.
    HeldAgain,
    /// The clocks of a client disagreed, and it stopped acting.
    Uncertain,
    /// A guard was refused.
    GuardRefused,
    /// A grant arrived when its session was not believed in.
    GrantArrivedLate,
    /// A fenced receiver refused a stale write.
    StaleWriteRefused,
    /// An unfenced receiver took a stale write, beyond the assumptions.
    UnfencedLoss,
    /// A node said that the outcome of a request is unknown.
    OutcomeUnknown,
    /// A request was refused because a disk was full.
    DiskFullRefusal,
    /// Another leader was elected.
    LeaderChanged,
    /// What a deposed leader had written was superseded.
    TailSuperseded,
    /// What a deposed leader had written was committed by a later one.
    TailRevived,
    /// A node took a snapshot in place of entries.
    SnapshotInstalled,
    /// A node started again from its files.
    Restarted,
    /// All nodes were down at once.
    AllDown,
    /// A node refused its damaged files.
    DamageRefused,
    /// A node whose files were put back to an earlier copy noticed that, and refused to go on.
    RollBackNoticed,
    /// The members changed.
    MembersChanged,
    /// The state was restored.
    Restored,
    /// The state was restored while somebody waited.
    RestoredDuringWait,
    /// The wait after a restore kept somebody from a lease.
    RestoreWait,
    /// A client died for good while it held a lease.
    HolderDied,
    /// A clock was wrong beyond the bound.
    ClockBeyond,
    /// A token was shown that the log had never granted, and an alarm was raised.
    AlarmRaised,
    /// An alarm kept somebody from a lease.
    AlarmStopsGrants,
    /// An operator cleared an alarm.
    AlarmCleared,
    /// A command was refused in its place because a disk was full.
    NoRoom,
    /// The version of what may stand in the log was raised.
    VersionRaised,
    /// A command was refused because a member did not know it yet.
    NotYetInUse,
}

/// How often each situation was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sometimes {
    counts: [u64; Situation::ALL.len()],
}

impl Default for Sometimes {
    fn default() -> Self {
        Self { counts: [0; Situation::ALL.len()] }
    }
}

impl Sometimes {
    /// This was reached.
    pub fn reach(&mut self, situation: Situation) {
        self.add(situation, 1);
    }

    /// This was reached so often.
    pub fn add(&mut self, situation: Situation, times: u64) {
        self.counts[situation as usize] += times;
    }

    /// How often this was reached.
    pub fn count(&self, situation: Situation) -> u64 {
        self.counts[situation as usize]
    }

    /// What another run reached, too.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Everything that was never reached. A campaign fails unless this is empty.
    pub fn missing(&self) -> Vec<Situation> {
        Situation::ALL.iter().copied().filter(|situation| self.count(*situation) == 0).collect()
    }

    /// Each with its count.
    pub fn all(&self) -> impl Iterator<Item = (Situation, u64)> {
        Situation::ALL.iter().map(|situation| (*situation, self.count(*situation)))
    }
}

/// Counts what a record shows, and what its world counted.
pub fn observe(run: Run<'_>, sometimes: &mut Sometimes) {
    sometimes.merge(&run.record.reached);
    logs::observe(run, sometimes);
    clients::observe(run, sometimes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::excuse::Excuses;
    use crate::check::stage::Stage;
    use crate::check::story::Story;

    pub(super) fn reached(stage: &Stage) -> Vec<Situation> {
        let (story, excuses) = (Story::of(&stage.record), Excuses::of(&stage.record));
        let mut sometimes = Sometimes::default();
        observe(Run { record: &stage.record, story: &story, excuses: &excuses }, &mut sometimes);
        sometimes.all().filter(|(_, count)| *count > 0).map(|(situation, _)| situation).collect()
    }

    #[test]
    fn what_was_never_reached_is_named() {
        let mut sometimes = Sometimes::default();
        assert_eq!(sometimes.missing(), Situation::ALL);
        for situation in Situation::ALL.iter().skip(1) {
            sometimes.reach(*situation);
        }
        assert_eq!(sometimes.missing(), [Situation::RenewalRescues]);
        assert_eq!(
            Situation::RenewalRescues.sentence(),
            "A session that was overdue was renewed, and lived on."
        );
        let mut other = Sometimes::default();
        other.add(Situation::RenewalRescues, 2);
        sometimes.merge(&other);
        assert_eq!(sometimes.missing(), []);
        assert_eq!(sometimes.count(Situation::RenewalRescues), 2);
    }

    #[test]
    fn a_run_in_which_nothing_happens_reaches_nothing() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        stage.at(100).renew(session, &[token]);
        stage.at(200).release(session, token);
        assert_eq!(reached(&stage), []);
    }
}
