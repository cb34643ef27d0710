//! What the log asks of a file system.

use std::io;

/// A directory of flat files.
///
/// The log calls nothing else. An implementation promises what POSIX promises on a sane file system: a successful sync makes the
/// content of the file (or, for the directory, the presence and names of its files) survive a loss of power; what was not synced may
/// survive wholly, in part, or not at all, in any order, but sectors of 512 bytes are not torn. Reads see all writes at once.
pub trait Disk {
    /// The names of all files, in any order.
    fn list(&mut self) -> io::Result<Vec<String>>;
    /// Makes an empty file; it is an error if the name exists.
    fn create(&mut self, name: &str) -> io::Result<()>;
    /// The length of a file in bytes.
    fn len(&mut self, name: &str) -> io::Result<u64>;
    /// Fills `buffer` from `offset` on; a file that ends before is `UnexpectedEof`.
    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes all of `data`; a file that ends before is made longer.
    fn write_at(&mut self, name: &str, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Makes content and length durable (`fdatasync`).
    fn sync_data(&mut self, name: &str) -> io::Result<()>;
    /// Makes content and all attributes durable (`fsync`).
    fn sync_all(&mut self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_dir(&mut self) -> io::Result<()>;
    /// Renames a file, replacing `to` if it exists.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, name: &str) -> io::Result<()>;
}

impl<D: Disk + ?Sized> Disk for &mut D {
    fn list(&mut self) -> io::Result<Vec<String>> {
        (**self).list()
    }
    fn create(&mut self, name: &str) -> io::Result<()> {
        (**self).create(name)
    }
    fn len(&mut self, name: &str) -> io::Result<u64> {
        (**self).len(name)
    }
    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(name, offset, buffer)
    }
    fn write_at(&mut self, name: &str, offset: u64, data: &[u8]) -> io::Result<()> {
        (**self).write_at(name, offset, data)
    }
    fn sync_data(&mut self, name: &str) -> io::Result<()> {
        (**self).sync_data(name)
    }
    fn sync_all(&mut self, name: &str) -> io::Result<()> {
        (**self).sync_all(name)
    }
    fn sync_dir(&mut self) -> io::Result<()> {
        (**self).sync_dir()
    }
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        (**self).rename(from, to)
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        (**self).remove(name)
    }
}
