//! Embedded directories: time without a server counts.
//!
//! Every stamped entry of an embedded directory carries the machine it was stamped on and the very readings its stamp was
//! computed from. The next process to serve goes on from there, so that a holder that was killed an hour ago is an hour
//! overdue. That is only sound between readings of the same clocks: same boot, same time namespace.

use leasehold_core::holder::Reading;
use leasehold_core::{LogTime, Millis};
use serde::{Deserialize, Serialize};

/// What makes readings of clocks comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Drawn by the kernel at every boot.
    pub boot_id: [u8; 16],
    /// The time namespace of the process.
    pub time_namespace: u64,
    /// Its offsets: seconds and nanoseconds of the monotonic clock, then of the boot clock.
    pub offsets: [i64; 4],
}

/// A machine and readings of its clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Whose clocks.
    pub machine: Machine,
    /// Nanoseconds of the boot clock.
    pub boot: u64,
    /// Nanoseconds of the raw clock.
    pub raw: u64,
}

impl Anchor {
    /// The readings of `machine`'s clocks.
    pub fn new(machine: Machine, reading: Reading) -> Self {
        Self { machine, boot: reading.boot, raw: reading.raw }
    }
}

/// Where log time goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// From here: the time without a server is included.
    At(LogTime),
    /// The machine was started anew: every process of before is gone, and no time can be counted.
    Rebooted(LogTime),
    /// Nothing can be compared: everything ends, and nothing is granted until nobody can believe in anything any more.
    EndAll(LogTime),
}

/// Readings that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// Stamped in another time namespace of this boot.
    #[error(
        "the directory was last served in time namespace {theirs}, this process is in {ours}: their clocks cannot be compared; \
         serve it from there, or end all its leases and wait with --end-all-after-wait"
    )]
    OtherNamespace {
        /// The namespace in the log.
        theirs: u64,
        /// The namespace here.
        ours: u64,
    },
    /// The clocks of this boot went back.
    #[error(
        "the clocks of this boot stand {behind} before the last entry of the directory: they cannot be compared; \
         end all its leases and wait with --end-all-after-wait"
    )]
    WentBack {
        /// By how much.
        behind: Millis,
    },
}

/// Decides where log time goes on after the last stamped entry.
///
/// # Errors
/// When the clocks cannot be compared and `end_all` was not asked for.
pub fn resume(
    last: Option<(LogTime, &Anchor)>,
    machine: &Machine,
    now: Reading,
    end_all: bool,
) -> Result<Resume, ResumeError> {
    let Some((at, anchor)) = last else { return Ok(Resume::At(LogTime::ZERO)) };
    if anchor.machine.boot_id != machine.boot_id {
        // A container may show a boot id of its own while processes of the same boot live on outside. Only a clock that stands
        // before the last reading proves that the machine has begun anew: within one boot neither goes back.
        let went_back = now.boot < anchor.boot || now.raw < anchor.raw;
        let began_anew = went_back && anchor.machine.offsets == machine.offsets;
        return Ok(if began_anew { Resume::Rebooted(at) } else { Resume::EndAll(at) });
    }
    match elapsed_since(anchor, machine, now) {
        Ok(elapsed) => Ok(Resume::At(at.plus(elapsed))),
        // Where the clocks can be compared nothing ends, whatever was asked for: the choice may stand in a unit file for years.
        Err(_) if end_all => Ok(Resume::EndAll(at)),
        Err(error) => Err(error),
    }
}

/// The smaller elapsed time since the readings of the same boot, if they can be compared.
pub(crate) fn elapsed_since(anchor: &Anchor, machine: &Machine, now: Reading) -> Result<Millis, ResumeError> {
    if anchor.machine != *machine {
        let (theirs, ours) = (anchor.machine.time_namespace, machine.time_namespace);
        return Err(ResumeError::OtherNamespace { theirs, ours });
    }
    let behind = anchor.boot.saturating_sub(now.boot).max(anchor.raw.saturating_sub(now.raw));
    if behind > 0 {
        return Err(ResumeError::WentBack { behind: Millis::new(behind.div_ceil(1_000_000)) });
    }
    let elapsed = (now.boot - anchor.boot).min(now.raw - anchor.raw);
    Ok(Millis::new(elapsed / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn machine(boot: u8, namespace: u64) -> Machine {
        Machine { boot_id: [boot; 16], time_namespace: namespace, offsets: [0; 4] }
    }

    fn anchor(boot: u64, raw: u64) -> Anchor {
        Anchor { machine: machine(1, 7), boot: boot * SECOND, raw: raw * SECOND }
    }

    fn reading(boot: u64, raw: u64) -> Reading {
        Reading { boot: boot * SECOND, raw: raw * SECOND }
    }

    #[test]
    fn the_smaller_elapsed_time_counts() {
        let last = anchor(10, 10);
        let resumed = resume(Some((LogTime::new(500), &last)), &machine(1, 7), reading(3_610, 20), false);
        assert_eq!(resumed, Ok(Resume::At(LogTime::new(10_500))));
    }

    #[test]
    fn another_boot_ends_all_and_moves_no_time() {
        let last = anchor(10, 10);
        let resumed = resume(Some((LogTime::new(500), &last)), &machine(2, 9), reading(1, 1), false);
        assert_eq!(resumed, Ok(Resume::Rebooted(LogTime::new(500))));
    }

    #[test]
    fn another_boot_id_without_clocks_that_began_anew_waits_for_everybody() {
        let last = anchor(10, 10);
        for now in [reading(10, 10), reading(20, 20), reading(10, 20)] {
            let resumed = resume(Some((LogTime::new(500), &last)), &machine(2, 7), now, false);
            assert_eq!(resumed, Ok(Resume::EndAll(LogTime::new(500))));
        }
    }

    #[test]
    fn another_time_namespace_is_refused_unless_everything_ends() {
        let last = anchor(10, 10);
        let here = machine(1, 8);
        assert_eq!(
            resume(Some((LogTime::ZERO, &last)), &here, reading(20, 20), false),
            Err(ResumeError::OtherNamespace { theirs: 7, ours: 8 })
        );
        assert_eq!(
            resume(Some((LogTime::ZERO, &last)), &here, reading(20, 20), true),
            Ok(Resume::EndAll(LogTime::ZERO))
        );
    }

    #[test]
    fn clocks_that_can_be_compared_end_nothing_even_if_it_was_asked_for() {
        let last = anchor(10, 10);
        let resumed = resume(Some((LogTime::ZERO, &last)), &machine(1, 7), reading(20, 20), true);
        assert_eq!(resumed, Ok(Resume::At(LogTime::new(10_000))));
    }

    #[test]
    fn clocks_that_went_back_are_refused() {
        let last = anchor(10, 10);
        assert_eq!(
            resume(Some((LogTime::ZERO, &last)), &machine(1, 7), reading(20, 9), false),
            Err(ResumeError::WentBack { behind: Millis::new(1_000) })
        );
    }
}
