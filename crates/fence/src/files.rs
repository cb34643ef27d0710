//! A file: written whole, under a lock, if the token is not stale.
//!
//! ```no_run
//! # async fn example(guard: impl leasehold_fence::Authority) -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold_fence::files::Fence;
//!
//! let fence = Fence::new("/var/lib/reports/nightly.json")?;
//! fence.write(&guard, b"{\"rows\": 42}".to_vec()).await?; // or write_blocking, where nothing is async
//! # Ok(()) }
//! ```
//!
//! **The atomic step** is everything that is done under the lock of the sidecar, `FILE.fence`: compare, raise, write a new file beside the old one,
//! sync it, rename it over the old one, sync the directory. Readers need no lock: they see the old file or the new one, whole. The raise is on the disk before the
//! file changes, so a crash leaves a raised token and the old file, or a raised token and the new file. How the sidecar survives
//! a write that is cut off: it has two places for what it knows, and overwrites the older one.
//!
//! **What it needs.** A local file system that honours `flock`, `rename` and `fsync`, such as ext4, XFS or btrfs. All writers go through this.
//! The sidecar stays: it is never replaced, and whoever removes it removes the fence. A `FILE.fence.making-...` is of somebody who makes it, or was killed at that:
//! it is no fence, and is removed with the first token.
//!
//! **What it does not cover.** *Writers that do not ask*, for a file cannot refuse. *NFS*: `flock` is kept by the server there only from
//! version 4 on and without the option `local_lock`, a client that the server has given up on may still write, and an answer to `rename` may be lost; keep the
//! file where one machine writes it. *Two names of one file*: links are followed when the fence is made, but hard links have a sidecar each. *Contents by
//! pieces*: the file is replaced as a whole; its mode is kept, its owner is the writer.
//! *A writer that stands still inside*: nobody else gets in until it goes on or is ended. That is safe, and the others are told who it is.

mod sidecar;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::counts::Counts;
use crate::error::{Error, Stale, Trouble};
use crate::moment;
use crate::receiver::{Answer, KEPT_REFUSALS, Mark, Receiver, Refused, Seen};
use crate::stamp::{Authority, Stamp};
use sidecar::{Kept, Locked, Synced};

/// Others are waited for this long: many writes fit in, and a seal that waits for longer should tell somebody.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(5);

/// A file behind a fence.
#[derive(Debug, Clone)]
pub struct Fence {
    file: PathBuf,
    sidecar: PathBuf,
    place: String,
    patience: Duration,
    counts: Counts,
    synced: Synced,
}

impl Fence {
    /// A fence for a file, which need not be there yet. Its directory must be.
    ///
    /// # Errors
    /// When the directory is not there, or the path is that of a directory or of a link to nowhere.
    pub fn new(file: impl AsRef<Path>) -> io::Result<Self> {
        let file = real(file.as_ref())?;
        let place = format!("file:{}", file.display());
        let sidecar = with_ending(&file, ".fence");
        let (counts, synced) = (Counts::default(), Synced::default());
        Ok(Self { file, sidecar, place, patience: DEFAULT_PATIENCE, counts, synced })
    }

    /// How long to wait for others that have the lock.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Counts here.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// Replaces the file's contents, if the token is not stale. The work is done in a thread of its own; when this future is
    /// dropped it is done all the same.
    ///
    /// # Errors
    /// [`Error::Unknown`] when the file was replaced and the disk did not confirm it, or when that cannot be told.
    pub async fn write(&self, authority: impl Authority, contents: impl Into<Vec<u8>>) -> Result<(), Error> {
        let contents = contents.into();
        self.spawn(authority, move |_| Ok(contents)).await
    }

    /// Replaces the file's contents by what `change` makes of them (nothing if there is no file), all under the lock.
    ///
    /// # Errors
    /// As [`Fence::write`].
    pub async fn update(
        &self,
        authority: impl Authority,
        change: impl FnOnce(Option<Vec<u8>>) -> Vec<u8> + Send + 'static,
    ) -> Result<(), Error> {
        self.spawn(authority, move |file| Ok(change(contents(file)?))).await
    }

