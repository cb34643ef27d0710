//! What waits to be proposed, and what was proposed and is not applied yet.

use std::collections::VecDeque;

use leasehold_core::protocol::RequestId;
use leasehold_core::{Command, Op};

use crate::routes::ConnectionId;

/// Commands in one entry at most, renewals not counted: an entry is applied in one step, and other work waits for it.
pub(crate) const MAX_BATCH_COMMANDS: usize = 4_096;
/// Bytes of values in one entry at most, roughly: a batch lies in one segment of the log.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// Commands that may wait at most. More means that the disk is far behind, and an honest refusal is better than a late answer.
pub(crate) const MAX_QUEUED: usize = 65_536;

/// Who gets the reply to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Client { connection: ConnectionId, id: RequestId },
    Node,
}

/// Commands that were taken in and not proposed yet.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    renewals: Vec<(Origin, Command)>,
    waiting: VecDeque<(Origin, Command)>,
}

impl Queue {
    pub(crate) fn is_full(&self) -> bool {
        self.renewals.len() + self.waiting.len() >= MAX_QUEUED
    }

    pub(crate) fn push(&mut self, origin: Origin, command: Command) {
        if matches!(command, Command::Renew { .. }) {
            self.renewals.push((origin, command));
        } else {
            self.waiting.push_back((origin, command));
        }
    }

    /// The next batch: every renewal, and a bounded number of other commands in their order.
    ///
    /// A renewal that was taken in must not stay behind an entry whose stamp is later: that entry would judge its session as if
    /// nothing had been heard of it. Renewals are small, so that even a full queue of them makes an entry of two megabytes.
    pub(crate) fn take(&mut self) -> (Vec<Origin>, Vec<Command>) {
        let (mut origins, mut commands): (Vec<_>, Vec<_>) = self.renewals.drain(..).unzip();
        let most = commands.len() + MAX_BATCH_COMMANDS;
        let mut bytes = 0;
        while commands.len() < most && bytes < MAX_BATCH_BYTES {
            let Some((origin, command)) = self.waiting.pop_front() else { break };
            bytes += weight(&command);
            origins.push(origin);
            commands.push(command);
        }
        (origins, commands)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Origin> {
        self.renewals.drain(..).chain(self.waiting.drain(..)).map(|(origin, _)| origin)
    }
}

/// Roughly the bytes of a command in the log; values and many names make it large.
fn weight(command: &Command) -> usize {
    const PLAIN: usize = 64;
    let Command::Session(command) = command else { return PLAIN };
    PLAIN
        + match &command.op {
            Op::Acquire(acquire) => {
                acquire.value.as_bytes().len()
                    + acquire.requests.iter().map(|request| request.resource.as_str().len()).sum::<usize>()
            }
            Op::SetValue { value, .. } | Op::Accept { value, .. } => value.as_bytes().len(),
            Op::WriteRegister { value, .. } => value.as_ref().map_or(0, |value| value.as_bytes().len()),
            Op::Cancel { .. } | Op::Offer(_) | Op::Release { .. } | Op::Close => 0,
        }
}

/// An entry that was proposed and is not applied yet.
#[derive(Debug)]
pub(crate) struct Proposed {
    pub(crate) term: u64,
    pub(crate) index: u64,
    pub(crate) origins: Vec<Origin>,
}
