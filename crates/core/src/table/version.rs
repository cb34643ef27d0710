//! What came with which version of the log. A replica of an earlier release must come to the same outcomes, entry by entry, so what is new
//! arises only behind the entry that says that every member knows it.

use super::LeaseTable;
use crate::answer::Refusal;
use crate::command::Op;
use crate::id::CommandNumber;

/// What a log begins with.
pub const FIRST_VERSION: u32 = 1;
/// From this version on drains are shown, and holders are told that their offers were accepted.
pub const SHOWS_DRAINS: u32 = 2;
/// From this version on gaps are counted: holders say when they are ready, and the log says when connections ended and when nobody led.
pub const COUNTS_GAPS: u32 = 3;
/// From this version on each gap says for how long the holder before it may have acted, and an alarm stops no other name than its own.
pub const GAPS_HAVE_TWO_LENGTHS: u32 = 4;
/// From this version on calls of plain sessions have numbers.
pub const NUMBERS_CALLS: u32 = 5;

/// The version that a log must have before this may stand in it.
pub const fn needs(op: &Op) -> u32 {
    match op {
        Op::SetDraining { .. } => SHOWS_DRAINS,
        Op::SetReady { .. } => COUNTS_GAPS,
        Op::CancelCall { .. } => NUMBERS_CALLS,
        Op::Acquire(_)
        | Op::Cancel { .. }
        | Op::SetValue { .. }
        | Op::WriteRegister { .. }
        | Op::Offer(_)
        | Op::Accept { .. }
        | Op::Release { .. }
        | Op::Close => FIRST_VERSION,
    }
}

/// What stands in the log in place of a command of a stream that may not yet. It takes the number, so that what follows can be
/// taken in, and every release refuses it: no command is a wait for itself.
pub const fn stands_in(number: CommandNumber) -> Op {
    Op::Cancel { acquire: number }
}

/// Why a command of a stream was refused, for whoever knows what was sent: something else may have stood in the log in its place.
pub fn refusal_of(sent: &Op, refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::NoSuchWait { .. } if needs(sent) > FIRST_VERSION => Refusal::NotYetInUse,
        other => other,
    }
}

/// For snapshots that do not say it.
pub(super) const fn first() -> u32 {
    FIRST_VERSION
}

impl LeaseTable {
    /// The version of what may stand in the log.
    pub const fn version(&self) -> u32 {
        self.version
    }

    pub(super) const fn shows_drains(&self) -> bool {
        self.version >= SHOWS_DRAINS
    }

    pub(super) const fn counts_gaps(&self) -> bool {
        self.version >= COUNTS_GAPS
    }

    pub(super) const fn gaps_have_two_lengths(&self) -> bool {
        self.version >= GAPS_HAVE_TWO_LENGTHS
    }

    pub(super) const fn alarms_stop_their_name(&self) -> bool {
        self.version >= GAPS_HAVE_TWO_LENGTHS
    }
}
