//! The sidecar of a file: a lock, and what the fence knows, such that no crash makes it forget a token.
//!
//! It lies beside the file, is made once and never replaced: whoever locks a file that somebody replaces meanwhile has locked nothing.
//! So it is written in place, and a write in place can be cut off in the middle. That is why it has **two places** for what it knows. A new record goes
//! where the newest one is not, is synced, and counts from then on because its number is higher and its checksum is right. Cut off anywhere, its
//! checksum is wrong, and the one before is still there, whole: they share no block of the disk. The first record is there before the sidecar has
//! its name. So a sidecar without a good record was damaged by something else, and that is an error, not an empty fence.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, futimens};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Records begin at multiples of this. No disk writes a larger piece when it is told to write a smaller one.
const BLOCK: usize = 4096;
/// A sidecar has few names; beyond this something uses it for another purpose.
const MAX_BYTES: usize = 1 << 20;
/// What a record begins with.
const MAGIC: &str = "leasehold-fence-1";
/// How long the lock is left alone before it is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// What the fence knows of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// Text, because others may read this too, and numbers of JSON are doubles to many.
    pub(super) token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<String>,
    /// The newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) refusals: Vec<Kept>,
}

/// A refusal that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) token: String,
    pub(super) highest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
}

/// Everything that a sidecar knows, by fence name.
pub(super) type Names = BTreeMap<String, Known>;

/// The last record that this program has seen synced: the file, the number and the checksum. It need not be synced again, and when
/// the machine goes down this goes with it.
#[derive(Debug, Clone, Default)]
pub(super) struct Synced(Arc<Mutex<Option<(u64, u64, u32)>>>);

impl Synced {
    fn is(&self, file: u64, record: &Record) -> bool {
        *self.last() == Some((file, record.number, record.sum))
    }

    fn note(&self, file: u64, record: &Record) {
        *self.last() = Some((file, record.number, record.sum));
    }

    fn last(&self) -> MutexGuard<'_, Option<(u64, u64, u32)>> {
        self.0.lock().expect("nothing panics while it is locked")
    }
}

/// A record and where it lies.
#[derive(Debug)]
struct Record {
    number: u64,
    sum: u32,
    place: usize,
    length: usize,
    names: Names,
}

/// A sidecar that this process has locked. Dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Locked {
    file: File,
    path: PathBuf,
    inode: u64,
    newest: Record,
    synced: Synced,
}

/// What a sidecar knows, without its lock. Nothing if there is none.
pub(super) fn look(path: &Path) -> io::Result<Names> {
    for attempt in 0.. {
        let Some(bytes) = super::contents(path)? else { return Ok(Names::new()) };
        match newest(&bytes) {
            Some(record) => return Ok(record.names),
            // Two records may have been written while this one read; that does not happen for ever.
            None if attempt < 10 => std::thread::sleep(TRY_AGAIN),
            None => break,
        }
    }
    Err(damaged(path))
}

