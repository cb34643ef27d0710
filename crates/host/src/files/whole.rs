//! Files and directories that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{FilesError, failed};
use crate::directory::{if_found, or_here};

/// Writes a file aside, syncs it, and gives it its name; whatever had the name is replaced. Nobody else may read it: it may hold the
/// nonces of sessions.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FilesError> {
    replace(path, bytes).map_err(failed("write", path))
}

/// The same, for those who say in other words what went wrong.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = beside(path, ".tmp");
    let written = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&aside, path)?;
        File::open(parent(path))?.sync_all()
    };
    written().inspect_err(|_| {
        // What is aside counts for nothing; without space it would only be in the way.
        let _ = std::fs::remove_file(&aside);
    })
}

/// Makes an empty directory for its owner alone; one that an interrupted attempt has left is replaced.
pub(super) fn make_empty(path: &Path) -> Result<(), FilesError> {
    if_found(std::fs::remove_dir_all(path)).map_err(failed("remove", path))?;
    DirBuilder::new().mode(0o700).create(path).map_err(failed("make", path))
}

pub(super) fn sync_directory(path: &Path) -> Result<(), FilesError> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(failed("sync", path))
}

/// The directory that a path is in.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().map_or(Path::new("."), or_here)
}

/// A path with something behind its last part.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

/// One line with a checksum at its end.
pub(super) fn sealed_line(body: &str) -> String {
    format!("{body} {:08x}\n", crc32c::crc32c(body.as_bytes()))
}

/// The words before the checksum of a line that [`sealed_line`] made.
pub(super) fn open_line(text: &str) -> Option<Vec<&str>> {
    let (body, _) = text.strip_suffix('\n')?.rsplit_once(' ')?;
    (sealed_line(body) == text).then(|| body.split(' ').collect())
}
