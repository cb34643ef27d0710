//! Where a history comes from. It is read twice: once to judge it, and once more for the text of lines that are shown.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use leasehold_history::LineNumber;

/// Larger than the default: a history is read from its beginning to its end.
const BUFFER: usize = 256 * 1024;

/// A history to read.
pub(super) struct Input {
    file: File,
    /// Where it begins: others may have read some of it.
    start: u64,
    /// A copy of what can be read only once.
    copy: Option<File>,
}

/// Whether a path means standard input.
pub(super) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

impl Input {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = match is_standard(path) {
            true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            false => File::open(path)?,
        };
        if file.metadata()?.is_dir() {
            return Err(io::Error::other("is a directory; a file with one JSON object a line was expected"));
        }
        let (start, copy) = match file.metadata()?.is_file() {
            true => (file.stream_position()?, None),
            false => (0, Some(nameless()?)),
        };
        Ok(Self { file, start, copy })
    }

    /// How many bytes there are, if that is known.
    pub(super) fn size(&self) -> Option<u64> {
        let metadata = self.file.metadata().ok().filter(|_| self.copy.is_none())?;
        Some(metadata.len().saturating_sub(self.start))
    }

    /// Reads it from its beginning, and counts the bytes.
    pub(super) fn reader(&mut self) -> io::Result<(impl BufRead + use<>, Rc<Cell<u64>>)> {
        let copy = self.copy.as_ref().map(File::try_clone).transpose()?;
        let so_far = Rc::new(Cell::new(0));
        let from = Counted {
            from: self.file.try_clone()?,
            copy: copy.map(|copy| BufWriter::with_capacity(BUFFER, copy)),
            so_far: Rc::clone(&so_far),
        };
        Ok((BufReader::with_capacity(BUFFER, from), so_far))
    }

    /// The text of these lines.
    pub(super) fn texts(
        &mut self,
        wanted: &BTreeSet<LineNumber>,
    ) -> io::Result<BTreeMap<LineNumber, String>> {
        let mut texts = BTreeMap::new();
        let Some(last) = wanted.last() else { return Ok(texts) };
        let (file, start) = match &mut self.copy {
            Some(copy) => (copy, 0),
            None => (&mut self.file, self.start),
        };
        file.seek(SeekFrom::Start(start))?;
        let mut from = BufReader::with_capacity(BUFFER, file);
        let mut text = Vec::new();
        for number in 1..=last.get() {
            text.clear();
            from.read_until(b'\n', &mut text)?;
            if let Some(line) = LineNumber::new(number).filter(|line| wanted.contains(line)) {
                texts.insert(line, String::from_utf8_lossy(text.trim_ascii()).into_owned());
            }
        }
        Ok(texts)
    }
}

/// A file that nobody else sees and that is gone with this process.
fn nameless() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("leasehold-history-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Counts what is read, and keeps a copy of it if there has to be one.
struct Counted {
    from: File,
    copy: Option<BufWriter<File>>,
    so_far: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.so_far.set(self.so_far.get() + u64::try_from(count).unwrap_or(u64::MAX));
        if let Some(copy) = &mut self.copy {
            copy.write_all(&buffer[..count])?;
            if count == 0 {
                copy.flush()?;
            }
        }
        Ok(count)
    }
}