    /// As [`Fence::write`], in this thread.
    ///
    /// # Errors
    /// As [`Fence::write`].
    pub fn write_blocking(&self, authority: impl Authority, contents: &[u8]) -> Result<(), Error> {
        self.run(authority, |_| Ok(contents.to_vec()))
    }

    /// As [`Fence::update`], in this thread.
    ///
    /// # Errors
    /// As [`Fence::write`].
    pub fn update_blocking(
        &self,
        authority: impl Authority,
        change: impl FnOnce(Option<Vec<u8>>) -> Vec<u8>,
    ) -> Result<(), Error> {
        self.run(authority, |file| Ok(change(contents(file)?)))
    }

    /// As [`Receiver::seal`], in this thread.
    ///
    /// # Errors
    /// As [`Receiver::seal`].
    pub fn seal_blocking(&self, stamp: &Stamp) -> Result<(), Error> {
        self.counts.seal(&self.place, self.enter(stamp).map(drop))
    }

    /// As [`Receiver::look`], in this thread.
    ///
    /// # Errors
    /// As [`Receiver::look`].
    pub fn look_blocking(&self, name: &str) -> Result<Seen, Error> {
        let known = sidecar::look(&self.sidecar).map_err(|error| self.failed(error))?.remove(name);
        let Some(known) = known else { return Ok(Seen { highest: None, refusals: Some(Vec::new()) }) };
        let highest = token(&known.token).map_err(|error| self.failed(error))?;
        let refusals = known.refusals.into_iter().filter_map(|kept| {
            let (token, highest) = (token(&kept.token).ok()?, token(&kept.highest).ok()?);
            let at = kept.at.as_deref().map(moment::shown);
            Some(Refused { token, highest, holder: kept.holder, at })
        });
        let highest = Some(Mark { token: highest, holder: known.holder });
        Ok(Seen { highest, refusals: Some(refusals.collect()) })
    }

    fn run(
        &self,
        authority: impl Authority,
        change: impl FnOnce(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<(), Error> {
        let stamp = authority.stamp().map_err(Error::from);
        self.counts.write(&self.place, stamp.and_then(|stamp| self.replace(&stamp, change)))
    }

    async fn spawn(
        &self,
        authority: impl Authority,
        change: impl FnOnce(&Path) -> io::Result<Vec<u8>> + Send + 'static,
    ) -> Result<(), Error> {
        let stamp = match authority.stamp() {
            Ok(stamp) => stamp,
            Err(lapsed) => return self.counts.write(&self.place, Err(lapsed.into())),
        };
        // Counted there, so that a caller that went away is counted too.
        let done = self.offload(move |fence| fence.run(&stamp, change)).await;
        done.unwrap_or_else(|lost| self.counts.write(&self.place, Err(lost)))
    }

    /// Does what blocks in a thread of its own, on whatever the caller runs: here it waits for disks, beside which starting a thread is nothing.
    async fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (done, answer) = oneshot::channel();
        let fence = self.clone();
        let thread = std::thread::Builder::new().name("leasehold-fence".to_owned()).spawn(move || {
            // A caller that has gone hears nothing.
            let _ = done.send(work(&fence));
        });
        thread.map_err(|error| self.failed(error))?;
        answer.await.map_err(|_| Error::unknown(&self.place, "the thread that does it panicked"))
    }

    fn failed(&self, why: impl Into<Trouble>) -> Error {
        Error::failed(&self.place, why)
    }

    /// Takes the lock, and raises the fence or refuses. The lock is held for as long as what is given back.
    fn enter(&self, stamp: &Stamp) -> Result<Locked, Error> {
        let mut locked =
            Locked::open(&self.sidecar, self.patience, &self.synced).map_err(|error| self.failed(error))?;
        let mut known = locked.known(stamp.name()).cloned().unwrap_or_default();
        let highest = match known.token.as_str() {
            "" => None,
            text => Some(token(text).map_err(|error| self.failed(error))?),
        };
        match highest {
            Some(highest) if highest > stamp.token() => {
                known.refusals.insert(0, refusal(stamp, highest, locked.time()));
                known.refusals.truncate(KEPT_REFUSALS);
                // For people; the refusal stands, kept or not.
                let _ = locked.put(stamp.name(), known);
                return Err(Stale::of(stamp, Some(highest)).into());
            }
            Some(highest) if highest == stamp.token() => {}
            _ => {
                known.token = stamp.token().to_string();
                known.holder = stamp.holder().map(ToOwned::to_owned);
                locked.put(stamp.name(), known).map_err(|error| self.failed(error))?;
            }
        }
        Ok(locked)
    }

    fn replace(&self, stamp: &Stamp, change: impl FnOnce(&Path) -> io::Result<Vec<u8>>) -> Result<(), Error> {
        let locked = self.enter(stamp)?;
        let new = with_ending(locked.path(), ".new");
        let made = change(&self.file).and_then(|contents| self.make(&new, &contents));
        let made = made.map_err(|error| self.failed(error))?;
        if let Err(error) = std::fs::rename(&new, &self.file) {
            // If it still has its old name it was not renamed.
            let stays = std::fs::symlink_metadata(&new).is_ok_and(|found| found.ino() == made);
            return Err(if stays { self.failed(error) } else { Error::unknown(&self.place, error) });
        }
        // It is there for everybody now, and may be gone again after a crash.
        sidecar::sync_directory(&self.file).map_err(|error| Error::unknown(&self.place, error))
    }

    /// Makes the new file and syncs it. Its name is always the same, so that a crash leaves one at most; the lock keeps others away from it.
    fn make(&self, new: &Path, contents: &[u8]) -> io::Result<u64> {
        sidecar::remove(new)?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(new)?;
        if let Ok(old) = File::open(&self.file).and_then(|old| old.metadata()) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(contents)?;
        file.sync_all()?;
        Ok(file.metadata()?.ino())
    }
}

impl Receiver for Fence {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        let stamp = stamp.clone();
        Box::pin(async move {
            let sealed = self.offload(move |fence| fence.seal_blocking(&stamp)).await;
            sealed.unwrap_or_else(|lost| self.counts.seal(&self.place, Err(lost)))
        })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        let name = name.to_owned();
        Box::pin(async move { self.offload(move |fence| fence.look_blocking(&name)).await? })
    }
}

