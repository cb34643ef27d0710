//! Known mistakes that tests put back, to show that the checkers find them.

/// A mistake. Nothing outside tests can choose one: [`Options`](crate::Options) takes it behind feature `planted` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A batch is answered without a sync.
    AckBeforeSync,
    /// A new segment is used before the directory was synced.
    SegmentBeforeDirSync,
    /// The head of a segment does not repeat the vote.
    HeadForgetsVote,
    /// A snapshot is recorded before the directory was synced.
    NoDirSyncAfterRename,
    /// Old segments and snapshots go before the snapshot's record is synced.
    RemoveBeforeRecord,
    /// An installed snapshot does not drop the entries before it.
    InstalledKeepsEntries,
    /// A batch with some empty blocks is refused as damage.
    TornTailIsDamage,
    /// A bad block in the last segment is cut off.
    CutOnDamage,
    /// The CRC of the batch before is not compared.
    ChainUnchecked,
    /// Only the first block of a torn batch is zeroed.
    CutLeavesRest,
    /// A headless last segment is removed although the one before is closed.
    ClosedSuccessorRemoved,
    /// A segment made ahead by an earlier process is used as it is.
    SpareKept,
    /// A cut is not synced.
    CutNotSynced,
    /// The last batch is synced but not written again at recovery.
    LastBatchNotRewritten,
    /// Leftovers are removed at recovery before the last batch is synced.
    TidyBeforeSync,
}

/// At most one mistake; which one, only this crate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Planting(pub(crate) Option<Planted>);

impl Planting {
    /// The mistake that this process makes everywhere, if it was told to.
    #[cfg(feature = "planted")]
    pub(crate) fn chosen() -> Self {
        use leasehold_core::planted::{Bug, planted};
        let all = [
            (Bug::AckBeforeSync, Planted::AckBeforeSync),
            (Bug::SegmentBeforeDirSync, Planted::SegmentBeforeDirSync),
            (Bug::HeadForgetsVote, Planted::HeadForgetsVote),
            (Bug::NoDirSyncAfterRename, Planted::NoDirSyncAfterRename),
            (Bug::RemoveBeforeRecord, Planted::RemoveBeforeRecord),
            (Bug::TornTailIsDamage, Planted::TornTailIsDamage),
            (Bug::CutOnDamage, Planted::CutOnDamage),
            (Bug::CutLeavesRest, Planted::CutLeavesRest),
            (Bug::ClosedSuccessorRemoved, Planted::ClosedSuccessorRemoved),
            (Bug::SpareKept, Planted::SpareKept),
            (Bug::CutNotSynced, Planted::CutNotSynced),
            (Bug::LastBatchNotRewritten, Planted::LastBatchNotRewritten),
            (Bug::TidyBeforeSync, Planted::TidyBeforeSync),
        ];
        Self(all.into_iter().find(|(bug, _)| planted(*bug)).map(|(_, mistake)| mistake))
    }

    /// The mistake that this process makes everywhere: none in this build.
    #[cfg(not(feature = "planted"))]
    pub(crate) fn chosen() -> Self {
        Self::default()
    }
}
