//! A directory that processes of one machine share: its lock, its kind, and the path of its socket.
//!
//! Whoever holds the lock serves; all others are its clients. The lock is `flock` on a file that is never unlinked: record locks
//! are lost silently when any descriptor of the file is closed, and an unlinked file could be locked twice. Nobody steals: a
//! server that is stopped keeps the lock, and whoever waits for it can name its pid.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statfs};

pub(crate) const LOCK_FILE: &str = "lock";
const SOCKET_FILE: &str = "socket";
pub(crate) const LOG_DIRECTORY: &str = "log";
/// The socket is for those who may open the lock file, and for nobody else.
const SOCKET_MODE: u32 = 0o600;
/// The version of the layout of a directory.
const FORMAT: u32 = 1;
/// A path of a socket is at most this long; longer ones go through a descriptor of the directory.
const MAX_SOCKET_PATH: usize = 107;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The system said no.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file system on which locks or syncs may not mean what they must.
    #[error(
        "{path} is on a file system of type {kind:#x}, which is not known to keep locks and syncs; \
         use ext4, xfs, btrfs, zfs, f2fs or tmpfs"
    )]
    FileSystem {
        /// The directory.
        path: PathBuf,
        /// The type that the kernel names.
        kind: u64,
    },
    /// The lock file says something that this release does not understand.
    #[error("{path} is not the lock file of a leasehold directory: {why}")]
    NotOurs {
        /// The lock file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Made by a later release.
    #[error("{path} has layout version {found}; this release knows up to {known}: upgrade it")]
    NewerFormat {
        /// The directory.
        path: PathBuf,
        /// What was found.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// The file that says who this directory is.
    #[error("{path} is damaged: {why}")]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The directory of a service.
    #[error("{path} belongs to a service and cannot be used embedded; connect to the service instead")]
    Served {
        /// The directory.
        path: PathBuf,
    },
    /// A directory that processes of one machine share.
    #[error(
        "{path} is used embedded by processes of this machine and cannot be served; give the service another one"
    )]
    Embedded {
        /// The directory.
        path: PathBuf,
    },
}

pub(crate) fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> DirectoryError + 'a {
    move |source| DirectoryError::Io { action, path: path.to_owned(), source }
}

/// Who uses a directory. It is one or the other for its whole life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Processes of one machine: time without a server counts.
    Embedded,
    /// A service: time without it does not count.
    Served,
}

impl Kind {
    /// Of one length, so that one is never written over a part of the other.
    const fn word(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Served => "served  ",
        }
    }

    fn must_be(self, wanted: Self, path: &Path) -> Result<(), DirectoryError> {
        let path = path.to_owned();
        match (self, wanted) {
            (Self::Served, Self::Embedded) => Err(DirectoryError::Served { path }),
            (Self::Embedded, Self::Served) => Err(DirectoryError::Embedded { path }),
            (Self::Embedded, Self::Embedded) | (Self::Served, Self::Served) => Ok(()),
        }
    }
}

/// A directory whose lock this process holds.
#[derive(Debug)]
pub(crate) struct Locked {
    path: PathBuf,
    kind: Kind,
    file: File,
    /// Whether a log was made here before.
    pub(crate) founded: bool,
}

/// What the lock file says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    kind: Kind,
    founded: bool,
    pid: u32,
}

