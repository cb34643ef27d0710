//! Everything that a run makes outside its directory is noted here first, so that it can be undone: at the end, after a panic,
//! and on Ctrl-C.
//!
//! What was noted last is undone first. Undoing never fails loudly: a namespace that is gone already is as good as removed.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::shell;

/// Something to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// Kill this process.
    Kill(Pid),
    /// Let writes to this file system go on.
    Thaw(PathBuf),
    /// Unmount it.
    Unmount(PathBuf),
    /// Remove this network namespace and the links in it.
    Namespace(String),
    /// Remove this link.
    Link(String),
}

static NOTED: Mutex<Vec<Undo>> = Mutex::new(Vec::new());

/// Notes something to undo. Call it before the thing is made: a note too many does no harm.
pub fn note(undo: Undo) {
    noted().push(undo);
}

/// It is undone already.
pub fn done(undo: &Undo) {
    noted().retain(|noted| noted != undo);
}

/// Undoes everything that is noted.
pub fn undo_all() {
    // A process that stands in a frozen file system cannot die, so everything is thawed first.
    let all = std::mem::take(&mut *noted());
    let (thaws, rest): (Vec<Undo>, Vec<Undo>) =
        all.into_iter().partition(|undo| matches!(undo, Undo::Thaw(_)));
    for undo in thaws.iter().chain(rest.iter().rev()) {
        perform(undo);
    }
}

/// Undoes everything when it goes, and from its making on also on SIGINT and SIGTERM.
#[derive(Debug)]
#[must_use = "everything is undone when it is dropped"]
pub struct Cleanup(());

impl Cleanup {
    /// From now on.
    ///
    /// # Errors
    /// When signals cannot be caught.
    pub fn begin() -> std::io::Result<Self> {
        static CAUGHT: Once = Once::new();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        CAUGHT.call_once(move || {
            std::thread::spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    eprintln!("signal {signal}: removing everything");
                    undo_all();
                    std::process::exit(128 + signal);
                }
            });
        });
        Ok(Self(()))
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        undo_all();
    }
}

fn perform(undo: &Undo) {
    match undo {
        Undo::Kill(pid) => {
            let _ = kill_process(*pid, Signal::KILL);
        }
        Undo::Thaw(place) => ignore("fsfreeze", &["-u", &place.to_string_lossy()]),
        // Lazily: a process that was just killed may still have files open.
        Undo::Unmount(place) => ignore("umount", &["-l", &place.to_string_lossy()]),
        Undo::Namespace(name) => ignore("ip", &["netns", "del", name]),
        Undo::Link(name) => ignore("ip", &["link", "del", name]),
    }
}

fn ignore(program: &str, arguments: &[&str]) {
    let _ = shell::run(program, arguments);
}

fn noted() -> MutexGuard<'static, Vec<Undo>> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}
