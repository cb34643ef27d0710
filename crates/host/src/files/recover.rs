//! From a log that can go on no more to another life in the same directory: the majority of its cluster is gone, or it is damaged.
//!
//! The new log and the new id are made aside. One file, durable by a rename, says that they count; from then on the change is carried
//! through by whoever comes next, this process or the next one that opens the directory. Before it, nothing has happened; the log of
//! before is kept.

use std::path::{Path, PathBuf};

use leasehold_core::protocol::MemberId;
use leasehold_node::Anchor;
use leasehold_wal::salvage;

use super::identity::{self, draw_id};
use super::life::{Begun, Choices, Heir, State, heir, write_log};
use super::note::{Notes, for_all_beside};
use super::whole::{make_empty, open_line, sealed_line, sync_directory, write_whole};
use super::{FilesError, failed};
use crate::directory::{
    DirectoryError, Kind, LOCK_FILE, LOG_DIRECTORY as LOG, Locked, exists, if_found, lock_holder,
};
use crate::disk::FileDisk;

const NEW_LOG: &str = "log.new";
const NOTE: &str = "restores";
/// Says that the new log and id count, and under which name the old log is kept.
const MARKER: &str = "recovering";
const WORD: &str = "leasehold-recovering";
const VERSION: &str = "1";
const NO_ID: &str = "-";

/// How much of a log must be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// What is good before the first damage.
    UpToDamage,
}

/// Begins another life of the state in a directory, as a cluster of one with a greater epoch.
///
/// # Errors
/// When the directory is in use, its log is damaged beyond what was asked for, or it is not known whether the epoch would be greater
/// than all before.
pub fn recover(directory: &Path, extent: Extent, choices: &Choices) -> Result<Begun, FilesError> {
    let (locked, kind) = lock(directory)?;
    finish(directory)?;
    let mut disk = FileDisk::open(&directory.join(LOG)).map_err(failed("open", &directory.join(LOG)))?;
    let (log, problem) = salvage(&mut disk);
    drop(disk);
    let state = State::of_log(&log).map_err(|unusable| unusable.of(directory));
    match problem.map(|source| FilesError::of_log(directory, source)) {
        Some(newer @ FilesError::Newer { .. }) => return Err(newer),
        Some(damaged) if extent == Extent::Whole => return Err(damaged),
        _ => {}
    }
    let state = state?;
    let state_error = |why| FilesError::State { path: directory.to_owned(), why };
    check_is_only_one(directory, kind, extent, choices, &state)?;
    // Whoever serves a life writes an entry first of all.
    let before = state.table.epoch().get();
    let given_up = (before > 0 && log.entries.is_empty()).then_some(before);
    let wait = choices.wait(state.table.config())?;
    let id = draw_id().map_err(failed("draw an id for", directory))?;
    let (heir, address_is_guessed) = match kind {
        Kind::Served => {
            let old = identity::member_id(directory, true).ok();
            let known = state.roster.members.iter().chain(&state.gone);
            let before = known.into_iter().find(|member| Some(member.id) == old);
            (Heir::Served(heir(choices, before, id)?), choices.guesses_address(before))
        }
        Kind::Embedded => {
            let machine = crate::identity::machine().map_err(failed("read the clocks for", directory))?;
            (Heir::Embedded(Anchor::new(machine, leasehold_clock::read())), false)
        }
    };
    let mut notes = notes_of(directory, kind)?;
    let contradiction = if choices.is_only_one { notes.above(state.table.epoch()) } else { None };
    let epoch = notes.hand_out(directory, state.table.epoch(), choices.above)?;
    drop(notes);
    let (snapshot, incarnation) = state.begin(&heir, epoch, wait, choices.max_ttl).map_err(state_error)?;

    let new_log = directory.join(NEW_LOG);
    make_empty(&new_log)?;
    write_log(&new_log, directory, locked.inode()?, &snapshot)?;
    sync_directory(directory)?;
    let kept = free_name(directory, epoch.get());
    let member = match heir {
        Heir::Served(member) => Some(member),
        Heir::Embedded(_) => None,
    };
    let id = member.as_ref().map_or_else(|| NO_ID.to_owned(), |member| member.id.to_string());
    let marker = sealed_line(&format!("{WORD} {VERSION} {kept} {id}"));
    write_whole(&directory.join(MARKER), marker.as_bytes())?;
    finish(directory)?;
    Ok(Begun {
        directory: directory.to_owned(),
        member,
        incarnation,
        epoch: epoch.get(),
        index: snapshot.index,
        wait,
        kept: Some(directory.join(kept)),
        given_up,
        address_is_guessed,
        contradiction,
    })
}

