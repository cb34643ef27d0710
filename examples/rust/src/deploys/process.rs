//! A process that says what happens to it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::now;

/// How long anything may take that is not waited for on purpose: a busy machine starts a process in seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(10);

/// What a process said, and when.
#[derive(Debug, Clone)]
pub struct Line {
    /// The reading in front of it.
    pub at: u64,
    /// Its first word.
    pub word: String,
    /// The rest.
    pub rest: String,
}

/// A process that runs, or has run.
#[derive(Debug)]
pub struct Process {
    child: Child,
    seen: Arc<Seen>,
    /// When it was sent a signal, read before it was sent.
    signalled: Option<u64>,
}

#[derive(Debug, Default)]
struct Seen {
    lines: Mutex<(Vec<Line>, bool)>,
    more: Condvar,
}

impl Process {
    /// Starts one, and listens to it.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("no process")?;
        let seen = Arc::new(Seen::default());
        let output = child.stdout.take().context("its output is piped")?;
        let listener = Arc::clone(&seen);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                listener.lock().0.extend(parse(&line));
                listener.more.notify_all();
            }
            listener.lock().1 = true;
            listener.more.notify_all();
        });
        Ok(Self { child, seen, signalled: None })
    }

    /// What it has said so far.
    pub fn lines(&self) -> Vec<Line> {
        self.seen.lock().0.clone()
    }

    /// When it was sent a signal.
    pub fn signalled(&self) -> Option<u64> {
        self.signalled
    }

    /// Waits until it has said `word`, for so long beyond what may be expected of a busy machine.
    ///
    /// # Errors
    /// When it ends or says nothing of the kind.
    pub fn wait_for(&self, word: &str, longer: Duration) -> Result<Line> {
        self.wait_until(&format!("say {word:?}"), longer, |lines| {
            lines.iter().find(|line| line.word == word).cloned()
        })
    }

    /// Waits until what it has said so far comes to something.
    ///
    /// # Errors
    /// When it ends or says nothing of the kind.
    pub fn wait_until<T>(
        &self,
        what: &str,
        longer: Duration,
        found: impl Fn(&[Line]) -> Option<T>,
    ) -> Result<T> {
        let until = now() + nanos(PATIENCE + longer);
        let mut lines = self.seen.lock();
        loop {
            if let Some(found) = found(&lines.0) {
                return Ok(found);
            }
            let left = Duration::from_nanos(until.saturating_sub(now()));
            if lines.1 || left.is_zero() {
                bail!("process {} did not {what}; it said {:?}", self.child.id(), lines.0);
            }
            lines = self.seen.more.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends it a signal. The first one counts as its end.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.signalled.get_or_insert(now());
        kill_process(Pid::from_child(&self.child), signal).context("cannot signal a process")
    }

    /// Waits until it has ended and all it has said was heard.
    ///
    /// # Errors
    /// When it does not end.
    pub fn ended(&mut self, longer: Duration) -> Result<ExitStatus> {
        let until = now() + nanos(PATIENCE + longer);
        while now() < until {
            if let Some(status) = self.child.try_wait()?
                && self.seen.lock().1
            {
                return Ok(status);
            }
            std::thread::sleep(STEP);
        }
        bail!("process {} does not end", self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, (Vec<Line>, bool)> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(line: &str) -> Option<Line> {
    let (at, rest) = line.split_once(' ')?;
    let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Line { at: at.parse().ok()?, word: word.to_owned(), rest: rest.to_owned() })
}

pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
