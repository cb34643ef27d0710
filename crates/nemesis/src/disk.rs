//! A file system of its own for one node, on a loop device, so that it can stand still: a frozen file system lets every write and
//! sync wait, without an error, until it is thawed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cleanup::{self, Undo};
use crate::shell;

/// Enough for the log of a run.
const SIZE: u64 = 256 << 20;

/// A mounted file system.
#[derive(Debug)]
pub struct Disk {
    mounted: PathBuf,
    frozen: bool,
}

impl Disk {
    /// Makes an ext4 file system in a file beside `place` and mounts it there.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn mount(place: &Path) -> Result<Self> {
        std::fs::create_dir_all(place).with_context(|| format!("{} cannot be made", place.display()))?;
        let image = place.with_extension("img");
        let file =
            std::fs::File::create(&image).with_context(|| format!("{} cannot be made", image.display()))?;
        file.set_len(SIZE)?;
        shell::run("mkfs.ext4", &["-q", "-F", &image.to_string_lossy()])?;
        cleanup::note(Undo::Unmount(place.to_owned()));
        shell::run("mount", &["-o", "loop", &image.to_string_lossy(), &place.to_string_lossy()])?;
        Ok(Self { mounted: place.to_owned(), frozen: false })
    }

    /// From now on writes wait.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn freeze(&mut self) -> Result<()> {
        cleanup::note(Undo::Thaw(self.mounted.clone()));
        shell::run("fsfreeze", &["-f", &self.mounted.to_string_lossy()])?;
        self.frozen = true;
        Ok(())
    }

    /// Writes go on.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn thaw(&mut self) -> Result<()> {
        if self.frozen {
            shell::run("fsfreeze", &["-u", &self.mounted.to_string_lossy()])?;
            cleanup::done(&Undo::Thaw(self.mounted.clone()));
            self.frozen = false;
        }
        Ok(())
    }
}
