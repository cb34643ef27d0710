//! The signals that ask this program to end.

use std::fs;

use futures_util::future::OptionFuture;
use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::trouble::Trouble;

/// SIGHUP, SIGINT and SIGTERM, except those that were ignored when this program was started (`nohup`, or `&` in a script).
#[derive(Debug)]
pub(crate) struct Signals {
    streams: [Option<Stream>; 3],
}

/// What is said when the system gives no signals.
pub(crate) const CANNOT_LISTEN: &str = "cannot listen to signals";

const ASKED_BY: [(Signal, SignalKind); 3] = [
    (Signal::HUP, SignalKind::hangup()),
    (Signal::INT, SignalKind::interrupt()),
    (Signal::TERM, SignalKind::terminate()),
];

impl Signals {
    /// Listens from now on. Must be called inside a runtime.
    pub(crate) fn listen() -> Result<Self, Trouble> {
        let mut streams = [const { None }; 3];
        for (stream, (number, kind)) in streams.iter_mut().zip(ASKED_BY) {
            if !is_ignored(number) {
                *stream = Some(signal(kind).map_err(Trouble::system(CANNOT_LISTEN))?);
            }
        }
        Ok(Self { streams })
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        let [hangup, interrupt, terminate] = &mut self.streams;
        tokio::select! {
            Some(Some(())) = OptionFuture::from(hangup.as_mut().map(Stream::recv)) => Signal::HUP,
            Some(Some(())) = OptionFuture::from(interrupt.as_mut().map(Stream::recv)) => Signal::INT,
            Some(Some(())) = OptionFuture::from(terminate.as_mut().map(Stream::recv)) => Signal::TERM,
            else => std::future::pending().await,
        }
    }
}

/// Whether whoever started this program wants it not to hear a signal.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let ignored = fs::read_to_string("/proc/self/status").map_or(0, |status| ignored_set(&status));
    ignored & (1 << (signal.as_raw() - 1)) != 0
}

/// The set of ignored signals in the kernel's description of a process.
fn ignored_set(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_is_seen() {
        let set = ignored_set("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n");
        assert_eq!(set & (1 << (Signal::HUP.as_raw() - 1)), 1);
        assert_eq!(set & (1 << (Signal::TERM.as_raw() - 1)), 0);
    }
}
