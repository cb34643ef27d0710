//! The log's disk as a directory of real files.
//!
//! Promises what [`Disk`] asks on the file systems that the server allows: `fdatasync`, `fsync`, and `fsync` of the directory. Every name
//! is looked up in the directory that was opened, and not by its path: if that is moved away and another takes its place, nothing
//! is written to the other. It takes no lock and checks no file system; whoever opens the directory does that first.

use leasehold_wal::Disk;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A directory of files, each kept open from its first use until it is removed.
#[derive(Debug)]
pub struct FileDisk {
    directory: File,
    files: HashMap<String, File>,
}

impl FileDisk {
    /// Uses a directory that exists.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { directory: File::open(path)?, files: HashMap::new() })
    }

    /// The log holds the nonces of sessions: nobody else reads it.
    fn open_here(&self, name: &str, create: OFlags) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | create;
        Ok(File::from(openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    fn file(&mut self, name: &str) -> io::Result<&File> {
        if !self.files.contains_key(name) {
            let file = self.open_here(name, OFlags::empty())?;
            self.files.insert(name.to_owned(), file);
        }
        Ok(&self.files[name])
    }
}

impl Disk for FileDisk {
    fn list(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            // A name that is not text is not one of ours.
            let name = entry?.file_name().to_str().map(str::to_owned);
            names.extend(name.ok().filter(|name| name != "." && name != ".."));
        }
        Ok(names)
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        let file = self.open_here(name, OFlags::CREATE | OFlags::EXCL)?;
        self.files.insert(name.to_owned(), file);
        Ok(())
    }

    fn len(&mut self, name: &str) -> io::Result<u64> {
        Ok(self.file(name)?.metadata()?.len())
    }

    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file(name)?.read_exact_at(buffer, offset)
    }

    fn write_at(&mut self, name: &str, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file(name)?.write_all_at(data, offset)
    }

    fn sync_data(&mut self, name: &str) -> io::Result<()> {
        self.file(name)?.sync_data()
    }

    fn sync_all(&mut self, name: &str) -> io::Result<()> {
        self.file(name)?.sync_all()
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        renameat(&self.directory, from, &self.directory, to)?;
        self.files.remove(to);
        if let Some(file) = self.files.remove(from) {
            self.files.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.files.remove(name);
        Ok(unlinkat(&self.directory, name, AtFlags::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_wal::{Entry, Identity, Index, Options, Record, SnapshotKind, Term, Wal};

    const IDENTITY: Identity = Identity { lock_inode: 1 };

    fn entry(index: u64) -> Record {
        Record::Entry(Entry { index: Index(index), term: Term(1), kind: 0, payload: vec![index as u8; 200] })
    }

    #[test]
    fn a_log_on_real_files_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { first_segment_bytes: 8 * 512, segment_bytes: 16 * 512, ..Options::default() };
        let (mut wal, recovered) = Wal::open(FileDisk::open(dir.path()).unwrap(), IDENTITY, options).unwrap();
        assert!(recovered.is_new);
        (1..=40).for_each(|index| wal.append(&[entry(index)]).unwrap());
        wal.save_snapshot(SnapshotKind::Taken, Index(30), Term(1), &[7; 3000], &[]).unwrap();
        wal.append(&[entry(41)]).unwrap();
        drop(wal);
        let (_, recovered) = Wal::open(FileDisk::open(dir.path()).unwrap(), IDENTITY, options).unwrap();
        let indexes: Vec<u64> = recovered.entries.iter().map(|entry| entry.index.0).collect();
        assert_eq!(indexes, (31..=41).collect::<Vec<_>>());
        assert_eq!(recovered.snapshot.unwrap().1, [7; 3000]);
    }

    #[test]
    fn a_file_that_exists_is_not_created_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = FileDisk::open(dir.path()).unwrap();
        disk.create("a").unwrap();
        assert_eq!(disk.create("a").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_renamed_file_is_found_by_its_new_name_only() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = FileDisk::open(dir.path()).unwrap();
        disk.create("a").unwrap();
        disk.write_at("a", 0, b"new").unwrap();
        disk.create("b").unwrap();
        disk.rename("a", "b").unwrap();
        let mut content = [0; 3];
        disk.read_at("b", 0, &mut content).unwrap();
        assert_eq!(&content, b"new");
        assert_eq!(disk.len("a").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
