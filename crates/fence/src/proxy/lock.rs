//! One proxy for one directory: a lock that the kernel takes back when its process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::OpenError;

/// Held for as long as this exists.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, and leaves this process's number for whoever is refused.
    pub(super) fn take(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join("lock");
        let cannot = |what| {
            let path = path.clone();
            move |source| OpenError::Directory { what, path, source }
        };
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(cannot("open"))?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(cannot("lock")(error.into()));
            }
            let mut pid = String::new();
            // Whoever has just taken it may not have written yet.
            let _ = file.read_to_string(&mut pid);
            let pid =
                Some(pid.trim()).filter(|pid| !pid.is_empty()).unwrap_or("that has just begun").to_owned();
            return Err(OpenError::InUse { directory: directory.to_owned(), pid });
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(cannot("write"))?;
        Ok(Self { _file: file })
    }
}
