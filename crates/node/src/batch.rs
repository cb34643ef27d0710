//! What waits to be proposed, and what was proposed and is not applied yet.

use std::collections::VecDeque;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::RequestId;
use leasehold_core::{Command, Op, Operator, Successor};

use crate::payload::Payload;
use crate::routes::ConnectionId;

/// Commands in one entry at most, renewals not counted: an entry is applied in one step, and other work waits for it.
pub(crate) const MAX_BATCH_COMMANDS: usize = 4_096;
/// Bytes of values in one entry at most, roughly: a batch lies in one segment of the log.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// Commands that may wait at most. More means that the disk is far behind, and an honest refusal is better than a late answer.
/// Renewals are counted apart, so that a flood of other commands does not keep a living session from saying so.
pub(crate) const MAX_QUEUED: usize = 65_536;
/// Bytes of commands that may wait at most, roughly.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;

/// Who gets the reply to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Client { connection: ConnectionId, id: RequestId },
    Node,
}

/// Commands that were taken in and not proposed yet.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Renewals and who sent them, in vectors of their own: they go into the next entry as they are.
    renewals: Vec<Command>,
    renewers: Vec<Origin>,
    waiting: VecDeque<(Origin, Command)>,
    /// What `waiting` weighs.
    bytes: usize,
}

impl Queue {
    /// Whether there is no room for this command.
    pub(crate) fn is_full_for(&self, command: &Command) -> bool {
        match command {
            Command::Renew { .. } | Command::RenewPlain { .. } => self.is_full_for_renewals(),
            _ => self.is_full_for_others(),
        }
    }

    /// Whether there is no room for anything but renewals.
    pub(crate) fn is_full_for_others(&self) -> bool {
        self.waiting.len() >= MAX_QUEUED || self.bytes >= MAX_QUEUED_BYTES
    }

    /// Whether there is no room for a renewal.
    pub(crate) fn is_full_for_renewals(&self) -> bool {
        self.renewals.len() >= MAX_QUEUED
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.renewals.is_empty() && self.waiting.is_empty()
    }

    /// Whether nothing waits that would not be sent again anyway.
    pub(crate) fn has_only_renewals(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many commands wait, and what they weigh.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.renewals.len() + self.waiting.len(), self.bytes)
    }

    pub(crate) fn push(&mut self, origin: Origin, command: Command) {
        if command.is_renewal() {
            self.renewals.push(command);
            self.renewers.push(origin);
        } else {
            self.bytes += weight(&command);
            self.waiting.push_back((origin, command));
        }
    }

    /// The next batch: every renewal, and a bounded number of other commands in their order.
    ///
    /// A renewal that was taken in must not stay behind an entry whose stamp is later: that entry would judge its session as if
    /// nothing had been heard of it. Renewals are small, so that even a full queue of them makes an entry of two megabytes.
    pub(crate) fn take(&mut self) -> (Vec<Origin>, Vec<Command>) {
        let (mut commands, mut origins) = (Vec::new(), Vec::new());
        if !self.renewals.is_empty() {
            // As many may come next time.
            let room = self.renewals.len();
            commands = std::mem::replace(&mut self.renewals, Vec::with_capacity(room));
            origins = std::mem::replace(&mut self.renewers, Vec::with_capacity(room));
        }
        let others = self.waiting.len().min(MAX_BATCH_COMMANDS);
        commands.reserve_exact(others);
        origins.reserve_exact(others);
        let most = commands.len() + MAX_BATCH_COMMANDS;
        let mut bytes = 0;
        while commands.len() < most && bytes < MAX_BATCH_BYTES {
            let Some((origin, command)) = self.waiting.pop_front() else { break };
            let weight = weight(&command);
            bytes += weight;
            self.bytes -= weight;
            origins.push(origin);
            commands.push(command);
        }
        (origins, commands)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Origin> {
        self.bytes = 0;
        self.renewals.clear();
        self.renewers.drain(..).chain(self.waiting.drain(..).map(|(origin, _)| origin))
    }
}

/// Roughly the bytes of a command in the log; values and many names make it large.
fn weight(command: &Command) -> usize {
    const PLAIN: usize = 64;
    let command = match command {
        Command::Session(command) => command,
        Command::Operator(operator) => return PLAIN + texts(operator),
        Command::Open(open) => return PLAIN + open.label.as_str().len(),
        _ => return PLAIN,
    };
    PLAIN
        + match &command.op {
            Op::Acquire(acquire) => {
                acquire.value.as_bytes().len()
                    + acquire.requests.iter().map(|request| request.resource.as_str().len()).sum::<usize>()
            }
            Op::SetValue { value, .. } | Op::Accept { value, .. } => value.as_bytes().len(),
            Op::WriteRegister { value, .. } => value.as_ref().map_or(0, |value| value.as_bytes().len()),
            Op::Cancel { .. }
            | Op::CancelCall { .. }
            | Op::Offer(_)
            | Op::Release { .. }
            | Op::Close
            | Op::SetDraining { .. }
            | Op::SetReady { .. } => 0,
        }
}

/// Bytes of the texts in what an operator wants.
fn texts(operator: &Operator) -> usize {
    let (resource, by, more) = match operator {
        Operator::AskRelease { resource, by, successor, .. } => {
            let label = match successor {
                Some(Successor::Labelled(label)) => label.as_str().len(),
                _ => 0,
            };
            (resource, by, label)
        }
        Operator::Revoke { resource, by, reason, .. } | Operator::ClearAlarm { resource, by, reason, .. } => {
            (resource, by, reason.as_str().len())
        }
        Operator::ChangeKind { resource, by, .. } => (resource, by, 0),
    };
    resource.as_str().len() + by.as_str().len() + more
}

/// An entry that was proposed and is not applied yet.
#[derive(Debug)]
pub(crate) struct Proposed {
    pub(crate) term: u64,
    pub(crate) index: u64,
    /// What it says, until it is applied: whoever proposed it need not read it back.
    pub(crate) payload: Option<Payload>,
    pub(crate) origins: Vec<Origin>,
    /// When it was proposed.
    pub(crate) since: Reading,
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::{Sequence, SessionCommand, SessionId, Token, Value};

    fn command(value: usize) -> Command {
        let op = Op::SetValue {
            resource: leasehold_core::ResourceName::new("job").unwrap(),
            token: Token::from_u64(1),
            value: Value::new(vec![0; value]).unwrap(),
        };
        Command::Session(SessionCommand { session: SessionId::from_u64(1), sequence: Sequence::Plain, op })
    }

    #[test]
    fn large_values_fill_the_queue_before_their_number_does() {
        let mut queue = Queue::default();
        let mut taken = 0;
        while !queue.is_full_for(&command(0)) {
            queue.push(Origin::Node, command(65_536));
            taken += 1;
        }
        assert!(taken < 1_100, "{taken} values of 64 KiB were taken");
        let renewal = Command::Renew {
            session: SessionId::from_u64(1),
            number: leasehold_core::RenewalNumber::new(1),
            seen: leasehold_core::ItemNumber::NONE,
        };
        assert!(!queue.is_full_for(&renewal), "a renewal is taken in all the same");
        while !queue.take().1.is_empty() {}
        assert!(!queue.is_full_for(&command(0)), "what was taken out makes room");
    }
}
