//! A look at a directory or a backup that nobody uses: is everything as it was written, and what is in it.
//!
//! Reads every file, and replays the whole log on a table of its own. Changes nothing but the line of the lock file that names the
//! process; whoever wants to serve the directory meanwhile is refused.

use std::path::{Path, PathBuf};

use leasehold_core::protocol::{Incarnation, Member, MemberId};
use leasehold_wal::{OpenError, Report, salvage};

use super::backup::{is_backup, read_backup};
use super::life::{State, Unusable};
use super::recover::{is_interrupted, lock, log_path};
use super::{FilesError, failed, identity};
use crate::directory::Kind;
use crate::disk::FileDisk;

/// What was found.
#[derive(Debug, Default)]
pub struct Verified {
    /// The directory or file.
    pub path: PathBuf,
    /// `served`, `embedded` or `backup`.
    pub kind: &'static str,
    /// The log of a directory.
    pub log: Option<Report>,
    /// How many entries are behind the snapshot, and the terms of the first and the last of them.
    pub entries: u64,
    /// The terms of the first and the last of them.
    pub terms: Option<(u64, u64)>,
    /// The last revision that is good.
    pub index: Option<u64>,
    /// Who the directory is.
    pub member: Option<MemberId>,
    /// The members, after the last entry that is good.
    pub members: Vec<Member>,
    /// The life of the state.
    pub incarnation: Option<Incarnation>,
    /// How often it was restored.
    pub epoch: Option<u16>,
    /// The greatest token or session id drawn.
    pub newest: Option<u64>,
    /// Sessions and resources.
    pub sizes: Option<(usize, usize)>,
    /// What is wrong; nothing if all is good.
    pub problems: Vec<Problem>,
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, within the directory.
    pub file: String,
    /// Where in it, if that is known.
    pub offset: Option<u64>,
    /// What was found.
    pub what: String,
}

/// Checks a directory or a backup file.
///
/// # Errors
/// When it cannot be looked at: it is in use, it is neither, or a later release wrote it.
pub fn verify(path: &Path) -> Result<Verified, FilesError> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            FilesError::NoStore { path: path.to_owned(), why: "nothing is there, and no backup either" }
        }
        _ => failed("look at", path)(error),
    })?;
    if metadata.is_file() {
        return verify_backup(path);
    }
    let (locked, kind) = lock(path)?;
    let kind_name = if kind == Kind::Served { "served" } else { "embedded" };
    let mut found = Verified::new(path, kind_name);
    if is_interrupted(path) {
        // What counts is decided: carrying it through is what any server would do first.
        super::recover::finish(path)?;
    }
    if kind == Kind::Served && locked.founded {
        match identity::member_id(path, true) {
            Ok(id) => found.member = Some(id),
            Err(error) => found.problem("node", None, error.to_string()),
        }
    }
    match FileDisk::open(&log_path(path)) {
        Ok(mut disk) => found.look_at_log(&mut disk, locked.inode()?, locked.founded)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !locked.founded => {}
        Err(error) => found.problem("log", None, format!("the log cannot be opened: {error}")),
    }
    Ok(found)
}

fn verify_backup(path: &Path) -> Result<Verified, FilesError> {
    let mut found = Verified::new(path, "backup");
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !is_backup(path).map_err(failed("read", path))? {
        found.problem(&name, Some(0), "it does not begin as a backup does".to_owned());
        return Ok(found);
    }
    match read_backup(path) {
        Ok(backup) => match State::of_snapshot(&backup.snapshot) {
            Ok(state) => found.take(&state),
            Err(Unusable::Bad(why)) => found.problem(&name, Some(64), why),
            Err(newer) => return Err(newer.of(path)),
        },
        Err(FilesError::Damaged { offset, what, .. }) => found.problem(&name, Some(offset), what),
        Err(error) => return Err(error),
    }
    Ok(found)
}

impl Verified {
    fn new(path: &Path, kind: &'static str) -> Self {
        Self { path: path.to_owned(), kind, ..Self::default() }
    }

    fn look_at_log(&mut self, disk: &mut FileDisk, lock_inode: u64, founded: bool) -> Result<(), FilesError> {
        let mut report = leasehold_wal::verify(disk);
        let (log, _) = salvage(disk);
        match report.problem.take() {
            Some(OpenError::Damage(damage)) => {
                self.problem(&format!("log/{}", damage.file), Some(damage.offset), damage.what);
            }
            Some(newer @ OpenError::NewerVersion { .. }) => {
                return Err(FilesError::of_log(&self.path, newer));
            }
            Some(error) => self.problem("log", None, error.to_string()),
            None if log.is_new && founded => {
                self.problem("log", None, "there is no log, but one was written here before".to_owned());
            }
            None => {}
        }
        if let Some(recorded) = report.lock_inode.filter(|recorded| *recorded != lock_inode) {
            let what = format!(
                "the log was written under inode {recorded}, but this is inode {lock_inode}: the directory was copied"
            );
            self.problem("lock", None, what);
        }
        self.entries = log.entries.len() as u64;
        self.terms =
            log.entries.first().zip(log.entries.last()).map(|(first, last)| (first.term.0, last.term.0));
        if log.snapshot.is_some() || !log.entries.is_empty() {
            match State::of_log(&log) {
                Ok(state) => self.take(&state),
                Err(Unusable::Bad(why)) => self.problem("log", None, why),
                Err(newer) => return Err(newer.of(&self.path)),
            }
        }
        self.log = Some(report);
        Ok(())
    }

    fn take(&mut self, state: &State) {
        self.index = Some(state.index);
        self.members.clone_from(&state.roster.members);
        self.incarnation = Some(state.roster.incarnation).filter(|incarnation| incarnation.is_known());
        self.epoch = Some(state.table.epoch().get());
        self.newest = Some(state.table.newest());
        self.sizes = Some(state.table.sizes());
    }

    fn problem(&mut self, file: &str, offset: Option<u64>, what: String) {
        self.problems.push(Problem { file: file.to_owned(), offset, what });
    }
}
