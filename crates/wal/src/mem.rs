//! A disk in memory that can crash.
//!
//! It keeps apart what reads see and what a loss of power leaves. After the loss, any subset of the unsynced sector writes is there,
//! of several writes to one sector any one, and any subset of the unsynced changes of the directory: more than a real file system
//! does, so that a log which survives here does not lean on the habits of one. A sync that fails makes its writes *ghosts*: reads
//! still see them, no later sync writes them, and a crash may or may not leave them.
//!
//! It does not tear sectors, does not show old garbage in new parts of a file, and does not rot: [`MemDisk::edit`] does that.

use crate::disk::Disk;
use std::collections::BTreeMap;
use std::io;

mod crash;

pub use crash::CrashChoices;

const SECTOR: usize = 512;

/// What a test makes an operation do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No space: half of a write, none of anything else.
    NoSpace,
    /// An input/output error: half of a write, none of anything else; a sync leaves ghosts.
    Io,
}

/// An operation that changes something or makes a change durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A file was created.
    Create(String),
    /// So many bytes were written at an offset.
    Write(String, u64, usize),
    /// The content was synced.
    SyncData(String),
    /// Content and attributes were synced.
    SyncAll(String),
    /// The directory was synced.
    SyncDir,
    /// A file was renamed.
    Rename(String, String),
    /// A file was removed.
    Remove(String),
}

/// A directory in memory.
#[derive(Debug, Clone, Default)]
pub struct MemDisk {
    files: BTreeMap<FileId, File>,
    /// The names that reads see.
    seen: BTreeMap<String, FileId>,
    /// The names that are there after a crash.
    durable: BTreeMap<String, FileId>,
    changes: Vec<Change>,
    next_file: u64,
    operations: usize,
    journal: Option<Vec<Op>>,
    stop_after: Option<usize>,
    faults: Vec<(usize, Fault)>,
    /// After so many more operations other than those of batches, one fails.
    rare_fault: Option<(usize, Fault)>,
    full: bool,
    capacity: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FileId(u64);

#[derive(Debug, Clone, Default)]
struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
    writes: Vec<SectorWrite>,
}

/// The whole content of a sector after a write that is not durable.
#[derive(Debug, Clone)]
struct SectorWrite {
    sector: usize,
    bytes: Vec<u8>,
    ghost: bool,
}

/// A change of the directory that is not durable: names and what they then stand for.
#[derive(Debug, Clone)]
struct Change {
    names: Vec<(String, Option<FileId>)>,
    ghost: bool,
}

