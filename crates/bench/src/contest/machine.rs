//! The machine that it was measured on, and how long its disk takes.

use std::fmt;
use std::path::Path;

use anyhow::Result;

use super::quiet::Quiet;

/// What figures depend on.
#[derive(Debug, Clone)]
pub struct Machine {
    cores: usize,
    processor: String,
    memory_gib: f64,
    kernel: String,
    /// The kind, of the directory of the data.
    file_system: String,
    sync_p50_us: f64,
}

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
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        let whole = data.canonicalize().unwrap_or_else(|_| data.to_owned());
        let file_system = file_system(&mounts, &whole).unwrap_or("an unknown file system").to_owned();
        let memory_gib = memory_gib(&memory).unwrap_or(0.0);
        let sync_p50_us = Quiet::open(data)?.look()?;
        Ok(Self { cores, processor, memory_gib, kernel, file_system, sync_p50_us })
    }

    /// How many it computes with.
    pub fn cores(&self) -> usize {
        self.cores
    }
}

/// All memory, of the text of `/proc/meminfo`.
fn memory_gib(text: &str) -> Option<f64> {
    const KIB_OF_A_GIB: f64 = 1_048_576.0;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: f64 = kib.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / KIB_OF_A_GIB)
}

/// The kind of file system that a directory is on, of the text of `/proc/mounts`: the longest place that it lies below, and of the same place the
/// last, which covers the others.
fn file_system<'a>(mounts: &'a str, place: &Path) -> Option<&'a str> {
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let below = mounted.filter(|(mount, _)| place.starts_with(mount));
    below.max_by_key(|(mount, _)| mount.len()).map(|(_, kind)| kind)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, processor, memory_gib, kernel, file_system, sync_p50_us } = self;
        write!(
            f,
            "{cores} cores ({processor}), {memory_gib:.1} GiB of memory, Linux {kernel}; data on {file_system}, where overwriting 4 KiB and \
             `fdatasync` take {sync_p50_us:.0} us"
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

    #[test]
    fn the_file_system_is_the_innermost_one() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/data xfs rw 0 0\n";
        let of = |place: &str| file_system(mounts, Path::new(place));
        assert_eq!(
            [of("/tmp/data/x"), of("/tmp/database"), of("/var")],
            [Some("xfs"), Some("tmpfs"), Some("ext4")]
        );
    }

    #[test]
    fn memory_is_shown_in_gib() {
        assert_eq!(memory_gib("MemTotal:        2097152 kB\nMemFree: 5 kB\n"), Some(2.0));
        assert_eq!(memory_gib(""), None);
    }
}