/// What a file has in it, if it is there.
fn contents(file: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(file) {
        Ok(contents) => Ok(Some(contents)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The path without links, so that all ways to a file lead to one sidecar.
fn real(file: &Path) -> io::Result<PathBuf> {
    let no_file = |what: &str| {
        let words = format!("{} {what}; a fence protects one file", file.display());
        io::Error::new(io::ErrorKind::InvalidInput, words)
    };
    match std::fs::canonicalize(file) {
        Ok(real) if real.is_dir() => Err(no_file("is a directory")),
        Ok(real) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if std::fs::symlink_metadata(file).is_ok() {
                return Err(no_file("is a link to nowhere"));
            }
            let name = file.file_name().ok_or_else(|| no_file("has no name"))?;
            let directory = sidecar::directory_of(file);
            let found = std::fs::canonicalize(directory).map_err(|error| {
                let words = format!(
                    "{}: {error}; make that directory, or name a file in one that is there",
                    directory.display()
                );
                io::Error::new(error.kind(), words)
            })?;
            Ok(found.join(name))
        }
        Err(error) => Err(error),
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn token(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!("the sidecar has {text:?} where a token should be; it was changed by somebody else")
    })
}

fn refusal(stamp: &Stamp, highest: u64, at: Option<String>) -> Kept {
    let (token, highest) = (stamp.token().to_string(), highest.to_string());
    Kept { token, highest, holder: stamp.holder().map(ToOwned::to_owned), at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_result_comes_and_a_panic_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let fence = Fence::new(directory.path().join("data")).unwrap();
        assert_eq!(fence.offload(|_| 1 + 1).await.unwrap(), 2);
        fence.offload(|_| std::thread::sleep(Duration::from_millis(50))).await.unwrap();
        let panicked = fence.offload(|_| -> u8 { panic!("planned") }).await;
        assert!(matches!(panicked, Err(Error::Unknown { .. })), "{panicked:?}");
    }
}
