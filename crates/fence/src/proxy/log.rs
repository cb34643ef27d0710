//! The highest tokens on disk: a file of lines, each with the checksum of what stands behind it.
//!
//! ```text
//! leasehold-fence-proxy 1
//! 5f0c1d22 [{"name":"reports/nightly","token":"34","holder":"worker-3"}]
//! ```
//!
//! A line is what was raised in one step, and is synced before anything that depends on it is forwarded. A last line that is not whole was
//! never relied upon, and is dropped. Damage before the last line is refused: tokens may be missing. When the file has grown it is
//! written anew beside itself and renamed.
//!
//! What it cannot see: a last line that was whole and has rotted since looks like one that was never whole.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::OpenError;
use crate::receiver::Mark;
use crate::stamp::Stamp;

const FILE: &str = "fence.log";
const HEAD: &str = "leasehold-fence-proxy 1";
/// A file is written anew when it has this many bytes and twice as many as the last time: seldom, and never large.
const REWRITE_ABOVE: u64 = 256 * 1024;

/// The highest token of each name.
pub(super) type Marks = BTreeMap<String, Mark>;

#[derive(Debug)]
pub(super) struct Log {
    directory: PathBuf,
    file: File,
    bytes: u64,
    rewrite_at: u64,
    marks: Marks,
}

impl Log {
    /// Opens the file of a directory, or makes it.
    pub(super) fn open(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(FILE);
        let cannot = |what| {
            let path = path.clone();
            move |source| OpenError::Directory { what, path, source }
        };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(cannot("read")(error)),
        };
        let marks = match &bytes {
            Some(bytes) => read(&path, bytes)?,
            None => Marks::new(),
        };
        // Always written anew: what was not whole is gone, and that it can be written is known before anything depends on it.
        let (file, bytes) = rewrite(directory, &marks).map_err(cannot("write"))?;
        let rewrite_at = REWRITE_ABOVE.max(bytes * 2);
        Ok(Self { directory: directory.to_owned(), file, bytes, rewrite_at, marks })
    }

    pub(super) fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Raises and syncs. Tokens that are no greater than what is there change nothing. After an error nobody knows what is on disk, and the
    /// log must not be used any more.
    pub(super) fn raise<'a>(&mut self, stamps: impl Iterator<Item = &'a Stamp>) -> io::Result<()> {
        let mut raised = Marks::new();
        for stamp in stamps {
            let highest = raised.get(stamp.name()).or_else(|| self.marks.get(stamp.name()));
            if highest.is_none_or(|highest| highest.token < stamp.token()) {
                let mark = Mark { token: stamp.token(), holder: stamp.holder().map(str::to_owned) };
                raised.insert(stamp.name().to_owned(), mark);
            }
        }
        if raised.is_empty() {
            return Ok(());
        }
        let line = line(&raised);
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.bytes += line.len() as u64;
        self.marks.extend(raised);
        if self.bytes > self.rewrite_at {
            (self.file, self.bytes) = rewrite(&self.directory, &self.marks)?;
            self.rewrite_at = REWRITE_ABOVE.max(self.bytes * 2);
        }
        Ok(())
    }
}

fn line(marks: &Marks) -> String {
    let marks = marks
        .iter()
        .map(|(name, mark)| json!({ "name": name, "token": mark.token.to_string(), "holder": mark.holder }));
    let text = Value::Array(marks.collect()).to_string();
    format!("{:08x} {text}\n", crc32c::crc32c(text.as_bytes()))
}

/// Writes the file beside the old one and puts it in its place; gives it open at its end.
fn rewrite(directory: &Path, marks: &Marks) -> io::Result<(File, u64)> {
    let aside = directory.join(format!("{FILE}.new"));
    let mut text = format!("{HEAD}\n");
    if !marks.is_empty() {
        text.push_str(&line(marks));
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&aside, directory.join(FILE))?;
    File::open(directory)?.sync_all()?;
    Ok((file, text.len() as u64))
}

