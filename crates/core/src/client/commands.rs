//! The outgoing stream: numbered commands, kept until they are answered.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::command::Op;
use crate::id::CommandNumber;

/// Most commands sent and unanswered. More would only wait in the service, and its unseen answers are limited.
pub const WINDOW: usize = 1_024;
/// Most commands submitted and unanswered, sent or not. The machine's own releases are taken beyond it.
pub const MAX_BACKLOG: usize = 65_536;

/// Who wants a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The application, which is told the outcome.
    Application,
    /// The machine itself.
    Machine,
}

#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) op: Op,
    pub(super) origin: Origin,
}

/// The service says that it has applied other commands than were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotOurs;

#[derive(Debug, Clone, Default)]
pub(super) struct Commands {
    /// Those from the first unanswered one up to the last, with gaps where a later one was answered first.
    pending: VecDeque<Option<Pending>>,
    unanswered: usize,
    last: CommandNumber,
    /// The last one sent on the present attachment, or known to be applied.
    sent: CommandNumber,
    /// The last one ever sent.
    ever_sent: CommandNumber,
}

impl Commands {
    pub(super) fn submit(&mut self, op: Op, origin: Origin) -> CommandNumber {
        self.last = self.last.next();
        self.pending.push_back(Some(Pending { op, origin }));
        self.unanswered += 1;
        self.last
    }

    pub(super) fn len(&self) -> usize {
        self.unanswered
    }

    /// The next command to send, if the window has room.
    pub(super) fn next_to_send(&mut self) -> Option<(CommandNumber, Op)> {
        let number = self.sendable()?;
        let op = self.pending.get(self.place_of(number)?)?.as_ref()?.op.clone();
        self.sent = number;
        self.ever_sent = self.ever_sent.max(number);
        Some((number, op))
    }

    /// Whether there is something to send.
    pub(super) fn has_unsent(&self) -> bool {
        self.sendable().is_some()
    }

    /// Whether the answer to something sent is missing.
    pub(super) fn awaits_answers(&self) -> bool {
        self.first().is_some_and(|first| first <= self.sent)
    }

    /// A new attachment: the service has applied everything up to `applied`, and the rest is sent again.
    pub(super) fn resume_after(&mut self, applied: CommandNumber) -> Result<(), NotOurs> {
        // All before the first that is kept.
        let answered = self.last.get() - self.pending.len() as u64;
        if applied > self.ever_sent || applied.get() < answered {
            return Err(NotOurs);
        }
        self.sent = applied;
        Ok(())
    }

    /// Takes out an answered command.
    pub(super) fn answered(&mut self, number: CommandNumber) -> Result<Pending, NotOurs> {
        if number > self.ever_sent {
            return Err(NotOurs);
        }
        let place = self.place_of(number).ok_or(NotOurs)?;
        let pending = self.pending.get_mut(place).and_then(Option::take).ok_or(NotOurs)?;
        self.unanswered -= 1;
        while let Some(None) = self.pending.front() {
            self.pending.pop_front();
        }
        Ok(pending)
    }

    /// Takes out everything, with whether it was ever sent.
    pub(super) fn drain(&mut self) -> Vec<(CommandNumber, Pending, bool)> {
        let ever_sent = self.ever_sent;
        let Some(first) = self.first() else { return Vec::new() };
        self.unanswered = 0;
        let pending = core::mem::take(&mut self.pending);
        let numbers = (first.get()..).map(CommandNumber::new);
        let kept = numbers.zip(pending).filter_map(|(number, pending)| Some((number, pending?)));
        kept.map(|(number, pending)| (number, pending, number <= ever_sent)).collect()
    }

    /// The first unanswered one.
    fn first(&self) -> Option<CommandNumber> {
        let before = self.last.get() - self.pending.len() as u64;
        (!self.pending.is_empty()).then(|| CommandNumber::new(before + 1))
    }

    fn place_of(&self, number: CommandNumber) -> Option<usize> {
        usize::try_from(number.get().checked_sub(self.first()?.get())?).ok()
    }

    fn sendable(&self) -> Option<CommandNumber> {
        let first = self.first()?;
        let next = self.sent.next();
        let in_window = next.get() - first.get().min(next.get()) < WINDOW as u64;
        (next <= self.last && in_window).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(commands: &mut Commands) -> Vec<u64> {
        core::iter::from_fn(|| commands.next_to_send()).map(|(number, _)| number.get()).collect()
    }

    fn with(count: usize) -> Commands {
        let mut commands = Commands::default();
        for _ in 0..count {
            commands.submit(Op::Close, Origin::Application);
        }
        commands
    }

    #[test]
    fn each_command_is_sent_once_per_attachment() {
        let mut commands = with(3);
        assert_eq!(sent(&mut commands), [1, 2, 3]);
        assert_eq!(sent(&mut commands), [0u64; 0]);
        commands.resume_after(CommandNumber::new(1)).unwrap();
        assert_eq!(sent(&mut commands), [2, 3]);
    }

    #[test]
    fn no_more_than_the_window_is_unanswered() {
        for (count, expected) in [(WINDOW - 1, WINDOW - 1), (WINDOW, WINDOW), (WINDOW + 1, WINDOW)] {
            assert_eq!(sent(&mut with(count)).len(), expected, "{count} submitted");
        }
        let mut commands = with(WINDOW + 1);
        sent(&mut commands);
        commands.answered(CommandNumber::new(1)).unwrap();
        assert_eq!(sent(&mut commands), [WINDOW as u64 + 1]);
    }

    #[test]
    fn a_service_that_knows_more_or_less_than_was_said_is_not_ours() {
        let mut commands = with(3);
        sent(&mut commands);
        commands.answered(CommandNumber::new(1)).unwrap();
        assert_eq!(commands.resume_after(CommandNumber::new(0)), Err(NotOurs));
        assert_eq!(commands.resume_after(CommandNumber::new(1)), Ok(()));
        assert_eq!(commands.resume_after(CommandNumber::new(3)), Ok(()));
        assert_eq!(commands.resume_after(CommandNumber::new(4)), Err(NotOurs));
    }

    #[test]
    fn an_answer_to_nothing_that_was_sent_is_not_ours() {
        let mut commands = with(1);
        assert!(commands.answered(CommandNumber::new(1)).is_err());
        sent(&mut commands);
        assert!(commands.answered(CommandNumber::new(1)).is_ok());
        assert!(commands.answered(CommandNumber::new(1)).is_err());
    }

    #[test]
    fn only_what_was_sent_may_have_had_an_effect() {
        let mut commands = with(1);
        sent(&mut commands);
        commands.submit(Op::Close, Origin::Machine);
        let left: Vec<bool> = commands.drain().into_iter().map(|(_, _, was_sent)| was_sent).collect();
        assert_eq!(left, [true, false]);
    }
}
