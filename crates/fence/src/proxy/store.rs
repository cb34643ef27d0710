//! The thread that owns the log: whoever raises waits for it, and many that raise at once wait for one sync.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::OpenError;
use super::lock::Lock;
use super::log::{Log, Marks};
use crate::stamp::Stamp;

/// As many as this are raised in one step: the line that they make stays short.
const MOST_AT_ONCE: usize = 256;

#[derive(Debug)]
struct Raise {
    stamp: Stamp,
    done: oneshot::Sender<Result<(), String>>,
}

/// The way to the thread. Dropped, it waits until the directory is free again.
#[derive(Debug)]
pub(super) struct Store {
    raises: Option<Sender<Raise>>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Takes the directory, and gives what stands there.
    pub(super) fn open(directory: &Path) -> Result<(Self, Marks), OpenError> {
        make(directory)?;
        let lock = Lock::take(directory)?;
        let log = Log::open(directory)?;
        let marks = log.marks().clone();
        let (raises, asked) = channel();
        let work = move || {
            run(log, &asked);
            drop(lock);
        };
        let thread = std::thread::Builder::new().name("leasehold-fence".to_owned()).spawn(work);
        let thread = Some(thread.map_err(OpenError::System)?);
        Ok((Self { raises: Some(raises), thread }, marks))
    }

    /// Raises a token, and comes back when it is on disk.
    pub(super) async fn raise(&self, stamp: &Stamp) -> Result<(), String> {
        let (done, answer) = oneshot::channel();
        let raise = Raise { stamp: stamp.clone(), done };
        let sent = self.raises.as_ref().and_then(|raises| raises.send(raise).ok());
        let gone = || "its thread has ended".to_owned();
        sent.ok_or_else(gone)?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.raises = None;
        if let Some(thread) = self.thread.take() {
            // It panics at nothing; if it did, there is nothing left to do here.
            let _ = thread.join();
        }
    }
}

fn run(mut log: Log, asked: &Receiver<Raise>) {
    let mut broken: Option<String> = None;
    while let Ok(first) = asked.recv() {
        let raises: Vec<Raise> = std::iter::once(first).chain(asked.try_iter()).take(MOST_AT_ONCE).collect();
        if broken.is_none() {
            // After a failed sync the kernel may call the same pages clean, so nothing is tried again until the next start reads what is there.
            broken = log
                .raise(raises.iter().map(|raise| &raise.stamp))
                .err()
                .map(|why| format!("{why} (restart it then)"));
        }
        for raise in raises {
            // Nobody hears it when the request was given up meanwhile.
            let _ = raise.done.send(broken.clone().map_or(Ok(()), Err));
        }
    }
}

/// Makes the directory, for its owner alone, and makes sure that it is still there after a power cut.
fn make(directory: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt;
    let cannot = |what, path: PathBuf| move |source| OpenError::Directory { what, path, source };
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => return Err(OpenError::NoDirectory(directory.to_owned())),
        Err(_) => {}
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(cannot("make the directory", directory.to_owned()))?;
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let synced = std::fs::File::open(parent).and_then(|parent| parent.sync_all());
        synced.map_err(cannot("sync", parent.to_owned()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(token: u64) -> Stamp {
        Stamp::new("a", token).unwrap()
    }

    #[tokio::test]
    async fn a_directory_has_one_owner_who_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/down");
        let (store, marks) = Store::open(&path).unwrap();
        assert!(marks.is_empty());
        let said = Store::open(&path).unwrap_err().to_string();
        assert!(said.contains(&format!("used by process {}", std::process::id())), "{said}");
        store.raise(&stamp(34)).await.unwrap();
        drop(store);
        let (_store, marks) = Store::open(&path).unwrap();
        assert_eq!(marks["a"].token, 34);
    }

    #[tokio::test]
    async fn a_disk_that_takes_nothing_is_an_error_from_then_on() {
        let directory = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(directory.path()).unwrap();
        store.raise(&stamp(1)).await.unwrap();
        // The next raise has to write the file anew, and finds no directory to write it in.
        let long: Vec<Stamp> = (0..2_000).map(|nth| Stamp::new(format!("{nth:0>400}"), 1).unwrap()).collect();
        std::fs::remove_dir_all(directory.path()).unwrap();
        let mut said = Vec::new();
        for stamp in &long {
            said.push(store.raise(stamp).await);
        }
        let first = said.iter().position(Result::is_err).expect("it was written anew");
        assert!(said[first..].iter().all(Result::is_err), "nothing is trusted afterwards");
    }
}
