//! What the log says so far, without the payloads: kept while replaying and while writing, by the same code.

use crate::block::SegmentNumber;
use crate::record::{HardState, Head, Index, SnapshotKind, SnapshotMeta};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) hard_state: HardState,
    pub(crate) snapshot: Option<SnapshotMeta>,
    /// The first segment that is still needed.
    pub(crate) keep_from: SegmentNumber,
    /// One above the last live entry, or above the snapshot.
    pub(crate) next_index: Index,
    /// Where the live entries are, in rising order: each span ends where the next begins.
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first: Index,
    segment: SegmentNumber,
}

/// The indexes that could have been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) lowest: Index,
    pub(crate) highest: Index,
}

impl Bounds {
    pub(crate) fn check(self, index: Index) -> Result<(), Self> {
        if self.lowest <= index && index <= self.highest { Ok(()) } else { Err(self) }
    }
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            hard_state: HardState::NEW,
            snapshot: None,
            keep_from: SegmentNumber::FIRST,
            next_index: Index(1),
            spans: Vec::new(),
        }
    }

    /// What a head repeats. Where the entries are, it does not say.
    pub(crate) fn from_head(head: &Head) -> Self {
        Self {
            hard_state: head.hard_state,
            snapshot: head.snapshot,
            keep_from: head.keep_from,
            next_index: head.next_index,
            spans: Vec::new(),
        }
    }

    pub(crate) fn agrees_with(&self, head: &Head) -> bool {
        (self.hard_state, self.snapshot, self.keep_from, self.next_index)
            == (head.hard_state, head.snapshot, head.keep_from, head.next_index)
    }

    /// The index of the snapshot that counts; 0 if there is none.
    pub(crate) fn snapshot_index(&self) -> Index {
        self.snapshot.map_or(Index(0), |meta| meta.index)
    }

    pub(crate) fn entry_bounds(&self) -> Bounds {
        // One below the end of the numbers, so that "one above" always exists.
        let highest = self.next_index.min(Index(u64::MAX - 1));
        Bounds { lowest: Index(self.snapshot_index().0 + 1), highest }
    }

    pub(crate) fn snapshot_bounds(&self, kind: SnapshotKind) -> Bounds {
        let highest = match kind {
            // Only what is in the log can have been applied to our own table.
            SnapshotKind::Taken => Index(self.next_index.0 - 1),
            // One below the end of the numbers, so that "one above" always exists.
            SnapshotKind::Installed => Index(u64::MAX - 1),
        };
        Bounds { lowest: self.snapshot_index(), highest }
    }

    pub(crate) fn add_entry(&mut self, index: Index, segment: SegmentNumber) -> Result<(), Bounds> {
        self.entry_bounds().check(index)?;
        while self.spans.last().is_some_and(|span| span.first >= index) {
            self.spans.pop();
        }
        if self.spans.last().is_none_or(|span| span.segment != segment) {
            self.spans.push(Span { first: index, segment });
        }
        self.next_index = Index(index.0 + 1);
        Ok(())
    }

    /// The first segment needed once a snapshot is recorded in segment `current`.
    pub(crate) fn keep_from_after(
        &self,
        kind: SnapshotKind,
        index: Index,
        current: SegmentNumber,
    ) -> SegmentNumber {
        if kind == SnapshotKind::Installed || self.next_index.0 <= index.0 + 1 {
            return current;
        }
        let first_kept = Index(index.0 + 1);
        self.spans
            .iter()
            .rev()
            .find(|span| span.first <= first_kept)
            .map_or(self.keep_from, |span| span.segment)
    }

    pub(crate) fn add_snapshot(
        &mut self,
        meta: SnapshotMeta,
        keep_from: SegmentNumber,
    ) -> Result<(), Bounds> {
        self.snapshot_bounds(meta.kind).check(meta.index)?;
        let above = Index(meta.index.0 + 1);
        if meta.kind == SnapshotKind::Installed || self.next_index <= above {
            self.spans.clear();
            self.next_index = above;
        } else {
            while self.spans.get(1).is_some_and(|span| span.first <= above) {
                self.spans.remove(0);
            }
        }
        self.snapshot = Some(meta);
        self.keep_from = keep_from;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BatchNumber;
    use crate::record::Term;

    fn meta(kind: SnapshotKind, index: u64) -> SnapshotMeta {
        SnapshotMeta { kind, index: Index(index), term: Term(1), file: BatchNumber(1), len: 0, crc: 0 }
    }

    fn three_segments() -> State {
        let mut state = State::new();
        for (index, segment) in [(1, 1), (2, 1), (3, 2), (4, 2), (3, 3), (4, 3)] {
            state.add_entry(Index(index), SegmentNumber(segment)).unwrap();
        }
        state
    }

    #[test]
    fn a_segment_is_needed_while_it_holds_a_live_entry_above_the_snapshot() {
        let state = three_segments();
        let keep = |index| state.keep_from_after(SnapshotKind::Taken, Index(index), SegmentNumber(9));
        assert_eq!([keep(1), keep(2), keep(3), keep(4)].map(|segment| segment.0), [1, 3, 3, 9]);
        assert_eq!(state.keep_from_after(SnapshotKind::Installed, Index(1), SegmentNumber(9)).0, 9);
    }

    #[test]
    fn a_gap_and_an_index_below_the_snapshot_are_refused() {
        let mut state = three_segments();
        state.add_snapshot(meta(SnapshotKind::Taken, 2), SegmentNumber(3)).unwrap();
        let bounds = Bounds { lowest: Index(3), highest: Index(5) };
        assert_eq!(state.add_entry(Index(6), SegmentNumber(3)), Err(bounds));
        assert_eq!(state.add_entry(Index(2), SegmentNumber(3)), Err(bounds));
        assert!(state.add_snapshot(meta(SnapshotKind::Taken, 5), SegmentNumber(3)).is_err());
    }

    #[test]
    fn an_installed_snapshot_drops_all_entries() {
        let mut state = three_segments();
        state.add_snapshot(meta(SnapshotKind::Installed, 2), SegmentNumber(3)).unwrap();
        assert_eq!(state.next_index, Index(3));
        state.add_snapshot(meta(SnapshotKind::Installed, 70), SegmentNumber(3)).unwrap();
        assert_eq!(state.next_index, Index(71));
    }
}