impl Locked {
    /// Takes the lock, or nothing if another process holds it. A directory that is missing is made, unless it must exist.
    pub(crate) fn try_lock(
        path: &Path,
        kind: Kind,
        must_exist: bool,
    ) -> Result<Option<Self>, DirectoryError> {
        // Before anything is made: a refusal leaves nothing behind.
        check_file_system(path)?;
        if !must_exist {
            make_directory(path)?;
        }
        let lock = path.join(LOCK_FILE);
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(!must_exist)
                .truncate(false)
                .mode(0o600)
                .open(&lock)
                .map_err(failed("open", &lock))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    check_kind(path, kind, &lock)?;
                    return Ok(None);
                }
                Err(errno) => return Err(failed("lock", &lock)(errno.into())),
            }
            let mut locked = Self { path: path.to_owned(), kind, file, founded: false };
            if locked.is_linked() {
                locked.take_over()?;
                return Ok(Some(locked));
            }
            // Somebody removed the file between open and lock: what was locked is not the lock any more.
        }
    }

    /// Whether the lock file is still the one in the directory. If not, others may lock another, and this process must stop.
    pub(crate) fn is_linked(&self) -> bool {
        let ours = self.file.metadata();
        let named = std::fs::metadata(self.path.join(LOCK_FILE));
        matches!((ours, named), (Ok(ours), Ok(named)) if ours.ino() == named.ino() && ours.dev() == named.dev())
    }

    /// Checks what the lock file says and writes this process into it.
    fn take_over(&mut self) -> Result<(), DirectoryError> {
        let lock = self.path.join(LOCK_FILE);
        let mut text = String::new();
        self.file.read_to_string(&mut text).map_err(failed("read", &lock))?;
        if !text.is_empty() {
            let content = parse(&self.path, &text)?;
            content.kind.must_be(self.kind, &self.path)?;
            self.founded = content.founded;
        }
        self.write()
    }

    /// Notes that a log exists now: from here on a directory without one is damaged, not new.
    pub(crate) fn found(&mut self) -> Result<(), DirectoryError> {
        if !self.founded {
            self.founded = true;
            self.write()?;
            let lock = self.path.join(LOCK_FILE);
            self.file.sync_all().map_err(failed("sync", &lock))?;
            // The log is tied to this very file: its name must be as durable as the log.
            sync_directory(&self.path)?;
        }
        Ok(())
    }

    /// Lines of fixed length: a crash in the middle of this leaves old or new text, not a mixture that reads as neither.
    fn write(&mut self) -> Result<(), DirectoryError> {
        let lock = self.path.join(LOCK_FILE);
        let founded = if self.founded { "yes" } else { "no " };
        let (kind, pid) = (self.kind.word(), std::process::id());
        let text = format!("leasehold {FORMAT:5} {kind} founded={founded} pid={pid:10}\n");
        self.file.rewind().map_err(failed("write", &lock))?;
        self.file.write_all(text.as_bytes()).map_err(failed("write", &lock))
    }

    pub(crate) fn inode(&self) -> Result<u64, DirectoryError> {
        let lock = self.path.join(LOCK_FILE);
        Ok(self.file.metadata().map_err(failed("look at", &lock))?.ino())
    }

    /// The directory of the log, made if there never was a log. A recovery that was interrupted is carried through first.
    pub(crate) fn log_directory(&self) -> Result<PathBuf, DirectoryError> {
        crate::files::finish_recovery(&self.path)?;
        let path = self.path.join(LOG_DIRECTORY);
        if self.founded {
            return Ok(path);
        }
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => sync_directory(&self.path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("make", &path)(error)),
        }
        Ok(path)
    }

    /// A listener on the socket of the directory. Whatever was there is replaced: this process holds the lock.
    pub(crate) fn listen(&self) -> Result<std::os::unix::net::UnixListener, DirectoryError> {
        let socket = self.path.join(SOCKET_FILE);
        if_found(std::fs::remove_file(&socket)).map_err(failed("replace", &socket))?;
        let (path, _directory) = short_path(&self.path)?;
        let listener = std::os::unix::net::UnixListener::bind(path).map_err(failed("listen on", &socket))?;
        // The directory may be older than us and open to others, and the mask of this process may be wide.
        let mode = std::fs::Permissions::from_mode(SOCKET_MODE);
        std::fs::set_permissions(&socket, mode).map_err(failed("restrict", &socket))?;
        listener.set_nonblocking(true).map_err(failed("listen on", &socket))?;
        Ok(listener)
    }
}

/// Whether a directory that another process has locked is of this kind. A lock file that cannot be read now, or not yet, says nothing.
fn check_kind(path: &Path, wanted: Kind, lock: &Path) -> Result<(), DirectoryError> {
    let text = std::fs::read_to_string(lock).unwrap_or_default();
    match parse(path, &text) {
        Ok(content) => content.kind.must_be(wanted, path),
        Err(_) => Ok(()),
    }
}

fn parse(path: &Path, text: &str) -> Result<Content, DirectoryError> {
    let not_ours = |why: &str| DirectoryError::NotOurs { path: path.join(LOCK_FILE), why: why.to_owned() };
    let mut words = text.split_whitespace();
    if words.next() != Some("leasehold") {
        return Err(not_ours("it does not begin with the word leasehold"));
    }
    let found: u32 =
        words.next().and_then(|word| word.parse().ok()).ok_or_else(|| not_ours("it names no version"))?;
    if found > FORMAT {
        return Err(DirectoryError::NewerFormat { path: path.to_owned(), found, known: FORMAT });
    }
    let kind = match words.next() {
        Some("embedded") => Kind::Embedded,
        Some("served") => Kind::Served,
        _ => return Err(not_ours("it names no kind of directory")),
    };
    let rest: Vec<&str> = words.collect();
    let founded = rest.contains(&"founded=yes");
    let pid = rest.iter().find_map(|word| word.strip_prefix("pid=")).filter(|pid| !pid.is_empty());
    let pid = pid.or_else(|| rest.last().copied()).and_then(|pid| pid.parse().ok()).unwrap_or(0);
    Ok(Content { kind, founded, pid })
}

/// The process that holds the lock of a directory, as the lock file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockHolder {
    /// Its pid.
    pub pid: u32,
    /// Whether it is stopped (by SIGSTOP or a debugger), if that can be seen.
    pub stopped: bool,
}

/// Who holds the lock, for a message to people.
pub fn lock_holder(path: &Path) -> Option<LockHolder> {
    let text = std::fs::read_to_string(path.join(LOCK_FILE)).ok()?;
    let pid = parse(path, &text).ok()?.pid;
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    // The state is the first word behind the name, which stands in parentheses and may contain anything.
    let state =
        status.as_deref().and_then(|stat| stat.rsplit_once(") ")).and_then(|(_, rest)| rest.chars().next());
    Some(LockHolder { pid, stopped: matches!(state, Some('T' | 't')) })
}

