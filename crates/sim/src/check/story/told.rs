//! Gaps as the table told them when they ended, and whom events are about.

use leasehold_core::gap::{GapNote, GapView};
use leasehold_core::{Applied, Event as TableEvent, LeaseTable, LogTime, Millis};

use super::Story;
use crate::record::Event;

/// A gap that an entry ended, as the table told it then.
#[derive(Debug, Clone)]
pub struct Told {
    /// The step that ended it.
    pub step: usize,
    /// What was told.
    pub view: GapView,
}

impl Story<'_> {
    /// The gaps that the next step ends.
    pub(super) fn see_gaps(&mut self, table: &LeaseTable, outcome: &Applied) {
        for note in &outcome.gaps {
            if let GapNote::Over { resource } = note
                && let Some(known) = table.gaps(resource, Some(Millis::ZERO), LogTime::ZERO)
            {
                let over = known.gaps.into_iter().find(|gap| gap.ended_ago.is_some());
                self.gaps.extend(over.map(|view| Told { step: self.steps.len(), view }));
            }
        }
    }
}

/// The session or token that an event of the table is about.
pub(super) const fn concerns(event: &TableEvent) -> Option<u64> {
    match event {
        TableEvent::Granted { grant, .. } => Some(grant.token.get()),
        TableEvent::Ended { token, .. } => Some(token.get()),
        TableEvent::SessionEnded { session } => Some(session.get()),
        _ => None,
    }
}

/// The session or token that a client did or heard something about.
pub(super) const fn told_of(event: &Event) -> Option<u64> {
    match event {
        Event::SessionOpened { session, .. }
        | Event::SessionOver { session }
        | Event::RenewalSent { session, .. }
        | Event::PlainRenewed { session, .. } => Some(session.get()),
        Event::LetGo { token, .. } => Some(token.get()),
        _ => None,
    }
}
