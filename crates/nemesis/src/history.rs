//! What clients asked, were told and believed, as lines in the order of one clock, in the format of `leasehold-history`.
//!
//! The clock is the boot clock of the machine that runs the harness, in nanoseconds; every client lives in that process. The
//! time of a line is read under the lock that keeps the order: a line that stands before another happened before it.
//!
//! A client records *before* it asks and before it gives back, and *after* it is told: the times in a history never make a
//! client look more patient, or its belief longer, than it was.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use leasehold::Token;
use leasehold_history::Story;
pub use leasehold_history::{At, Event, Line};

/// The clock of the harness.
pub trait Now {
    /// What it shows.
    fn now() -> Self;
}

impl Now for At {
    fn now() -> Self {
        Self(leasehold_clock::read().boot)
    }
}

/// Names a client of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl ClientId {
    /// As a history calls it.
    pub fn name(self) -> Cow<'static, str> {
        self.0.to_string().into()
    }

    /// The client that a history calls so.
    ///
    /// # Panics
    /// When it is none of the workload.
    pub fn of(name: &str) -> Self {
        Self(name.parse().expect("clients of the workload have numbers"))
    }
}

/// A client is about to ask for a lease.
pub fn asked(client: ClientId, call: u32, resource: &str) -> Event<'static> {
    let (client, call, resource) = (client.name(), call.to_string().into(), resource.to_owned().into());
    Event::Asked { client, call, resource, ttl_ms: None }
}

/// A client was told that it alone holds a lease: until when it believes, and until when the service must honour it.
pub fn granted(
    client: ClientId,
    call: u32,
    resource: &str,
    token: Token,
    until: At,
    promised: At,
) -> Event<'static> {
    Event::Granted {
        client: client.name(),
        call: call.to_string().into(),
        resource: resource.to_owned().into(),
        token,
        fence: None,
        shared: false,
        handed_over: false,
        until,
        promised: Some(promised),
    }
}

/// Writes a history while it is made, and keeps it.
#[derive(Debug, Clone)]
pub struct Recorder {
    path: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    lines: Vec<Line<'static>>,
    file: BufWriter<File>,
    /// The first thing that went wrong with the file: a history that is not whole must not pass.
    trouble: Option<std::io::Error>,
}

impl Recorder {
    /// A history in a new file.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("{} cannot be made", path.display()))?;
        let inner = Inner { lines: Vec::new(), file: BufWriter::new(file), trouble: None };
        Ok(Self { path: path.to_owned(), inner: Arc::new(Mutex::new(inner)) })
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records something that happens now.
    pub fn record(&self, event: Event<'static>) -> At {
        let mut inner = self.lock();
        let at = At::now();
        let line = Line::new(at, event);
        if let Err(error) = writeln!(inner.file, "{}", line.to_json()) {
            inner.trouble.get_or_insert(error);
        }
        inner.lines.push(line);
        at
    }

    /// How many grants there were so far.
    pub fn grants(&self) -> usize {
        self.lock().lines.iter().filter(|line| matches!(line.event, Event::Granted { .. })).count()
    }

    /// Everything so far, and on disk.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn lines(&self) -> Result<Vec<Line<'static>>> {
        let mut inner = self.lock();
        if let Some(error) = &inner.trouble {
            bail!("{} cannot be written: {error}", self.path.display());
        }
        inner.file.flush().with_context(|| format!("{} cannot be written", self.path.display()))?;
        Ok(inner.lines.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a history from a file.
///
/// # Errors
/// When the file cannot be read or a line of it is not understood.
pub fn read(path: &Path) -> Result<Story> {
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut story = Story::default();
    leasehold_history::read(BufReader::new(file), |number, line| story.take(number, line))
        .with_context(|| path.display().to_string())?;
    Ok(story)
}