/// Carries through a change that was decided and interrupted. To be called under the lock, before the log is opened.
pub(super) fn finish(directory: &Path) -> Result<(), FilesError> {
    let marker = directory.join(MARKER);
    let text = if_found(std::fs::read_to_string(&marker)).map_err(failed("read", &marker))?;
    let Some(text) = text else { return Ok(()) };
    let words = open_line(&text).unwrap_or_default();
    let [WORD, VERSION, kept, id] = words[..] else {
        let what = "it does not fit its checksum, or a later release wrote it".to_owned();
        return Err(FilesError::Damaged { path: marker, offset: 0, what });
    };
    let (log, new_log, kept) = (directory.join(LOG), directory.join(NEW_LOG), directory.join(kept));
    if exists(&new_log) {
        if exists(&log) {
            std::fs::rename(&log, &kept).map_err(failed("keep", &log))?;
            sync_directory(directory)?;
        }
        std::fs::rename(&new_log, &log).map_err(failed("replace", &log))?;
        sync_directory(directory)?;
    }
    if id != NO_ID {
        let id = u64::from_str_radix(id, 16).expect("the line fits its checksum");
        identity::write_member_id(directory, MemberId(id))?;
    }
    std::fs::remove_file(&marker).map_err(failed("remove", &marker))?;
    sync_directory(directory)
}

/// The same, in the words of a directory.
pub(crate) fn finish_recovery(directory: &Path) -> Result<(), DirectoryError> {
    finish(directory).map_err(|error| match error {
        FilesError::Directory(error) => error,
        FilesError::Io { action, path, source } => DirectoryError::Io { action, path, source },
        error => DirectoryError::Identity { path: directory.to_owned(), why: error.to_string() },
    })
}

/// Takes the lock of a directory of either kind. Who serves keeps it for long; a process that ends, or one that is just being made,
/// has it for a moment more.
pub(super) fn lock(directory: &Path) -> Result<(Locked, Kind), FilesError> {
    let nothing = |why| FilesError::NoStore { path: directory.to_owned(), why };
    if !exists(directory) {
        return Err(nothing("nothing is there"));
    }
    if !exists(&directory.join(LOCK_FILE)) {
        return Err(nothing("it has no lock file"));
    }
    const TRIES: usize = 25;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
    for _ in 0..TRIES {
        let (locked, kind) = match Locked::try_lock(directory, Kind::Served, true) {
            Err(DirectoryError::Embedded { .. }) => {
                (Locked::try_lock(directory, Kind::Embedded, true)?, Kind::Embedded)
            }
            other => (other?, Kind::Served),
        };
        if let Some(locked) = locked {
            return Ok((locked, kind));
        }
        std::thread::sleep(PAUSE);
    }
    Err(in_use(directory))
}

/// Another process has the lock of a directory.
pub(super) fn in_use(directory: &Path) -> FilesError {
    let pid = lock_holder(directory).map_or(0, |holder| holder.pid);
    FilesError::InUse { path: directory.to_owned(), pid }
}

/// The note of the directory, and the one for all that lie beside it: nodes of one cluster may.
fn notes_of(directory: &Path, kind: Kind) -> Result<Notes, FilesError> {
    let real = std::fs::canonicalize(directory).map_err(failed("open", directory))?;
    let beside = (kind == Kind::Served).then(|| for_all_beside(&real));
    Notes::read(&[real.join(NOTE)], beside.as_slice())
}

/// Whether this is the only life that goes on from this log, as far as it can be known.
fn check_is_only_one(
    directory: &Path,
    kind: Kind,
    extent: Extent,
    choices: &Choices,
    state: &State,
) -> Result<(), FilesError> {
    if choices.is_only_one || choices.above.is_some() {
        return Ok(());
    }
    let path = directory.to_owned();
    let members = state.roster.members.len();
    match extent {
        Extent::Whole => {
            let what = "another node of its cluster was recovered, or a backup of it restored";
            let sure = "--only-survivor";
            Err(FilesError::EpochUnknown { path, what, sure })
        }
        // What lies before the damage knows nothing of members that were added behind it.
        Extent::UpToDamage if kind == Kind::Served => Err(FilesError::NotAlone { path, members }),
        Extent::UpToDamage => Ok(()),
    }
}

fn free_name(directory: &Path, epoch: u16) -> String {
    let name = |number: u32| match number {
        1 => format!("log.before-epoch-{epoch}"),
        _ => format!("log.before-epoch-{epoch}.{number}"),
    };
    (1..)
        .map(name)
        .find(|name| !exists(&directory.join(name)))
        .expect("a directory has fewer names than numbers")
}

/// Where a log is that an interrupted change has not put in its place yet.
pub(super) fn log_path(directory: &Path) -> PathBuf {
    directory.join(LOG)
}

/// Whether a change was decided and not carried through.
pub(super) fn is_interrupted(directory: &Path) -> bool {
    exists(&directory.join(MARKER))
}

#[cfg(test)]
mod tests;
