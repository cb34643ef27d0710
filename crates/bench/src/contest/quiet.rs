//! Whether the disk is as fast as it can be: on a machine that is shared, and behind a system whose data was just removed, it is not always.
//!
//! Promises: the same rule for every system, before every measurement; how long a sync took then is kept with the result, also where the
//! disk did not come to rest in time.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clock::now_ns;

/// Syncs of one look.
const SYNCS: u64 = 60;
/// Bytes of each, at places of their own.
const BYTES: usize = 4096;
/// A disk that needs no more than this times its best is at rest.
const AT_REST: f64 = 1.5;
/// Looks at the beginning, to learn what the best is.
const FIRST_LOOKS: usize = 20;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// Nobody waits for a disk longer than this: other users of a machine may stay, and a full run has hundreds of measurements.
pub const LONGEST: Duration = Duration::from_secs(5);

/// The disk of the data.
#[derive(Debug)]
pub struct Quiet {
    file: File,
    best_us: f64,
}

impl Quiet {
    /// Learns how fast the disk is.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn learn(place: &Path) -> Result<Self> {
        let mut quiet = Self::open(place)?;
        for _ in 0..FIRST_LOOKS {
            quiet.look()?;
            std::thread::sleep(PAUSE / 5);
        }
        Ok(quiet)
    }

    /// Nothing is known of it yet.
    pub(super) fn open(place: &Path) -> Result<Self> {
        let file =
            tempfile::tempfile_in(place).with_context(|| format!("{} takes no files", place.display()))?;
        file.write_all_at(&vec![0; BYTES * usize::try_from(SYNCS)?], 0)?;
        file.sync_all()?;
        Ok(Self { file, best_us: f64::INFINITY })
    }

    /// Waits until it is at rest, and says how long a sync takes, in microseconds.
    ///
    /// # Errors
    /// When it cannot be written to any more.
    pub fn wait(&mut self) -> Result<f64> {
        let give_up = now_ns() + u64::try_from(LONGEST.as_nanos())?;
        loop {
            let took = self.look()?;
            if took <= self.best_us * AT_REST || now_ns() > give_up {
                return Ok(took);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The median of some syncs, in microseconds.
    pub(super) fn look(&mut self) -> Result<f64> {
        let mut took = Vec::new();
        for number in 0..SYNCS {
            let begun = now_ns();
            self.file.write_all_at(&[7; BYTES], number * BYTES as u64)?;
            self.file.sync_data()?;
            took.push(now_ns() - begun);
        }
        took.sort_unstable();
        let median = crate::workloads::figures::micros(took[took.len() / 2]);
        self.best_us = self.best_us.min(median);
        Ok(median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_at_rest_is_not_waited_for() {
        let mut quiet = Quiet::learn(&std::env::temp_dir()).unwrap();
        assert!(quiet.best_us.is_finite() && quiet.best_us > 0.0);
        quiet.best_us = f64::MAX / 4.0;
        let begun = now_ns();
        quiet.wait().unwrap();
        assert!(now_ns() - begun < u64::try_from(LONGEST.as_nanos()).unwrap(), "it was at rest at once");
    }
}
