//! The machine that it was measured on, and how long its disk takes.

use std::fmt;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::session_stream::clock::now_ns;
use crate::workloads::figures::micros;

/// What figures depend on.
#[derive(Debug, Clone)]
pub struct Machine {
    cores: usize,
    processor: String,
    kernel: String,
    sync_p50_us: f64,
}

/// Writes of which the median is taken.
const SYNCS: usize = 200;
/// What is overwritten each time, as a log does.
const BLOCK: [u8; 4096] = [1; 4096];

impl Machine {
    /// Looks at it. The disk is that of a directory.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn look(data: &Path) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let named = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let processor = named.map_or("unknown processor", |(_, name)| name).to_owned();
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        Ok(Self { cores, processor, kernel, sync_p50_us: sync_p50_us(data)? })
    }
}

fn sync_p50_us(data: &Path) -> Result<f64> {
    use std::os::unix::fs::FileExt as _;
    let mut file = tempfile::tempfile_in(data)
        .with_context(|| format!("nothing can be written in {}", data.display()))?;
    for _ in 0..SYNCS {
        file.write_all(&BLOCK)?;
    }
    file.sync_all()?;
    let mut took = Vec::with_capacity(SYNCS);
    for place in 0..SYNCS as u64 {
        let begun = now_ns();
        file.write_all_at(&BLOCK, place * BLOCK.len() as u64)?;
        file.sync_data()?;
        took.push(now_ns() - begun);
    }
    took.sort_unstable();
    Ok(micros(took[SYNCS / 2]))
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, processor, kernel, sync_p50_us } = self;
        write!(
            f,
            "{cores} cores ({processor}), Linux {kernel}, overwriting 4 KiB and `fdatasync` {sync_p50_us:.0} us"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_takes_some_time() {
        let machine = Machine::look(&std::env::temp_dir()).unwrap();
        assert!(machine.sync_p50_us > 0.0 && machine.to_string().contains("fdatasync"), "{machine}");
    }
}
