//! Damages the files of a node that does not run.

use std::fmt;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::random::Random;

/// The log is written in blocks of this size.
const BLOCK: usize = 512;

/// A kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bit of the log is flipped.
    FlipLog,
    /// A block in the middle of the log is zero.
    ZeroLog,
    /// A block of the log stands where another one was.
    MoveLog,
    /// A bit of any file of the directory is flipped.
    FlipAny,
    /// A file of the log ends in the middle of what was written.
    CutLog,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::FlipLog, Self::ZeroLog, Self::MoveLog, Self::FlipAny, Self::CutLog];
    /// One for each of three nodes, all to the log.
    pub const OF_LOGS: [Self; 3] = [Self::FlipLog, Self::ZeroLog, Self::MoveLog];
}

/// What was damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// How.
    pub kind: Kind,
    /// The name of the file.
    pub file: String,
    /// Where in it.
    pub place: usize,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::FlipLog | Kind::FlipAny => "a bit was flipped",
            Kind::ZeroLog => "a block was zeroed",
            Kind::MoveLog => "a block was replaced by another",
            Kind::CutLog => "everything was cut off",
        };
        write!(f, "{what} at byte {} of {}", self.place, self.file)
    }
}

/// Damages a file below `directory`.
///
/// # Errors
/// When there is nothing to damage, or the machine does not let us.
pub fn strike(directory: &Path, kind: Kind, random: &mut Random) -> Result<Damage> {
    let any = kind == Kind::FlipAny;
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for path in files_below(directory)? {
        let bytes = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Only bytes that say something: a zero may lie beyond the end of the log, where nothing was written.
        let says_something = bytes.iter().any(|byte| *byte != 0);
        if says_something && (any || (is_log(&name) && written_blocks(&bytes) >= 4)) {
            files.push((path, bytes));
        }
    }
    if files.is_empty() {
        bail!("{} has nothing to damage", directory.display());
    }
    let (path, bytes) = files.swap_remove(random.below(files.len()));
    let place = damage(&path, &bytes, kind, random)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Damage { kind, file, place })
}

fn damage(path: &Path, bytes: &[u8], kind: Kind, random: &mut Random) -> Result<usize> {
    let file = OpenOptions::new().write(true).open(path);
    let file = file.with_context(|| format!("{} cannot be opened", path.display()))?;
    let at = |place: usize| u64::try_from(place).expect("a place in a file");
    // Not the first block, which is the head, and not the last ones: what was never synced may look like that.
    let middle = |random: &mut Random| (1 + random.below(written_blocks(bytes) / 2)) * BLOCK;
    let place = match kind {
        Kind::FlipLog | Kind::FlipAny => {
            let written: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] != 0).collect();
            written[random.below(written.len())]
        }
        Kind::ZeroLog | Kind::MoveLog | Kind::CutLog => middle(random),
    };
    match kind {
        Kind::FlipLog | Kind::FlipAny => {
            file.write_all_at(&[bytes[place] ^ (1 << random.below(8))], at(place))?;
        }
        Kind::ZeroLog => file.write_all_at(&[0; BLOCK], at(place))?,
        Kind::MoveLog => file.write_all_at(&bytes[place + BLOCK..place + 2 * BLOCK], at(place))?,
        Kind::CutLog => file.set_len(at(place))?,
    }
    file.sync_all()?;
    Ok(place)
}

/// Blocks up to the last that is not zero.
fn written_blocks(bytes: &[u8]) -> usize {
    bytes.chunks(BLOCK).rposition(|block| block.iter().any(|byte| *byte != 0)).map_or(0, |last| last + 1)
}

fn is_log(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "log")
}

fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.metadata()?.len() > 0 {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_changes_what_was_written() {
        let directory = std::env::temp_dir().join(format!("leasehold-vandal-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("1.log");
        let mut before = vec![0; 20 * BLOCK];
        for (number, block) in before.chunks_mut(BLOCK).take(12).enumerate() {
            block.fill(u8::try_from(number + 1).unwrap());
        }
        for kind in Kind::ALL {
            std::fs::write(&path, &before).unwrap();
            let found = strike(&directory, kind, &mut Random::new(3)).unwrap();
            assert_ne!(std::fs::read(&path).unwrap(), before, "{found}");
            assert_eq!(found.file, "1.log");
            assert!(found.place < 12 * BLOCK, "{found}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