fn read(path: &Path, bytes: &[u8]) -> Result<Marks, OpenError> {
    let damaged = |offset, what| Err(OpenError::Damaged { path: path.to_owned(), offset, what });
    let Some(mut rest) = bytes.strip_prefix(HEAD.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n")) else {
        return damaged(0, "it does not begin as this release writes it");
    };
    let mut marks = Marks::new();
    while !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, behind) = end.map_or((rest, &[][..]), |end| (&rest[..end], &rest[end + 1..]));
        match parsed(line).filter(|_| end.is_some()) {
            Some(raised) => marks.extend(raised),
            None if behind.is_empty() => break,
            None => return damaged(offset, "a line is not what was written"),
        }
        rest = behind;
    }
    Ok(marks)
}

fn parsed(line: &[u8]) -> Option<Marks> {
    let (sum, text) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    if u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(text.as_bytes()) {
        return None;
    }
    let marks: Value = serde_json::from_str(text).ok()?;
    let marks = marks.as_array()?.iter().map(|one| {
        let token = one["token"].as_str()?.parse().ok()?;
        Some((
            one["name"].as_str()?.to_owned(),
            Mark { token, holder: one["holder"].as_str().map(str::to_owned) },
        ))
    });
    marks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(name: &str, token: u64) -> Stamp {
        Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
    }

    fn tokens(log: &Log) -> Vec<(&str, u64)> {
        log.marks().iter().map(|(name, mark)| (name.as_str(), mark.token)).collect()
    }

    #[test]
    fn tokens_are_there_again_and_never_fall() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = Log::open(directory.path()).unwrap();
        log.raise([stamp("a", 33), stamp("b \"", (1 << 53) + 1), stamp("a", 34), stamp("a", 33)].iter())
            .unwrap();
        log.raise([stamp("a", 20)].iter()).unwrap();
        drop(log);
        let log = Log::open(directory.path()).unwrap();
        assert_eq!(tokens(&log), [("a", 34), ("b \"", (1 << 53) + 1)]);
        assert_eq!(log.marks()["a"].holder.as_deref(), Some("holder-34"));
    }

    #[test]
    fn a_last_line_that_is_not_whole_is_dropped_wherever_it_was_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let mut log = Log::open(directory.path()).unwrap();
        log.raise([stamp("a", 33)].iter()).unwrap();
        let before = std::fs::read(&path).unwrap().len();
        log.raise([stamp("a", 34)].iter()).unwrap();
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        for cut in before..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(tokens(&Log::open(directory.path()).unwrap()), [("a", 33)], "cut at {cut}");
        }
        // Pages that were never written are zeros.
        let mut zeros = whole.clone();
        zeros[before..].fill(0);
        std::fs::write(&path, &zeros).unwrap();
        assert_eq!(tokens(&Log::open(directory.path()).unwrap()), [("a", 33)]);
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(tokens(&Log::open(directory.path()).unwrap()), [("a", 34)]);
    }

    #[test]
    fn damage_before_the_last_line_is_refused_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let mut log = Log::open(directory.path()).unwrap();
        log.raise([stamp("a", 33)].iter()).unwrap();
        log.raise([stamp("a", 34)].iter()).unwrap();
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        let first = HEAD.len() + 1;
        let second = first + whole[first..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for at in first..second - 1 {
            let mut bad = whole.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            let found = Log::open(directory.path()).unwrap_err().to_string();
            assert!(found.contains(&format!("damaged at byte {first}")), "{at}: {found}");
        }
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Log::open(directory.path()).unwrap_err().to_string().contains("does not begin"));
    }

    #[test]
    fn a_log_that_has_grown_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = Log::open(directory.path()).unwrap();
        log.rewrite_at = 1_000;
        for token in 1..200 {
            log.rewrite_at = log.rewrite_at.min(1_000);
            log.raise([stamp("a", token)].iter()).unwrap();
        }
        assert!(
            log.bytes < 1_100 && std::fs::metadata(directory.path().join(FILE)).unwrap().len() == log.bytes
        );
        drop(log);
        assert_eq!(tokens(&Log::open(directory.path()).unwrap()), [("a", 199)]);
        assert!(!directory.path().join("fence.log.new").exists());
    }
}
