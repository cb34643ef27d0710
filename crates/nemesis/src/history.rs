//! What clients asked, were told and believed, as lines in the order of one clock, in the format of `leasehold-history`.
//!
//! The clock is the boot clock of the machine that runs the harness, in nanoseconds; every client lives in that process. The
//! time of a line is read under the lock that keeps the order: a line that stands before another happened before it.
//!
//! A client records *before* it asks and before it gives back, and *after* it is told: the times in a history never make a
//! client look more patient, or its belief longer, than it was.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use leasehold::Token;
pub use leasehold_history::At;
use leasehold_history::{Event, Story};

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

/// Names one acquire of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call(pub u32);

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: At,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A client is about to ask for a lease.
    Asked {
        /// Who.
        client: ClientId,
        /// Which of its calls.
        call: Call,
        /// For what.
        resource: String,
    },
    /// The service said that the client stands in the queue.
    Queued {
        /// Who.
        client: ClientId,
        /// Which of its calls.
        call: Call,
        /// Until when its session cannot be overdue, if that is known.
        promised: Option<At>,
    },
    /// The client was told that it holds the lease.
    Granted {
        /// Who.
        client: ClientId,
        /// Which of its calls.
        call: Call,
        /// What it holds.
        resource: String,
        /// The token.
        token: Token,
        /// Until when the client believes.
        until: At,
        /// Until when the service must honour it: when the confirmed renewal was sent, and the ttl.
        promised: At,
    },
    /// A renewal of the lease was confirmed.
    Confirmed {
        /// Who.
        client: ClientId,
        /// Which lease.
        token: Token,
        /// Until when the client believes.
        until: At,
        /// Until when the service must honour it.
        promised: At,
    },
    /// The call brought no lease, and never will.
    Refused {
        /// Who.
        client: ClientId,
        /// Which of its calls.
        call: Call,
        /// Why.
        why: String,
    },
    /// Nobody can say whether the call brought a lease. It ends with the session.
    Unknown {
        /// Who.
        client: ClientId,
        /// Which of its calls.
        call: Call,
        /// What is known.
        why: String,
    },
    /// The client does not believe any more and is about to say so.
    GivingBack {
        /// Who.
        client: ClientId,
        /// Which lease.
        token: Token,
    },
    /// The call that gives the lease back has ended.
    GaveBack {
        /// Who.
        client: ClientId,
        /// Which lease.
        token: Token,
        /// What went wrong, if the service did not say that it took it back.
        trouble: Option<String>,
    },
    /// A client wrote to the register of a resource, under a lease that it has or had.
    Wrote {
        /// Who.
        client: ClientId,
        /// Beside which resource.
        resource: String,
        /// The token that it showed.
        token: Token,
        /// When it was about to ask.
        asked: At,
        /// Why the write was not taken, if it was not. A write whose outcome nobody knows is not recorded.
        refused: Option<String>,
    },
    /// The service ended a lease that the client had not given back.
    Lost {
        /// Who.
        client: ClientId,
        /// Which lease.
        token: Token,
        /// Why.
        why: String,
        /// Whether an operator ended it.
        revoked: bool,
    },
    /// Somebody looked who holds a resource.
    Looked {
        /// When it was asked.
        asked: At,
        /// What was looked at.
        resource: String,
        /// The token of the holder, if there is one.
        token: Option<Token>,
    },
    /// Something was broken.
    Fault {
        /// What.
        text: String,
    },
    /// Something was mended.
    Healed {
        /// What.
        text: String,
    },
    /// Nothing is broken any more: from here on everybody must be served.
    AllHealed,
    /// Clients were told to finish: from here on they ask for nothing new.
    Finishing,
}

/// Writes a history while it is made, and keeps it.
#[derive(Debug, Clone)]
pub struct Recorder {
    path: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    lines: Vec<Line>,
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
    pub fn record(&self, what: What) -> At {
        let mut inner = self.lock();
        let at = At::now();
        let line = Line { at, what };
        let text = line.event().to_json();
        if let Err(error) = writeln!(inner.file, "{text}") {
            inner.trouble.get_or_insert(error);
        }
        inner.lines.push(line);
        at
    }

    /// How many grants there were so far.
    pub fn grants(&self) -> usize {
        self.lock().lines.iter().filter(|line| matches!(line.what, What::Granted { .. })).count()
    }

    /// Everything so far, and on disk.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn lines(&self) -> Result<Vec<Line>> {
        let mut inner = self.lock();
        if let Some(error) = inner.trouble.take() {
            return Err(error).with_context(|| format!("{} cannot be written", self.path.display()));
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

impl Line {
    /// The line as others write and read it.
    pub fn event(&self) -> leasehold_history::Line<'_> {
        leasehold_history::Line::new(self.at, self.what.event())
    }
}

impl What {
    fn event(&self) -> Event<'_> {
        let name = |client: &ClientId| client.0.to_string().into();
        let number = |call: &Call| call.0.to_string().into();
        match self {
            Self::Asked { client, call, resource } => Event::Asked {
                client: name(client),
                call: number(call),
                resource: resource.into(),
                ttl_ms: None,
            },
            Self::Queued { client, call, promised } => {
                Event::Queued { client: name(client), call: number(call), promised: *promised }
            }
            Self::Granted { client, call, resource, token, until, promised } => Event::Granted {
                client: name(client),
                call: number(call),
                resource: resource.into(),
                token: *token,
                fence: None,
                shared: false,
                handed_over: false,
                until: *until,
                promised: Some(*promised),
            },
            Self::Confirmed { client, token, until, promised } => Event::Confirmed {
                client: name(client),
                token: *token,
                until: *until,
                promised: Some(*promised),
            },
            Self::Refused { client, call, why } => {
                Event::Refused { client: name(client), call: number(call), why: why.into() }
            }
            Self::Unknown { client, call, why } => {
                Event::Unknown { client: name(client), call: number(call), why: why.into() }
            }
            Self::GivingBack { client, token } => Event::GivingBack { client: name(client), token: *token },
            Self::GaveBack { client, token, trouble } => Event::GaveBack {
                client: name(client),
                token: *token,
                trouble: trouble.as_ref().map(Into::into),
            },
            Self::Wrote { client, resource, token, asked, refused } => Event::Wrote {
                client: name(client),
                resource: resource.into(),
                token: *token,
                asked: *asked,
                refused: refused.as_ref().map(Into::into),
                receiver: "".into(),
                register: true,
            },
            Self::Lost { client, token, why, revoked } => Event::Lost {
                client: name(client),
                token: *token,
                why: why.into(),
                revoked: *revoked,
                // Scenarios that restore do not ask for this rule behind a restore.
                restored: false,
            },
            Self::Looked { asked, resource, token } => {
                Event::Looked { asked: *asked, resource: resource.into(), token: *token }
            }
            Self::Fault { text } => Event::Fault { text: text.into() },
            Self::Healed { text } => Event::Healed { text: text.into() },
            Self::AllHealed => Event::AllHealed,
            Self::Finishing => Event::Finishing,
        }
    }
}