impl MemDisk {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations were tried that change something or sync.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Notes every operation from now on.
    pub fn record(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// The operations noted since [`MemDisk::record`].
    pub fn journal(&self) -> &[Op] {
        self.journal.as_deref().unwrap_or_default()
    }

    /// Lets `operations` more happen and fails all later ones without effect, as if the process had been killed there.
    pub fn stop_after(&mut self, operations: usize) {
        self.stop_after = Some(self.operations + operations);
    }

    /// Makes the operation that comes after `operations` others fail.
    pub fn fail_after(&mut self, operations: usize, fault: Fault) {
        self.faults.push((self.operations + operations, fault));
    }

    /// The same, but only operations count that make, rename, remove or finish files, or sync the directory: they are rare among those
    /// that write batches.
    pub fn fail_rare_after(&mut self, operations: usize, fault: Fault) {
        self.rare_fault = Some((operations, fault));
    }

    /// From now on (or no longer) the disk is full: files cannot be made or made longer, what exists can be overwritten.
    pub fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// All files together have at most so many bytes from now on.
    pub fn set_capacity(&mut self, bytes: Option<u64>) {
        self.capacity = bytes;
    }

    /// How many bytes all files have.
    pub fn used(&self) -> u64 {
        self.seen.values().map(|id| self.files[id].seen.len() as u64).sum()
    }

    /// The process ended and another one uses the disk: no more faults, and space; what was written and not synced stays visible and unsynced.
    pub fn restart(&mut self) {
        self.stop_after = None;
        self.full = false;
        self.faults.clear();
        self.rare_fault = None;
    }

    /// The content of a file as reads see it.
    pub fn content(&self, name: &str) -> Option<&[u8]> {
        self.seen.get(name).map(|id| self.file(*id).seen.as_slice())
    }

    /// Changes a file behind the log's back, durably: what rot does.
    pub fn edit(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(id) = self.seen.get(name) {
            let file = self.files.get_mut(id).expect("every name stands for a file");
            change(&mut file.seen);
            file.durable.clone_from(&file.seen);
            file.writes.clear();
        }
    }

    fn file(&self, id: FileId) -> &File {
        self.files.get(&id).expect("every name stands for a file")
    }

    fn open(&mut self, name: &str) -> io::Result<&mut File> {
        let id = self.seen.get(name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(self.files.get_mut(id).expect("every name stands for a file"))
    }

    /// Counts an operation; says which fault it meets.
    fn begin(&mut self, op: impl FnOnce() -> Op) -> io::Result<Option<Fault>> {
        if self.stop_after.is_some_and(|last| self.operations >= last) {
            return Err(io::Error::other("the process was killed"));
        }
        let mut fault = self.faults.iter().find(|(at, _)| *at == self.operations).map(|(_, fault)| *fault);
        self.operations += 1;
        if self.journal.is_none() && self.rare_fault.is_none() {
            return Ok(fault);
        }
        let op = op();
        if !matches!(op, Op::Write(..) | Op::SyncData(_)) {
            fault = fault.or(self.rare_fault_now());
        }
        if let Some(journal) = &mut self.journal {
            journal.push(op);
        }
        Ok(fault)
    }

    fn rare_fault_now(&mut self) -> Option<Fault> {
        let (left, fault) = self.rare_fault?;
        self.rare_fault = left.checked_sub(1).map(|left| (left, fault));
        (left == 0).then_some(fault)
    }

    fn change(&mut self, names: Vec<(String, Option<FileId>)>) {
        apply(&mut self.seen, &names);
        self.changes.push(Change { names, ghost: false });
    }

    fn sync_file(&mut self, name: &str, fault: Option<Fault>) -> io::Result<()> {
        self.open(name)?.sync(fault.is_some());
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }
}

impl Disk for MemDisk {
    fn list(&mut self) -> io::Result<Vec<String>> {
        Ok(self.seen.keys().cloned().collect())
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        if let Some(fault) =
            self.begin(|| Op::Create(name.to_owned()))?.or(self.full.then_some(Fault::NoSpace))
        {
            return Err(fault.into());
        }
        if self.seen.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = FileId(self.next_file);
        self.next_file += 1;
        self.files.insert(id, File::default());
        self.change(vec![(name.to_owned(), Some(id))]);
        Ok(())
    }

    fn len(&mut self, name: &str) -> io::Result<u64> {
        Ok(self.open(name)?.seen.len() as u64)
    }

    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let file = self.open(name)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = file.seen.get(from..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(found.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn write_at(&mut self, name: &str, offset: u64, data: &[u8]) -> io::Result<()> {
        let fault = self.begin(|| Op::Write(name.to_owned(), offset, data.len()))?;
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let (full, room) = (self.full, self.capacity.map(|capacity| capacity.saturating_sub(self.used())));
        let file = self.open(name)?;
        let longer = from.saturating_add(data.len()).saturating_sub(file.seen.len()) as u64;
        let too_long = longer > 0 && (full || room.is_some_and(|room| longer > room));
        let Some(fault) = fault.or(too_long.then_some(Fault::NoSpace)) else {
            file.write(from, data);
            return Ok(());
        };
        if !too_long {
            file.write(from, &data[..data.len() / SECTOR / 2 * SECTOR]);
        }
        Err(fault.into())
    }

    fn sync_data(&mut self, name: &str) -> io::Result<()> {
        let fault = self.begin(|| Op::SyncData(name.to_owned()))?;
        self.sync_file(name, fault)
    }

    fn sync_all(&mut self, name: &str) -> io::Result<()> {
        let fault = self.begin(|| Op::SyncAll(name.to_owned()))?;
        self.sync_file(name, fault)
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        if let Some(fault) = self.begin(|| Op::SyncDir)? {
            self.changes.iter_mut().for_each(|change| change.ghost = true);
            return Err(fault.into());
        }
        let (ghosts, now): (Vec<_>, Vec<_>) = self.changes.drain(..).partition(|change| change.ghost);
        let touched =
            |name: &String| now.iter().any(|change| change.names.iter().any(|(other, _)| other == name));
        // A name written anew takes its earlier ghosts with it.
        self.changes = ghosts
            .into_iter()
            .filter_map(|mut ghost| {
                ghost.names.retain(|(name, _)| !touched(name));
                (!ghost.names.is_empty()).then_some(ghost)
            })
            .collect();
        now.iter().for_each(|change| apply(&mut self.durable, &change.names));
        self.forget_unreachable();
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        if let Some(fault) = self.begin(|| Op::Rename(from.to_owned(), to.to_owned()))? {
            return Err(fault.into());
        }
        let id = *self.seen.get(from).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        self.change(vec![(from.to_owned(), None), (to.to_owned(), Some(id))]);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        if let Some(fault) = self.begin(|| Op::Remove(name.to_owned()))? {
            return Err(fault.into());
        }
        if !self.seen.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(vec![(name.to_owned(), None)]);
        Ok(())
    }
}

impl File {
    fn write(&mut self, from: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let end = from + data.len();
        if self.seen.len() < end {
            self.seen.resize(end, 0);
        }
        self.seen[from..end].copy_from_slice(data);
        for sector in from / SECTOR..end.div_ceil(SECTOR) {
            let bytes = self.seen[sector * SECTOR..self.seen.len().min((sector + 1) * SECTOR)].to_vec();
            self.writes.push(SectorWrite { sector, bytes, ghost: false });
        }
    }

    fn sync(&mut self, fails: bool) {
        if fails {
            self.writes.iter_mut().for_each(|write| write.ghost = true);
            return;
        }
        let (ghosts, now): (Vec<_>, Vec<_>) = self.writes.drain(..).partition(|write| write.ghost);
        now.iter().for_each(|write| write.put(&mut self.durable));
        let synced: std::collections::BTreeSet<_> = now.iter().map(|write| write.sector).collect();
        self.writes = ghosts.into_iter().filter(|ghost| !synced.contains(&ghost.sector)).collect();
    }
}

impl SectorWrite {
    fn put(&self, content: &mut Vec<u8>) {
        let from = self.sector * SECTOR;
        let end = from + self.bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[from..end].copy_from_slice(&self.bytes);
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NoSpace => io::ErrorKind::StorageFull.into(),
            Fault::Io => Self::other("injected input/output error"),
        }
    }
}

fn apply(names: &mut BTreeMap<String, FileId>, changes: &[(String, Option<FileId>)]) {
    for (name, file) in changes {
        match file {
            Some(id) => names.insert(name.clone(), *id),
            None => names.remove(name),
        };
    }
}