impl Locked {
    /// Makes the sidecar if there is none, and locks it.
    pub(super) fn open(path: &Path, patience: Duration, synced: &Synced) -> io::Result<Self> {
        let file = loop {
            match OpenOptions::new().read(true).write(true).custom_flags(NO_LINK).open(path) {
                Ok(file) => break file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => make(path)?,
                Err(error) => return Err(error),
            }
        };
        lock(&file, path, patience)?;
        let inode = file.metadata()?.ino();
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut &file, &mut bytes)?;
        let newest = newest(&bytes).ok_or_else(|| damaged(path))?;
        if !synced.is(inode, &newest) {
            // Whoever had the lock before may have died between writing and syncing. What is read here must not be lost again, for it
            // is acted on, and the place beside it will be overwritten.
            file.sync_data()?;
            synced.note(inode, &newest);
        }
        Ok(Self { file, path: path.to_owned(), inode, newest, synced: synced.clone() })
    }

    /// What it knows of a name.
    pub(super) fn known(&self, name: &str) -> Option<&Known> {
        self.newest.names.get(name)
    }

    /// Puts down what is known of a name from now on. It is on the disk when this returns.
    pub(super) fn put(&mut self, name: &str, known: Known) -> io::Result<()> {
        let mut names = self.newest.names.clone();
        names.insert(name.to_owned(), known);
        let number = self.newest.number + 1;
        if self.newest.number == 0 {
            // Whoever made the sidecar may have died before its name was on the disk, and before it had cleared up. What cannot be cleared
            // away, because there are no rights to look, harms nobody.
            let _ = clear(&self.path);
            sync_directory(&self.path)?;
        }
        let (sum, bytes) = written(number, &names)?;
        let place = free_place(&self.newest, bytes.len());
        let done = self.file.write_all_at(&bytes, place as u64).and_then(|()| self.file.sync_data());
        if let Err(error) = done {
            // The system may show what the disk does not have. Nobody may believe it.
            let _ = self.file.write_all_at(&[0; MAGIC.len()], place as u64);
            return Err(error);
        }
        self.newest = Record { number, sum, place, length: bytes.len(), names };
        self.synced.note(self.inode, &self.newest);
        Ok(())
    }

    /// The time, by the clock of whatever keeps the file: the sidecar is touched, and says when that was.
    pub(super) fn time(&self) -> Option<String> {
        let untouched = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        futimens(&self.file, &Timestamps { last_access: untouched, last_modification: now }).ok()?;
        let touched = self.file.metadata().ok()?;
        Some(format!("{}.{:06}", touched.mtime(), touched.mtime_nsec() / 1000))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// What stands between the name of a sidecar and the letters of whoever makes it.
const MAKING: &str = ".making-";

/// Makes a sidecar with a good first record. If somebody else was faster, theirs stays.
fn make(path: &Path) -> io::Result<()> {
    let own = being_made(path)?;
    let file = OpenOptions::new().write(true).create_new(true).open(&own)?;
    let made = file.write_all_at(&written(0, &Names::new())?.1, 0).and_then(|()| file.sync_all());
    let named = made.and_then(|()| give_name(&own, path));
    remove(&own)?;
    named?;
    sync_directory(path)
}

/// A link is made only if nobody has the name; a rename would replace theirs. Whoever was faster may also have cleared this one away.
fn give_name(own: &Path, path: &Path) -> io::Result<()> {
    match std::fs::hard_link(own, path) {
        Err(error) if ![io::ErrorKind::AlreadyExists, io::ErrorKind::NotFound].contains(&error.kind()) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// A name that nobody else has. Drawn by chance: processes of two containers that share the directory may have one number, and one of
/// them would link what the other has only begun to write.
fn being_made(path: &Path) -> io::Result<PathBuf> {
    let own = getrandom::u64().map_err(io::Error::other)?;
    Ok(super::with_ending(path, &format!("{MAKING}{own:016x}")))
}

/// Removes what those have left who were killed while they made this sidecar, which is there: nobody needs it any more, and whoever is about to link such a
/// file finds it gone and takes the sidecar instead. One that is begun and left only after this stays.
fn clear(path: &Path) -> io::Result<()> {
    let Some(name) = path.file_name() else { return Ok(()) };
    let mut begins = name.as_encoded_bytes().to_vec();
    begins.extend(MAKING.bytes());
    for entry in std::fs::read_dir(directory_of(path))? {
        let entry = entry?;
        let name = entry.file_name();
        let letters = name.as_encoded_bytes().strip_prefix(&*begins);
        if letters.is_some_and(|letters| letters.len() == 16 && letters.iter().all(u8::is_ascii_hexdigit)) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file, unless somebody else was faster.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The directory that a file is in.
pub(super) fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a file's directory durable.
pub(super) fn sync_directory(file: &Path) -> io::Result<()> {
    File::open(directory_of(file))?.sync_all()
}

/// The kernel tells its locks piece by piece, and one that is let go of meanwhile, anywhere on the machine, may hide another.
const LOOKS_AT_LOCKS: usize = 8;

fn lock(file: &File, path: &Path, patience: Duration) -> io::Result<()> {
    let mut left = patience;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if !left.is_zero() => {
                std::thread::sleep(TRY_AGAIN);
                left = left.saturating_sub(TRY_AGAIN);
            }
            Err(Errno::WOULDBLOCK) => {
                let who = holder(file).map_or_else(String::new, |process| format!(" by process {process}"));
                let words = format!(
                    "{} is locked{who}, for longer than {patience:?}; a process that stands still keeps the lock until it goes on or is ended",
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Who has the lock, as far as the kernel tells: `1: FLOCK  ADVISORY  WRITE 4711 fd:00:123 0 EOF`.
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    (0..LOOKS_AT_LOCKS).find_map(|_| holder_of(inode, &std::fs::read_to_string("/proc/locks").ok()?))
}

fn holder_of(inode: u64, locks: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, place, ..] = words[..] else { return None };
        (place.rsplit(':').next()?.parse::<u64>().ok()? == inode).then(|| process.parse().ok())?
    })
}

/// A record as it is written, and its checksum: a line with number, length and checksum, the names, and lines without words up to the end of its block.
fn written(number: u64, names: &Names) -> io::Result<(u32, Vec<u8>)> {
    let body = serde_json::to_string_pretty(names)?;
    let length = body.len();
    let sum = checksum(number, body.as_bytes());
    let mut bytes = format!("{MAGIC} {number} {length} {sum:08x}\n{body}\n").into_bytes();
    bytes.resize(bytes.len().next_multiple_of(BLOCK), b'\n');
    if bytes.len() > MAX_BYTES {
        let words = format!(
            "a sidecar of {} bytes is above the limit of {MAX_BYTES} bytes; protect other files under other names",
            bytes.len()
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    Ok((sum, bytes))
}

fn checksum(number: u64, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), body)
}

/// Where a record of this length lies beside the newest one: before it if there is room, else behind it.
fn free_place(newest: &Record, length: usize) -> usize {
    if length <= newest.place { 0 } else { newest.place + newest.length }
}

/// The good record with the highest number.
fn newest(bytes: &[u8]) -> Option<Record> {
    let places = (0..bytes.len()).step_by(BLOCK);
    places.filter_map(|place| record(&bytes[place..], place)).max_by_key(|record| record.number)
}

fn record(bytes: &[u8], place: usize) -> Option<Record> {
    let end = bytes.iter().take(BLOCK).position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let words: Vec<&str> = head.split(' ').collect();
    let [MAGIC, number, length, sum] = words[..] else { return None };
    let (number, length) = (number.parse().ok()?, length.parse::<usize>().ok()?);
    let body = bytes[end + 1..].get(..length)?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    if sum != checksum(number, body) {
        return None;
    }
    let names = serde_json::from_slice(body).ok()?;
    Some(Record { number, sum, place, length: (end + 1 + length + 1).next_multiple_of(BLOCK), names })
}

fn damaged(path: &Path) -> io::Error {
    let words = format!(
        "{} has no good record, so the highest token is not known; remove it only while nobody holds a lease on it",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(token: u64, length: usize) -> Names {
        let known =
            Known { token: token.to_string(), holder: Some("h".repeat(length)), refusals: Vec::new() };
        Names::from([("a".to_owned(), known)])
    }

    fn token(bytes: &[u8]) -> Option<u64> {
        newest(bytes)?.names.get("a")?.token.parse().ok()
    }

    /// A disk that loses power keeps any part of what was being written, in pieces of 512 bytes, each old or new, or rubbish in one of them.
    #[test]
    fn a_write_that_is_cut_off_anywhere_leaves_the_record_before() {
        for lengths in [[10, 10, 10, 10, 10], [10, 9_000, 10, 9_000, 20_000], [9_000, 10, 10, 20_000, 10]] {
            let mut disk = written(0, &Names::new()).unwrap().1;
            for (nth, length) in lengths.into_iter().enumerate() {
                let before = newest(&disk).unwrap();
                let bytes = written(before.number + 1, &names(nth as u64 + 1, length)).unwrap().1;
                let place = free_place(&before, bytes.len());
                let mut after = disk.clone();
                after.resize(after.len().max(place + bytes.len()), 0);
                let old = after.clone();
                after[place..place + bytes.len()].copy_from_slice(&bytes);
                let sectors: Vec<usize> = (place..place + bytes.len()).step_by(512).collect();
                for (cut, sector) in sectors.iter().enumerate() {
                    let mut torn = old.clone();
                    torn[place..*sector].copy_from_slice(&after[place..*sector]);
                    assert!(token(&torn).unwrap_or(0) >= nth as u64, "the first {cut} sectors of {nth}");
                    torn[*sector..sector + 512].fill(0x5a);
                    assert!(token(&torn).unwrap_or(0) >= nth as u64, "rubbish after {cut} sectors of {nth}");
                    let mut only = old.clone();
                    only[*sector..sector + 512].copy_from_slice(&after[*sector..sector + 512]);
                    assert!(token(&only).unwrap_or(0) >= nth as u64, "sector {cut} of {nth} alone");
                    let mut without = after.clone();
                    without[*sector..sector + 512].copy_from_slice(&old[*sector..sector + 512]);
                    assert!(token(&without).unwrap_or(0) >= nth as u64, "{nth} without sector {cut}");
                    let mut short = after.clone();
                    short.truncate((*sector).max(disk.len()));
                    assert!(token(&short).unwrap_or(0) >= nth as u64, "{nth} cut at sector {cut}");
                }
                disk = after;
                assert_eq!(token(&disk), Some(nth as u64 + 1));
            }
        }
    }

    /// In two containers a process and a thread of one number make the same sidecar.
    #[test]
    fn what_somebody_else_is_making_is_neither_taken_nor_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.fence");
        let theirs = [being_made(&path).unwrap(), {
            let of_this_thread = format!(".{}-{:?}", std::process::id(), std::thread::current().id());
            super::super::with_ending(&path, &of_this_thread)
        }];
        for theirs in &theirs {
            std::fs::write(theirs, "begun").unwrap();
        }
        make(&path).unwrap();
        for theirs in &theirs {
            assert_eq!(std::fs::read_to_string(theirs).unwrap(), "begun");
        }
        assert!(look(&path).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3, "nothing else is left");
    }

    #[test]
    fn what_killed_makers_left_is_cleared_away_with_the_first_record_and_nothing_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.fence");
        let (left, other) = (being_made(&path).unwrap(), directory.path().join("data.fence.making-notes"));
        std::fs::write(&left, "left by somebody who was killed").unwrap();
        std::fs::write(&other, "of no maker").unwrap();
        Locked::open(&path, Duration::ZERO, &Synced::default()).unwrap().put("a", Known::default()).unwrap();
        assert!(!left.exists() && other.exists());
        // A maker that is not dead, only late.
        give_name(&left, &path).unwrap();
        assert_eq!(look(&path).unwrap().len(), 1);
    }

    #[test]
    fn records_take_turns_and_the_file_does_not_grow() {
        let mut record = Record { number: 0, sum: 0, place: 0, length: BLOCK, names: Names::new() };
        let mut places = Vec::new();
        for _ in 0..4 {
            record.place = free_place(&record, BLOCK);
            places.push(record.place);
        }
        assert_eq!(places, [BLOCK, 0, BLOCK, 0]);
    }

    #[test]
    fn a_name_that_looks_like_a_record_is_none() {
        let inner = String::from_utf8(written(99, &names(99, 10)).unwrap().1).unwrap();
        let known = Known { token: "1".to_owned(), holder: Some(inner), refusals: Vec::new() };
        let outer = written(1, &Names::from([("a".to_owned(), known)])).unwrap().1;
        assert_eq!(token(&outer), Some(1));
    }
}