/// A path by which the socket of a directory can be connected to, whatever its length, and what keeps the path valid.
///
/// # Errors
/// When the directory cannot be opened.
pub fn connect_path(directory: &Path) -> Result<(PathBuf, Option<File>), DirectoryError> {
    short_path(directory)
}

fn short_path(directory: &Path) -> Result<(PathBuf, Option<File>), DirectoryError> {
    let path = directory.join(SOCKET_FILE);
    if path.as_os_str().len() <= MAX_SOCKET_PATH {
        return Ok((path, None));
    }
    let opened = File::open(directory).map_err(failed("open", directory))?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_FILE}", opened.as_raw_fd()));
    Ok((path, Some(opened)))
}

/// Makes a directory and those above it that are missing, each durable: tokens would begin again if one were forgotten.
fn make_directory(path: &Path) -> Result<(), DirectoryError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !exists(path)).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("make", path))?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        sync_directory(or_here(parent))?;
    }
    Ok(())
}

/// What was asked for; nothing if there is nothing of that name.
pub(crate) fn if_found<T>(asked: io::Result<T>) -> io::Result<Option<T>> {
    match asked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Whether anything has this name.
pub(crate) fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(or_here(path)).is_ok()
}

/// The parent of a relative path of one part has an empty name.
pub(crate) fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn sync_directory(path: &Path) -> Result<(), DirectoryError> {
    let directory = File::open(path).map_err(failed("open", path))?;
    directory.sync_all().map_err(failed("sync", path))
}

/// File systems on which `flock` and `fsync` are known to mean what they say. A directory that does not exist yet will be on
/// that of the nearest one above it that does.
fn check_file_system(path: &Path) -> Result<(), DirectoryError> {
    const ALLOWED: [u64; 7] = [
        0xEF53,      // ext4
        0x5846_5342, // xfs
        0x9123_683E, // btrfs
        0x2FC1_2FC1, // zfs
        0xF2F5_2010, // f2fs
        0x0102_1994, // tmpfs
        0x794C_7630, // overlay, on one of these
    ];
    let existing = path.ancestors().map(or_here).find(|path| exists(path)).unwrap_or(path);
    let stat =
        statfs(existing).map_err(|errno| failed("look at the file system of", existing)(errno.into()))?;
    // The kernel's type is signed on some machines and carries 32 bits.
    let kind = u64::try_from(i128::from(stat.f_type) & 0xFFFF_FFFF).expect("32 bits fit");
    if ALLOWED.contains(&kind) {
        Ok(())
    } else {
        Err(DirectoryError::FileSystem { path: path.to_owned(), kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_of_one_directory_is_not_given() {
        let directory = tempfile::tempdir().unwrap();
        let first = Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap();
        assert!(first.is_some());
        assert!(Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap().is_none());
        drop(first);
        assert!(Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap().is_some());
    }

    #[test]
    fn the_lock_file_names_its_process_and_remembers_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let mut locked = Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap().unwrap();
        assert!(!locked.founded);
        locked.found().unwrap();
        let holder = lock_holder(directory.path()).unwrap();
        assert_eq!(holder, LockHolder { pid: std::process::id(), stopped: false });
        drop(locked);
        assert!(Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap().unwrap().founded);
    }

    #[test]
    fn a_server_whose_lock_file_was_removed_notices() {
        let directory = tempfile::tempdir().unwrap();
        let locked = Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap().unwrap();
        assert!(locked.is_linked());
        std::fs::remove_file(directory.path().join(LOCK_FILE)).unwrap();
        assert!(!locked.is_linked());
    }

    #[test]
    fn a_newer_layout_and_a_foreign_file_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join(LOCK_FILE);
        std::fs::write(&lock, "leasehold 2 embedded founded=yes pid=1\n").unwrap();
        let error = Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap_err();
        assert!(matches!(error, DirectoryError::NewerFormat { found: 2, known: 1, .. }), "{error}");
        std::fs::write(&lock, "something else").unwrap();
        let error = Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap_err();
        assert!(matches!(error, DirectoryError::NotOurs { .. }), "{error}");
        std::fs::write(&lock, "leasehold 1 served founded=yes pid=1\n").unwrap();
        let error = Locked::try_lock(directory.path(), Kind::Embedded, false).unwrap_err();
        assert!(matches!(error, DirectoryError::Served { .. }), "{error}");
    }

    #[test]
    fn a_long_path_is_reached_through_a_descriptor() {
        let root = tempfile::tempdir().unwrap();
        let long = root.path().join("d".repeat(120));
        let locked = Locked::try_lock(&long, Kind::Embedded, false).unwrap().unwrap();
        let _listener = locked.listen().unwrap();
        let (path, _keep) = connect_path(&long).unwrap();
        assert!(path.as_os_str().len() <= MAX_SOCKET_PATH);
        std::os::unix::net::UnixStream::connect(path).unwrap();
    }
}
