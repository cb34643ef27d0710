//! What clients asked, were told and believed, as lines in the order of one clock.
//!
//! The clock is the boot clock of the machine that runs the harness, in nanoseconds; every client lives in that process. The
//! time of a line is read under the lock that keeps the order: a line that stands before another happened before it.
//!
//! A client records *before* it asks and before it gives back, and *after* it is told: the times in a history never make a
//! client look more patient, or its belief longer, than it was.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use leasehold::Token;
use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds of the harness's boot clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct At(pub u64);

impl At {
    /// Now.
    pub fn now() -> Self {
        Self(leasehold_clock::read().boot)
    }

    /// So much later.
    #[must_use]
    pub fn plus(self, length: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero if it was not.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Names a client of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(pub u32);

/// Names one acquire of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Call(pub u32);

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: At,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
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
        #[serde(with = "text")]
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
        #[serde(with = "text")]
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
        #[serde(with = "text")]
        token: Token,
    },
    /// The call that gives the lease back has ended.
    GaveBack {
        /// Who.
        client: ClientId,
        /// Which lease.
        #[serde(with = "text")]
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
        #[serde(with = "text")]
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
        #[serde(with = "text")]
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
        #[serde(with = "text_or_none")]
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
        let text = serde_json::to_string(&line).expect("a line of a history has only text keys");
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
pub fn read(path: &Path) -> Result<Vec<Line>> {
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let lines = BufReader::new(file).lines().enumerate().map(|(number, line)| {
        let line = line.with_context(|| format!("{} cannot be read", path.display()))?;
        serde_json::from_str(&line)
            .with_context(|| format!("{}:{}: not understood", path.display(), number + 1))
    });
    lines.collect()
}

/// Tokens as text: a JSON number loses the last digits.
mod text {
    use leasehold::Token;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(token: &Token, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(token)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Token, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

mod text_or_none {
    use leasehold::Token;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
    pub(super) fn serialize<S: Serializer>(token: &Option<Token>, to: S) -> Result<S::Ok, S::Error> {
        token.map(|token| token.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Token>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let token = Token::from_u64(u64::MAX >> 1);
        let (client, at) = (ClientId(3), At(17));
        let all = [
            What::Asked { client, call: Call(1), resource: "a/b".into() },
            What::Granted { client, call: Call(1), resource: "a/b".into(), token, until: at, promised: at },
            What::GaveBack { client, token, trouble: Some("unknown".into()) },
            What::Finishing,
            What::Wrote { client, resource: "a/b".into(), token, asked: at, refused: None },
            What::Lost { client, token, why: "expired".into(), revoked: false },
            What::Looked { asked: at, resource: "a/b".into(), token: None },
            What::Looked { asked: at, resource: "a/b".into(), token: Some(token) },
            What::AllHealed,
        ];
        for what in all {
            let line = Line { at, what };
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line, "{text}");
        }
    }
}
